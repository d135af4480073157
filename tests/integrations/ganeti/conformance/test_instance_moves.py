"""Instances that get another name, another node or another group, and give up no address."""

import json
from pathlib import Path

import pytest

import tenure
from tests.integrations.ganeti.conformance.door import Door

SECOND = (
    "group add rack2",
    "node add node2 --group rack2",
    "node add node3 --group default",
    "network connect net1 rack2 -N mode=openvswitch,link=ovs2,vlan=.7",
)


@pytest.fixture
def web(door: Door) -> Door:
    """Give an instance with two NICs on a network and one on none, and a second group that the network reaches."""
    nets = "--net 0:ip0=pool,ip1=10.0.0.77,network=net1 --net 1:network=net1 --net 2:ip=203.0.113.9,link=br9"
    door.do(*SECOND, f"instance add web {nets} --node node1")
    return door


def held(door: Door, owner: str) -> list[tuple[str, str, str]]:
    """List what an owner holds: address, slot, state."""
    return sorted((each["address"], each["slot"], each["state"]) for each in door.ask(f"show {owner}"))


def test_a_renamed_instance_keeps_uuid_nics_and_addresses(web: Door) -> None:
    before, holdings = web.ask("instance info web"), held(web, "instance/web")
    after = web.ask("instance rename web shop")

    assert after.pop("changed") is True
    assert {key: after[key] for key in ("uuid", "nics", "node", "ips")} == {
        key: before[key] for key in ("uuid", "nics", "node", "ips")
    }
    assert (after["name"], after["serial_no"]) == ("shop", before["serial_no"] + 1)
    assert held(web, "instance/shop") == holdings
    assert held(web, "instance/web") == []
    web.refuse("instance info web", "no instance 'web'")
    assert "clean" in web.do("verify").stdout


def test_the_history_of_an_address_shows_the_rename_as_a_transfer(web: Door) -> None:
    web.do("instance rename web shop")

    tenures = web.ask("history 192.0.2.10")["tenures"]
    assert sorted((each["owner"], each["ending"]) for each in tenures) == [
        ("instance/shop", "still held"),
        ("instance/web", "transferred"),
    ]


def test_a_renamed_instance_is_found_by_everything_that_looks_for_it(web: Door) -> None:
    mac = web.ask("instance info web")["macs"][0]
    web.do("instance rename web shop")

    web.refuse(f"instance add other --net 0:mac={mac}", "instance shop has it")
    web.refuse("network disconnect net1 default", "instance shop")
    web.refuse("node remove node1", "shop")
    web.do("instance add web --net 0:ip=pool,network=net1", "instance remove shop", "instance remove web")
    assert web.ask("show instance/shop") == []


def test_what_an_instance_holds_beside_its_nics_follows_its_name(web: Door) -> None:
    web.do("allocate net1 instance/web --address 192.0.2.50 --slot vip")
    web.do("instance rename web shop")

    assert ("192.0.2.50", "vip", "held") in held(web, "instance/shop")
    assert held(web, "instance/web") == []


def test_what_is_pre_allocated_to_an_instance_waits_for_its_new_name(web: Door) -> None:
    web.do("network add spare", "subnet add spare 198.51.100.0/28")
    with tenure.open(web.url) as ledger:
        ledger.preallocate("net1", "instance/web", "192.0.2.60", slot="vip", labels={"team": "shop"})
        ledger.preallocate("spare", "instance/web", "198.51.100.4")
        ledger.preallocate("spare", "instance/other", "198.51.100.5")
    web.do("instance rename web shop")
    with tenure.open(web.url) as ledger:
        waiting = [each for name in ("net1", "spare") for each in ledger.network(name).preallocations]

    assert [(each.owner, each.slot, dict(each.notes.labels)) for each in waiting] == [
        ("instance/shop", "vip", {"team": "shop"}),
        ("instance/other", "", {}),
        ("instance/shop", "", {}),
    ]
    assert web.ask("allocate spare instance/shop")["address"] == "198.51.100.4"
    web.refuse("allocate spare instance/web --address 198.51.100.5", "instance/other")


@pytest.mark.parametrize("slot", ["", "vip"])
def test_a_rename_never_drops_what_waits_for_the_new_name(web: Door, slot: str) -> None:
    option = f" --slot {slot}" if slot else ""
    web.do(f"preallocation add net1 192.0.2.60 instance/web{option}")
    web.do(f"preallocation add net1 192.0.2.61 instance/taken{option}")
    before = web.ask("preallocation list net1")
    way_out = f"`tenure preallocation remove net1 instance/taken{option}`"

    web.refuse(
        "instance rename web taken", "192.0.2.60 waits for instance/web", "192.0.2.61 for instance/taken", way_out
    )
    assert web.ask("preallocation list net1") == before
    web.do(f"preallocation remove net1 instance/taken{option}", "instance rename web taken")
    assert [each["address"] for each in web.ask("preallocation list net1")] == ["192.0.2.60"]


def test_what_waits_for_the_new_name_in_another_slot_goes_on_waiting(web: Door) -> None:
    web.do(
        "preallocation add net1 192.0.2.60 instance/web", "preallocation add net1 192.0.2.61 instance/taken --slot b"
    )
    web.do("instance rename web taken")

    assert {(each["address"], each["owner"]) for each in web.ask("preallocation list net1")} == {
        ("192.0.2.60", "instance/taken"),
        ("192.0.2.61", "instance/taken"),
    }


def test_a_rename_to_a_name_that_holds_something_is_refused_and_names_it(web: Door, tmp_path: Path) -> None:
    web.do("allocate net1 instance/store --slot new --address 192.0.2.50")
    before, waited = held(web, "instance/web"), "instance/store holds 192.0.2.50 in network 'net1' already"
    _hook(tmp_path, "instance-rename-pre.d", "exit 1")

    web.refuse("instance rename web store", waited)
    # Refused before a hook is run.
    web.refuse(f"instance rename web store --hooks {tmp_path}/hooks", waited)
    assert (held(web, "instance/web"), len(held(web, "instance/store"))) == (before, 1)
    web.do("release net1 192.0.2.50 instance/store", "instance rename web store")
    assert "clean" in web.do("verify").stdout


def test_a_rename_to_a_taken_or_bad_name_changes_nothing(web: Door) -> None:
    web.do("instance add db --net 0:ip=pool,network=net1")

    web.refuse("instance rename web db", "'db' exists already")
    web.refuse("instance rename web a/b", "instance: a name")
    web.refuse("instance rename nobody db2", "no instance 'nobody'")
    web.unchanged("instance rename web web")


def test_a_move_to_another_group_takes_its_links_and_keeps_addresses_and_macs(web: Door) -> None:
    before, holdings = web.ask("instance info web"), held(web, "instance/web")
    after = web.ask("instance move web --node node2")

    assert (after["node"], after["group"], after["ips"]) == ("node2", "rack2", before["ips"])
    assert after["macs"] == before["macs"]
    wires = [(nic["mode"], nic["link"], nic["vlan"]) for nic in after["nics"]]
    assert wires == [("openvswitch", "ovs2", ".7"), ("openvswitch", "ovs2", ".7"), ("bridged", "br9", "")]
    assert held(web, "instance/web") == holdings
    assert "clean" in web.do("verify").stdout


def test_after_a_move_the_groups_know_what_is_in_them(web: Door) -> None:
    web.do("instance move web --group rack2", "network disconnect net1 default", "node remove node1")

    web.refuse("network disconnect net1 rack2", "instance web")
    web.refuse("node remove node2", "web")
    assert web.ask("instance modify web --net 0:modify,ip0=192.0.2.44")["ips"][0] == ["192.0.2.44", "10.0.0.77"]


def test_a_move_within_a_group_changes_only_the_node(web: Door) -> None:
    before = web.ask("instance info web")
    after = web.ask("instance move web -n node3")

    assert (after["node"], after["group"], after["nics"]) == ("node3", "default", before["nics"])
    web.unchanged("instance move web --node node3")
    web.unchanged("instance move web --group default")


def test_a_move_that_cannot_be_is_refused_by_name(web: Door) -> None:
    web.do("group add island", "group add empty", "node add node4 --group island")

    web.refuse("instance move web --node node4", "network 'net1' is not connected to group 'island'")
    web.refuse("instance move web --group empty", "no node is in group 'empty'")
    web.refuse("instance move web --node nowhere", "no node 'nowhere'")
    web.refuse("instance move web", "--node")
    web.refuse("instance move web --node node2 --group rack2", "--node")


def test_a_move_looks_at_addresses_without_network_as_an_addition_does(web: Door) -> None:
    web.do("network add other --subnet add:cidr=203.0.113.0/24", "network connect other rack2")

    message = web.refuse("instance move web --node node2", "203.0.113.9 lies in network other")
    assert "--net" not in message
    assert web.ask("instance move web --node node2 --no-conflicts-check")["node"] == "node2"


def _hook(folder: Path, directory: str, script: str) -> None:
    place = folder / "hooks" / directory
    place.mkdir(parents=True)
    (place / "10-note").write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    (place / "10-note").chmod(0o755)


def test_hooks_of_a_rename_and_a_move_get_the_instance_as_it_was_and_as_it_will_be(web: Door, tmp_path: Path) -> None:
    words = "$GANETI_INSTANCE_NAME>$GANETI_INSTANCE_NEW_NAME $GANETI_INSTANCE_PRIMARY>$GANETI_TARGET_NODE"
    links = "$GANETI_INSTANCE_NIC0_LINK>$GANETI_NEW_INSTANCE_NIC0_LINK $GANETI_POST_INSTANCE_NAME"
    note = f'echo "$GANETI_OP_CODE $GANETI_OP_TARGET {words} {links}" >> {tmp_path}/told'
    for directory in ("instance-rename-pre.d", "instance-rename-post.d", "instance-move-pre.d", "instance-move-post.d"):
        _hook(tmp_path, directory, note)
    web.do(f"instance rename web shop --hooks {tmp_path}/hooks")
    web.do(f"instance move shop --node node2 --hooks {tmp_path}/hooks")

    assert (tmp_path / "told").read_text("utf-8").splitlines() == [
        "OP_INSTANCE_RENAME web web>shop node1> br100>br100 ",
        "OP_INSTANCE_RENAME web web>shop node1> br100>br100 shop",
        "OP_INSTANCE_MOVE shop shop> node1>node2 br100>ovs2 ",
        "OP_INSTANCE_MOVE shop shop> node1>node2 br100>ovs2 shop",
    ]


def test_a_hook_that_refuses_a_rename_or_a_move_leaves_everything_as_it_was(web: Door, tmp_path: Path) -> None:
    for directory in ("instance-rename-pre.d", "instance-move-pre.d"):
        _hook(tmp_path, directory, "exit 1")

    web.refuse(f"instance rename web shop --hooks {tmp_path}/hooks", "10-note: failed")
    web.refuse(f"instance move web --node node2 --hooks {tmp_path}/hooks", "10-note: failed")
    web.do("instance add shop")
    web.refuse(f"instance rename web shop --hooks {tmp_path}/hooks", "exists already")


def test_an_exported_file_has_the_new_name_node_and_link_under_the_same_uuid(web: Door, tmp_path: Path) -> None:
    uuid = web.ask("instance info web")["uuid"]
    web.do("instance rename web shop", "instance move shop --node node2")
    web.do(f"network export-ganeti {tmp_path}/out.data --form revised")

    document = json.loads((tmp_path / "out.data").read_text("utf-8"))
    instance = document["instances"][uuid]
    assert (instance["name"], document["nodes"][instance["primary_node"]]["name"]) == ("shop", "node2")
    assert instance["nics"][0]["nicparams"]["link"] == "ovs2"
