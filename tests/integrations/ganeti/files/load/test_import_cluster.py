"""What an import makes in the ledger, what it finds odd, what it refuses, and what a second one does."""

import copy
import json

import pytest

import tenure
from tenure.integrations.ganeti.cluster_edits import ClusterEdits
from tenure.integrations.ganeti.files.export_cluster import export_cluster
from tenure.integrations.ganeti.files.load import import_cluster
from tenure.integrations.ganeti.files.load.import_cluster import plan_import, run_import
from tenure.integrations.ganeti.files.read.cluster_file import read_cluster
from tenure.integrations.ganeti.machine_model import Node, read_instance
from tenure.integrations.ganeti.networks import NetworkOptions, Networks
from tenure.kernel.plan.edits import AddNetwork
from tests.integrations.ganeti.files.documents import (
    DB,
    NET1,
    NET2,
    NODE1,
    WEB,
    bits,
    breaches,
    brought_in,
    new_document,
    nic,
    old_document,
)
from tests.integrations.ganeti.files.test_round_trips import contents


async def test_the_plan_tells_what_would_be_made_and_makes_nothing(ledger: tenure.AsyncLedger) -> None:
    plan = await plan_import(read_cluster(old_document()), ledger)

    assert plan.counts == {
        "nodegroups": 2, "nodes": 2, "networks": 2, "instances": 2, "addresses": 4, "orphans": 1,
    }  # fmt: skip
    assert plan.new["networks"] == ["net1", "net2"]
    assert plan.conflicts == []
    assert await ledger.last_change() == 0


async def test_u16_marks_keep_their_origin_automatic_or_admin(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())

    net1 = await ledger.network("net1")
    four, six = net1.subnets
    assert (net1.uuid, net1.mac_prefix, net1.tags) == (NET1, "aa:00:55", ("prod", "a:b"))
    assert four.keep_back == {"network", "broadcast", "gateway"}
    assert [(str(kept.range), kept.reason) for kept in four.reserved] == [
        ("192.0.2.5", ""), ("192.0.2.9-192.0.2.10", ""),
    ]  # fmt: skip
    assert [(str(pool.range), pool.name) for pool in four.pools] == [("192.0.2.0-192.0.2.15", None)]
    assert six.keep_back == {"network", "gateway"}
    assert (six.pools, six.reserved) == ((), ())
    assert [(line.group, line.mode, line.link, line.vlan) for line in net1.connections] == [
        ("default", "bridged", "br0", ""), ("rack", "routed", "rt1", ""),
    ]  # fmt: skip


async def test_u16_an_automatic_mark_that_is_not_set_is_not_kept_back(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())

    [subnet] = (await ledger.network("net2")).subnets
    assert subnet.keep_back == {"broadcast", "gateway"}
    assert (await ledger.allocate("net2", owner="instance/new")).address == "10.0.0.0"


async def test_every_address_of_a_nic_in_a_network_is_held_by_its_instance(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, new_document())

    held = await ledger.holdings(owner="instance/web.example.org")
    assert {(h.network, h.address) for h in held} == {
        ("net1", "192.0.2.11"), ("net1", "2001:db8::5"), ("net1", "10.0.0.45"),
    }  # fmt: skip
    instance = read_instance(
        await ledger.paper("instance", "web.example.org"), {(NET1, h.slot): h.address for h in held}
    )
    assert [nic.addresses for nic in instance.nics] == [
        ["192.0.2.11", "2001:db8::5", "10.0.0.45"], [], ["172.16.0.1", "172.16.0.2"], [],
    ]  # fmt: skip
    assert (instance.node, instance.group, instance.serial, instance.uuid) == ("node1", "default", 3, WEB)


async def test_the_marks_by_which_instances_are_found_are_written(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())

    nics = [paper.name for paper in await ledger.papers("nic")]
    assert f"{NET1}/default/web.example.org/00000001" in nics
    assert "-/rack/db.example.org/00000005" in nics
    assert len(nics) == 8
    assert (await ledger.paper("mac", "aa:00:00:00:00:08")).document == {"instance": "db.example.org"}
    assert [paper.name for paper in await ledger.papers("placement")] == [
        "node1/web.example.org", "node2/db.example.org",
    ]  # fmt: skip
    assert len(await ledger.papers("cluster")) == 1


async def test_what_a_nic_does_not_say_of_its_wire_is_its_networks_or_the_clusters(ledger: tenure.AsyncLedger) -> None:
    document = old_document()
    document["instances"][DB]["nics"] = [nic(4, network=NET1, nicparams={}), nic(5, nicparams={"link": "x"})]
    await brought_in(ledger, document)

    nics = (await ledger.paper("instance", "db.example.org")).document["nics"]
    assert [(each["mode"], each["link"]) for each in nics] == [("routed", "rt1"), ("routed", "x")]


async def test_marks_and_nics_that_disagree_are_told_and_kept(ledger: tenure.AsyncLedger) -> None:
    document = old_document()
    document["networks"][NET1]["reservations"] = bits(16, 5, 6, 7, 8, 1)  # .4 is web's; nobody has .6-.8 and .1
    plan = await brought_in(ledger, copy.deepcopy(document))

    place = f"networks[{NET1}]"
    assert [str(finding) for finding in plan.findings] == [
        f"{place}: 192.0.2.1 of network net1 is marked as used, and no NIC has it",
        f"{place}: 192.0.2.6-192.0.2.8 of network net1 is marked as used, and no NIC has it",
        f"{place}: 192.0.2.4 of network net1 is a NIC's, and is not marked as used",
    ]
    assert (await ledger.holding("net1", "192.0.2.7")).owner == "ganeti/orphan"
    assert (await ledger.holding("net1", "192.0.2.4")).owner == "instance/web.example.org"
    assert await export_cluster(ledger, "today") == document


async def test_a_nic_on_a_network_that_does_not_reach_its_group_is_told(ledger: tenure.AsyncLedger) -> None:
    document = old_document()
    document["instances"][DB]["nics"] = [nic(4, network=NET2)]
    plan = await plan_import(read_cluster(document), ledger)

    assert f"instances[{DB}].nics[0].network: network net2 is not connected to group rack" in map(str, plan.findings)


@pytest.mark.on_machines_addresses
async def test_an_instance_may_have_a_gateway_and_externally_reserved_addresses(ledger: tenure.AsyncLedger) -> None:
    document = old_document()
    document["instances"][DB]["nics"] = [nic(4, ip="192.0.2.1", network=NET1), nic(5, ip="192.0.2.9", network=NET1)]
    await brought_in(ledger, copy.deepcopy(document))

    assert (await ledger.holding("net1", "192.0.2.1")).owner == "instance/db.example.org"
    assert await export_cluster(ledger, "today") == document


@pytest.mark.parametrize(("steps", "present"), [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8)])
async def test_an_import_that_was_broken_off_is_run_again(
    steps: int, present: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_cluster, "CHUNK", 1)
    cluster = read_cluster(old_document())
    made = 0

    class Killed(Exception):
        pass

    def kill(done: int, total: int) -> None:
        nonlocal made
        made += 1
        if made == steps:
            raise Killed

    async with await tenure.open_async("memory:") as ledger, await tenure.open_async("memory:") as whole:
        with pytest.raises(Killed):
            await run_import(ledger, await plan_import(cluster, ledger), kill)
        again = await plan_import(cluster, ledger)
        await run_import(ledger, again)
        await brought_in(whole, old_document())

        assert sum(map(len, again.present.values())) == present
        assert (await contents(ledger))[0] == (await contents(whole))[0]
        assert (await contents(ledger))[2] == (await contents(whole))[2]
        assert await export_cluster(ledger, "today") == old_document()
        assert await breaches(ledger) == []


async def test_a_file_that_was_brought_in_wholly_changes_nothing_the_second_time(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())
    await ledger.release("net1", "192.0.2.6", owner="ganeti/orphan")
    before = await ledger.last_change()
    plan = await brought_in(ledger, old_document())

    assert plan.done
    assert plan.counts == dict.fromkeys(plan.counts, 0)
    assert await ledger.last_change() == before


async def test_another_file_is_refused(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())
    before = await ledger.last_change()
    with pytest.raises(tenure.Conflict, match="another Ganeti file was brought in before"):
        await brought_in(ledger, new_document())

    assert await ledger.last_change() == before


async def test_names_uuids_spaces_and_macs_that_exist_are_refused_all_at_once(ledger: tenure.AsyncLedger) -> None:
    await ledger.apply(
        [
            tenure.AddNetwork(network="net1"),
            tenure.AddNetwork(network="other", uuid=NET2),
            tenure.WritePaper(kind="group", name="rack", document={"uuid": "x"}),
            tenure.WritePaper(kind="node", name="elsewhere", document=Node("elsewhere", "rack", NODE1).document()),
            tenure.WritePaper(kind="mac", name="aa:00:00:00:00:05", document={"instance": "mine"}),
        ]
    )
    plan = await plan_import(read_cluster(old_document()), ledger)
    before = await ledger.last_change()
    with pytest.raises(tenure.Conflict, match="nothing was written: group 'rack' exists already"):
        await run_import(ledger, plan)

    assert plan.conflicts == [
        "group 'rack' exists already",
        f"node 'node1' has the uuid of node 'elsewhere', {NODE1}",
        "network 'net1' exists already",
        f"network 'net2' has the uuid of network 'other', {NET2}",
        "MAC aa:00:00:00:00:05 of instance 'db.example.org' is that of instance 'mine'",
    ]
    assert await ledger.last_change() == before


async def test_a_space_of_the_networks_name_is_refused(ledger: tenure.AsyncLedger) -> None:
    await ledger.add_network("mine", space="net1")
    plan = await plan_import(read_cluster(old_document()), ledger)

    assert plan.conflicts == ["space 'net1' exists already, and network 'net1' needs one of its own"]


async def test_progress_counts_to_the_end(ledger: tenure.AsyncLedger) -> None:
    told: list[tuple[int, int]] = []
    cluster = read_cluster(json.loads(json.dumps(old_document())))
    await run_import(ledger, await plan_import(cluster, ledger), lambda done, total: told.append((done, total)))

    assert told[-1] == (13, 13)
    assert [done for done, _ in told] == sorted({done for done, _ in told})


async def test_more_marks_without_nic_than_a_ledger_should_hold_are_refused(ledger: tenure.AsyncLedger) -> None:
    document = new_document()
    pool = document["networks"][NET1]["subnets"][2]["pools"][0]
    pool["reservations"] = [{"start": "2001:db8::", "size": 1 << 40}]

    with pytest.raises(tenure.Invalid, match="more than 1048576 addresses are marked"):
        await plan_import(read_cluster(document), ledger)


async def test_the_masters_address_of_a_file_is_kept_away_in_networks_that_come_later(
    ledger: tenure.AsyncLedger,
) -> None:
    document = old_document()
    document["cluster"]["master_ip"] = "203.0.113.3"
    await brought_in(ledger, document)
    await Networks(ledger).add(
        AddNetwork(network="later"), NetworkOptions(subnets=["add:cidr=203.0.113.0/24"], pools=["add:203.0.113.3"])
    )

    with pytest.raises(tenure.PoolExhausted):
        await ledger.allocate("later", owner="instance/x")
    assert "the master" in str(await ledger.why("203.0.113.3", network="later"))


async def test_a_master_that_answers_elsewhere_is_in_the_way(ledger: tenure.AsyncLedger) -> None:
    document = old_document()
    document["cluster"]["master_ip"] = "203.0.113.3"
    await ClusterEdits(ledger).set_master("203.0.113.4")

    assert (await plan_import(read_cluster(document), ledger)).conflicts == [
        "the master answers at 203.0.113.4, not at 203.0.113.3"
    ]
    document["cluster"]["master_ip"] = "router"
    with pytest.raises(tenure.Invalid, match=r"cluster.master_ip: 'router' is not an IPv4 or IPv6 address"):
        read_cluster(document)


@pytest.mark.parametrize("spelled", ["203.0.113.3", "2001:DB8::3"])
async def test_the_masters_address_is_written_back_as_the_file_had_it_until_it_changes(
    ledger: tenure.AsyncLedger, spelled: str
) -> None:
    document = old_document()
    document["cluster"]["master_ip"] = spelled
    await brought_in(ledger, document)
    assert await export_cluster(ledger, "today") == document
    await ClusterEdits(ledger).set_master("203.0.113.9")

    written = await export_cluster(ledger, "today")
    assert written["cluster"] == {**document["cluster"], "master_ip": "203.0.113.9"}
    assert written["serial_no"] == document["serial_no"] + 1
