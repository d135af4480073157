"""What ``network info`` prints: a network with its subnets, the maps of its pools, and who is on it."""

from collections.abc import Iterator

from tenure.integrations.ganeti.machine_model import Instance
from tenure.integrations.ganeti.query.network_fields import (
    NetworkFacts,
    external_text,
    labels_cell,
    time_cell,
    wire_cell,
    wires,
)
from tenure.integrations.ganeti.query.used_addresses import FREE, USED, Marks
from tenure.kernel.addressing.addresses import FAMILY_NAMES, format_address
from tenure.kernel.percent import percent
from tenure.kernel.plan.plan_model import Pool, Subnet

ROW = 64
"""Signs of a map in one line."""

LEGEND = f"({USED}) used    ({FREE}) free"


def info_lines(facts: NetworkFacts) -> list[str]:
    """Tell all about a network."""
    lines = [*_head(facts), *_amounts(facts)]
    for subnet in facts.network.subnets:
        lines += _subnet_lines(subnet, facts.marks)
    return [*lines, *_group_lines(facts), *_instance_lines(facts)]


def map_lines(picture: str) -> list[str]:
    """Break a map into rows with the number of the first and the last address at their ends."""
    rows = ((start, picture[start : start + ROW]) for start in range(0, len(picture), ROW))
    return [f"{start:>5} {row} {start + len(row) - 1}" for start, row in rows]


def _head(facts: NetworkFacts) -> Iterator[str]:
    network = facts.network
    yield f"Network name: {network.name}"
    yield f"  UUID: {network.uuid}"
    yield f"  Serial number: {network.serial}"
    yield f"  Created: {time_cell(network.created_us / 1_000_000)}"
    yield f"  Modified: {time_cell(network.modified_us / 1_000_000)}"
    yield f"  MAC prefix: {network.mac_prefix or 'none'}"
    yield f"  Tags: {', '.join(network.tags) or 'none'}"
    if network.notes.labels:
        yield f"  Labels: {labels_cell(network.notes.labels)}"
    if network.notes.description:
        yield f"  Description: {network.notes.description}"


def _amounts(facts: NetworkFacts) -> Iterator[str]:
    families = facts.families
    for family, use in families.items():
        # Named only where there are several: one address of IPv4 says nothing beside a /64 of IPv6.
        pools, called = ("pools", "") if len(families) == 1 else (f"{FAMILY_NAMES[family]} pools", FAMILY_NAMES[family])
        yield f"  Size of {pools}: {use.size}"
        yield f"  Free{called and f' {called}'}: {use.free} ({percent(use.free, use.size)})"
    if not facts.network.subnets:
        yield "  Subnets: none"


def _subnet_lines(subnet: Subnet, marks: Marks) -> Iterator[str]:
    yield f"  Subnet {subnet.cidr}{_called(subnet.name)}:"
    yield f"    UUID: {subnet.uuid}"
    yield f"    Gateway: {'none' if subnet.gateway is None else format_address(subnet.gateway)}"
    yield f"    DHCP: {'yes' if subnet.dhcp else 'no'}"
    yield f"    Externally reserved: {', '.join(external_text(subnet)) or 'none'}"
    if not subnet.pools:
        yield "    Pools: none"
    for pool in subnet.pools:
        yield from _pool_lines(pool, marks)


def _pool_lines(pool: Pool, marks: Marks) -> Iterator[str]:
    size, used = pool.range.size, marks.used(pool.range)
    picture = marks.picture(pool.range)
    yield f"    Pool {pool.range}{_called(pool.name)}: size {size}, used {used} ({percent(used, size)})"
    if picture is None:
        yield f"      too large for a map: {used} used, {size - used} free"
        return
    for line in map_lines(picture):
        yield f"      {line}"
    yield f"            {LEGEND}"


def _called(name: str | None) -> str:
    return "" if name is None else f" ({name})"


def _group_lines(facts: NetworkFacts) -> Iterator[str]:
    connections = wires(facts.network.connections)
    yield "  Connected to node groups:" if connections else "  Not connected to any node group"
    for connection in connections:
        yield f"    {wire_cell([connection])}"


def _instance_lines(facts: NetworkFacts) -> Iterator[str]:
    count = len(facts.users)
    yield f"  Used by {count} instance{'s' if count > 1 else ''}:" if count else "  Not used by any instance"
    for instance in facts.users:
        yield f"    {instance.name}: {', '.join(_nic_words(instance, facts.network.uuid))}"


def _nic_words(instance: Instance, network: str) -> Iterator[str]:
    """Yield number and addresses of each NIC that is on the network."""
    for number, nic in enumerate(instance.nics):
        if nic.network == network:
            yield f"{number}:{'+'.join(nic.addresses) or 'no IP'}"
