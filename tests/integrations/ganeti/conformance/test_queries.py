"""Cases Q: queries, environment, compatibility. Q10 to Q13 and Q21 are with the Ganeti files."""

import pytest

from tests.integrations.ganeti.conformance.door import Door


def test_q01_subnets_are_listed_in_order(door: Door) -> None:
    """Q01."""
    found = [(each["cidr"], each["gateway"], each["dhcp"], each["name"]) for each in door.field("subnets")]

    assert found == [
        ("192.0.2.0/24", "192.0.2.1", False, "subnet1"),
        ("10.0.0.0/24", None, False, "subnet2"),
        ("2001:db8::/64", "2001:db8::1", False, "six"),
    ]


def test_q02_pools_have_ends_and_a_map(door: Door) -> None:
    """Q02."""
    pools = [(pool["start"], pool["end"], pool["map"]) for pool in door.subnet("subnet2")["pools"]]

    assert pools == [("10.0.0.8", "10.0.0.15", "........"), ("10.0.0.40", "10.0.0.45", "......")]


def test_q04_u26_the_networks_map_is_that_of_the_first_pool(door: Door) -> None:
    """Q04, U26: counts are sums over pools."""
    door.add("inst1", "ip0=pool,ip1=pool3")

    assert door.field("map") == "X" + "." * 90
    assert (door.field("free_count"), door.field("reserved_count")) == (91 + 8 + 6 - 2, 2)


def test_q05_deprecated_fields_point_to_the_first_of_a_version(door: Door) -> None:
    """Q05."""
    [found] = door.ask("network list -o network,gateway,network6,gateway6 net1")

    assert list(found.values()) == ["192.0.2.0/24", "192.0.2.1", "2001:db8::/64", "2001:db8::1"]


def test_q07_the_deprecated_option_makes_what_it_made(door: Door) -> None:
    """Q07."""
    result = door.do("network add --network 192.0.2.0/28 --gateway 192.0.2.1 c")

    [subnet] = door.field("subnets", "c")
    [pool] = subnet["pools"]
    assert (pool["start"], pool["end"]) == ("192.0.2.0", "192.0.2.15")
    assert door.field("map", "c") == "XX.............X"
    assert (door.field("free_count", "c"), door.field("reserved_count", "c")) == (13, 3)
    assert "deprecated" in result.stderr


def test_q08_u28_the_deprecated_ipv6_options_make_a_second_subnet(door: Door) -> None:
    """Q08, U28."""
    door.do("network add --network 192.0.2.0/28 --network6 2001:db8:8::/64 --gateway6 2001:db8:8::1 c")

    four, six = door.field("subnets", "c")
    assert (four["cidr"], len(four["pools"])) == ("192.0.2.0/28", 1)
    assert (six["cidr"], six["gateway"], six["pools"]) == ("2001:db8:8::/64", "2001:db8:8::1", [])


def test_u36_the_deprecated_subnet_comes_first(door: Door) -> None:
    """U36."""
    door.do("network add --subnet add:cidr=198.51.100.0/24,name=x --network 192.0.2.0/28 c")

    assert [each["cidr"] for each in door.field("subnets", "c")] == ["192.0.2.0/28", "198.51.100.0/24"]


def test_q14_a_single_address_gives_todays_environment(door: Door) -> None:
    """Q14: name by name."""
    door.do(
        "network add --network 192.0.2.0/28 --gateway 192.0.2.1 --network6 2001:db8:8::/64 --gateway6 2001:db8:8::1"
        " --mac-prefix aa:bb:cc --tags prod,web c",
        "network connect c default -N mode=bridged,link=br9,vlan=5",
        "instance add --net 0:ip=pool,network=c,name=front,mac=aa:bb:cc:00:00:01 inst1",
    )
    [nic] = door.ask("instance list -o nics inst1")[0]["nics"]

    assert door.ask("instance env inst1") == {
        "INSTANCE_NAME": "inst1",
        "INSTANCE_PRIMARY": "node1",
        "INSTANCE_NIC_COUNT": "1",
        "INSTANCE_NIC0_IP": "192.0.2.2",
        "INSTANCE_NIC0_MAC": "aa:bb:cc:00:00:01",
        "INSTANCE_NIC0_MODE": "bridged",
        "INSTANCE_NIC0_LINK": "br9",
        "INSTANCE_NIC0_BRIDGE": "br9",
        "INSTANCE_NIC0_VLAN": "5",
        "INSTANCE_NIC0_NAME": "front",
        "INSTANCE_NIC0_UUID": nic["uuid"],
        "INSTANCE_NIC0_NETWORK_NAME": "c",
        "INSTANCE_NIC0_NETWORK_UUID": door.field("uuid", "c"),
        "INSTANCE_NIC0_NETWORK_TAGS": "prod web",
        "INSTANCE_NIC0_NETWORK_SUBNET": "192.0.2.0/28",
        "INSTANCE_NIC0_NETWORK_GATEWAY": "192.0.2.1",
        "INSTANCE_NIC0_NETWORK_SUBNET6": "2001:db8:8::/64",
        "INSTANCE_NIC0_NETWORK_GATEWAY6": "2001:db8:8::1",
        "INSTANCE_NIC0_NETWORK_MAC_PREFIX": "aa:bb:cc",
    }


def test_q16_u29_every_subnet_and_address_has_a_number_in_both_spellings(door: Door) -> None:
    """Q16, U29."""
    door.modify("--subnet subnet2:modify,dhcp=true")
    door.add("inst1", "ip0=192.0.2.4,ip1=pool3")

    found = door.ask("instance env --nic 0 inst1")

    assert (found["IP"], found["IP:1"], found["IP_1"]) == ("192.0.2.4", "10.0.0.8", "10.0.0.8")
    assert (found["IP_SUBNET_0"], found["IP_SUBNET_1"]) == ("0", "1")
    assert [found[f"NETWORK_SUBNET:{index}"] for index in range(3)] == ["192.0.2.0/24", "10.0.0.0/24", "2001:db8::/64"]
    assert [found[f"NETWORK_DHCP:{index}"] for index in range(3)] == ["false", "true", "false"]
    assert [found[f"NETWORK_DHCP_{index}"] for index in range(3)] == ["false", "true", "false"]
    assert found["NETWORK_GATEWAY:0"] == "192.0.2.1"
    assert "NETWORK_GATEWAY:1" not in found


def test_q18_the_deprecated_gateway_is_that_of_the_first_subnet(door: Door) -> None:
    """Q18."""
    door.modify("--gateway 192.0.2.40 --gateway6 2001:db8::9")

    assert (door.field("gateway"), door.field("gateway6")) == ("192.0.2.40", "2001:db8::9")
    door.modify("--gateway none")
    assert door.field("gateway") is None
    door.do("network add net0")
    door.refuse("network modify --gateway 192.0.2.1 net0", "--gateway", "192.0.2.1", "net0")
    door.refuse("network add --gateway 192.0.2.1 net7", "--gateway", "net7")
    door.modify("--network6 none")
    assert door.field("network6") is None


def test_q20_external_reservations_are_compact_or_one_by_one(door: Door) -> None:
    """Q20."""
    door.do("network add --network 192.0.2.0/28 --gateway 192.0.2.1 --add-reserved-ips 192.0.2.4-192.0.2.6 c")

    assert door.field("external_reservations", "c") == "192.0.2.0-192.0.2.1, 192.0.2.4-192.0.2.6, 192.0.2.15"
    singles = [f"192.0.2.{last}" for last in (0, 1, 4, 5, 6, 15)]
    assert door.field("external_reservations_list", "c") == singles


def test_u7_uuid_serial_and_times_stay(door: Door) -> None:
    """U7: the serial number counts commands, however much each of them said."""
    [before] = door.ask("network list -o uuid,serial_no,ctime,mtime net1")

    door.modify("--mac-prefix aa:bb:cc --add-reserved-ips 192.0.2.5,192.0.2.7")

    [after] = door.ask("network list -o uuid,serial_no,ctime,mtime net1")
    assert (after["uuid"], after["ctime"]) == (before["uuid"], before["ctime"])
    assert after["serial_no"] == before["serial_no"] + 1
    assert after["mtime"] >= before["mtime"]


def test_u38_a_map_has_one_character_an_address(door: Door) -> None:
    """U38: 4096 for a /20, and nothing is stored twice."""
    door.do("network add --network 10.9.0.0/20 c")

    assert len(door.field("map", "c")) == 4096


@pytest.mark.parametrize("separator", [":", "|", "\t"])
def test_fields_can_be_cut_by_scripts(door: Door, separator: str) -> None:
    """``-o``, ``--no-headers``, ``--separator``."""
    result = door.call("network list --no-headers -o name,network,group_cnt", "--separator", separator)

    assert result.exit_code == 0
    assert result.stdout == separator.join(["net1", "192.0.2.0/24", "1"]) + "\n"


def test_an_unknown_field_is_refused(door: Door) -> None:
    """The message names it."""
    door.refuse("network list -o name,colour", "colour")
