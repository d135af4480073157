"""The fields of networks that can be asked for: those of today's Ganeti, and what the revised design adds.

Everything is worked out of values that were read before; a field costs what holdings and ranges cost, whatever the
size of the pools.
"""

import difflib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

from tenure.integrations.ganeti.hook_environment import first_subnet
from tenure.integrations.ganeti.machine_model import Instance
from tenure.integrations.ganeti.query.used_addresses import LARGEST_MAP, Marks, external_ranges
from tenure.kernel.addressing.addresses import Family, format_address
from tenure.kernel.errors import Invalid
from tenure.kernel.holdings.holding_model import Holding, moment
from tenure.kernel.names import shown
from tenure.kernel.plan.plan_model import Connection, Network, Pool, Subnet, address_text

F = TypeVar("F")
Document = dict[str, Any]

NETWORK_DEFAULT = ("name", "network", "gateway", "mac_prefix", "group_list", "tags")


def cell(value: Any) -> str:
    """Write a value into one cell of a table."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "Y" if value else "N"
    if isinstance(value, list | tuple):
        return ",".join(cell(each) for each in value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)


def time_cell(seconds: float) -> str:
    """Write a time for people."""
    return f"{moment(round(seconds * 1_000_000)):%Y-%m-%d %H:%M:%S} UTC"


def labels_cell(labels: Mapping[str, str]) -> str:
    """Write labels for people."""
    return ", ".join(f"{name}={text}" for name, text in labels.items())


def wire_cell(connections: Iterable[tuple[str, str, str, str]]) -> str:
    """Write each (group or network, mode, link, vlan)."""
    return ", ".join(f"{name} ({', '.join(filter(None, wire))})" for name, *wire in connections)


@dataclass(frozen=True, slots=True)
class Field(Generic[F]):
    """One thing that can be asked for: ``read`` gives its value, ``write`` makes a table's cell of that."""

    name: str
    title: str
    doc: str
    read: Callable[[F], Any]
    write: Callable[[Any], str] = cell


def by_name(*fields: Field[F]) -> Mapping[str, Field[F]]:
    """Arrange fields so that they can be found."""
    return {field.name: field for field in fields}


def select(text: str | None, default: Sequence[str], fields: Mapping[str, Field[F]]) -> list[Field[F]]:
    """Read ``name,map`` (only these) or ``+map`` (the default and these)."""
    if text is None:
        return [fields[name] for name in default]
    added = text.strip().startswith("+")
    names = [name.strip() for name in text.strip().removeprefix("+").split(",")]
    return [_found(name, fields) for name in [*(default if added else ()), *names]]


def _found(name: str, fields: Mapping[str, Field[F]]) -> Field[F]:
    if name in fields:
        return fields[name]
    if not name:
        raise Invalid("output: a field's name is missing; write them as name,map or +map", field="output")
    wanted = name[:80].lower()
    near = difflib.get_close_matches(wanted, fields, n=3) or [each for each in fields if wanted in each]
    hint = f"near it: {', '.join(near)}" if near else f"there are: {', '.join(fields)}"
    raise Invalid(f"output: no field {shown(name)}; {hint}", field="output")


class PoolCount(NamedTuple):
    """How many addresses pools have, and how many of them are not free."""

    size: int = 0
    used: int = 0

    @property
    def free(self) -> int:
        """Return how many are free."""
        return self.size - self.used


@dataclass(frozen=True)
class NetworkFacts:
    """A network, all its holdings in whatever state, the instances that may be on it, the others of its space."""

    network: Network
    holdings: Sequence[Holding] = ()
    instances: Sequence[Instance] = ()
    neighbours: Sequence[Network] = ()

    @cached_property
    def marks(self) -> Marks:
        """Work out once what is free."""
        return Marks(self.network, self.holdings, self.neighbours)

    @cached_property
    def users(self) -> list[Instance]:
        """List the instances that have a NIC on the network, by name."""
        users = (each for each in self.instances if any(nic.network == self.network.uuid for nic in each.nics))
        return sorted(users, key=lambda instance: instance.name)

    @cached_property
    def families(self) -> dict[Family, PoolCount]:
        """Count the addresses of all pools, by each family that has one; a network without pools has none of IPv4."""
        counts: dict[Family, PoolCount] = {}
        for subnet, pool in self.network.pools():
            size, used = counts.get(subnet.family, PoolCount())
            counts[subnet.family] = PoolCount(size + pool.range.size, used + self.marks.used(pool.range))
        return {family: counts[family] for family in Family if family in counts} or {Family.IPV4: PoolCount()}

    @property
    def size(self) -> int:
        """Count the addresses of all pools."""
        return sum(count.size for count in self.families.values())

    @property
    def used(self) -> int:
        """Count the addresses of all pools that are not free."""
        return sum(count.used for count in self.families.values())


def wires(connections: Iterable[Connection]) -> list[tuple[str, str, str, str]]:
    """Tell how a network reaches its groups."""
    return [(each.group, each.mode, each.link, each.vlan) for each in connections]


def external_text(subnet: Subnet) -> list[str]:
    """Write what a subnet keeps away from picking."""
    return [str(kept) for kept in external_ranges(subnet)]


def _block(facts: NetworkFacts, *, six: bool) -> str | None:
    subnet = first_subnet(facts.network, six=six)
    return None if subnet is None else str(subnet.cidr)


def _gateway(facts: NetworkFacts, *, six: bool) -> str | None:
    subnet = first_subnet(facts.network, six=six)
    return None if subnet is None else address_text(subnet.gateway)


def _first_map(facts: NetworkFacts) -> str | None:
    first = next((pool for _, pool in facts.network.pools()), None)
    return "" if first is None else facts.marks.picture(first.range)


def _external(facts: NetworkFacts) -> str:
    return ", ".join(text for subnet in facts.network.subnets for text in external_text(subnet))


def _external_list(facts: NetworkFacts) -> list[str] | None:
    ranges = [kept for subnet in facts.network.subnets for kept in external_ranges(subnet)]
    if sum(kept.size for kept in ranges) > LARGEST_MAP:
        return None
    return [format_address(position) for kept in ranges for position in range(kept.first, kept.last + 1)]


def _subnets(facts: NetworkFacts) -> list[Document]:
    return [_subnet_document(subnet, facts.marks) for subnet in facts.network.subnets]


def _subnet_document(subnet: Subnet, marks: Marks) -> Document:
    return {
        "cidr": str(subnet.cidr),
        "gateway": address_text(subnet.gateway),
        "dhcp": subnet.dhcp,
        "name": subnet.name,
        "uuid": subnet.uuid,
        "external": external_text(subnet),
        "pools": [_pool_document(pool, marks) for pool in subnet.pools],
    }


def _pool_document(pool: Pool, marks: Marks) -> Document:
    return {
        "start": format_address(pool.range.first),
        "end": format_address(pool.range.last),
        "name": pool.name,
        "size": pool.range.size,
        "free_count": pool.range.size - marks.used(pool.range),
        "map": marks.picture(pool.range),
    }


def _families(facts: NetworkFacts) -> Document:
    return {
        str(family): {"size": count.size, "free_count": count.free, "reserved_count": count.used}
        for family, count in facts.families.items()
    }


def _families_cell(families: Document) -> str:
    return ", ".join(f"{family} {count['free_count']} of {count['size']} free" for family, count in families.items())


def _subnets_cell(subnets: Iterable[Document]) -> str:
    return ",".join(subnet["cidr"] for subnet in subnets)


FIELDS: Mapping[str, Field[NetworkFacts]] = by_name(
    Field("name", "Network", "the network's name", lambda facts: facts.network.name),
    Field("network", "Subnet", "the first IPv4 subnet", lambda facts: _block(facts, six=False)),
    Field("gateway", "Gateway", "the gateway of the first IPv4 subnet", lambda facts: _gateway(facts, six=False)),
    Field("network6", "IPv6Subnet", "the first IPv6 subnet", lambda facts: _block(facts, six=True)),
    Field("gateway6", "IPv6Gateway", "the gateway of the first IPv6 subnet", lambda facts: _gateway(facts, six=True)),
    Field("mac_prefix", "MacPrefix", "what MAC addresses here begin with", lambda facts: facts.network.mac_prefix),
    Field("free_count", "FreeCount", "free addresses of all pools", lambda facts: facts.size - facts.used),
    Field("reserved_count", "ReservedCount", "addresses of all pools that are not free", lambda facts: facts.used),
    Field("map", "Map", "the map of the first pool", _first_map),
    Field(
        "group_list",
        "GroupList",
        "groups it is connected to: group, mode, link, vlan",
        lambda facts: wires(facts.network.connections),
        wire_cell,
    ),
    Field("group_cnt", "NodeGroups", "number of these groups", lambda facts: len(facts.network.connections)),
    Field("inst_list", "InstanceList", "instances with a NIC on it", lambda facts: [user.name for user in facts.users]),
    Field("inst_cnt", "Instances", "number of these instances", lambda facts: len(facts.users)),
    Field("external_reservations", "ExternalReservations", "addresses kept away from picking, as ranges", _external),
    Field("external_reservations_list", "ExternalList", "the same, address by address", _external_list),
    Field("ctime", "CTime", "when it was made", lambda facts: facts.network.created_us / 1_000_000, time_cell),
    Field("mtime", "MTime", "when it was last changed", lambda facts: facts.network.modified_us / 1_000_000, time_cell),
    Field("uuid", "UUID", "the network's uuid", lambda facts: facts.network.uuid),
    Field("serial_no", "SerialNo", "how often it was changed, from 1", lambda facts: facts.network.serial),
    Field("tags", "Tags", "the network's tags", lambda facts: list(facts.network.tags)),
    Field("labels", "Labels", "the network's labels", lambda facts: dict(facts.network.notes.labels), labels_cell),
    Field("description", "Description", "a few words for people", lambda facts: facts.network.notes.description),
    Field("subnets", "Subnets", "subnets in order, each with its pools", _subnets, _subnets_cell),
    Field("subnet_cnt", "SubnetCount", "number of subnets", lambda facts: len(facts.network.subnets)),
    Field("pool_cnt", "PoolCount", "number of pools", lambda facts: sum(1 for _ in facts.network.pools())),
    Field("size", "Size", "addresses of all pools", lambda facts: facts.size),
    Field("families", "Families", "size and counts of all pools, each family by itself", _families, _families_cell),
)
