"""A ledger read at one moment, as the values that files are written from."""

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass

from tenure.integrations.ganeti.files.file_model import (
    GANETI,
    REVISED,
    ClusterConfiguration,
    Json,
    NetworkFile,
    PoolFile,
    SubnetFile,
)
from tenure.integrations.ganeti.files.read.bitmaps import single
from tenure.integrations.ganeti.files.read.merge_marks import settled_network
from tenure.integrations.ganeti.machine_model import (
    GROUP,
    INSTANCE,
    MASTER,
    NODE,
    Master,
    owner_of,
    read_group,
    read_instance,
    read_master,
    read_node,
)
from tenure.kernel.addressing.addresses import width
from tenure.kernel.addressing.ranges import AddressRange, merge
from tenure.kernel.errors import Conflict
from tenure.kernel.holdings.holding_model import Holding, State
from tenure.kernel.plan.plan_model import Network, Subnet
from tenure.service.ledger.async_ledger import AsyncLedger

PAGE = 1000
ATTEMPTS = 8
"""How often a ledger that changes under its reader is read before he gives up."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A ledger at one moment: its cluster, what its papers keep of a file, its networks by uuid, and the master."""

    cluster: ClusterConfiguration
    kept: Mapping[str, Json]
    networks: Mapping[str, Network]
    master: Master


async def read_ledger(ledger: AsyncLedger) -> Snapshot:
    """Read a ledger as one moment had it: afresh if something changed meanwhile."""
    for _ in range(ATTEMPTS):
        # No transaction spans several readings: a log that did not grow proves that they are of one moment.
        before = await ledger.last_change()
        snapshot = await _read(ledger)
        if await ledger.last_change() == before:
            return snapshot
    raise Conflict("the ledger keeps changing while it is read; write it when less is done")


async def _read(ledger: AsyncLedger) -> Snapshot:
    networks = await ledger.networks()
    slots: dict[str, dict[tuple[str, str], str]] = {}
    files: list[NetworkFile] = []
    for network in networks:
        used: list[AddressRange] = []
        async for holding in holdings_in(ledger, network.name):
            if holding.state is not State.COOLING:  # what is cooling was released
                used.append(AddressRange(holding.row.first, holding.row.last))
            place, own = (network.uuid, holding.slot), slots.setdefault(holding.owner, {})
            if holding.state is State.HELD:
                own[place] = holding.address
            elif holding.state is State.DRAINING:  # it may have left its slot to another
                own.setdefault(place, holding.address)
        files.append(settled_network(network_file(network), used))
    groups = tuple(read_group(paper) for paper in await ledger.papers(GROUP))
    nodes = tuple(read_node(paper) for paper in await ledger.papers(NODE))
    papers = await ledger.papers(INSTANCE)
    instances = tuple(read_instance(paper, slots.get(owner_of(paper.name), {})) for paper in papers)
    kept = {paper.name: dict(paper.document) for paper in await ledger.papers(GANETI)}
    master = read_master(await ledger.papers(MASTER))
    cluster = ClusterConfiguration(REVISED, tuple(files), groups, nodes, instances)
    return Snapshot(cluster, kept, {network.uuid: network for network in networks}, master)


async def holdings_in(ledger: AsyncLedger, network: str) -> AsyncIterator[Holding]:
    """Yield the holdings of a network, in order of address."""
    after = None
    while page := await ledger.holdings(network, after=after, limit=PAGE):
        for holding in page:
            yield holding
        # Behind its last address, since a holding may be a whole block.
        after = page[-1].last_address


def check_units(networks: Iterable[Network]) -> None:
    """Refuse what neither form has a word for."""
    odd = [
        f"subnet {subnet.cidr} of network {network.name} hands out /{subnet.unit}"
        for network in networks
        for subnet in network.subnets
        if subnet.unit != width(subnet.cidr.first)
    ]
    if odd:
        raise Conflict(f"a Ganeti file knows single addresses only: {'; '.join(odd)}", field="unit")


def network_file(network: Network) -> NetworkFile:
    """Return a network as a file would have it, but for the addresses in use."""
    waiting = [single(wish.position) for wish in network.preallocations]
    subnets = tuple(_subnet(subnet, waiting) for subnet in network.subnets)
    return NetworkFile(
        network.uuid, network.name, REVISED, network.mac_prefix, network.tags, subnets, network.connections
    )


def _subnet(subnet: Subnet, waiting: Iterable[AddressRange]) -> SubnetFile:
    """Read a subnet; external is whatever is kept away from picking, on whosever word."""
    kept = [single(position) for position, _ in subnet.kept_back()]
    ours = [piece for piece in waiting if subnet.cidr.range.covers(piece)]
    external = merge([*kept, *ours, *(reserved.range for reserved in subnet.reserved)])
    pools = tuple(PoolFile(pool.range, pool.name) for pool in subnet.pools)
    return SubnetFile(subnet.cidr, subnet.uuid, subnet.name, subnet.gateway, subnet.dhcp, pools, tuple(external))
