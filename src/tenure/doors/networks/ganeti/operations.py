"""What an import asks of the ledger for each object of a file."""

from collections.abc import Iterable, Iterator

from tenure.doors.networks.ganeti.bitmaps import single
from tenure.doors.networks.ganeti.values import ORPHAN, NetworkFile, SubnetFile
from tenure.doors.networks.model import GROUP, NODE, Group, Instance, Node
from tenure.doors.networks.records import instance_papers
from tenure.kernel.addresses import format_address
from tenure.kernel.configuration import KeepBack
from tenure.kernel.edits import AddNetwork, AddPool, AddSubnet, Connect, Reserve
from tenure.kernel.ranges import subtract
from tenure.service.operations import Allocate, Operation, WritePaper

REQUEST = "import ganeti"


def group_operations(group: Group) -> list[Operation]:
    """Make a group."""
    return [WritePaper(kind=GROUP, name=group.name, document=group.document())]


def node_operations(node: Node) -> list[Operation]:
    """Make a node. The file's external marks say where its addresses are kept away."""
    return [WritePaper(kind=NODE, name=node.name, document=node.document())]


def network_operations(network: NetworkFile) -> Iterator[Operation]:
    """Make a settled network with its subnets, pools, external ranges and connections, in a space of its own."""
    name = network.name
    yield AddNetwork(network=name, uuid=network.uuid, mac_prefix=network.mac_prefix, tags=network.tags)
    for subnet in network.subnets:
        kept = _kept_back(subnet)
        yield AddSubnet(
            network=name,
            cidr=str(subnet.cidr),
            gateway=None if subnet.gateway is None else format_address(subnet.gateway),
            name=subnet.name,
            dhcp=subnet.dhcp,
            keep_back=sorted(kept),
            uuid=subnet.uuid,
        )
        yield from (AddPool(network=name, range=pool.range, name=pool.name) for pool in subnet.pools)
        automatic = sorted({place for why, place in subnet.automatic() if why in kept and place is not None})
        for piece in subnet.external or ():
            yield from (Reserve(network=name, range=rest) for rest in subtract(piece, map(single, automatic)))
    for line in network.connections:
        yield Connect(network=name, group=line.group, mode=line.mode, link=line.link, vlan=line.vlan)


def _kept_back(subnet: SubnetFile) -> set[KeepBack]:
    """Return which automatic marks a subnet has: those that are external, and that of a gateway yet to come."""
    external = subnet.external or ()
    return {why for why, place in subnet.automatic() if place is None or any(place in piece for piece in external)}


def orphan_operations(network: str, addresses: Iterable[str]) -> list[Operation]:
    """Hold addresses that are marked and that no NIC has, so that they are neither lost nor given away."""
    return [
        Allocate(
            network=network, owner=ORPHAN, slot=address, address=address, reserved="force", request=REQUEST,
            description="marked as used in Ganeti's file; no NIC had it",
        )
        for address in addresses
    ]  # fmt: skip


def instance_operations(instances: Iterable[Instance], names: dict[str, str]) -> list[Operation]:
    """Make instances; ``names`` are the networks' names by uuid. Allocations stand together: one serving for all."""
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
