"""A later file followed in one step, wholly or not at all: no address that stays is given up."""

import asyncio
import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenure
from tenure.integrations.ganeti.cluster_edits import ClusterEdits, NodeWords
from tenure.integrations.ganeti.files.export_cluster import export_cluster
from tenure.integrations.ganeti.files.load.follow_file import follow_import, try_to_follow
from tenure.integrations.ganeti.files.load.import_cluster import ImportPlan, plan_import
from tenure.integrations.ganeti.files.read.cluster_file import read_cluster
from tenure.integrations.ganeti.instance.plan_instance import InstanceOptions
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
    breaches,
    brought_in,
    new_document,
    nic,
    old_document,
)
from tests.integrations.ganeti.files.strategies import configurations
from tests.profiles import examples

NEW_GROUP, NEW_NODE = "99999999-0000-4000-8000-000000000001", "99999999-0000-4000-8000-000000000002"
NEW, NEW_NET = "99999999-0000-4000-8000-000000000003", "99999999-0000-4000-8000-000000000004"
IN_FILES = ("is not connected to", "is the gateway of", "is an address of node")
"""What a file may say of itself, and is then found in the ledger, too."""


def later(document: Json) -> Json:
    """Return a copy with the serial number of a file that was written later."""
    made = copy.deepcopy(document)
    made["serial_no"] += 1
    return made


async def followed(ledger: tenure.AsyncLedger, document: Json) -> ImportPlan:
    """Follow a document; then nothing is left to do, the papers agree, and a still later file has no difference."""
    plan = await follow_import(ledger, read_cluster(document))
    assert (await plan_import(read_cluster(document), ledger)).done
    assert (await plan_import(read_cluster(later(document)), ledger)).differences == []
    assert [each for each in await verify_machines(ledger) if not any(word in each for word in IN_FILES)] == []
    assert await breaches(ledger) == []
    return plan


async def held(ledger: tenure.AsyncLedger, network: str) -> dict[str, tuple[str, str, int]]:
    """Return what is held in a network: owner, slot and generation, by address."""
    return {each.address: (each.owner, each.slot, each.generation) for each in await ledger.holdings(network)}


def renamed_and_moved(document: Json) -> None:
    """Rename a group, a node and an instance, and move another one."""
    document["nodegroups"][DEFAULT]["name"] = "rack0"
    document["nodes"][NODE1].update(name="first", secondary_ip="10.7.0.1")
    document["instances"][WEB]["name"] = "shop.example.org"
    document["instances"][DB]["primary_node"] = NODE1


def swapped(document: Json) -> None:
    """Let two groups, two nodes and two instances change names."""
    for section, one, two in (("nodegroups", DEFAULT, RACK), ("nodes", NODE1, NODE2), ("instances", WEB, DB)):
        objects = document[section]
        objects[one]["name"], objects[two]["name"] = objects[two]["name"], objects[one]["name"]


def exchanged(document: Json) -> None:
    """Let two instances change addresses, and one take a marked address that no NIC had."""
    nics = document["instances"][WEB]["nics"], document["instances"][DB]["nics"]
    nics[0][0]["ip"], nics[1][3]["ip"] = nics[1][3]["ip"], nics[0][0]["ip"]
    nics[1][0]["ip"] = "192.0.2.6"


def grown(document: Json) -> None:
    """Add a group, a node, a network and an instance on all of them, and a NIC to another instance."""
    wires = {
        NEW_NET: {"mode": "routed", "link": "rt9", "vlan": ""},
        NET1: {"mode": "routed", "link": "rt8", "vlan": ""},
    }
    document["nodegroups"][NEW_GROUP] = {"name": "rack9", "uuid": NEW_GROUP, "networks": wires}
    document["nodes"][NEW_NODE] = {"name": "node9", "uuid": NEW_NODE, "group": NEW_GROUP}
    document["networks"][NEW_NET] = {
        "name": "net9", "uuid": NEW_NET, "tags": [], "network": "198.51.100.0/28",
        "reservations": bits(16, 3, 4, 9), "ext_reservations": bits(16, 0, 15),
    }  # fmt: skip
    nics = [nic(20, ip="198.51.100.3", network=NEW_NET), nic(21, ip="192.0.2.8", network=NET1)]
    document["instances"][NEW] = {"name": "new", "uuid": NEW, "primary_node": NEW_NODE, "nics": nics}
    document["instances"][DB]["primary_node"] = NEW_NODE
    document["instances"][DB]["nics"].append(nic(22, ip="198.51.100.4", network=NEW_NET))
    document["networks"][NET1]["reservations"] = bits(16, 4, 5, 6, 8)


def shrunk(document: Json) -> None:
    """Remove an instance with its node and its group, and NICs of another with their network."""
    del document["instances"][DB], document["nodes"][NODE2], document["nodegroups"][RACK]
    del document["networks"][NET2], document["nodegroups"][DEFAULT]["networks"][NET2]
    del document["instances"][WEB]["nics"][1]
    document["networks"][NET1]["reservations"] = bits(16, 4, 6)


def without_orphans(document: Json) -> None:
    """Remove a network in which an address is marked without a NIC, and cut another such address off."""
    for instance in document["instances"].values():
        instance["nics"] = [nic for nic in instance["nics"] if nic.get("network") != NET1]
    for group in document["nodegroups"].values():
        group["networks"].pop(NET1, None)
    del document["networks"][NET1]


def rewired(document: Json) -> None:
    """Change connections: one is changed, one cut, one made; and what networks say of themselves."""
    lines = document["nodegroups"][DEFAULT]["networks"]
    lines[NET1]["link"] = "br77"
    del lines[NET2]
    document["nodegroups"][RACK]["networks"][NET2] = {"mode": "bridged", "link": "br2", "vlan": ""}
    document["networks"][NET1].update(tags=["other"], mac_prefix="aa:00:66", gateway="192.0.2.3", name="lan")
    document["networks"][NET1]["ext_reservations"] = bits(16, 0, 1, 3, 12, 15)
    document["networks"][NET1].update(network6="2001:db8:0:0:8000::/65", gateway6=None)
    document["instances"][WEB]["nics"][2]["ip"] = "2001:db8:0:0:8000::5"
    wide = {"network": "10.0.0.0/23", "reservations": bits(512, 77), "ext_reservations": bits(512, 255, 511)}
    document["networks"][NET2].update(wide)


CHANGES = [renamed_and_moved, swapped, exchanged, grown, shrunk, without_orphans, rewired]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
async def test_a_later_file_is_followed_in_one_step_and_comes_back_equal(
    ledger: tenure.AsyncLedger, change: Callable[[Json], None]
) -> None:
    await brought_in(ledger, old_document())
    document = later(old_document())
    change(document)
    tried = await try_to_follow(ledger, read_cluster(document))
    plan = await followed(ledger, document)

    assert plan.differences
    assert (tried.differences, tried.counts, tried.followed) == (plan.differences, plan.counts, plan.followed)
    assert await export_cluster(ledger, "today") == document


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
async def test_following_is_one_apply_and_its_rehearsal_changes_nothing(
    ledger: tenure.AsyncLedger, change: Callable[[Json], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    await brought_in(ledger, old_document())
    document = later(old_document())
    change(document)
    before = await ledger.last_change()
    await try_to_follow(ledger, read_cluster(document))
    assert await ledger.last_change() == before
    calls: list[int] = []
    apply = ledger.apply

    async def counted(operations: Any) -> Any:
        calls.append(len(operations))
        return await apply(operations)

    monkeypatch.setattr(ledger, "apply", counted)
    await follow_import(ledger, read_cluster(document))

    assert len(calls) == 1


async def test_addresses_that_stay_keep_owner_slot_and_generation(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())
    before = await held(ledger, "net1")
    document = later(old_document())
    document["instances"][DB].update(primary_node=NODE1)
    rewired(document)
    await followed(ledger, document)

    after = await held(ledger, "lan")
    gone, come = "2001:db8::5", "2001:db8::8000:0:0:5"
    assert {address: after[address] for address in before if address != gone} == {
        address: said for address, said in before.items() if address != gone
    }
    assert (gone in after, come in after) == (False, True)


async def test_an_address_changes_hands_without_being_released(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())
    document = later(old_document())
    exchanged(document)
    last = await ledger.last_change()
    plan = await followed(ledger, document)

    verbs = {change.verb async for change in ledger.changes(after=last) if change.address}
    assert verbs == {"transfer"}
    assert plan.followed is not None
    assert (plan.followed.handed_over, plan.followed.released) == (3, 0)


async def test_an_address_that_the_file_still_marks_is_not_given_up(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())
    document = later(old_document())
    del document["instances"][DB]["nics"][3]
    await followed(ledger, document)

    assert (await held(ledger, "net1"))["192.0.2.5"][0] == "ganeti/orphan"


async def test_what_a_renamed_instance_holds_and_waits_for_beside_its_nics_follows(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())
    await ledger.allocate("net1", owner="instance/web.example.org", slot="vip", address="192.0.2.11")
    await ledger.preallocate("net2", "instance/web.example.org", "10.0.0.9")
    document = later(old_document())
    document["instances"][WEB]["name"] = "shop"
    plan = await follow_import(ledger, read_cluster(document))

    assert plan.followed is not None
    assert (await held(ledger, "net1"))["192.0.2.11"][:2] == ("instance/shop", "vip")
    assert [each.owner for each in (await ledger.network("net2")).preallocations] == ["instance/shop"]


async def test_a_renamed_instance_never_drops_what_waits_for_its_new_name(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())
    await ledger.preallocate("net2", "instance/web.example.org", "10.0.0.9")
    await ledger.preallocate("net2", "instance/shop", "10.0.0.10")
    document = later(old_document())
    document["instances"][WEB]["name"] = "shop"
    before = await ledger.network("net2")

    for attempt in (follow_import, lambda *said: follow_import(*said, rehearsed=True)):
        with pytest.raises(tenure.Conflict) as refusal:
            await attempt(ledger, read_cluster(document))
        assert "10.0.0.9 waits for instance/web.example.org" in refusal.value.message
        assert "`tenure preallocation remove net2 instance/shop`" in refusal.value.message
    assert await ledger.network("net2") == before


async def test_a_name_that_holds_something_is_given_to_no_instance(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())
    await ledger.allocate("net1", owner="instance/shop", slot="new", address="192.0.2.11")
    document = later(old_document())
    document["instances"][WEB]["name"] = "shop"

    with pytest.raises(tenure.Conflict, match=r"instance/shop holds 192\.0\.2\.11 in network 'net1' already"):
        await follow_import(ledger, read_cluster(document))
    await ledger.release("net1", "192.0.2.11", owner="instance/shop")
    await followed(ledger, document)


async def test_nodes_and_the_master_take_their_reserved_addresses_along(ledger: tenure.AsyncLedger) -> None:
    first = old_document()
    first["cluster"]["master_ip"] = "192.0.2.20"
    await brought_in(ledger, first)
    await ClusterEdits(ledger).modify_node("node2", NodeWords(secondary_ip="192.0.2.11"))
    document = later(first)
    document["cluster"]["master_ip"] = "192.0.2.13"
    document["nodes"][NODE2].update(name="second", secondary_ip="192.0.2.12")
    await followed(ledger, document)

    [subnet] = [each for each in (await ledger.network("net1")).subnets if each.gateway and "192" in str(each.cidr)]
    assert {str(each.range): each.reason for each in subnet.reserved if each.reason} == {
        "192.0.2.12": "node second",
        "192.0.2.13": "the master",
    }


def _no_longer_external(document: Json) -> None:
    document["nodes"][NODE1]["primary_ip"] = "192.0.2.10"
    document["networks"][NET1]["ext_reservations"] = bits(16, 0, 1, 5, 9, 15)


def _no_longer_external_and_renamed(document: Json) -> None:
    _no_longer_external(document)
    document["nodes"][NODE1]["name"] = "first"
    document["networks"][NET1]["name"] = "lan"


def _in_a_block_that_grew(document: Json) -> None:
    document["nodes"][NODE1]["primary_ip"] = "10.0.1.9"
    wide = {"network": "10.0.0.0/23", "reservations": bits(512, 77), "ext_reservations": bits(512, 255, 511)}
    document["networks"][NET2].update(wide)


@pytest.mark.parametrize(
    ("change", "network", "address", "reason"),
    [
        (_no_longer_external, "net1", "192.0.2.10", "node node1"),
        (_no_longer_external_and_renamed, "lan", "192.0.2.10", "node first"),
        (_in_a_block_that_grew, "net2", "10.0.1.9", "node node1"),
    ],
)
async def test_a_new_address_of_a_node_is_reserved_also_where_the_file_opens_it(
    ledger: tenure.AsyncLedger, change: Callable[[Json], None], network: str, address: str, reason: str
) -> None:
    await brought_in(ledger, old_document())
    document = later(old_document())
    change(document)
    await followed(ledger, document)

    kept = [each for subnet in (await ledger.network(network)).subnets for each in subnet.reserved]
    assert [each.reason for each in kept if str(each.range) == address] == [reason]


async def test_a_new_address_of_a_node_that_the_file_opens_and_somebody_holds_is_refused(
    ledger: tenure.AsyncLedger,
) -> None:
    await brought_in(ledger, old_document())
    await ledger.allocate("net1", owner="guest/x", address="192.0.2.10", reserved="force")
    document = later(old_document())
    _no_longer_external(document)
    before = await ledger.last_change()
    with pytest.raises(tenure.Conflict, match=r"192\.0\.2\.10"):
        await follow_import(ledger, read_cluster(document))

    assert await ledger.last_change() == before


async def test_a_network_that_was_removed_and_added_again_under_its_name_is_followed(
    ledger: tenure.AsyncLedger,
) -> None:
    await brought_in(ledger, old_document())
    document = later(old_document())
    del document["networks"][NET2]
    document["networks"][NEW_NET] = {
        "name": "net2", "uuid": NEW_NET, "tags": [], "network": "10.0.0.0/25",
        "reservations": bits(128, 77), "ext_reservations": bits(128, 127),
    }  # fmt: skip
    lines = document["nodegroups"][DEFAULT]["networks"]
    lines[NEW_NET] = lines.pop(NET2)
    document["instances"][WEB]["nics"][1]["network"] = NEW_NET
    plan = await followed(ledger, document)

    assert plan.followed is not None
    assert (plan.followed.handed_over, plan.followed.released) == (1, 0)
    assert (await ledger.network("net2")).uuid == NEW_NET
    assert (await held(ledger, "net2"))["10.0.0.77"][0] == "instance/web.example.org"
    assert await export_cluster(ledger, "today") == document


async def test_what_the_file_has_no_words_for_stays(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, new_document())
    await ledger.modify_subnet("net1", "subnet2", dns=["10.0.0.2"], labels={"floor": "3"})
    await ledger.modify_pool("net1", "pool3", policy="random", cooling_s=60)
    await ledger.reserve("net1", "10.0.0.50", reason="printer")
    document = later(new_document())
    subnets = document["networks"][NET1]["subnets"]
    subnets[0], subnets[1] = subnets[1], subnets[0]
    subnets[0]["pools"] = [{**subnets[0]["pools"][1], "range": "10.0.0.40-10.0.0.48"}]
    subnets[0]["pools"][0]["reservations"] = "000001000"
    subnets[0]["external"] = ["10.0.0.50-10.0.0.52"]
    await followed(ledger, document)

    first, second, _ = (await ledger.network("net1")).subnets
    assert (first.name, first.dns, dict(first.notes.labels)) == ("subnet2", ("10.0.0.2",), {"floor": "3"})
    assert [(str(pool.range), str(pool.policy), pool.cooling_s) for pool in first.pools] == [
        ("10.0.0.40-10.0.0.48", "random", 60)
    ]
    assert {str(each.range): each.reason for each in first.reserved} == {
        "10.0.0.50": "printer", "10.0.0.51-10.0.0.52": "",
    }  # fmt: skip
    assert second.name == "subnet1"


async def test_instances_of_the_ledgers_own_follow_their_node(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())
    await Instances(ledger).add("by-hand", ["0:ip=192.0.2.11,network=net1"], InstanceOptions(node="node1"))
    document = later(old_document())
    document["nodes"][NODE1].update(name="first", group=RACK)
    await followed(ledger, document)

    instance = await Instances(ledger).find("by-hand")
    assert (instance.node, instance.group, instance.nics[0].link) == ("first", "rack", "rt1")


def _held_by_another(document: Json) -> None:
    document["instances"][WEB]["nics"][0]["ip"] = "192.0.2.11"


def _name_taken(document: Json) -> None:
    document["instances"][WEB]["name"] = "by-hand"


def _mac_taken(document: Json) -> None:
    document["instances"][WEB]["nics"][0]["mac"] = "aa:00:00:99:99:99"


def _node_in_use(document: Json) -> None:
    document["instances"][WEB]["primary_node"] = NODE2
    del document["nodes"][NODE1]


def _cut_off(document: Json) -> None:
    del document["nodegroups"][DEFAULT]["networks"][NET1]


def _network_in_use(document: Json) -> None:
    for instance in document["instances"].values():
        instance["nics"] = []
    for group in document["nodegroups"].values():
        group["networks"].pop(NET1, None)
    del document["networks"][NET1]


def _ground_in_use(document: Json) -> None:
    small = {"network": "192.0.2.0/29", "reservations": bits(8, 4, 5, 6), "ext_reservations": bits(8, 0, 1, 5)}
    document["networks"][NET1].update(small)


def _name_of_another_network(document: Json) -> None:
    networks = document["networks"]
    networks[NET1]["name"], networks[NET2]["name"] = "net2", "net1"


def _gateway_in_use(document: Json) -> None:
    document["networks"][NET1]["gateway"] = "192.0.2.4"
    document["networks"][NET1]["ext_reservations"] = bits(16, 0, 1, 4, 5, 9, 10, 15)


def _new_gateway_in_use(document: Json) -> None:
    grown(document)
    document["networks"][NEW_NET].update(gateway="198.51.100.3", ext_reservations=bits(16, 0, 3, 15))


REFUSED: list[tuple[Callable[[Json], None], str]] = [
    (
        _held_by_another,
        "address 192.0.2.11 of instance 'web.example.org' in network 'net1' is held by instance/by-hand",
    ),
    (_name_taken, "instance 'by-hand' exists already"),
    (_mac_taken, "MAC aa:00:00:99:99:99 of instance 'web.example.org' is that of instance 'by-hand'"),
    (
        _node_in_use,
        "node 'node1' is no longer in the file, and instance 'by-hand', which no file brought in, still uses it",
    ),
    (_cut_off, "network 'net1' is not connected to group 'default' in the file, and instance 'by-hand'"),
    (_network_in_use, "network 'net1' is no longer in the file, and instance 'by-hand'"),
    (_ground_in_use, "instance/by-hand (192.0.2.11)"),
    (_name_of_another_network, "network 'net1' is called 'net2' in the file, and that name is still in use"),
    (
        _gateway_in_use,
        "network 'net1' has the gateway 192.0.2.4: address 192.0.2.4 is held by instance/web.example.org",
    ),
    (_new_gateway_in_use, "network 'net9' is new, and a NIC has its gateway 198.51.100.3"),
]


@pytest.mark.parametrize(("change", "words"), REFUSED, ids=lambda each: getattr(each, "__name__", ""))
async def test_what_cannot_be_followed_is_refused_with_the_reason_and_changes_nothing(
    ledger: tenure.AsyncLedger, change: Callable[[Json], None], words: str
) -> None:
    await brought_in(ledger, old_document())
    nics = ["0:ip=192.0.2.11,network=net1,mac=aa:00:00:99:99:99"]
    await Instances(ledger).add("by-hand", nics, InstanceOptions(node="node1"))
    document = later(old_document())
    document["instances"][WEB]["tags"] = ["other"]
    change(document)
    before = await ledger.last_change()
    tried = await try_to_follow(ledger, read_cluster(document))
    with pytest.raises(tenure.TenureError) as refused:
        await follow_import(ledger, read_cluster(document))

    assert refused.value.message.startswith("nothing was written: ")
    assert words in refused.value.message
    assert words in tried.in_the_way[0]
    assert not any("--apply follows" in each for each in tried.in_the_way)
    assert await ledger.last_change() == before


async def test_a_new_gateway_that_the_file_does_not_mark_and_somebody_holds_is_an_oddity(
    ledger: tenure.AsyncLedger,
) -> None:
    await brought_in(ledger, old_document())
    await ledger.allocate("net1", owner="guest/x", address="192.0.2.13")
    document = later(old_document())
    document["networks"][NET1]["gateway"] = "192.0.2.13"
    tried = await try_to_follow(ledger, read_cluster(document))
    plan = await followed(ledger, document)

    words = "192.0.2.13 becomes the gateway of network net1, is not marked as external, and is held by guest/x"
    assert [[each.reason for each in seen.findings].count(words) for seen in (tried, plan)] == [1, 1]
    assert (await held(ledger, "net1"))["192.0.2.13"][0] == "guest/x"


async def test_a_change_that_came_between_reading_and_writing_is_seen(
    ledger: tenure.AsyncLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await brought_in(ledger, old_document())
    document = later(old_document())
    document["nodes"][NODE1]["name"] = "first"
    apply, raced = ledger.apply, list[str]()

    async def outrun(operations: Any) -> Any:
        if not raced:
            raced.append("web2")
            monkeypatch.setattr(ledger, "apply", apply)
            await Instances(ledger).add("web2", ["0:ip=192.0.2.11,network=net1"], InstanceOptions(node="node1"))
        return await apply(operations)

    monkeypatch.setattr(ledger, "apply", outrun)
    await followed(ledger, document)

    assert (await Instances(ledger).find("web2")).node == "first"


def _without_net2(document: Json) -> None:
    del document["networks"][NET2], document["nodegroups"][DEFAULT]["networks"][NET2]
    del document["instances"][WEB]["nics"][1]


def _without_the_line_of_net2(document: Json) -> None:
    """Cut a network off a group in which a NIC of the file stays on it."""
    del document["nodegroups"][DEFAULT]["networks"][NET2]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_without_net2, "network 'net2' is no longer in the file, and instance 'late'"),
        (_without_the_line_of_net2, "network 'net2' is not connected to group 'default' in the file, and instance"),
    ],
)
async def test_a_nic_without_an_address_that_came_between_reading_and_writing_keeps_its_network(
    ledger: tenure.AsyncLedger, monkeypatch: pytest.MonkeyPatch, change: Callable[[Json], None], words: str
) -> None:
    await brought_in(ledger, old_document())
    document = later(old_document())
    change(document)
    apply = ledger.apply

    async def outrun(operations: Any) -> Any:
        monkeypatch.setattr(ledger, "apply", apply)
        await Instances(ledger).add("late", ["0:network=net2"], InstanceOptions(node="node1"))
        return await apply(operations)

    monkeypatch.setattr(ledger, "apply", outrun)
    with pytest.raises(tenure.Conflict) as refused:
        await follow_import(ledger, read_cluster(document))

    assert words in refused.value.message
    assert (await ledger.network("net2")).connection("default") is not None
    assert await verify_machines(ledger) == []


async def test_a_connection_goes_under_nics_that_the_file_leaves_on_it(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())
    document = later(old_document())
    _without_the_line_of_net2(document)
    await followed(ledger, document)

    assert (await ledger.network("net2")).connections == ()


def test_the_command_line_shows_the_differences_and_then_follows_them(tmp_path: Path) -> None:
    door, file = Door(f"sqlite:///{tmp_path / 'tenure.db'}"), tmp_path / "config.data"
    file.write_text(json.dumps(old_document()), "utf-8")
    door.do(f"network import-ganeti {file} --apply")
    document = later(old_document())
    renamed_and_moved(document)
    document["instances"][WEB]["nics"][0]["ip"] = "192.0.2.8"
    document["networks"][NET1]["reservations"] = bits(16, 5, 6, 8)
    file.write_text(json.dumps(document), "utf-8")
    shown = door.call(f"network import-ganeti {file} --dry-run --apply")
    tried = door.ask(f"network import-ganeti {file} --dry-run --apply")
    done = door.do(f"network import-ganeti {file} --apply").stdout

    assert shown.exit_code == 0
    assert "differs: node node1: is called first in the file; `tenure node rename node1 first`" in shown.stdout
    assert "all can be followed in one step" in shown.stdout
    assert (tried["ok"], tried["applied"], tried["written"], tried["conflicts"]) == (True, False, False, [])
    assert len(tried["differences"]) == 6
    assert "followed: instance web.example.org: is called shop.example.org in the file\n" in done
    assert "all followed in one step: 2 addresses handed over, 1 address released" in done
    again = door.ask(f"network import-ganeti {file} --apply")
    assert (again["written"], again["applied"], again["differences"], again["moved"]) == (False, False, [], None)
    assert "nothing to do" in door.unchanged(f"network import-ganeti {file} --apply").stdout


def test_a_dry_run_with_apply_refuses_in_the_words_of_the_real_run(tmp_path: Path) -> None:
    door, file = Door(f"sqlite:///{tmp_path / 'tenure.db'}"), tmp_path / "config.data"
    file.write_text(json.dumps(old_document()), "utf-8")
    door.do(f"network import-ganeti {file}")
    door.do("allocate net1 guest/x --address 192.0.2.11")
    document = later(old_document())
    _ground_in_use(document)
    file.write_text(json.dumps(document), "utf-8")
    tried = json.loads(door.call(f"network import-ganeti {file} --dry-run --apply --json").stdout)
    refused = door.call(f"network import-ganeti {file} --apply")

    [conflict] = tried["conflicts"]
    assert conflict in refused.stderr
    assert conflict.endswith("; release them first")


async def test_a_dry_run_with_apply_names_everything_that_is_in_the_way(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())
    for address in ("192.0.2.11", "192.0.2.12"):
        await ledger.allocate("net1", owner="guest/x", slot=address, address=address)
    document = later(old_document())
    for machine, place, address in ((WEB, 0, "192.0.2.11"), (DB, 3, "192.0.2.12")):
        document["instances"][machine]["nics"][place]["ip"] = address
    tried = await try_to_follow(ledger, read_cluster(document))

    assert [each.split()[1] for each in tried.in_the_way] == ["192.0.2.11", "192.0.2.12"]


def test_the_json_of_the_command_line_has_what_was_done(tmp_path: Path) -> None:
    door, file = Door(f"sqlite:///{tmp_path / 'tenure.db'}"), tmp_path / "config.data"
    file.write_text(json.dumps(old_document()), "utf-8")
    door.do(f"network import-ganeti {file}")
    document = later(old_document())
    grown(document)
    file.write_text(json.dumps(document), "utf-8")
    made = door.ask(f"network import-ganeti {file} --apply")

    assert (made["ok"], made["written"], made["applied"]) == (True, True, True)
    assert made["counts"] == {
        "nodegroups": 1, "nodes": 1, "networks": 1, "instances": 1, "addresses": 3, "orphans": 1,
    }  # fmt: skip
    assert [(each["kind"], each["command"].split()[:3]) for each in made["differences"]] == [
        ("instance", ["tenure", "instance", "move"]),
        ("instance", ["tenure", "instance", "modify"]),
    ]
    assert made["moved"] == {"handed_over": 0, "released": 0}


async def _one_after_the_other(first: Json, second: Json) -> None:
    async with await tenure.open_async("memory:") as ledger:
        await brought_in(ledger, first)
        before = await ledger.last_change()
        document = {**second, "serial_no": first["serial_no"] + 1}
        try:
            await followed(ledger, document)
        except tenure.TenureError:
            assert await ledger.last_change() == before
            return
        wanted = read_cluster(document)
        machines = {each.name: each for each in await Instances(ledger).every()}
        assert {name: [nic.addresses for nic in each.nics] for name, each in machines.items()} == {
            each.name: [nic.addresses for nic in each.nics] for each in wanted.instances
        }


@pytest.mark.parametrize("revised", [False, True], ids=["today", "revised"])
@given(data=st.data())
@settings(max_examples=examples(0.3))
def test_any_file_is_followed_by_any_other_or_refused_without_a_change(data: st.DataObject, revised: bool) -> None:
    first, second = (data.draw(configurations(revised=revised)) for _ in range(2))
    asyncio.run(_one_after_the_other(first, second))
