"""Cases S: subnets."""

import pytest

from tests.integrations.ganeti.conformance.door import Door


def test_s01_a_subnet_is_appended_with_a_uuid_of_its_own(door: Door) -> None:
    """S01."""
    door.modify("--subnet add:cidr=198.51.100.0/24,gateway=198.51.100.1,dhcp=true,name=x")

    *others, last = door.field("subnets")
    assert (last["cidr"], last["gateway"], last["dhcp"], last["name"]) == (
        "198.51.100.0/24", "198.51.100.1", True, "x",
    )  # fmt: skip
    assert last["uuid"] not in {other["uuid"] for other in others}
    assert len(others) == 3


def test_s02_values_may_hold_colons(door: Door) -> None:
    """S02."""
    door.modify("--subnet add:cidr=2001::/64,gateway=2001::1,dhcp=true")

    assert door.subnet("2001::/64")["gateway"] == "2001::1"


def test_s03_a_subnet_needs_a_block(door: Door) -> None:
    """S03."""
    door.refuse_modify("--subnet add:gateway=10.9.0.1", "--subnet", "cidr")


@pytest.mark.parametrize("cidr", ["192.0.2.0/24", "192.0.2.0/25", "192.0.0.0/16"])
def test_s04_subnets_of_one_network_do_not_overlap(door: Door, cidr: str) -> None:
    """S04: equal, inside, around."""
    door.refuse_modify(f"--subnet add:cidr={cidr}", "--subnet", cidr, "overlaps")


def test_s06_another_network_may_have_the_same_block(door: Door) -> None:
    """S06."""
    door.do("network add net2 --subnet add:cidr=192.0.2.0/24")

    assert door.field("network", "net2") == "192.0.2.0/24"


def test_s07_dhcp_is_off_unless_said(door: Door) -> None:
    """S07."""
    door.modify("--subnet add:cidr=198.51.100.0/24")

    assert door.subnet("198.51.100.0/24")["dhcp"] is False


def test_s08_one_subnet_a_version_has_dhcp(door: Door) -> None:
    """S08, U13: moving it in one command is judged by the final state."""
    door.modify("--subnet subnet1:modify,dhcp=true")

    door.refuse_modify("--subnet add:cidr=198.51.100.0/24,dhcp=true", "--subnet", "DHCP")
    door.refuse_modify("--subnet subnet2:modify,dhcp=true", "--subnet", "DHCP")
    door.modify("--subnet subnet2:modify,dhcp=true --subnet subnet1:modify,dhcp=false")

    assert [subnet["dhcp"] for subnet in door.field("subnets")] == [False, True, False]


def test_s09_each_version_may_have_dhcp_once(door: Door) -> None:
    """S09."""
    door.modify("--subnet subnet1:modify,dhcp=true")

    door.modify("--subnet six:modify,dhcp=true")

    assert [subnet["dhcp"] for subnet in door.field("subnets")] == [True, False, True]


def test_s11_a_subnet_is_found_by_block_name_and_uuid(door: Door) -> None:
    """S11."""
    uuid = door.subnet("subnet2")["uuid"]
    for number, ident in enumerate(("10.0.0.0/24", "subnet2", uuid)):
        door.modify(f"--subnet {ident}:modify,gateway=10.0.0.{number + 1}")

        assert door.subnet("subnet2")["gateway"] == f"10.0.0.{number + 1}"


@pytest.mark.parametrize("ident", ["2001:db8::/64", "[2001:db8::/64]", "2001:DB8:0::/64"])
def test_s12_an_ipv6_block_names_its_subnet(door: Door, ident: str) -> None:
    """S12, U10, U11."""
    door.modify(f"--subnet {ident}:remove")

    assert [subnet["name"] for subnet in door.field("subnets")] == ["subnet1", "subnet2"]


def test_s13_an_unknown_subnet_is_not_found(door: Door) -> None:
    """S13."""
    door.refuse_modify("--subnet nosuch:remove", "--subnet", "nosuch")
    door.refuse_modify("--subnet 172.16.0.0/12:modify,dhcp=true", "--subnet", "172.16.0.0/12")


def test_s14_several_things_change_at_once(door: Door) -> None:
    """S14."""
    door.modify("--subnet subnet1:modify,dhcp=true,name=foo")

    assert door.subnet("foo")["dhcp"] is True
    door.modify("--subnet foo:modify,name=none")
    assert door.subnet("192.0.2.0/24")["name"] is None


def test_s15_a_subnets_name_is_its_own_in_its_network(door: Door) -> None:
    """S15."""
    door.refuse_modify("--subnet add:cidr=198.51.100.0/24,name=subnet1", "--subnet", "subnet1", "exists")
    door.do("network add net2 --subnet add:cidr=198.51.100.0/24,name=subnet1")


def test_s16_a_gateway_lies_inside(door: Door) -> None:
    """S16."""
    door.refuse_modify("--subnet subnet2:modify,gateway=10.1.1.1", "--subnet", "10.1.1.1", "outside")
    door.refuse_modify("--subnet subnet2:modify,gateway=10.0.0.0", "--subnet", "10.0.0.0")
    door.refuse_modify("--subnet subnet2:modify,gateway=10.0.0.255", "--subnet", "10.0.0.255")


def test_s18_a_new_gateway_is_kept_back_and_the_old_one_let_go(door: Door) -> None:
    """S18."""
    door.modify("--subnet subnet1:modify,gateway=192.0.2.40")

    assert door.external("subnet1") == ["192.0.2.0", "192.0.2.40", "192.0.2.255"]
    assert door.subnet("subnet1")["pools"][0]["map"][30] == "X"
    assert door.add("inst1", "ip=192.0.2.1") == ["192.0.2.1"]
    door.modify("--subnet subnet1:modify,gateway=none")
    assert door.subnet("subnet1")["gateway"] is None


def test_s19_an_address_in_use_is_no_gateway(door: Door) -> None:
    """S19."""
    door.add("inst1", "ip=192.0.2.40")

    door.refuse_modify("--subnet subnet1:modify,gateway=192.0.2.40", "192.0.2.40", "instance/inst1")


def test_s21_a_subnet_grows_and_its_pools_stay(door: Door) -> None:
    """S21."""
    door.add("inst1", "ip=pool")
    before = door.subnet("subnet1")["pools"]

    door.modify("--subnet subnet1:modify,cidr=192.0.2.0/23")

    assert door.subnet("subnet1")["cidr"] == "192.0.2.0/23"
    assert door.subnet("subnet1")["pools"] == before
    assert before[0]["map"].startswith("X.")


def test_s23_a_subnet_shrinks_around_its_pools(door: Door) -> None:
    """S23."""
    before = door.subnet("subnet1")["pools"]

    door.modify("--subnet subnet1:modify,cidr=192.0.2.0/25")

    assert door.subnet("subnet1")["pools"] == before


def test_s24_a_used_address_stops_the_shrinking(door: Door) -> None:
    """S24."""
    door.modify("--pool pool1:remove --pool add:192.0.2.10-192.0.2.200,name=pool1")
    door.add("inst1", "ip=192.0.2.150")

    door.refuse_modify("--subnet subnet1:modify,cidr=192.0.2.0/25", "192.0.2.150")


def test_s25_free_parts_of_pools_are_cut(door: Door) -> None:
    """S25."""
    door.modify("--pool pool1:remove --pool add:192.0.2.10-192.0.2.200,name=pool1")

    door.modify("--subnet subnet1:modify,cidr=192.0.2.0/25")

    assert door.pools("subnet1") == ["192.0.2.10-192.0.2.127"]


def test_s26_a_reserved_range_stops_the_shrinking(door: Door) -> None:
    """S26."""
    door.modify("--add-reserved-ips 192.0.2.200-192.0.2.210")

    door.refuse_modify("--subnet subnet1:modify,cidr=192.0.2.0/25", "--subnet", "192.0.2.200-192.0.2.210")


def test_s29_host_bits_are_dropped_with_a_warning(door: Door) -> None:
    """S29, U14: the design's own line."""
    result = door.modify("--subnet subnet1:modify,cidr=192.0.2.0/22")

    assert door.field("network") == "192.0.0.0/22"
    assert "warning" in result.stderr
    assert "192.0.0.0/22" in result.stderr


def test_s30_a_subnet_moves_when_all_it_holds_fits(door: Door) -> None:
    """S30, U33."""
    moving = "--subnet subnet1:modify,cidr=198.51.100.0/24"
    door.refuse_modify(f"{moving},gateway=none", "--subnet", "pool1")
    door.modify("--pool pool1:remove")
    door.refuse_modify(moving, "--subnet", "192.0.2.1")
    door.add("inst1", "ip=192.0.2.50")
    door.refuse_modify(f"{moving},gateway=none", "192.0.2.50")
    door.do("instance remove inst1")
    door.modify("--add-reserved-ips 192.0.2.9")
    door.refuse_modify(f"{moving},gateway=none", "192.0.2.9")
    door.modify("--remove-reserved-ips 192.0.2.9")

    door.modify(f"{moving},gateway=198.51.100.1")

    assert door.subnet("subnet1")["gateway"] == "198.51.100.1"


def test_s31_a_subnet_keeps_its_version(door: Door) -> None:
    """S31."""
    door.refuse_modify("--subnet subnet1:modify,cidr=2001:db8:5::/64", "--subnet", "2001:db8:5::/64")


def test_s32_an_unused_subnet_goes_with_all_it_has(door: Door) -> None:
    """S32."""
    door.modify("--add-reserved-ips 10.0.0.200")

    door.modify("--subnet subnet2:remove")

    assert [subnet["name"] for subnet in door.field("subnets")] == ["subnet1", "six"]


def test_a_used_subnet_stays(door: Door) -> None:
    """D:153: allowed only if no instances use IPs from this subnet."""
    door.add("inst1", "ip=pool3")

    door.refuse_modify("--subnet subnet2:remove", "10.0.0.8", "instance/inst1")


def test_s35_a_subnet_may_come_with_a_pool_over_all_of_it(door: Door) -> None:
    """S35, U16."""
    door.modify("--subnet add:cidr=10.1.0.0/27,pool,name=small")

    assert door.pools("small") == ["10.1.0.0-10.1.0.31"]
    assert door.external("small") == ["10.1.0.0", "10.1.0.31"]
    door.modify("--pool pool1:remove --pool pool3:remove")
    assert door.add("inst1", "ip=pool") == ["10.1.0.1"]


@pytest.mark.parametrize("cidr", ["10.9.0.0/31", "10.9.0.0/32", "2001:db8:9::/127", "2001:db8:9::/128"])
def test_s36_the_smallest_blocks_keep_nothing_back(door: Door, cidr: str) -> None:
    """S36, U16."""
    door.modify(f"--subnet add:cidr={cidr},name=tiny,pool")

    assert door.external("tiny") == []
    assert set(door.subnet("tiny")["pools"][0]["map"]) == {"."}


def test_s37_the_largest_blocks_are_blocks_like_others(door: Door) -> None:
    """S37."""
    door.modify("--subnet subnet2:remove")

    door.modify("--subnet add:cidr=10.0.0.0/8,name=huge,pool --subnet add:cidr=2001:db8:5::/64,name=wide,pool")

    assert door.subnet("huge")["pools"][0]["size"] == 2**24
    assert door.subnet("wide")["pools"][0]["free_count"] == 2**64 - 1


def test_u16_automatic_marks_of_ipv6_are_the_router_and_the_gateway(door: Door) -> None:
    """U16."""
    assert door.external("six") == ["2001:db8::-2001:db8::1"]


def test_u15_automatic_marks_follow_the_block(door: Door) -> None:
    """U15: they are worked out again and do not stop a change."""
    door.modify("--subnet subnet1:modify,cidr=192.0.2.0/25")

    assert door.external("subnet1") == ["192.0.2.0-192.0.2.1", "192.0.2.127"]
    door.refuse_modify("--subnet subnet1:modify,cidr=192.0.2.8/29", "--subnet", "192.0.2.1")
