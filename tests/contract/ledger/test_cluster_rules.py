"""Nodes keep their addresses, whichever way the plan is edited: the rules of ``service/apply/cluster_rules``."""

import pytest

import tenure

NODE = {"group": "default", "uuid": "u-9", "primary_ip": "192.0.2.9", "secondary_ip": "2001:db8::9"}


async def with_node(ledger: tenure.AsyncLedger, network: str = "plain") -> None:
    """Write a node and a bare network."""
    cluster = tenure.WritePaper(kind="cluster", name="cluster", document={})
    await ledger.apply([cluster, tenure.WritePaper(kind="node", name="node9", document=NODE)])
    await ledger.add_network(network)


def reserved(network: tenure.Network) -> list[tuple[str, str]]:
    """List what is reserved, and why."""
    return [(str(kept.range), kept.reason) for subnet in network.subnets for kept in subnet.reserved]


async def test_a_new_subnet_reserves_the_addresses_of_nodes_in_it(ledger: tenure.AsyncLedger) -> None:
    await with_node(ledger)

    await ledger.add_subnet("plain", "192.0.2.8/29")
    await ledger.add_subnet("plain", "2001:db8::/64")
    await ledger.add_pool("plain", "192.0.2.9-192.0.2.12")

    network = await ledger.network("plain")
    assert reserved(network) == [("192.0.2.9", "node node9"), ("2001:db8::9", "node node9")]
    assert (await ledger.allocate("plain", owner="instance/a")).address == "192.0.2.10"
    with pytest.raises(tenure.AddressReserved):
        await ledger.allocate("plain", owner="instance/b", address="192.0.2.9")


async def test_so_do_a_subnet_that_grows_a_pool_that_is_added_and_a_reservation_that_is_lifted(
    ledger: tenure.AsyncLedger,
) -> None:
    await with_node(ledger)
    await ledger.add_subnet("plain", "192.0.2.0/29", name="a")
    grown = await ledger.modify_subnet("plain", "a", cidr="192.0.2.0/24")
    unchecked = tenure.IgnoreConflicts(network="plain")
    await ledger.apply([unchecked, tenure.Unreserve(network="plain", range="192.0.2.9")])
    bare = await ledger.network("plain")

    pooled = await ledger.add_pool("plain", "192.0.2.8-192.0.2.20")
    await ledger.reserve("plain", "192.0.2.10-192.0.2.12")
    lifted = await ledger.unreserve("plain", "192.0.2.8-192.0.2.12")

    assert reserved(grown) == reserved(pooled) == reserved(lifted) == [("192.0.2.9", "node node9")]
    assert reserved(bare) == []


async def test_who_says_so_is_not_checked(ledger: tenure.AsyncLedger) -> None:
    await with_node(ledger)

    unchecked = tenure.IgnoreConflicts(network="plain")
    await ledger.apply([unchecked, tenure.AddSubnet(network="plain", cidr="192.0.2.8/29")])

    assert reserved(await ledger.network("plain")) == []


async def test_a_subnet_does_not_cover_a_nic_without_network_in_its_group(ledger: tenure.AsyncLedger) -> None:
    await with_node(ledger)
    await ledger.apply([tenure.Connect(network="plain", group="default")])
    nics = [{"network": None, "ips": [{"address": "203.0.113.7"}]}]
    mark = tenure.WritePaper(kind="nic", name="-/default/loose/0", document={})
    await ledger.apply([mark, tenure.WritePaper(kind="instance", name="loose", document={"nics": nics})])

    with pytest.raises(tenure.AddressCovered, match=r"instance loose has 203\.0\.113\.7"):
        await ledger.add_subnet("plain", "203.0.113.0/24")
    assert (await ledger.network("plain")).subnets == ()
    edit = tenure.AddSubnet(network="plain", cidr="203.0.113.0/24")
    await ledger.apply([tenure.IgnoreConflicts(network="plain"), edit])
