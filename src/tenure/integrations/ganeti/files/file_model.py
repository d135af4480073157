"""What a Ganeti configuration says, as values: the same ones are made from a file and from a ledger.

A file has one of two forms. *today*: a network has one IPv4 block with two bit strings, perhaps an IPv6 block, and a
NIC has one IP. *revised*: a network has subnets with pools and external ranges, and a NIC has a list of IPs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from uuid import UUID, uuid5

from tenure.integrations.ganeti.machine_model import Group, Instance, Node
from tenure.kernel.addressing.addresses import width
from tenure.kernel.addressing.ranges import AddressRange, Cidr, merge
from tenure.kernel.plan.plan_model import Connection, KeepBack, usual_keep_back

Form = Literal["today", "revised"]
TODAY: Form = "today"
REVISED: Form = "revised"

GANETI = "ganeti"
"""The kind of papers that keep what a file says and the ledger has no word for."""

NETWORKS, GROUPS, NODES, INSTANCES = "networks", "nodegroups", "nodes", "instances"
SECTIONS = (GROUPS, NODES, NETWORKS, INSTANCES)

SPELLED_OUT = 65_536
"""Pools up to this size have a bit string in the revised form; larger ones a list of ranges."""

# Never to be changed: an import that was broken off knows its objects again by the uuids that are made of it.
_OURS = UUID("6b5b2f0e-6f0c-5d1c-9a0e-2f6a3b7c4d51")

Json = dict[str, Any]


def made_uuid(*words: str) -> str:
    """Make a uuid for an object whose file gives it none; the same words always make the same one."""
    return str(uuid5(_OURS, "/".join(words)))


@dataclass(frozen=True, slots=True)
class FileRemark:
    """Something to tell about a place in a file."""

    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


@dataclass(frozen=True, slots=True)
class PoolFile:
    """A pool as a file has it. ``reservations``: the addresses in use, in order; None where the file says nothing."""

    range: AddressRange
    name: str | None = None
    reservations: tuple[AddressRange, ...] | None = None


@dataclass(frozen=True, slots=True)
class SubnetFile:
    """A subnet as a file has it. ``external``: all that is kept away, merged; None where the file says nothing."""

    cidr: Cidr
    uuid: str
    name: str | None = None
    gateway: int | None = None
    dhcp: bool = False
    pools: tuple[PoolFile, ...] = ()
    external: tuple[AddressRange, ...] | None = None

    def automatic(self) -> list[tuple[KeepBack, int | None]]:
        """List what Ganeti marks by itself, with its position: first, last, gateway, as far as the block has them."""
        inside = self.gateway is not None and self.gateway in self.cidr.range
        places = {
            KeepBack.NETWORK: self.cidr.first,
            KeepBack.BROADCAST: self.cidr.last,
            KeepBack.GATEWAY: self.gateway if inside else None,
        }
        return [(why, places[why]) for why in sorted(usual_keep_back(self.cidr, width(self.cidr.first)))]

    def usual_external(self) -> tuple[AddressRange, ...]:
        """Return what is external in a new subnet of which nothing else is said."""
        return tuple(merge(AddressRange(place, place) for _, place in self.automatic() if place is not None))


@dataclass(frozen=True, slots=True)
class NetworkFile:
    """A network as a file has it, with the groups it is connected to (by name)."""

    uuid: str
    name: str
    form: Form = REVISED
    mac_prefix: str | None = None
    tags: tuple[str, ...] = ()
    subnets: tuple[SubnetFile, ...] = ()
    connections: tuple[Connection, ...] = ()

    def subnet_at(self, position: int) -> SubnetFile | None:
        """Find the subnet that a position lies in."""
        return next((subnet for subnet in self.subnets if position in subnet.cidr.range), None)

    def with_subnets(self, subnets: tuple[SubnetFile, ...]) -> "NetworkFile":
        """Return it with other subnets."""
        return replace(self, subnets=subnets)


@dataclass(frozen=True, slots=True)
class ClusterConfiguration:
    """A whole configuration. ``keys`` tells, by section and uuid, under which key the document has an object."""

    form: Form
    networks: tuple[NetworkFile, ...] = ()
    groups: tuple[Group, ...] = ()
    nodes: tuple[Node, ...] = ()
    instances: tuple[Instance, ...] = ()
    document: Json = field(default_factory=dict)
    keys: Mapping[tuple[str, str], str] = field(default_factory=dict)
    master_ip: str | None = None

    def original(self, section: str, uuid: str) -> Json:
        """Return an object as the document has it."""
        found: Json = self.document[section][self.keys[section, uuid]]
        return found
