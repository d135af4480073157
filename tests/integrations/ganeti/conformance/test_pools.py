"""Cases P: pools."""

import pytest

from tests.integrations.ganeti.conformance.door import Door


def test_p01_a_pool_lands_in_its_subnet_with_both_ends(door: Door) -> None:
    """P01."""
    door.modify("--pool add:192.0.2.110-192.0.2.120,name=b")

    pool = door.subnet("subnet1")["pools"][1]
    assert (pool["start"], pool["end"], pool["name"]) == ("192.0.2.110", "192.0.2.120", "b")
    assert pool["map"] == "." * 11


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("10.0.0.20-10.0.0.30", "10.0.0.20-10.0.0.30", id="P02"),
        pytest.param("10.0.0.100", "10.0.0.100-10.0.0.100", id="P03"),
        pytest.param("10.0.0.64/27", "10.0.0.64-10.0.0.95", id="P04"),
    ],
)
def test_p02_p03_p04_a_pool_is_a_range_an_address_or_a_block(door: Door, text: str, expected: str) -> None:
    """P02, P03, P04: unnamed, in subnet2."""
    door.modify(f"--pool add:{text}")

    assert door.pools("subnet2")[-1] == expected
    assert door.subnet("subnet2")["pools"][-1]["name"] is None


def test_p05_a_pool_may_be_a_whole_subnet(door: Door) -> None:
    """P05."""
    door.modify("--subnet add:cidr=198.51.100.0/28,name=x")

    door.modify("--pool add:subnet=x")

    assert door.pools("x") == ["198.51.100.0-198.51.100.15"]


def test_p06_the_whole_subnet_may_be_found_by_uuid_and_named(door: Door) -> None:
    """P06."""
    door.modify("--subnet add:cidr=198.51.100.0/28,name=x")
    uuid = door.subnet("x")["uuid"]

    door.modify(f"--pool add:subnet={uuid},name=w")

    assert door.subnet("x")["pools"][0]["name"] == "w"


def test_p07_a_pool_needs_a_subnet_around_it(door: Door) -> None:
    """P07."""
    door.refuse_modify("--pool add:172.16.0.1-172.16.0.9", "--pool", "172.16.0.1-172.16.0.9", "subnet")
    door.refuse_modify("--pool add:192.0.2.250-192.0.3.5", "--pool", "subnet")


def test_p09_pools_do_not_overlap(door: Door) -> None:
    """P09."""
    door.refuse_modify("--pool add:192.0.2.90-192.0.2.130", "--pool", "pool1", "overlaps")


def test_p10_pools_that_touch_stay_two(door: Door) -> None:
    """P10."""
    door.modify("--pool add:192.0.2.101-192.0.2.105")

    assert door.pools("subnet1") == ["192.0.2.10-192.0.2.100", "192.0.2.101-192.0.2.105"]


@pytest.mark.parametrize("text", ["10.0.0.30-10.0.0.20", "10.0.0.20-2001:db8::5", "somewhere", "10.0.0.20-", ""])
def test_p11_a_range_is_a_range(door: Door, text: str) -> None:
    """P11."""
    door.refuse_modify(f"--pool add:{text}", "--pool")


def test_p13_a_pool_may_lie_over_reserved_addresses(door: Door) -> None:
    """P13."""
    door.modify("--pool pool1:remove --add-reserved-ips 192.0.2.20-192.0.2.50")

    door.modify("--pool add:192.0.2.10-192.0.2.60")

    assert door.subnet("subnet1")["pools"][0]["map"] == "." * 10 + "X" * 31 + "." * 10


def test_p14_removing_a_part_splits_a_pool(door: Door) -> None:
    """P14, U22: bits of the kept addresses stay, and so do name and order."""
    door.add("inst1", "ip=192.0.2.12")
    door.add("inst2", "ip=192.0.2.60")

    door.modify("--pool remove:192.0.2.20-192.0.2.50")

    low, high = door.subnet("subnet1")["pools"]
    assert (low["start"], low["end"], low["name"], low["map"]) == ("192.0.2.10", "192.0.2.19", "pool1", "..X.......")
    assert (high["start"], high["end"], high["name"]) == ("192.0.2.51", "192.0.2.100", "pool1")
    assert high["map"] == "." * 9 + "X" + "." * 40


def test_p16_removing_all_of_a_pool_removes_it(door: Door) -> None:
    """P16."""
    door.modify("--pool remove:192.0.2.10-192.0.2.100")

    assert door.pools("subnet1") == []


def test_p18_a_range_that_touches_no_pool_is_not_removed(door: Door) -> None:
    """P18, U20."""
    door.refuse_modify("--pool remove:192.0.2.150-192.0.2.160", "--pool", "192.0.2.150-192.0.2.160")


def test_u20_a_range_over_several_pools_cuts_all_it_touches(door: Door) -> None:
    """U20."""
    door.modify("--pool remove:10.0.0.12-10.0.0.42")

    assert door.pools("subnet2") == ["10.0.0.8-10.0.0.11", "10.0.0.43-10.0.0.45"]


def test_p21_a_pool_is_renamed_in_all_its_parts(door: Door) -> None:
    """P21, U3."""
    door.modify("--pool remove:192.0.2.20-192.0.2.50")

    door.modify("--pool pool1:modify,name=web")

    assert [pool["name"] for pool in door.subnet("subnet1")["pools"]] == ["web", "web"]
    door.modify("--pool 192.0.2.10-192.0.2.19:modify,name=none")
    assert [pool["name"] for pool in door.subnet("subnet1")["pools"]] == [None, "web"]


def test_p22_a_pool_is_removed_by_name_with_all_its_ranges(door: Door) -> None:
    """P22."""
    door.modify("--pool pool3:remove")

    assert door.pools("subnet2") == []
    door.refuse_modify("--pool pool3:remove", "--pool", "pool3")


@pytest.mark.parametrize("name", ["pool", "none", "192.0.2.5", "POOL", "auto", "add", "a=b", "192.0.2.0/24"])
def test_p23_some_words_are_no_names(door: Door, name: str) -> None:
    """P23, U12."""
    door.refuse_modify(f"--pool add:10.0.0.20-10.0.0.30,name={name}", "--pool", name)
    door.refuse_modify(f"--pool pool1:modify,name={name}", "--pool") if name.lower() != "none" else None


def test_p24_a_pool_may_be_ipv6(door: Door) -> None:
    """P24."""
    door.modify("--pool add:2001:db8::10-2001:db8::ff,name=p6")

    assert door.subnet("six")["pools"][0]["size"] == 240
    assert door.add("inst1", "ip=p6") == ["2001:db8::10"]


def test_p25_a_pool_of_a_whole_prefix_is_counted_not_spelled_out(door: Door) -> None:
    """P25, U27."""
    door.modify("--pool add:subnet=six,name=all6")

    [pool] = door.subnet("six")["pools"]
    assert pool["map"] is None
    assert (pool["size"], pool["free_count"]) == (2**64, 2**64 - 2)
    assert door.add("inst1", "ip=all6") == ["2001:db8::2"]
    assert "2001:db8::" in door.do("network info net1").stdout


def test_p27_two_pools_of_one_command_may_not_overlap(door: Door) -> None:
    """P27."""
    door.refuse_modify("--pool add:10.0.0.20-10.0.0.30 --pool add:10.0.0.25-10.0.0.35", "--pool", "overlaps")


def test_p28_pools_of_two_networks_are_independent(door: Door) -> None:
    """P28."""
    door.do(
        "network add net2 --subnet add:cidr=192.0.2.0/24 --pool add:192.0.2.10-192.0.2.12,name=pool1",
        "network connect net2",
    )

    assert door.add("inst1", "ip=pool1") == ["192.0.2.10"]
    assert door.add("inst2", "ip=pool1,network=net2") == ["192.0.2.10"]
    door.modify("--pool pool1:remove", "net2")
    assert door.pools("subnet1") == ["192.0.2.10-192.0.2.100"]


def test_u4_a_pool_may_be_reserved_as_a_whole(door: Door) -> None:
    """U4: legal, and yields nothing."""
    door.modify("--add-reserved-ips 10.0.0.8-10.0.0.15")

    assert door.add("inst1", "ip=pool3") == ["10.0.0.40"]


def test_u9_the_network_must_be_named(door: Door) -> None:
    """U9: the design's own line lacks it."""
    door.refuse("network modify --pool add:subnet=six", "NETWORK")


def test_u18_one_range_a_pool_option(door: Door) -> None:
    """U18."""
    door.refuse_modify("--pool add:10.0.0.20,10.0.0.30", "--pool", "10.0.0.30")
    door.modify("--pool add:10.0.0.20 --pool add:10.0.0.30")
    assert door.pools("subnet2")[-2:] == ["10.0.0.20-10.0.0.20", "10.0.0.30-10.0.0.30"]


def test_u19_a_pool_goes_while_its_addresses_are_used(door: Door) -> None:
    """U19: use is known by address and network, the bit only shows it."""
    door.add("inst1", "ip=pool")

    door.modify("--pool pool1:remove")

    assert door.ips("inst1") == [["192.0.2.10"]]
    door.refuse_add("ip=192.0.2.10", "192.0.2.10")
    door.modify("--pool add:192.0.2.10-192.0.2.12")
    assert door.subnet("subnet1")["pools"][0]["map"] == "X.."


def test_u31_start_and_size_is_no_range_of_the_command_line(door: Door) -> None:
    """U31."""
    door.refuse_modify("--pool add:10.0.0.20+5", "--pool", "10.0.0.20+5")
