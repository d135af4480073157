"""A later file of one cluster: its differences are shown with the commands that follow them, then it is taken over."""

import copy
import json
from pathlib import Path

import pytest

import tenure
from tenure.integrations.ganeti.cluster_edits import ClusterEdits, NodeWords
from tenure.integrations.ganeti.files.export_cluster import export_cluster
from tenure.integrations.ganeti.files.load.import_cluster import plan_import, run_import
from tenure.integrations.ganeti.files.read.cluster_file import read_cluster
from tenure.integrations.ganeti.instance.plan_instance import InstanceOptions, MoveTarget
from tenure.integrations.ganeti.instances import Instances
from tenure.integrations.ganeti.query.verify_machines import verify_machines
from tests.integrations.ganeti.conformance.door import Door
from tests.integrations.ganeti.files.documents import (
    DB,
    DEFAULT,
    NET1,
    NET2,
    NODE1,
    NODE2,
    RACK,
    WEB,
    Json,
    bits,
    brought_in,
    nic,
)
from tests.integrations.ganeti.files.documents import old_document as first_document

NEW_GROUP, NEW_NODE = "99999999-0000-4000-8000-000000000001", "99999999-0000-4000-8000-000000000002"
NEW = "99999999-0000-4000-8000-000000000003"


def later(document: Json) -> Json:
    """Return a copy with the serial number of a file that was written later."""
    made = copy.deepcopy(document)
    made["serial_no"] += 1
    return made


async def shown(ledger: tenure.AsyncLedger, document: Json) -> list[str]:
    """List the differences that a dry run shows."""
    return [str(each) for each in (await plan_import(read_cluster(document), ledger)).differences]


async def test_a_later_file_is_compared_by_uuid_and_the_commands_are_shown(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, first_document())
    document = later(first_document())
    document["nodegroups"][DEFAULT]["name"] = "rack0"
    document["nodes"][NODE1].update(name="first", primary_ip="192.0.2.10")
    document["instances"][DB].update(name="base", primary_node=NODE1)
    before = await ledger.last_change()

    assert await shown(ledger, document) == [
        "group default: is called rack0 in the file; `tenure group rename default rack0`",
        "node node1: its addresses or group differ; `tenure node modify node1 --primary-ip 192.0.2.10`",
        "node node1: is called first in the file; `tenure node rename node1 first`",
        "instance db.example.org: is on node first in the file; `tenure instance move db.example.org --node first`",
        "instance db.example.org: is called base in the file; `tenure instance rename db.example.org base`",
    ]
    with pytest.raises(tenure.Conflict, match="the ledger differs from this one"):
        await brought_in(ledger, document)
    assert await ledger.last_change() == before


async def test_when_the_differences_are_followed_the_later_file_takes_the_place_of_the_earlier(
    ledger: tenure.AsyncLedger,
) -> None:
    await brought_in(ledger, first_document())
    held = {each.address: each.slot for each in await ledger.holdings("net1")}
    document = later(first_document())
    document["nodegroups"][DEFAULT].update(name="rack0", alloc_policy="last_resort")
    document["nodes"][NODE1].update(name="first", primary_ip="192.0.2.10")
    document["instances"][WEB].update(name="shop.example.org", os="other")
    edits = ClusterEdits(ledger)
    await edits.rename_group("default", "rack0")
    await edits.modify_node("node1", NodeWords(primary_ip="192.0.2.10"))
    await edits.rename_node("node1", "first")
    await Instances(ledger).rename("web.example.org", "shop.example.org")
    document["networks"][NET1]["ext_reservations"] = bits(16, 0, 1, 5, 9, 10, 15)

    assert await shown(ledger, document) == []
    await brought_in(ledger, document)
    assert await export_cluster(ledger, "today") == document
    assert {each.address: each.slot for each in await ledger.holdings("net1")} == held
    assert await verify_machines(ledger) == []
    assert (await plan_import(read_cluster(document), ledger)).done


async def test_what_is_new_in_a_later_file_is_made_under_its_own_uuid(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, first_document())
    document = later(first_document())
    document["nodegroups"][NEW_GROUP] = {"name": "rack9", "uuid": NEW_GROUP, "networks": {}}
    document["nodes"][NEW_NODE] = {"name": "node9", "uuid": NEW_NODE, "group": DEFAULT, "primary_ip": "198.51.100.9"}
    nics = [nic(20, ip="192.0.2.8", network=NET1)]
    document["instances"][NEW] = {"name": "new", "uuid": NEW, "primary_node": NEW_NODE, "nics": nics, "serial_no": 1}
    document["networks"][NET1]["reservations"] = bits(16, 4, 5, 6, 8)
    plan = await plan_import(read_cluster(document), ledger)
    await run_import(ledger, plan)

    assert (plan.conflicts, plan.differences) == ([], [])
    assert plan.counts == {"nodegroups": 1, "nodes": 1, "networks": 0, "instances": 1, "addresses": 1, "orphans": 0}
    assert (await Instances(ledger).find("new")).nics[0].addresses == ["192.0.2.8"]
    assert await export_cluster(ledger, "today") == document
    assert await verify_machines(ledger) == []


async def test_what_a_later_file_no_longer_has_is_to_be_removed_first(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, first_document())
    document = later(first_document())
    del document["instances"][DB]
    del document["nodes"][NODE2]
    document["networks"][NET1]["reservations"] = bits(16, 4, 6)

    assert await shown(ledger, document) == [
        "instance db.example.org: is no longer in the file; `tenure instance remove db.example.org`",
        "node node2: is no longer in the file; `tenure node remove node2`",
    ]


def small_document() -> Json:
    """Write a file with one instance that has one NIC, wired as its network is."""
    document = first_document()
    del document["instances"][DB]
    document["instances"][WEB]["nics"] = [nic(1, ip="192.0.2.4", network=NET1)]
    return document


async def test_other_nics_are_shown_with_what_the_file_has(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, small_document())
    document = later(small_document())
    document["instances"][WEB]["nics"][0]["ip"] = "192.0.2.8"
    differing = await shown(ledger, document)
    await Instances(ledger).modify("web.example.org", ["0:modify,ip0=192.0.2.8"], InstanceOptions())

    said = "its NICs differ: aa:00:00:00:00:01 192.0.2.8 in the file; `tenure instance modify --net … web.example.org`"
    assert differing == [f"instance web.example.org: {said}"]
    assert await shown(ledger, document) == []


async def test_a_change_of_a_network_and_of_its_wires_is_a_difference(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, first_document())
    document = later(first_document())
    document["networks"][NET1]["tags"] = ["other"]
    document["nodegroups"][DEFAULT]["networks"][NET1]["link"] = "br77"

    assert await shown(ledger, document) == [
        "network net1: its tags differ; `tenure network modify … net1`",
        (
            "network net1: reaches group default by bridged br77 in the file; "
            "`tenure network connect net1 default -N mode=bridged,link=br77 --replace`"
        ),
    ]


async def test_each_connection_that_differs_is_shown_with_the_command_that_makes_or_cuts_it(
    ledger: tenure.AsyncLedger,
) -> None:
    await brought_in(ledger, first_document())
    document = later(first_document())
    document["nodegroups"][DEFAULT]["name"] = "rack0"
    document["networks"][NET1]["name"] = "lan"
    del document["nodegroups"][DEFAULT]["networks"][NET1]
    document["nodegroups"][RACK]["networks"][NET2] = {"mode": "openvswitch", "link": "ovs1", "vlan": ".9"}

    assert await shown(ledger, document) == [
        "group default: is called rack0 in the file; `tenure group rename default rack0`",
        "network net1: is called lan in the file; `tenure network rename net1 lan`",
        "network net1: does not reach group rack0 in the file; `tenure network disconnect lan rack0`",
        (
            "network net2: reaches group rack by openvswitch ovs1 .9 in the file; "
            "`tenure network connect net2 rack -N mode=openvswitch,link=ovs1,vlan=.9`"
        ),
    ]


async def test_a_new_group_is_connected_to_the_networks_that_were_there(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, first_document())
    document = later(first_document())
    wires = {NET1: {"mode": "routed", "link": "rt9", "vlan": ""}}
    document["nodegroups"][NEW_GROUP] = {"name": "rack9", "uuid": NEW_GROUP, "networks": wires, "serial_no": 1}
    await brought_in(ledger, document)

    line = (await ledger.network("net1")).connection("rack9")
    assert line is not None
    assert (line.mode, line.link) == ("routed", "rt9")
    assert await export_cluster(ledger, "today") == document


async def test_what_no_file_brought_in_is_no_difference_and_stays(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, first_document())
    await ledger.add_network("other")
    await ledger.add_subnet("other", "2001:db8:9::/48", unit=64)
    await Instances(ledger).add("by-hand", ["0:ip=192.0.2.11,network=net1"], InstanceOptions(node="node1"))
    document = later(first_document())

    assert await shown(ledger, document) == []
    await brought_in(ledger, document)
    assert (await Instances(ledger).find("by-hand")).nics[0].addresses == ["192.0.2.11"]


async def test_what_the_ledger_keeps_away_on_its_own_word_is_no_difference(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, first_document())
    await ledger.preallocate("net1", "instance/later", "192.0.2.12")
    await ClusterEdits(ledger).set_master("192.0.2.13")

    assert await shown(ledger, later(first_document())) == []


async def test_a_block_that_only_got_larger_in_todays_form_is_the_same_subnet(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, first_document())
    document = later(first_document())
    network = document["networks"][NET2]
    network.update(network="10.0.0.0/23", reservations=bits(512, 77), ext_reservations=bits(512, 511))
    before = await shown(ledger, document)
    uuid = (await ledger.network("net2")).subnets[0].uuid
    await ledger.modify_subnet("net2", uuid, cidr="10.0.0.0/23")
    await ledger.add_pool("net2", "10.0.1.0/24")

    assert before == ["network net2: its subnets, pools, reserved addresses differ; `tenure network modify … net2`"]
    assert "subnets" not in str(await shown(ledger, document))


async def test_an_instance_that_moved_and_took_other_links_is_one_difference(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, small_document())
    second = later(small_document())
    second["instances"][WEB]["primary_node"] = NODE2
    second["instances"][WEB]["nics"][0]["nicparams"] = {"mode": "routed", "link": "rt1", "vlan": ""}
    [difference] = await shown(ledger, second)
    await Instances(ledger).move("web.example.org", MoveTarget(node="node2"))

    assert "`tenure instance move web.example.org --node node2`" in difference
    assert await shown(ledger, second) == []


async def test_a_take_over_that_was_broken_off_is_run_again(
    ledger: tenure.AsyncLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await brought_in(ledger, first_document())
    document = later(first_document())
    for each in document["instances"].values():
        each["os"] = "other"
    plan = await plan_import(read_cluster(document), ledger)
    with monkeypatch.context() as patch:
        patch.setattr("tenure.integrations.ganeti.files.load.import_cluster.file_paper", None)
        with pytest.raises(TypeError):
            await run_import(ledger, plan)
    await brought_in(ledger, document)

    assert await export_cluster(ledger, "today") == document


def test_the_command_line_shows_the_differences(tmp_path: Path) -> None:
    door, file = Door(f"sqlite:///{tmp_path / 'tenure.db'}"), tmp_path / "config.data"
    file.write_text(json.dumps(first_document()), "utf-8")
    door.do(f"network import-ganeti {file}")
    document = later(first_document())
    document["instances"][WEB]["name"] = "shop"
    file.write_text(json.dumps(document), "utf-8")
    result = door.call(f"network import-ganeti {file} --dry-run")

    assert result.exit_code == 1
    assert "differs: instance web.example.org: is called shop in the file; `tenure instance rename" in result.stdout
    assert door.call(f"network import-ganeti {file}").exit_code == 4
    door.do("instance rename web.example.org shop")
    assert door.ask(f"network import-ganeti {file} --dry-run")["differences"] == []
    assert "takes the place of the one that was brought in before" in door.do(f"network import-ganeti {file}").stdout
    assert door.ask(f"network import-ganeti {file}")["counts"]["instances"] == 0
