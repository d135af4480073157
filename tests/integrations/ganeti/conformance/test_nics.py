"""Cases M: several IPs a NIC."""

import re

import pytest

from tests.integrations.ganeti.conformance.door import Door

THREE = "ip0=192.0.2.4,ip1=pool,ip2=pool3"


def test_m01_a_nic_gets_addresses_from_several_subnets(door: Door) -> None:
    """M01."""
    assert door.add("inst1", THREE) == ["192.0.2.4", "192.0.2.10", "10.0.0.8"]


def test_m02_ip_is_the_first_address(door: Door) -> None:
    """M02."""
    assert door.add("inst1", "ip=pool") == ["192.0.2.10"]


def test_m03_ip_and_ip0_are_one(door: Door) -> None:
    """M03, U24."""
    door.refuse_add("ip=pool,ip0=pool", "--net", "ip0")


def test_m04_a_new_nic_has_no_gap(door: Door) -> None:
    """M04, U24."""
    door.refuse_add("ip0=pool,ip2=pool", "--net", "ip1")


def test_m06_u30_one_address_once_in_a_network(door: Door) -> None:
    """M06, U30: in one NIC, and in two NICs of one instance."""
    door.refuse_add("ip0=192.0.2.4,ip1=192.0.2.4", "--net", "192.0.2.4")
    door.refuse(
        "instance add --net 0:ip=192.0.2.4,network=net1 --net 1:ip=192.0.2.4,network=net1 inst1", "--net", "192.0.2.4"
    )


def test_m07_one_address_is_exchanged(door: Door) -> None:
    """M07."""
    door.add("inst1", THREE)

    door.do("instance modify --net 0:modify,ip1=192.0.2.77 inst1")

    assert door.ips("inst1") == [["192.0.2.4", "192.0.2.77", "10.0.0.8"]]
    assert door.add("inst2", "ip=pool") == ["192.0.2.10"]


def test_m10_the_next_address_is_appended(door: Door) -> None:
    """M10."""
    door.add("inst1", "ip=pool")

    door.do("instance modify --net 0:modify,ip1=pool inst1")

    assert door.ips("inst1") == [["192.0.2.10", "192.0.2.11"]]


def test_m11_a_gap_is_refused(door: Door) -> None:
    """M11."""
    door.add("inst1", "ip=pool")

    door.refuse("instance modify --net 0:modify,ip3=pool inst1", "--net", "ip3", "gap")


def test_m12_a_nic_is_added_at_the_end(door: Door) -> None:
    """M12."""
    door.add("inst1", "ip=pool")

    door.do("instance modify --net -1:add,ip0=pool,ip1=192.0.2.44,network=net1 inst1")

    assert door.ips("inst1") == [["192.0.2.10"], ["192.0.2.11", "192.0.2.44"]]


def test_m13_all_addresses_of_a_nic_or_an_instance_go_with_it(door: Door) -> None:
    """M13."""
    door.do("instance add --net 0:ip=pool,network=net1 --net 1:ip0=pool,ip1=pool3,network=net1 inst1")

    door.do("instance modify --net 1:remove inst1")
    assert [pool["map"].count("X") for pool in door.subnet("subnet1")["pools"]] == [1]
    door.do("instance remove inst1")

    assert door.field("reserved_count") == 0
    assert door.field("inst_list") == []


def test_m16_the_present_value_changes_nothing(door: Door) -> None:
    """M16."""
    door.add("inst1", THREE)

    door.unchanged("instance modify --net 0:modify,ip0=192.0.2.4 inst1")


def test_m17_both_versions_on_one_nic(door: Door) -> None:
    """M17."""
    assert door.add("inst1", "ip0=pool,ip1=2001:db8::5") == ["192.0.2.10", "2001:db8::5"]


def test_m19_u8_a_bare_network_is_an_unknown_parameter(door: Door) -> None:
    """M19, U8: the design's own line."""
    door.refuse("instance add --net 0:ip=pool,network1 inst1", "--net", "unknown parameter", "network=network1")


def test_m20_without_a_network_there_is_nothing_to_pick_from(door: Door) -> None:
    """M20."""
    door.refuse("instance add --net 0:ip0=pool inst1", "--net", "network")


def test_two_addresses_swap_in_one_command(door: Door) -> None:
    """Of one NIC, and of two NICs."""
    door.do("instance add --net 0:ip0=pool,ip1=pool,network=net1 --net 1:ip=pool3,network=net1 inst1")

    door.do("instance modify --net 0:modify,ip0=192.0.2.11,ip1=192.0.2.10 inst1")
    assert door.ips("inst1") == [["192.0.2.11", "192.0.2.10"], ["10.0.0.8"]]
    door.do("instance modify --net 0:modify,ip0=10.0.0.8 --net 1:modify,ip=192.0.2.11 inst1")

    assert door.ips("inst1") == [["10.0.0.8", "192.0.2.10"], ["192.0.2.11"]]


def test_an_address_that_stays_with_one_nic_does_not_go_to_another(door: Door) -> None:
    """The final state counts."""
    door.do("instance add --net 0:ip=pool,network=net1 --net 1:ip=pool,network=net1 inst1")

    door.refuse("instance modify --net 1:modify,ip=192.0.2.10 inst1", "--net", "192.0.2.10")


def test_u23_removed_addresses_let_others_move_up_and_indices_are_the_old_ones(door: Door) -> None:
    """U23."""
    door.add("inst1", THREE)

    door.do("instance modify --net 0:modify,ip0=none,ip1=192.0.2.50 inst1")

    assert door.ips("inst1") == [["192.0.2.50", "10.0.0.8"]]
    door.do("instance modify --net 0:modify,ip0=none --net 0:modify,ip1=none inst1")
    assert door.ips("inst1") == [[]]


def test_u6_a_nic_keeps_its_network_without_address(door: Door) -> None:
    """U6."""
    door.add("inst1", "ip=pool")

    door.do("instance modify --net 0:modify,ip=none inst1")

    [found] = door.ask("instance list -o networks inst1")
    assert found["networks"] == ["net1"]


def test_a_mac_begins_as_its_network_says(door: Door) -> None:
    """MAC from the network's prefix; one MAC once in the cluster."""
    door.modify("--mac-prefix aa:bb:cc")
    door.add("inst1", "ip=pool")
    [found] = door.ask("instance list -o macs inst1")
    [mac] = found["macs"]

    assert re.fullmatch(r"aa:bb:cc(:[0-9a-f]{2}){3}", mac)
    door.refuse_add(f"ip=pool,mac={mac}", mac, "inst1")
    door.do("instance modify --net 0:modify,mac=02:00:00:00:00:01 inst1", f"instance add --net 0:mac={mac} inst2")


def test_nics_are_found_by_name_and_uuid(door: Door) -> None:
    """1.5: NIC = index, -1, name or uuid."""
    door.do("instance add --net 0:ip=pool,network=net1,name=front --net 1:network=net1 inst1")
    [found] = door.ask("instance list -o nics inst1")
    uuid = found["nics"][1]["uuid"]

    door.do(f"instance modify --net front:modify,ip1=pool --net {uuid}:modify,ip=pool inst1")
    door.do("instance modify --net -1:modify,name=back --net front:remove inst1")

    assert door.ips("inst1") == [["192.0.2.12"]]
    door.refuse("instance modify --net nosuch:remove inst1", "--net", "nosuch")
    door.refuse("instance modify --net 5:remove inst1", "--net", "5")


def test_a_nic_moves_to_another_network(door: Door) -> None:
    """What it has in the old one goes back; network=none takes it off."""
    door.do("network add net2 --subnet add:cidr=198.51.100.0/24,pool", "network connect net2 -N mode=routed,link=r1")
    door.add("inst1", "ip=pool")

    door.refuse("instance modify --net 0:modify,network=net2 inst1", "--net", "192.0.2.10", "net2")
    door.do("instance modify --net 0:modify,network=net2,ip=pool inst1")

    assert door.ips("inst1") == [["198.51.100.1"]]
    assert door.field("reserved_count") == 0
    [found] = door.ask("instance list -o nics inst1")
    assert (found["nics"][0]["mode"], found["nics"][0]["link"]) == ("routed", "r1")
    door.do("instance modify --net 0:modify,network=none,ip=none,link=br5 inst1")
    door.do("network disconnect net2")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("instance add --net 1:ip=pool,network=net1 x", ["gap"]),
        ("instance add --net 0:network=net1 --net 0:network=net1 x", ["twice"]),
        ("instance add --net 0:ip=pool,network=nosuch x", ["nosuch"]),
        ("instance add --net 0:network=net1 --node nosuch x", ["nosuch"]),
        ("instance add --net 0:network=net1 'a b'", ["a b"]),
        ("instance modify --net 0:remove nosuch", ["nosuch"]),
        ("instance remove nosuch", ["nosuch"]),
    ],
)
def test_bad_commands_say_what_is_wrong(door: Door, line: str, words: list[str]) -> None:
    """Each refused command names the piece and changes nothing."""
    door.refuse(line, *words)


def test_n18_a_nic_that_moves_to_a_network_of_another_mac_prefix_gets_a_mac_of_that_prefix(door: Door) -> None:
    """N18: unless mac= is given; between networks of one prefix, and on the way to the same network, it is kept."""
    door.do(
        "network add alike --subnet add:cidr=10.80.0.0/24,pool",
        "network add other --mac-prefix aa:bb:cc --subnet add:cidr=10.81.0.0/24,pool",
        "network connect alike",
        "network connect other",
    )
    door.add("inst1", "ip=pool")
    first = door.mac("inst1")

    door.do("instance modify --net 0:modify,network=alike,ip=pool inst1")
    assert door.mac("inst1") == first
    door.do("instance modify --net 0:modify,network=other,ip=pool inst1")
    second = door.mac("inst1")
    assert second.startswith("aa:bb:cc:")
    door.do("instance modify --net 0:modify,network=other,name=eth inst1")
    assert door.mac("inst1") == second
    door.do("instance modify --net 0:modify,network=net1,ip=pool,mac=02:00:00:00:00:07 inst1")
    assert door.mac("inst1") == "02:00:00:00:00:07"
    door.do("instance modify --net 0:modify,network=other,ip=none inst1")
    assert door.mac("inst1").startswith("aa:bb:cc:")
    door.do("instance modify --net 0:modify,network=none inst1")
    assert door.mac("inst1").startswith("aa:00:00:")
