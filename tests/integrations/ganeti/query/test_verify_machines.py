"""What ``tenure verify`` says of instances, nodes and groups: nothing as long as only the door changed them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import tenure
from tenure.integrations.ganeti.cluster import Cluster
from tenure.integrations.ganeti.instance.plan_instance import InstanceOptions
from tenure.integrations.ganeti.instances import Instances
from tenure.integrations.ganeti.networks import NetworkOptions, Networks
from tenure.integrations.ganeti.query.verify_machines import verify_machines
from tenure.kernel.plan.edits import AddNetwork
from tests.doors.cli.site import Site

ANY = InstanceOptions()


@pytest.fixture
async def ledger() -> AsyncIterator[tenure.AsyncLedger]:
    async with await tenure.open_async("memory:") as ledger:
        await Cluster(ledger).add_group("default")
        await Cluster(ledger).add_node("node1")
        pool = NetworkOptions(subnets=["add:cidr=192.0.2.0/24,pool"])
        await Networks(ledger).add(AddNetwork(network="net1"), pool)
        await Networks(ledger).connect("net1")
        await Instances(ledger).add("web", ["0:ip0=pool,ip1=pool,network=net1", "1:ip=203.0.113.7"], ANY)
        yield ledger


async def test_what_the_door_did_is_clean(ledger: tenure.AsyncLedger) -> None:
    await Instances(ledger).modify("web", ["0:modify,ip0=none", "1:remove"], ANY)

    assert await verify_machines(ledger) == []


async def test_an_address_released_behind_the_doors_back_is_told(ledger: tenure.AsyncLedger) -> None:
    await ledger.release("net1", "192.0.2.1", owner="instance/web")

    assert await verify_machines(ledger) == ["instance web: NIC 0 lost 1 of its addresses: they were released"]
    await Instances(ledger).modify("web", ["0:modify,name=eth"], ANY)
    assert await verify_machines(ledger) == []


async def test_an_address_that_no_nic_has_is_told(ledger: tenure.AsyncLedger) -> None:
    await ledger.allocate("net1", owner="instance/web", address="192.0.2.77")

    told = "instance web: it holds 192.0.2.77 in network net1, and no NIC has it"
    assert await verify_machines(ledger) == [told]


async def test_a_network_that_went_by_the_library_is_told(ledger: tenure.AsyncLedger) -> None:
    uuid = (await ledger.network("net1")).uuid
    await ledger.apply([tenure.Disconnect(network="net1", group="default")])
    disconnected = await verify_machines(ledger)
    await ledger.remove_network("net1", cascade=True)

    assert disconnected == ["instance web: network net1 is not connected to group default"]
    assert f"instance web: the network of NIC 0 is not there ({uuid})" in await verify_machines(ledger)


async def test_papers_that_somebody_took_away_are_told(ledger: tenure.AsyncLedger) -> None:
    [node] = await ledger.papers("node")
    [group] = await ledger.papers("group")
    await ledger.apply(
        [
            tenure.RemovePaper(kind="node", name="node1", revision=node.revision),
            tenure.RemovePaper(kind="placement", name="node1/web", revision=1),
            tenure.WritePaper(kind="mac", name="aa:00:00:00:00:01", document={"instance": "nobody"}),
        ]
    )

    assert group.name == "default"
    assert await verify_machines(ledger) == [
        "instance web: node node1 of group default is not there",
        "paper placement node1/web: it is missing",
        f"paper identity {node.document['uuid']}: it is left over",
        "paper mac aa:00:00:00:00:01: it is left over",
    ]


def test_the_command_line_tells_it_with_the_invariants(tmp_path: Path) -> None:
    site = Site(tmp_path)
    for words in (
        "group add default",
        "node add node1",
        "network add net1 --subnet add:cidr=192.0.2.0/24,pool",
        "network connect net1",
        "instance add web --net 0:ip=pool,network=net1",
    ):
        site.text(*words.split())
    assert site.text("verify") == "clean: every invariant holds\n"
    site.text("release", "net1", "192.0.2.1", "instance/web")

    told = site.json("verify", code=1)

    assert told["breaches"] == [
        {"invariant": "machines", "text": "instance web: NIC 0 lost 1 of its addresses: they were released"}
    ]
