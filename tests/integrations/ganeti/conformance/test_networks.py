"""Cases N: networks and the second layer."""

import pytest

import tenure
from tests.integrations.ganeti.conformance.door import Door


def test_n01_a_network_needs_no_third_layer(door: Door) -> None:
    """N01, U35."""
    door.do("network add net0")

    [found] = door.ask("network list -o subnets,network,gateway,network6,gateway6,map,free_count,reserved_count net0")
    assert found == {
        "subnets": [],
        "network": None,
        "gateway": None,
        "network6": None,
        "gateway6": None,
        "map": "",
        "free_count": 0,
        "reserved_count": 0,
    }
    assert "net0" in door.do("network info net0").stdout


def test_n02_a_nic_inherits_mode_and_link(door: Door) -> None:
    """N02."""
    door.do("network add net0", "network connect net0 default -N mode=bridged,link=br7")

    door.do("instance add --net 0:network=net0 inst1")

    [found] = door.ask("instance list -o nics inst1")
    [nic] = found["nics"]
    assert (nic["mode"], nic["link"], nic["vlan"]) == ("bridged", "br7", "")
    assert door.ips("inst1") == [[]]


def test_n03_without_a_pool_nothing_is_picked(door: Door) -> None:
    """N03."""
    door.do("network add net0", "network connect net0")

    door.refuse_add("ip=pool,network=net0", "--net", "ip=pool", "no pool")


def test_n04_without_a_subnet_no_address_fits(door: Door) -> None:
    """N04."""
    door.do("network add net0", "network connect net0")

    door.refuse_add("ip=192.0.2.4,network=net0", "--net", "192.0.2.4", "in no subnet")


def test_n05_a_network_without_blocks_conflicts_with_nobody(door: Door) -> None:
    """N05."""
    door.do("instance add --net 0:ip=203.0.113.7 inst1", "network add net0")

    door.do("network connect net0 default")

    assert door.field("group_list", "net0") == [["default", "bridged", "xen-br0", ""]]


def test_n06_a_network_may_have_ipv6_alone(door: Door) -> None:
    """N06."""
    door.do("network add net6 --subnet add:cidr=2001:db8:1::/64,gateway=2001:db8:1::1")

    assert door.field("network", "net6") is None
    assert door.field("network6", "net6") == "2001:db8:1::/64"
    assert door.field("gateway6", "net6") == "2001:db8:1::1"


def test_n07_a_name_is_given_once(door: Door) -> None:
    """N07."""
    door.refuse("network add net1", "net1", "exists")
    door.do("network add net8 --space site")
    door.refuse("network add site", "pass --space='site'")


def wires(door: Door, instance: str) -> list[str]:
    """List how the NICs of an instance are wired."""
    return [f"{nic['mode']} {nic['link']}{nic['vlan']}" for nic in door.ask(f"instance info {instance}")["nics"]]


def test_a_connection_is_replaced_with_the_wires_of_the_nics_on_it(door: Door) -> None:
    door.do("instance add web --net 0:ip=pool,network=net1 --net 1:link=br100")
    held = [each["address"] for each in door.ask("holding list net1")]
    door.do("network connect net1 default -N mode=openvswitch,link=ovs1,vlan=.7 --replace")

    assert "ovs1" in door.do("network info net1").stdout
    assert wires(door, "web") == ["openvswitch ovs1.7", "bridged br100"]
    assert [each["address"] for each in door.ask("holding list net1")] == held
    door.unchanged("network connect net1 default -N mode=openvswitch,link=ovs1,vlan=.7 --replace")
    assert "clean" in door.do("verify").stdout


def test_a_connection_in_another_way_is_left_and_the_warning_says_how_to_change_it(door: Door) -> None:
    told = door.unchanged("network connect net1 default -N mode=routed,link=rt1").stderr
    answer = door.ask("network connect net1 default -N mode=routed,link=rt1")

    left = "network net1 is connected to group default already, in another way (mode=bridged,link=br100); "
    assert left + "nothing was changed there; pass --replace to change it" in told
    assert answer["warnings"] == [left + "nothing was changed there; pass --replace to change it"]


@pytest.mark.parametrize("option", ["", " --replace"])
def test_a_connection_that_is_as_wanted_already_needs_no_option(door: Door, option: str) -> None:
    told = door.unchanged(f"network connect net1 default -N link=br100{option}").stderr

    assert "network net1 is connected to group default already; nothing was changed there\n" in told


def test_n08_a_connected_network_stays(door: Door) -> None:
    """N08."""
    door.refuse("network remove net1", "group default")
    door.refuse("network remove net1 --cascade", "group default")


def test_n09_a_disconnected_network_goes_with_all_it_has(door: Door) -> None:
    """N09."""
    door.do("network disconnect net1", "network remove net1")

    assert door.ask("network list") == []


def test_n11_a_nic_in_a_network_has_no_link_of_its_own(door: Door) -> None:
    """N11."""
    door.refuse_add("network=net1,link=br5", "--net", "link", "network")


def test_n12_a_network_is_used_where_it_is_connected(door: Door) -> None:
    """N12."""
    door.do("group add far", "node add node2 --group far")

    door.refuse_add("ip=pool", "net1", "not connected", "far", more="--node node2")


def test_n13_a_nic_without_address_keeps_the_network_connected(door: Door) -> None:
    """N13."""
    door.do("instance add --net 0:network=net1 inst1")

    door.refuse("network disconnect net1 default", "inst1")


def test_n14_connecting_twice_is_a_warning(door: Door) -> None:
    """N14."""
    again = door.unchanged("network connect net1 default -N mode=routed,link=br9")
    door.do("group add far")
    never = door.unchanged("network disconnect net1 far")

    assert "warning" in again.stderr
    assert "connected to group default already" in again.stderr
    assert "not connected to group far" in never.stderr


def test_n16_a_nic_without_network_may_not_lie_in_one(door: Door) -> None:
    """N16: IPv6, too."""
    message = door.refuse("instance add --net 0:ip=2001:db8::77 inst1", "2001:db8::77", "net1")
    door.refuse("instance add --net 0:ip=192.0.2.77 inst1", "192.0.2.77", "net1")

    assert "--no-conflicts-check" in message
    door.do("instance add --no-conflicts-check --net 0:ip=2001:db8::77 inst1")
    assert door.ips("inst1") == [["2001:db8::77"]]


def test_n17_a_renamed_network_is_the_same_network(door: Door) -> None:
    """N17."""
    door.add("inst1", "ip=pool")
    before = door.field("uuid"), door.field("subnets"), door.field("inst_list")

    door.do("network rename net1 shop")

    assert (door.field("uuid", "shop"), door.field("subnets", "shop"), door.field("inst_list", "shop")) == before
    assert door.ips("inst1") == [["192.0.2.10"]]
    door.do("instance modify --net 0:modify,ip1=pool inst1", "instance remove inst1")


def test_n19_of_a_command_with_a_wrong_option_nothing_is_done(door: Door) -> None:
    """N19."""
    door.refuse_modify(
        "--subnet add:cidr=198.51.100.0/24 --pool add:10.0.0.20-10.0.0.30 --add-reserved-ips 203.0.113.1",
        "--add-reserved-ips",
        "203.0.113.1",
    )


def test_a_network_is_named_by_uuid_as_well(door: Door) -> None:
    """1.2: NETWORK is a name or a UUID everywhere."""
    uuid = door.field("uuid")

    door.modify("--subnet subnet1:modify,dhcp=true", uuid)
    door.do(f"instance add --net 0:ip=pool,network={uuid} inst1", f"network add-tags {uuid} prod")

    assert door.subnet("subnet1")["dhcp"] is True
    assert door.ips("inst1") == [["192.0.2.10"]]
    assert door.field("tags") == ["prod"]


def test_u37_a_subnet_of_a_connected_network_is_checked_like_a_connection(door: Door) -> None:
    """U37, and the check of connect itself."""
    door.do("instance add --net 0:ip=203.0.113.7 inst1", "network add far --subnet add:cidr=203.0.113.0/24")

    door.refuse_modify("--subnet add:cidr=203.0.113.0/28", "inst1", "203.0.113.7", "net1")
    door.refuse("network connect far default", "inst1", "203.0.113.7")
    door.do("network modify --no-conflicts-check --subnet add:cidr=203.0.113.0/28 net1")
    door.do("network connect far default --no-conflicts-check")


def test_a_network_whose_uuid_has_a_slash_names_its_instances(door: Door) -> None:
    with tenure.open(door.url) as ledger:
        ledger.apply([tenure.AddNetwork(network="odd", uuid="a/b")])
    door.do("network connect odd", "instance add web --net 0:network=odd")

    door.refuse("network disconnect odd", "instance web")
