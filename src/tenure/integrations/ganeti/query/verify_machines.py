"""Papers held against each other and against the ledger: what this door writes in one ``apply`` must agree for ever.

It disagrees only where somebody changed holdings, networks or papers behind the door's back. ``instance modify`` and
``instance remove`` put that right.
"""

from collections.abc import Iterable, Iterator

from tenure.integrations.ganeti.instance_records import load_instances, marks_of
from tenure.integrations.ganeti.machine_model import (
    GROUP,
    IDENTITY,
    INSTANCE,
    MAC,
    NIC,
    NODE,
    PLACEMENT,
    Instance,
    owner_of,
    read_node,
)
from tenure.integrations.ganeti.network_lookup import NetworkLookup
from tenure.kernel.holdings.holding_model import Paper, State
from tenure.kernel.plan.plan_model import Network
from tenure.service.ledger.async_ledger import AsyncLedger

MARKS = (NIC, MAC, PLACEMENT, IDENTITY)


async def verify_machines(ledger: AsyncLedger) -> list[str]:
    """Check instances, nodes and groups; what a second look does not find was only on its way.

    Costs all papers of this door, and all holdings of the networks that instances are on.
    """
    first = await _look(ledger)
    if not first:
        return []
    second = set(await _look(ledger))
    return [found for found in first if found in second]


async def _look(ledger: AsyncLedger) -> list[str]:
    atlas = NetworkLookup(ledger)
    instances = await load_instances(ledger, atlas)
    papers = {paper.name: paper for paper in await ledger.papers(INSTANCE)}
    networks = {network.uuid: network for network in await atlas.every()}
    groups = {paper.name for paper in await ledger.papers(GROUP)}
    nodes = {paper.name: read_node(paper) for paper in await ledger.papers(NODE)}
    found = [
        f"node {node.name}: its group {node.group} is not there" for node in nodes.values() if node.group not in groups
    ]
    for instance in instances:
        node = nodes.get(instance.node)
        if node is None or node.group != instance.group:
            found.append(f"instance {instance.name}: node {instance.node} of group {instance.group} is not there")
        found.extend(_wires(instance, networks))
        if instance.name in papers:
            found.extend(_lost(instance, papers[instance.name]))
        found.extend(await _strays(ledger, instance, networks))
    identities = {(IDENTITY, node.uuid) for node in nodes.values()}
    return [*found, *await _marks(ledger, instances, identities)]


def _wires(instance: Instance, networks: dict[str, Network]) -> Iterator[str]:
    for number, nic in enumerate(instance.nics):
        network = None if nic.network is None else networks.get(nic.network)
        if nic.network is not None and network is None:
            yield f"instance {instance.name}: the network of NIC {number} is not there ({nic.network})"
        elif network is not None and network.connection(instance.group) is None:
            yield f"instance {instance.name}: network {network.name} is not connected to group {instance.group}"


def _lost(instance: Instance, paper: Paper) -> Iterator[str]:
    # Not strict: the paper was read after the instance and may have other NICs by now; the second look decides.
    for number, (nic, told) in enumerate(zip(instance.nics, paper.document["nics"], strict=False)):
        missing = len(told["ips"]) - len(nic.ips)
        if missing:
            yield f"instance {instance.name}: NIC {number} lost {missing} of its addresses: they were released"


async def _strays(ledger: AsyncLedger, instance: Instance, networks: dict[str, Network]) -> list[str]:
    """Find what an instance holds and no NIC of it has."""
    uuids = {network.name: network.uuid for network in networks.values()}
    slots = {(nic.network, ip.slot) for nic in instance.nics for ip in nic.ips}
    held = await ledger.holdings(owner=owner_of(instance.name))
    return [
        f"instance {instance.name}: it holds {holding.address} in network {holding.network}, and no NIC has it"
        for holding in held
        # A pending holding belongs to an operation that is under way, and a cooling one was given back.
        if holding.state in (State.HELD, State.DRAINING) and (uuids.get(holding.network), holding.slot) not in slots
    ]


async def _marks(ledger: AsyncLedger, instances: Iterable[Instance], others: set[tuple[str, str]]) -> list[str]:
    wanted = others | {mark for instance in instances for mark in marks_of(instance)}
    there = {(kind, paper.name) for kind in MARKS for paper in await ledger.papers(kind)}
    missing = [f"paper {kind} {name}: it is missing" for kind, name in sorted(wanted - there)]
    return [*missing, *(f"paper {kind} {name}: it is left over" for kind, name in sorted(there - wanted))]
