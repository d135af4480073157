"""What an import asks of the ledger for each object of a file."""

from collections.abc import Collection, Iterable, Iterator

from tenure.integrations.ganeti.cluster import node_papers
from tenure.integrations.ganeti.files.file_model import NetworkFile, SubnetFile
from tenure.integrations.ganeti.files.load.address_owners import Grant
from tenure.integrations.ganeti.files.read.bitmaps import single
from tenure.integrations.ganeti.instance_records import instance_papers
from tenure.integrations.ganeti.machine_model import GROUP, Group, Instance, Node
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.addressing.ranges import subtract
from tenure.kernel.plan.edits import AddNetwork, AddPool, AddSubnet, Connect, Reserve, Unreserve
from tenure.kernel.plan.plan_model import KeepBack
from tenure.service.apply.operations import Allocate, IgnoreConflicts, Operation, WritePaper
from tenure.service.read.own_addresses import ORPHAN

REQUEST = "import ganeti"
ORPHANED = "marked as used in Ganeti's file; no NIC had it"
UNDER_WAY = "being brought in from a Ganeti file"


def group_operations(group: Group) -> list[Operation]:
    """Make a group."""
    return [WritePaper(kind=GROUP, name=group.name, document=group.document())]


def node_operations(node: Node) -> list[Operation]:
    """Make a node. The file's external marks say where its addresses are kept away."""
    return [*node_papers(node)]


def network_frame(network: NetworkFile) -> Iterator[Operation]:
    """Make a settled network with its subnets, in a space of its own: nothing is picked there, no group is reached."""
    name = network.name
    yield AddNetwork(network=name, uuid=network.uuid, mac_prefix=network.mac_prefix, tags=network.tags)
    yield from as_in_the_file(network)
    for subnet in network.subnets:
        yield AddSubnet(
            network=name,
            cidr=str(subnet.cidr),
            gateway=None if subnet.gateway is None else format_address(subnet.gateway),
            name=subnet.name,
            dhcp=subnet.dhcp,
            keep_back=sorted(kept_back(subnet)),
            uuid=subnet.uuid,
        )


def as_in_the_file(network: NetworkFile) -> list[Operation]:
    """Let a network be as its file says: the cluster that wrote it has made its own checks, or was told not to."""
    return [IgnoreConflicts(network=network.name)]


def network_filling(network: NetworkFile) -> Iterator[Operation]:
    """Give a network's frame what it is used by: pools, external ranges, connections."""
    name = network.name
    yield from as_in_the_file(network)
    for subnet in network.subnets:
        yield from (AddPool(network=name, range=pool.range, name=pool.name) for pool in subnet.pools)
        kept = kept_back(subnet)
        # Automatic marks stay automatic (U16): the subnet keeps them back by itself, and they follow its block.
        automatic = sorted({place for why, place in subnet.automatic() if why in kept and place is not None})
        for piece in subnet.external or ():
            yield from (Reserve(network=name, range=rest) for rest in subtract(piece, map(single, automatic)))
    yield from network_connections(network, {line.group for line in network.connections})


def network_connections(network: NetworkFile, groups: Collection[str]) -> Iterator[Operation]:
    """Connect a network to those of its groups that are named."""
    lines = [line for line in network.connections if line.group in groups]
    yield from as_in_the_file(network) if lines else ()
    for line in lines:
        yield Connect(network=network.name, group=line.group, mode=line.mode, link=line.link, vlan=line.vlan)


def shut(network: NetworkFile) -> list[Operation]:
    """Keep everything in a network's frame away from everybody."""
    return [Reserve(network=network.name, range=s.cidr.range, reason=UNDER_WAY) for s in network.subnets]


def unshut(network: NetworkFile) -> list[Operation]:
    """Lift what ``shut`` laid."""
    lifted = [Unreserve(network=network.name, range=s.cidr.range) for s in network.subnets]
    return [*as_in_the_file(network), *lifted]


def kept_gateways(network: NetworkFile) -> set[int]:
    """Return the gateways that are kept back: the ledger lets nobody hold one when it comes, only afterwards."""
    own = [(subnet.gateway, kept_back(subnet)) for subnet in network.subnets if subnet.gateway is not None]
    return {gateway for gateway, kept in own if KeepBack.GATEWAY in kept}


def kept_back(subnet: SubnetFile) -> set[KeepBack]:
    """Return which automatic marks a subnet has: those that are external, and that of a gateway yet to come."""
    external = subnet.external or ()
    return {why for why, place in subnet.automatic() if place is None or any(place in piece for piece in external)}


def allocations(network: str, grants: Iterable[Grant]) -> list[Operation]:
    """Hold addresses: for their instances, or so that what no NIC has is neither lost nor given away."""
    return [
        Allocate(
            # By force: in a file an instance may have the gateway, or an address that is externally reserved.
            network=network, owner=grant.owner, slot=grant.slot, address=grant.address, reserved="force",
            request=REQUEST, description=ORPHANED if grant.owner == ORPHAN else "",
        )
        for grant in grants
    ]  # fmt: skip


def instance_operations(instances: Iterable[Instance], names: dict[str, str]) -> list[Operation]:
    """Make instances; ``names`` are the networks' names by uuid. Allocations stand together: one serving for all.

    Their addresses were granted with their networks. Asked again the answer is the same.
    """
    every = list(instances)
    holdings: list[Operation] = [
        Allocate(
            network=names[nic.network], owner=instance.owner, slot=ip.slot, address=ip.address, reserved="force",
            request=REQUEST,
        )
        for instance in every
        for nic in instance.nics
        if nic.network is not None
        for ip in nic.ips
    ]  # fmt: skip
    return [*holdings, *(paper for instance in every for paper in instance_papers(instance))]
