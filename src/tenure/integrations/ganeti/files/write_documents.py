"""Values written as plain documents, in either form; what today's form cannot say is told with its reasons."""

from collections.abc import Iterator, Mapping

from tenure.integrations.ganeti.files.file_model import (
    REVISED,
    SPELLED_OUT,
    Form,
    Json,
    NetworkFile,
    PoolFile,
    SubnetFile,
)
from tenure.integrations.ganeti.files.read.bitmaps import write_bits
from tenure.integrations.ganeti.machine_model import Group, Instance, Nic, Node
from tenure.kernel.addressing.addresses import format_address, is_v6
from tenure.kernel.addressing.ranges import AddressRange
from tenure.kernel.plan.plan_model import Connection

SHORTEST, LONGEST = 16, 30
"""The prefix lengths that today's Ganeti allows."""

WIDEST = 8
"""The shortest prefix whose bit strings are still written: they have sixteen million characters."""


def write_network(network: NetworkFile, form: Form) -> Json:
    """Write a network; one that today's form cannot say must not be asked for in it (``not_today``)."""
    own: Json = {"name": network.name, "uuid": network.uuid, "tags": list(network.tags)}
    if network.mac_prefix is not None:
        own["mac_prefix"] = network.mac_prefix
    if form == REVISED:
        return {**own, "subnets": [_subnet(subnet) for subnet in network.subnets]}
    for subnet in network.subnets:
        six = "6" if is_v6(subnet.cidr.first) else ""
        own[f"network{six}"] = str(subnet.cidr)
        if subnet.gateway is not None:
            own[f"gateway{six}"] = format_address(subnet.gateway)
        if not six:
            block = subnet.cidr.range
            marks = {"reservations": subnet.pools[0].reservations, "ext_reservations": subnet.external}
            own.update((key, write_bits(said, block)) for key, said in marks.items() if said is not None)
    return own


def _subnet(subnet: SubnetFile) -> Json:
    own: Json = {"uuid": subnet.uuid, "cidr": str(subnet.cidr), "dhcp": subnet.dhcp}
    if subnet.name is not None:
        own["name"] = subnet.name
    if subnet.gateway is not None:
        own["gateway"] = format_address(subnet.gateway)
    own["pools"] = [_pool(pool) for pool in subnet.pools]
    if subnet.external is not None:
        own["external"] = [write_range(piece) for piece in subnet.external]
    return own


def _pool(pool: PoolFile) -> Json:
    own: Json = {"range": write_range(pool.range)}
    if pool.reservations is not None:
        # A bit string of an IPv6 block would not fit into the world: large pools list what is in use (U27).
        small = pool.range.size <= SPELLED_OUT
        marks = pool.reservations
        own["reservations"] = write_bits(marks, pool.range) if small else [write_range(piece) for piece in marks]
    if pool.name is not None:
        own["name"] = pool.name
    return own


def write_range(piece: AddressRange) -> Json:
    """Write a range as the revised form does; ``end`` is there for people."""
    return {"start": format_address(piece.first), "size": piece.size, "end": format_address(piece.last)}


def not_today(network: NetworkFile) -> list[str]:
    """Tell why today's form cannot say a network."""
    return [f"network {network.name}: {reason}" for reason in _obstacles(network)]


def _obstacles(network: NetworkFile) -> Iterator[str]:
    fours = [subnet for subnet in network.subnets if not is_v6(subnet.cidr.first)]
    sixes = [subnet for subnet in network.subnets if is_v6(subnet.cidr.first)]
    if len(fours) != 1:
        yield f"{len(fours) or 'no'} IPv4 subnets, exactly one is needed"
    if len(sixes) > 1:
        yield f"{len(sixes)} IPv6 subnets, one can be said"
    for subnet in network.subnets:
        if subnet.name is not None:
            yield f"subnet {subnet.cidr} has a name ({subnet.name})"
        if subnet.dhcp:
            yield f"subnet {subnet.cidr} has dhcp"
    for subnet in fours:
        yield from _obstacles_of_pools(subnet)
    for subnet in sixes:
        if subnet.pools:
            yield f"IPv6 subnet {subnet.cidr} has a pool"
        if subnet.external not in (None, subnet.usual_external()):
            yield f"IPv6 subnet {subnet.cidr} has external reservations of its own"


def _obstacles_of_pools(subnet: SubnetFile) -> Iterator[str]:
    if len(subnet.pools) != 1:
        yield f"subnet {subnet.cidr} has {len(subnet.pools) or 'no'} pools, exactly one is needed"
    elif subnet.pools[0].range != subnet.cidr.range:
        yield f"pool {subnet.pools[0].range} is a part of subnet {subnet.cidr}, all of it is needed"
    yield from (f"pool {pool.range} has a name ({pool.name})" for pool in subnet.pools if pool.name is not None)
    if subnet.cidr.prefix < WIDEST:
        yield f"the bit strings of {subnet.cidr} would have {subnet.cidr.range.size} characters"


def odd_today(network: NetworkFile) -> list[str]:
    """Tell what today's form can say of a network and today's Ganeti would refuse."""
    prefixes = [subnet.cidr for subnet in network.subnets if not is_v6(subnet.cidr.first)]
    rule = f"today's Ganeti allows /{SHORTEST} to /{LONGEST}"
    return [f"network {network.name}: {c}: {rule}" for c in prefixes if not SHORTEST <= c.prefix <= LONGEST]


def write_group(group: Group, lines: Mapping[str, Connection]) -> Json:
    """Write a group with its connections, by the uuids of their networks."""
    wires = {uuid: {"mode": line.mode, "link": line.link, "vlan": line.vlan} for uuid, line in lines.items()}
    return {"name": group.name, "uuid": group.uuid, "networks": wires}


def write_node(node: Node, group: str) -> Json:
    """Write a node, with the uuid of its group."""
    own: Json = {"name": node.name, "uuid": node.uuid, "group": group}
    ips = {"primary_ip": node.primary_ip, "secondary_ip": node.secondary_ip}
    return {**own, **{key: ip for key, ip in ips.items() if ip is not None}}


def write_instance(instance: Instance, node: str, form: Form) -> Json:
    """Write an instance, with the uuid of its node."""
    own: Json = {"name": instance.name, "uuid": instance.uuid, "primary_node": node}
    return {**own, "nics": [_nic(nic, form) for nic in instance.nics]}


def _nic(nic: Nic, form: Form) -> Json:
    wire = {"mode": nic.mode, "link": nic.link, "vlan": nic.vlan}
    own: Json = {"uuid": nic.uuid, "mac": nic.mac, "nicparams": wire}
    said = {"name": nic.name, "network": nic.network}
    own.update((key, word) for key, word in said.items() if word is not None)
    if form == REVISED:
        own["ip"] = nic.addresses
    elif nic.addresses:
        own["ip"] = nic.addresses[0]
    return own


def nics_not_today(instance: Instance) -> list[str]:
    """Tell which NICs of an instance have more addresses than today's form can say."""
    return [
        f"instance {instance.name}: NIC {index} has {len(nic.addresses)} IPs, one can be said"
        for index, nic in enumerate(instance.nics)
        if len(nic.addresses) > 1
    ]
