"""Addresses when a later file is followed: what goes with its ground, what cools, and what is the ledger's own."""

import tenure
from tenure.integrations.ganeti.files.load.follow_file import follow_import
from tenure.integrations.ganeti.files.read.cluster_file import read_cluster
from tenure.integrations.ganeti.instance.plan_instance import InstanceOptions
from tenure.integrations.ganeti.instances import Instances
from tenure.integrations.ganeti.networks import NetworkOptions, Networks
from tenure.kernel.plan.edits import AddNetwork
from tests.integrations.ganeti.files.documents import (
    DB,
    DEFAULT,
    NET1,
    NET2,
    WEB,
    Json,
    bits,
    brought_in,
    new_document,
    old_document,
)
from tests.integrations.ganeti.files.load.test_follow_file import NEW_NET, followed, held, later, without_orphans

COOLING_S = 3600


async def cooled(ledger: tenure.AsyncLedger) -> None:
    """Let every pool of the ledger cool what is released."""
    for network in await ledger.networks():
        for pool in (pool for subnet in network.subnets for pool in subnet.pools):
            await ledger.modify_pool(network.name, str(pool.range), cooling_s=COOLING_S)


def without_net2(document: Json) -> None:
    """Remove a network with the NIC that was on it."""
    del document["networks"][NET2], document["nodegroups"][DEFAULT]["networks"][NET2]
    del document["instances"][WEB]["nics"][1]


async def test_a_network_whose_pool_cools_goes_with_the_addresses_that_were_held_in_it(
    ledger: tenure.AsyncLedger,
) -> None:
    await brought_in(ledger, old_document())
    await cooled(ledger)
    document = later(old_document())
    without_net2(document)
    await followed(ledger, document)

    assert [each.name for each in await ledger.networks()] == ["net1"]


async def test_a_network_whose_pool_cools_goes_with_the_addresses_that_were_marked_in_it(
    ledger: tenure.AsyncLedger,
) -> None:
    await brought_in(ledger, old_document())
    await cooled(ledger)
    document = later(old_document())
    without_orphans(document)
    await followed(ledger, document)

    assert [each.name for each in await ledger.networks()] == ["net2"]


async def test_a_network_whose_pool_cools_is_replaced_by_another_of_its_name(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())
    await cooled(ledger)
    document = later(old_document())
    document["networks"][NEW_NET] = {**document["networks"].pop(NET2), "uuid": NEW_NET}
    lines = document["nodegroups"][DEFAULT]["networks"]
    lines[NEW_NET] = lines.pop(NET2)
    document["instances"][WEB]["nics"][1]["network"] = NEW_NET
    await followed(ledger, document)

    assert (await held(ledger, "net2"))["10.0.0.77"][0] == "instance/web.example.org"


async def test_what_is_released_cools_only_where_its_ground_stays(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())
    await Instances(ledger).modify(
        "web.example.org", ["1:modify,ip1=10.0.0.200", "-1:add,ip=10.0.0.78,network=net2"], InstanceOptions()
    )
    await cooled(ledger)
    document = later(old_document())
    del document["instances"][WEB]["nics"][1]
    small = {"network": "10.0.0.0/25", "reservations": bits(128), "ext_reservations": bits(128, 127)}
    document["networks"][NET2].update(small)
    await follow_import(ledger, read_cluster(document))

    [subnet] = (await ledger.network("net2")).subnets
    states = {each.address: each.state for each in await ledger.holdings("net2")}
    assert states == {"10.0.0.77": "cooling", "10.0.0.78": "cooling"}
    assert [(str(pool.range), pool.cooling_s) for pool in subnet.pools] == [("10.0.0.0-10.0.0.127", COOLING_S)]


async def test_a_subnet_whose_pool_cools_goes_with_the_addresses_that_were_held_in_it(
    ledger: tenure.AsyncLedger,
) -> None:
    await brought_in(ledger, new_document())
    await cooled(ledger)
    document = later(new_document())
    del document["networks"][NET1]["subnets"][1]
    document["instances"][WEB]["nics"][0]["ip"] = ["192.0.2.11", "2001:db8::5"]
    await followed(ledger, document)

    network = await ledger.network("net1")
    assert [str(subnet.cidr) for subnet in network.subnets] == ["192.0.2.0/24", "2001:db8::/64"]
    assert {pool.cooling_s for subnet in network.subnets for pool in subnet.pools} == {COOLING_S}


async def test_a_mark_without_a_nic_in_a_network_of_the_ledgers_own_stays(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())
    await Networks(ledger).add(AddNetwork(network="own"), NetworkOptions(subnets=["add:cidr=203.0.113.0/24"]))
    await Networks(ledger).connect("own")
    await ledger.allocate("own", owner="ganeti/orphan", slot="203.0.113.9", address="203.0.113.9")
    await Instances(ledger).modify("web.example.org", ["-1:add,ip=203.0.113.7,network=own"], InstanceOptions())
    document = later(old_document())
    document["instances"][DB]["tags"] = ["other"]
    plan = await followed(ledger, document)

    assert list(await held(ledger, "own")) == ["203.0.113.9"]
    assert plan.followed is not None
    assert plan.followed.released == 1
