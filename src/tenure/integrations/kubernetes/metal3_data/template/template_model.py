"""A Metal3DataTemplate as it is meant, in whichever spelling it was written; each part knows its path."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

POOL_GROUP, POOL_KIND = "ipam.metal3.io", "IPPool"
"""What a reference to a pool means where it says nothing else."""


class ObjectSort(enum.StrEnum):
    """The objects of a machine that a template may look at."""

    MACHINE = "machine"
    METAL3_MACHINE = "metal3machine"
    HOST = "baremetalhost"


@dataclass(frozen=True, slots=True)
class PoolReference:
    """A pool that a template names."""

    name: str
    group: str = POOL_GROUP
    kind: str = POOL_KIND
    path: str = field(default="", compare=False)

    @property
    def is_ip_pool(self) -> bool:
        """Whether it is a pool of Metal3's, from which an IPClaim gets its address."""
        return (self.group, self.kind) == (POOL_GROUP, POOL_KIND)


@dataclass(frozen=True, slots=True)
class AnnotatedPool:
    """A pool whose name stands in an annotation of one of the machine's objects."""

    object: ObjectSort
    annotation: str
    path: str = field(default="", compare=False)


PoolSource = PoolReference | AnnotatedPool


class PoolPart(enum.Enum):
    """What metadata may take from the address that a pool gives."""

    ADDRESS = enum.auto()
    PREFIX = enum.auto()
    GATEWAY = enum.auto()
    DNS_SERVERS = enum.auto()


@dataclass(frozen=True, slots=True)
class FixedText:
    """A text that the template gives."""

    text: str


@dataclass(frozen=True, slots=True)
class ObjectName:
    """The name of an object."""

    object: ObjectSort


@dataclass(frozen=True, slots=True)
class NamespaceName:
    """The namespace of the machine."""


@dataclass(frozen=True, slots=True)
class MachineIndex:
    """The number of the machine among those of its template."""

    offset: int = 0
    step: int = 1
    prefix: str = ""
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class LabelText:
    """A label of an object; empty where it has none."""

    object: ObjectSort
    label: str


@dataclass(frozen=True, slots=True)
class AnnotationText:
    """An annotation of an object; empty where it has none."""

    object: ObjectSort
    annotation: str


@dataclass(frozen=True, slots=True)
class HostInterface:
    """The MAC address of a network card that was found in the host."""

    interface: str


@dataclass(frozen=True, slots=True)
class BootInterface:
    """The MAC address that the host boots by."""


@dataclass(frozen=True, slots=True)
class FromPool:
    """A part of the address that a pool gives."""

    pool: PoolReference
    part: PoolPart


MetaDataValue = (
    FixedText
    | ObjectName
    | NamespaceName
    | MachineIndex
    | LabelText
    | AnnotationText
    | HostInterface
    | BootInterface
    | FromPool
)
MacSource = FixedText | HostInterface | BootInterface | AnnotationText


@dataclass(frozen=True, slots=True)
class MetaDataItem:
    """A key of the metadata, and where its value comes from."""

    key: str
    value: MetaDataValue
    path: str


@dataclass(frozen=True, slots=True)
class Link:
    """A link: what is rendered as it is, and the field that has its MAC address."""

    fields: Mapping[str, Any]
    mac_field: str
    mac: MacSource | None
    """Nothing for a link that is found by its name."""
    path: str


@dataclass(frozen=True, slots=True)
class DnsServices:
    """DNS servers: those that the template names, and behind them those of a pool."""

    servers: tuple[str, ...] = ()
    pool: PoolReference | None = None


@dataclass(frozen=True, slots=True)
class MachineRoute:
    """A route of a network."""

    network: str
    prefix: int
    gateway: str | PoolSource | None
    services: DnsServices
    path: str


class AddressingKind(enum.StrEnum):
    """How a network gets its address, in the words of network data; in the order in which networks are rendered."""

    IPV4 = "ipv4"
    IPV6 = "ipv6"
    IPV4_DHCP = "ipv4_dhcp"
    IPV6_DHCP = "ipv6_dhcp"
    IPV6_SLAAC = "ipv6_slaac"

    @property
    def is_v6(self) -> bool:
        """Whether its addresses are of IPv6."""
        return self.value.startswith("ipv6")


@dataclass(frozen=True, slots=True)
class NetworkEntry:
    """A network of a machine."""

    kind: AddressingKind
    id: str
    link: str
    pool: PoolSource | None
    """Where its address comes from; nothing for a network that finds it by itself."""
    routes: tuple[MachineRoute, ...]
    path: str


@dataclass(frozen=True, slots=True)
class NetworkDataTemplate:
    """What network data is made of."""

    links: tuple[Link, ...] = ()
    networks: tuple[NetworkEntry, ...] = ()
    services: DnsServices = DnsServices()


@dataclass(frozen=True, slots=True)
class DataTemplate:
    """A whole template; a part that it does not have is not rendered."""

    name: str
    namespace: str = ""
    cluster_name: str = ""
    meta_data: tuple[MetaDataItem, ...] | None = None
    network_data: NetworkDataTemplate | None = None
    address_per_network: bool = False
    """Whether each network has an address of its own, also where several take theirs from one pool."""
