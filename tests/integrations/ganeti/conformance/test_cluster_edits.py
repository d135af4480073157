"""Nodes and groups that get other addresses, groups and names under running instances, and the master's address."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.ganeti.conformance.door import Door

MORE = (
    "group add rack2",
    "node add node2 --group rack2",
    "network connect net1 rack2 -N mode=openvswitch,link=ovs2,vlan=.7",
    "instance add web --net 0:ip0=pool,ip1=10.0.0.77,network=net1 --net 1:ip=203.0.113.9,link=br9 --node node1",
    "instance add db --net 0:ip=pool,network=net1 --node node1",
    "instance add far --net 0:ip=pool,network=net1 --node node2",
)


@pytest.fixture
def site(door: Door) -> Door:
    """Give two groups with a node each, and instances on both."""
    door.do(*MORE)
    return door


def everything(door: Door) -> dict[str, Any]:
    """Return what must stay as it is, whatever node and group get: uuids, MACs, addresses, holders."""
    own = {each["name"]: (each["uuid"], each["macs"], each["ips"]) for each in door.ask("instance list")}
    held = [(each["address"], each["owner"], each["slot"], each["since"]) for each in door.ask("holding list net1")]
    return {"instances": own, "holdings": held}


def links(door: Door, instance: str) -> list[str]:
    """List how the NICs of an instance are wired."""
    return [f"{nic['mode']} {nic['link']}{nic['vlan']}" for nic in door.ask(f"instance info {instance}")["nics"]]


def places(door: Door) -> list[str]:
    """List where every instance is."""
    return [f"{each['name']} {each['node']} {each['group']}" for each in door.ask("instance list")]


def reserved(door: Door) -> dict[str, str]:
    """Return the reserved ranges of net1 with their reasons."""
    return {each["range"]: each["reason"] for each in door.ask("reserve list net1")}


@pytest.mark.parametrize(
    ("edit", "changed"),
    [
        ("node rename node1 first", {"db", "web"}),
        ("node modify node1 --group rack2", {"db", "web"}),
        ("group rename rack2 rack9", {"far"}),
        ("node modify node1 --primary-ip 192.0.2.60", set[str]()),
    ],
)
def test_an_instance_counts_it_as_a_change_to_follow_its_node(site: Door, edit: str, changed: set[str]) -> None:
    before = {each["name"]: each["serial_no"] for each in site.ask("instance list -o name,serial_no")}
    site.do(edit)

    after = {each["name"]: each["serial_no"] for each in site.ask("instance list -o name,serial_no")}
    assert after == {name: serial + (name in changed) for name, serial in before.items()}


def test_a_renamed_node_keeps_its_instances_and_its_reservations(site: Door) -> None:
    site.do("node modify node1 --primary-ip 192.0.2.60 --secondary-ip 192.0.2.61")
    before, uuid = everything(site), site.ask("node list -o name,uuid")[0]["uuid"]
    after = site.ask("node rename node1 first")

    assert (after["name"], after["uuid"], after["inst_list"], after["changed"]) == ("first", uuid, ["db", "web"], True)
    assert everything(site) == before
    assert places(site) == ["db first default", "far node2 rack2", "web first default"]
    assert reserved(site) == {"192.0.2.60-192.0.2.61": "node first"}
    assert "clean" in site.do("verify").stdout
    site.refuse("node remove first", "db, web")
    site.do("node add node1 --group default", "instance add new --net 0:ip=pool,network=net1 --node first")


def test_a_nodes_addresses_change_and_the_reservations_follow(site: Door) -> None:
    site.do("node modify node1 --primary-ip 192.0.2.60 --secondary-ip 192.0.2.61")
    assert reserved(site) == {"192.0.2.60-192.0.2.61": "node node1"}
    site.do("node modify node1 --primary-ip 192.0.2.70")
    assert reserved(site) == {"192.0.2.61": "node node1", "192.0.2.70": "node node1"}
    site.do("node modify node1 --secondary-ip none")
    assert reserved(site) == {"192.0.2.70": "node node1"}
    site.do("node modify node1 --primary-ip 192.0.2.80 --no-conflicts-check")

    assert reserved(site) == {}
    assert site.ask("node list -o primary_ip,secondary_ip")[0] == {"primary_ip": "192.0.2.80", "secondary_ip": None}
    site.unchanged("node modify node1 --primary-ip 192.0.2.80 --group default")


def test_a_node_does_not_get_an_address_that_is_taken(site: Door) -> None:
    site.do("node modify node2 --primary-ip 192.0.2.60")

    site.refuse("node modify node1 --primary-ip 192.0.2.10", "an instance has an address of the node", "192.0.2.10")
    site.refuse("node modify node1 --secondary-ip 192.0.2.60", "--secondary-ip", "node node2")
    site.refuse("node modify node1 --primary-ip 192.0.2.300", "primary_ip")
    site.refuse("node modify node1", "--group")
    site.refuse("node modify nowhere --primary-ip 192.0.2.60", "no node 'nowhere'")
    site.refuse("node modify node1 --group nowhere", "no group 'nowhere'")


def test_instances_of_a_node_that_changes_groups_take_the_links_there(site: Door) -> None:
    before = everything(site)
    after = site.ask("node modify node1 --group rack2")

    assert (after["group"], after["inst_list"]) == ("rack2", ["db", "web"])
    assert everything(site) == before
    assert places(site) == ["db node1 rack2", "far node2 rack2", "web node1 rack2"]
    assert links(site, "web") == ["openvswitch ovs2.7", "bridged br9"]
    assert "clean" in site.do("verify").stdout
    site.do("network disconnect net1 default", "group remove default")
    site.refuse("network disconnect net1 rack2", "instance web")


def test_nodes_are_assigned_to_a_group_all_or_none(site: Door) -> None:
    site.do("group add third", "network connect net1 third -N link=br3")
    before = everything(site)

    site.refuse("group assign-nodes third node1 nowhere", "no node 'nowhere'")
    assert site.ask("group assign-nodes third node1 node2")["node_list"] == ["node1", "node2"]
    assert everything(site) == before
    assert [links(site, name)[0] for name in ("web", "db", "far")] == ["bridged br3"] * 3
    assert "clean" in site.do("verify").stdout
    site.unchanged("group assign-nodes third node1")


def test_a_group_that_a_network_does_not_reach_is_refused_by_name(site: Door) -> None:
    site.do("group add island")

    message = site.refuse("node modify node1 --group island", "network 'net1' is not connected to group 'island'")
    assert "instance 'db' of node node1" in message
    site.refuse("group assign-nodes island node1", "tenure network connect net1 island")


def test_a_new_group_looks_at_addresses_without_network(site: Door) -> None:
    site.do("network add other --subnet add:cidr=203.0.113.0/24", "network connect other rack2")

    site.refuse("node modify node1 --group rack2", "203.0.113.9 lies in network other")
    site.do("node modify node1 --group rack2 --no-conflicts-check")


def test_a_renamed_group_keeps_nodes_instances_and_networks(site: Door) -> None:
    before, uuid = everything(site), site.ask("group list -o uuid")[0]["uuid"]
    after = site.ask("group rename default rack1")

    assert (after["name"], after["uuid"], after["node_list"]) == ("rack1", uuid, ["node1"])
    assert after["network_list"] == [["net1", "bridged", "br100", ""]]
    assert everything(site) == before
    assert places(site) == ["db node1 rack1", "far node2 rack2", "web node1 rack1"]
    assert links(site, "web") == ["bridged br100", "bridged br9"]
    assert "clean" in site.do("verify").stdout
    site.refuse("network disconnect net1 rack1", "instance web")
    site.refuse("group remove default", "no group 'default'")
    site.do("instance modify web --net 0:modify,ip0=pool", "instance remove web", "instance remove db")
    site.do("network disconnect net1 rack1")


def test_renames_to_taken_or_bad_names_change_nothing(site: Door) -> None:
    site.refuse("node rename node1 node2", "'node2' exists already")
    site.refuse("node rename node1 a/b", "node: a name")
    site.refuse("node rename nowhere n", "no node 'nowhere'")
    site.refuse("group rename default rack2", "'rack2' exists already")
    site.refuse("group rename default a/b", "group: a name")
    site.refuse("group rename nowhere g", "no group 'nowhere'")
    site.unchanged("node rename node1 node1")
    site.unchanged("group rename default default")


def test_an_export_after_renames_refers_to_the_same_uuids(site: Door, tmp_path: Path) -> None:
    site.do(f"network export-ganeti {tmp_path}/before.data")
    site.do("group rename default rack1", "node rename node1 first", f"network export-ganeti {tmp_path}/after.data")

    before, after = (json.loads((tmp_path / f"{name}.data").read_text("utf-8")) for name in ("before", "after"))
    assert after["instances"] == {
        uuid: {**each, "serial_no": after["instances"][uuid]["serial_no"]} for uuid, each in before["instances"].items()
    }
    assert after["networks"] == before["networks"] | {
        uuid: {**each, "mtime": after["networks"][uuid]["mtime"]} for uuid, each in before["networks"].items()
    }
    assert sorted(node["name"] for node in after["nodes"].values()) == ["first", "node2"]


def test_the_masters_address_is_kept_away_in_networks_that_are_and_that_come(site: Door) -> None:
    assert site.ask("cluster info") == {"master_ip": None}
    assert site.ask("cluster modify --master-ip 192.0.2.20") == {"master_ip": "192.0.2.20", "changed": True}
    site.do("network add later --subnet add:cidr=192.0.2.0/24", "network connect later default")

    assert reserved(site) == {"192.0.2.20": "the master"}
    assert [each["reason"] for each in site.ask("reserve list later")] == ["the master"]
    site.refuse("instance add x --net 0:ip=192.0.2.20,network=net1", "192.0.2.20")
    site.refuse("instance add x --net 0:ip=192.0.2.20,network=later", "192.0.2.20")
    assert "192.0.2.20" in site.do("cluster info").stdout


def test_another_master_lifts_the_old_address_and_none_lifts_it_all(site: Door) -> None:
    site.do("cluster modify --master-ip 192.0.2.20", "cluster modify --master-ip 192.0.2.21")
    assert reserved(site) == {"192.0.2.21": "the master"}
    site.unchanged("cluster modify --master-ip 192.0.2.21")
    site.do("cluster modify --master-ip none")

    assert reserved(site) == {}


def test_the_masters_address_is_nobody_elses(site: Door) -> None:
    site.do("node modify node2 --primary-ip 192.0.2.60")

    site.refuse("cluster modify --master-ip 192.0.2.10", "an instance has it", "--no-conflicts-check")
    site.refuse("cluster modify --master-ip 192.0.2.60", "node node2")
    site.refuse("cluster modify --master-ip router", "master_ip")
    site.do("cluster modify --master-ip 192.0.2.61")
    site.refuse("node modify node1 --primary-ip 192.0.2.61", "the master")
    site.refuse("node add node3 --group default --primary-ip 192.0.2.61", "the master")


def test_a_lifted_range_leaves_the_masters_address_reserved(site: Door) -> None:
    site.do("cluster modify --master-ip 192.0.2.20", "network modify net1 --add-reserved-ips 192.0.2.18-192.0.2.25")
    result = site.modify("--remove-reserved-ips 192.0.2.18-192.0.2.25")

    assert "192.0.2.20 stays reserved for the master" in result.stderr
    assert reserved(site) == {"192.0.2.20": "the master"}
