"""What this door knows beside the address plan: groups of nodes, nodes, instances and their NICs, as values and papers.

A NIC's addresses in a network are holdings of the instance; its paper keeps their slots, in order, and the ledger
says which address is in which slot. A NIC without network keeps its addresses in the paper: they are nobody's.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tenure.kernel.errors import Invalid
from tenure.kernel.holdings.holding_model import Paper
from tenure.kernel.names import shown
from tenure.service.apply import cluster_rules
from tenure.service.apply.operations import WritePaper

GROUP, NODE, INSTANCE = "group", cluster_rules.NODE, cluster_rules.INSTANCE
"""Kinds of papers that carry what people wrote."""

NIC, MAC, PLACEMENT, IDENTITY, CLUSTER = cluster_rules.NIC, "mac", "placement", "identity", cluster_rules.CLUSTER
"""Kinds of papers that are only found again: who is on a network in a group, who has a MAC, who is on a node, that the
very node or instance of a uuid is still there (names come back); and the one paper that every change of the cluster's
structure writes, so that no two of them miss each other."""

MASTER = cluster_rules.MASTER
"""The kind and the name of the paper with the master's address."""

UUID = "uuid"
"""What files call the field by which an object is known whatever its name."""

MODES = ("bridged", "routed", "openvswitch")
DEFAULT_MODE, DEFAULT_LINK, DEFAULT_MAC_PREFIX = "bridged", "xen-br0", "aa:00:00"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# Names of marks are put together of these, and have 255 characters at most: NODE/INSTANCE, and
# NETWORK/GROUP/INSTANCE/NIC with 36 characters of a uuid and 8 of another.
_LONGEST = {GROUP: 63, NODE: 127, INSTANCE: 127, UUID: 36}

Document = Mapping[str, Any]


def check_word(value: object, *, field: str) -> str:
    """Return the name of a group, a node or an instance, or a uuid: letters, digits, dots, dashes and underscores."""
    longest = _LONGEST[field]
    if not isinstance(value, str) or not _NAME.fullmatch(value) or len(value) > longest:
        signs = "letters, digits, '.', '-', '_' is needed, beginning with a letter or digit"
        rule = f"a {UUID if field == UUID else 'name'} of at most {longest} {signs}"
        raise Invalid(f"{field}: {rule}, not {shown(value)}", field=field)
    return value


class ClusterMachine(Protocol):
    """A machine of the cluster whose own addresses are kept away from instances."""

    @property
    def addresses(self) -> list[str]:
        """List its own addresses."""

    @property
    def reason(self) -> str:
        """Return the reason for which its addresses are reserved."""


@dataclass(frozen=True, slots=True)
class Master:
    """The address at which the cluster's master answers, whichever node that is."""

    ip: str | None = None
    revision: int = 0

    @property
    def addresses(self) -> list[str]:
        """List its address, if there is one."""
        return [] if self.ip is None else [self.ip]

    @property
    def reason(self) -> str:
        """Return the reason for which its address is reserved."""
        return cluster_rules.MASTER_REASON


def owner_of(instance: str) -> str:
    """Name the owner that an instance's addresses have in the ledger."""
    return f"instance/{instance}"


@dataclass(frozen=True, slots=True)
class Group:
    """A group of nodes that networks are connected to."""

    name: str
    uuid: str
    revision: int = 0

    def document(self) -> Document:
        """Write it as a paper's document."""
        return {"uuid": self.uuid}


@dataclass(frozen=True, slots=True)
class Node:
    """A machine that carries instances; its own addresses are kept away from them."""

    name: str
    group: str
    uuid: str
    primary_ip: str | None = None
    secondary_ip: str | None = None
    revision: int = 0

    @property
    def addresses(self) -> list[str]:
        """List its own addresses, each once."""
        return list(dict.fromkeys(ip for ip in (self.primary_ip, self.secondary_ip) if ip is not None))

    @property
    def reason(self) -> str:
        """Return the reason for which its addresses are reserved."""
        return cluster_rules.node_reason(self.name)

    def document(self) -> Document:
        """Write it as a paper's document."""
        own = {"primary_ip": self.primary_ip, "secondary_ip": self.secondary_ip}
        return {"group": self.group, "uuid": self.uuid, **own}


@dataclass(frozen=True, slots=True)
class NicIp:
    """One address of a NIC: the slot of the holding in the NIC's network (empty without network), and the address.

    ``address`` is None only while it is still to be picked.
    """

    slot: str = ""
    address: str | None = None


@dataclass(frozen=True, slots=True)
class Nic:
    """An interface of an instance. ``network`` is a uuid: networks change their names."""

    uuid: str
    mac: str
    name: str | None = None
    network: str | None = None
    mode: str = DEFAULT_MODE
    link: str = DEFAULT_LINK
    vlan: str = ""
    ips: tuple[NicIp, ...] = ()

    @property
    def addresses(self) -> list[str]:
        """List its addresses, in order."""
        return [ip.address for ip in self.ips if ip.address is not None]

    def document(self) -> Document:
        """Write it as part of a paper's document; in a network, the ledger knows the addresses of the slots."""
        words = {"uuid": self.uuid, "mac": self.mac, "name": self.name, "network": self.network}
        wire = {"mode": self.mode, "link": self.link, "vlan": self.vlan}
        ips = [{"address": ip.address} if self.network is None else {"slot": ip.slot} for ip in self.ips]
        return {**words, **wire, "ips": ips}


@dataclass(frozen=True, slots=True)
class Instance:
    """A virtual machine on a node, with its NICs in order. ``serial`` counts its changes."""

    name: str
    uuid: str
    node: str
    group: str
    nics: tuple[Nic, ...] = ()
    serial: int = 1
    revision: int = 0

    @property
    def owner(self) -> str:
        """Name the owner of its addresses."""
        return owner_of(self.name)

    def document(self) -> Document:
        """Write it as a paper's document."""
        place = {"node": self.node, "group": self.group}
        return {"uuid": self.uuid, **place, "serial": self.serial, "nics": [nic.document() for nic in self.nics]}


def read_master(papers: Sequence[Paper]) -> Master:
    """Read the master's address from its paper, if there is one."""
    return next((Master(paper.document["ip"], paper.revision) for paper in papers), Master())


def master_paper(master: Master) -> WritePaper:
    """Return the operation that writes the master's address over the one that was read."""
    return WritePaper(kind=MASTER, name=MASTER, document={"ip": master.ip}, revision=master.revision)


def read_group(paper: Paper) -> Group:
    """Read a group from its paper."""
    return Group(paper.name, paper.document["uuid"], paper.revision)


def read_node(paper: Paper) -> Node:
    """Read a node from its paper."""
    own = paper.document
    return Node(paper.name, own["group"], own["uuid"], own["primary_ip"], own["secondary_ip"], paper.revision)


def read_instance(paper: Paper, addresses: Mapping[tuple[str, str], str]) -> Instance:
    """Read an instance from its paper, and from the ledger's addresses by network (its uuid) and slot."""
    own = paper.document
    nics = tuple(_read_nic(document, addresses) for document in own["nics"])
    return Instance(paper.name, own["uuid"], own["node"], own["group"], nics, own["serial"], paper.revision)


def _read_nic(document: Document, addresses: Mapping[tuple[str, str], str]) -> Nic:
    """Read a NIC; an address that somebody released behind the door's back is no longer the NIC's."""
    network = document["network"]
    if network is None:
        ips = tuple(NicIp("", ip["address"]) for ip in document["ips"])
    else:
        places = [(ip["slot"], addresses.get((network, ip["slot"]))) for ip in document["ips"]]
        ips = tuple(NicIp(slot, address) for slot, address in places if address is not None)
    words = {key: document[key] for key in ("uuid", "mac", "name", "mode", "link", "vlan")}
    return Nic(**words, network=network, ips=ips)
