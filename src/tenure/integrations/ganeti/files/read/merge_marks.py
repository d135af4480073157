"""What a file means, once for all: marks and NICs brought together, as the ledger will have them.

A file tells of an address in use twice, by its bit and by its NIC, and the two may disagree. The ledger has one truth:
who holds it. A NIC's address is held by its instance, whatever the bit says; a bit without NIC becomes a holding too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tenure.integrations.ganeti.files.file_model import (
    INSTANCES,
    NETWORKS,
    ClusterConfiguration,
    FileRemark,
    NetworkFile,
    PoolFile,
    SubnetFile,
)
from tenure.integrations.ganeti.files.read.bitmaps import single, within
from tenure.integrations.ganeti.machine_model import Instance
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.addressing.ranges import AddressRange, merge, subtract
from tenure.kernel.errors import Invalid

MOST_ORPHANS = 1 << 20
"""How many marks without NIC a network may have; each becomes a holding."""


@dataclass(frozen=True, slots=True)
class MergedConfiguration:
    """A configuration as the ledger will have it, the marks that no NIC explains, and what is odd about the file."""

    cluster: ClusterConfiguration
    orphans: Mapping[str, Sequence[AddressRange]]
    findings: Sequence[FileRemark]

    def orphan_addresses(self, network: str) -> Iterator[str]:
        """Yield the addresses of a network (its uuid) that are marked and that no NIC has."""
        for piece in self.orphans.get(network, ()):
            yield from (format_address(position) for position in range(piece.first, piece.last + 1))


def settle(cluster: ClusterConfiguration) -> MergedConfiguration:
    """Bring marks and NICs together; a network with more unexplained marks than the ledger should hold is refused."""
    held = held_positions(cluster.instances)
    orphans: dict[str, Sequence[AddressRange]] = {}
    findings: list[FileRemark] = []
    networks: list[NetworkFile] = []
    for network in cluster.networks:
        place = f"{NETWORKS}[{cluster.keys[NETWORKS, network.uuid]}]"
        taken = merge(map(single, held.get(network.uuid, ())))
        orphans[network.uuid] = list(_orphans(network, taken))
        findings.extend(_told_orphans(place, network, orphans[network.uuid]))
        findings.extend(_unmarked(place, network, held.get(network.uuid, ())))
        networks.append(settled_network(network, [*taken, *orphans[network.uuid]]))
    findings.extend(_unconnected(cluster))
    return MergedConfiguration(replace(cluster, networks=tuple(networks)), orphans, findings)


def held_positions(instances: Iterable[Instance]) -> dict[str, list[int]]:
    """Return the positions that NICs have, by the uuid of their network."""
    held: dict[str, list[int]] = {}
    for instance in instances:
        for nic in instance.nics:
            if nic.network is not None:
                held.setdefault(nic.network, []).extend(map(parse_address, nic.addresses))
    return held


def settled_network(network: NetworkFile, used: Iterable[AddressRange]) -> NetworkFile:
    """Return a network whose pools mark exactly what is used, and whose external ranges are said."""
    taken = merge(used)
    return network.with_subnets(tuple(_settled_subnet(subnet, taken) for subnet in network.subnets))


def _settled_subnet(subnet: SubnetFile, taken: Sequence[AddressRange]) -> SubnetFile:
    pools = tuple(replace(pool, reservations=within(taken, pool.range)) for pool in subnet.pools)
    external = subnet.usual_external() if subnet.external is None else subnet.external
    return replace(subnet, pools=pools, external=external)


def _pools(network: NetworkFile) -> Iterator[PoolFile]:
    return (pool for subnet in network.subnets for pool in subnet.pools)


def _orphans(network: NetworkFile, taken: Sequence[AddressRange]) -> Iterator[AddressRange]:
    for pool in _pools(network):
        for piece in pool.reservations or ():
            yield from subtract(piece, taken)


def _told_orphans(place: str, network: NetworkFile, orphans: Sequence[AddressRange]) -> Iterator[FileRemark]:
    if sum(piece.size for piece in orphans) > MOST_ORPHANS:
        field = f"{place}.reservations"
        raise Invalid(f"{field}: more than {MOST_ORPHANS} addresses are marked that no NIC has", field=field)
    for piece in orphans:
        yield FileRemark(place, f"{piece} of network {network.name} is marked as used, and no NIC has it")


def _unmarked(place: str, network: NetworkFile, held: Iterable[int]) -> Iterator[FileRemark]:
    """Tell which NIC's address lies in a pool that does not mark it."""
    positions = sorted(held)
    for pool in _pools(network):
        if pool.reservations is None:
            continue
        inside = merge(single(position) for position in positions if position in pool.range)
        for whole in inside:
            for piece in subtract(whole, pool.reservations):
                yield FileRemark(place, f"{piece} of network {network.name} is a NIC's, and is not marked as used")


def _unconnected(cluster: ClusterConfiguration) -> Iterator[FileRemark]:
    """Tell which NIC is on a network that does not reach its group."""
    reached = {(network.uuid, line.group) for network in cluster.networks for line in network.connections}
    names = {network.uuid: network.name for network in cluster.networks}
    for instance in cluster.instances:
        key = cluster.keys[INSTANCES, instance.uuid]
        for index, nic in enumerate(instance.nics):
            if nic.network is not None and (nic.network, instance.group) not in reached:
                place = f"{INSTANCES}[{key}].nics[{index}].network"
                yield FileRemark(place, f"network {names[nic.network]} is not connected to group {instance.group}")
