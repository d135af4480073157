"""What an edit of the plan owes to a cluster: nodes keep their own addresses, NICs without network keep theirs.

The one place of these rules, whichever door makes the edit. It is also the one place in which the ledger reads papers
that a door keeps (``integrations/ganeti`` writes them): the rules have to hold under the locks of the edit.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tenure.kernel.addressing.addresses import parse_address
from tenure.kernel.addressing.ranges import AddressRange
from tenure.kernel.errors import AddressCovered
from tenure.kernel.holdings.holding_model import Entry, Paper, SpaceId
from tenure.kernel.plan.apply_edit import edited
from tenure.kernel.plan.edits import Reserve
from tenure.kernel.plan.new_ground import new_blocks, opened_ground
from tenure.kernel.plan.plan_model import Configuration, Network
from tenure.service.apply.context import Ground

INSTANCE, NODE, MASTER, NIC, CLUSTER = "instance", "node", "master", "nic", "cluster"
"""Kinds of papers: what people wrote of instances, nodes and the master, which instances have NICs on a network in a
group, and the one paper that every change of the cluster's structure writes."""

NO_NETWORK = "-"
"""What stands for the network in the index of NICs that have none."""

NODE_REASON = "node "
"""How the reason begins for which a node's address is reserved."""

MASTER_REASON = "the master"
"""The reason for which the master's address is reserved."""

OWN_REASONS = (NODE_REASON, MASTER_REASON)
"""How the reasons begin for which addresses of the cluster's own machines are reserved."""

PAGE = 1000


def node_reason(node: str) -> str:
    """Return the reason for which a node's addresses are reserved."""
    return NODE_REASON + node


def instance_of_mark(name: str) -> str:
    """Return the instance that a NIC's mark names: NETWORK/GROUP/INSTANCE/NIC."""
    # From the right: a network that the library made may have any uuid, also one with a slash.
    return name.rsplit("/", 2)[1]


async def keep_apart(ground: Ground, space: SpaceId) -> None:
    """Reserve nodes' addresses where the plan of a space opens ground around them; AddressCovered if a NIC is covered.

    Cost: nothing where no ground is opened, else O(networks + subnets) and a reading of all nodes.
    """
    old = ground.before.get(space)
    before = {} if old is None else {network.id: network for network in old.networks.values()}
    changed = [each for each in ground.now[space].networks.values() if before.get(each.id) is not each]
    for network in changed:
        if network.id in ground.unchecked:
            continue
        known = before.get(network.id)
        opened = opened_ground(known, network)
        if opened:
            machines = await _machines(ground)
            await _refuse_covered(ground, network, new_blocks(known, network))
            _reserve(ground, space, network, machines, opened)


async def _machines(ground: Ground) -> list[Paper]:
    """Read all nodes and the master, and let nobody who looked before this edit add one behind it."""
    if (CLUSTER, CLUSTER) not in ground.papers:
        [lock] = await ground.tx.papers_named(CLUSTER, [CLUSTER])
        ground.papers[CLUSTER, CLUSTER] = lock
        # A cluster whose structure never changed has no node yet.
        if lock is not None:
            await ground.tx.put_papers([lock._replace(revision=lock.revision + 1)])
    return [*await _all_papers(ground, NODE), *await _all_papers(ground, MASTER)]


async def _all_papers(ground: Ground, kind: str, prefix: str = "") -> list[Paper]:
    found: list[Paper] = []
    while page := await ground.tx.papers(kind, prefix=prefix, after=found[-1].name if found else "", limit=PAGE):
        found.extend(page)
        if len(page) < PAGE:
            break
    return found


def _reserve(
    ground: Ground, space: SpaceId, network: Network, machines: Iterable[Paper], opened: Sequence[AddressRange]
) -> None:
    """Reserve the addresses of machines that lie in ranges of a network, as far as nothing reserves them."""
    kept = [each.range for subnet in network.subnets for each in subnet.reserved]
    for machine in machines:
        reason = MASTER_REASON if machine.kind == MASTER else node_reason(machine.name)
        for position in own_positions(machine):
            if any(position in piece for piece in opened) and not any(position in piece for piece in kept):
                here = AddressRange(position, position)
                edit = Reserve(network=network.name, range=here, reason=reason)
                ground.keep(_edited(ground.now[space], edit))
                ground.entries.append(Entry(edit.verb, space, network.id, details=edit.told()))
                text = f"{here} is kept away from picking: it is an address of {reason}"
                ground.warnings.setdefault(network.id, []).append(text)


def own_positions(machine: Paper) -> list[int]:
    """List the addresses that a node or the master itself has, from its paper."""
    own = [machine.document.get(word) for word in ("primary_ip", "secondary_ip", "ip")]
    return sorted({parse_address(address) for address in own if address is not None})


def _edited(configuration: Configuration, edit: Reserve) -> Configuration:
    changed = edited(configuration, edit)
    # The space keeps its mark: an edit makes a configuration of networks, and ``queued`` is the store's.
    return replace(changed, queued=configuration.queued)


def covered(address: str, instance: str, network: str) -> AddressCovered:
    """Return the error of a network that would lie over the address of a NIC without network."""
    problem = f"instance {instance} has {address} on a NIC without network, and network {network} covers it"
    return AddressCovered(address, f"{problem}; pass --no-conflicts-check to go on all the same")


async def _refuse_covered(ground: Ground, network: Network, blocks: Sequence[AddressRange]) -> None:
    """Refuse to lay a network over addresses that NICs without network have in the groups it is connected to."""
    names: dict[str, None] = {}
    for connection in network.connections if blocks else ():
        marks = await _all_papers(ground, NIC, f"{NO_NETWORK}/{connection.group}/")
        names.update(dict.fromkeys(instance_of_mark(mark.name) for mark in marks))
    papers = await ground.tx.papers_named(INSTANCE, sorted(names), shared=True) if names else []
    loose = [(address, paper.name) for paper in papers if paper is not None for address in loose_addresses(paper)]
    for address, instance in loose:
        if any(parse_address(address) in block for block in blocks):
            raise covered(address, instance, network.name)


def loose_addresses(instance: Paper) -> list[str]:
    """List the addresses that an instance has on NICs without network, from its paper."""
    loose = [nic for nic in instance.document["nics"] if nic["network"] is None]
    return [ip["address"] for nic in loose for ip in nic["ips"]]
