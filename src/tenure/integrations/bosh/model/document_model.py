"""What cloud configs and manifests say, once read and found right. Values only: nothing here reads or decides.

Positions are the ledger's (``kernel.addressing.addresses``): integers in which IPv4 and IPv6 lie apart from each other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tenure.kernel.addressing.ranges import AddressRange, Cidr

MANUAL, DYNAMIC, VIP = "manual", "dynamic", "vip"
DNS, GATEWAY, ADDRESSABLE = "dns", "gateway", "addressable"
SERVICE, ERRAND = "service", "errand"
DELETE_CREATE, CREATE_SWAP_DELETE = "delete-create", "create-swap-delete"
STARTED, STOPPED, DETACHED = "started", "stopped", "detached"

Properties = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Az:
    """An availability zone; compared by name."""

    name: str
    cloud_properties: Properties = field(default_factory=dict)
    cpi: str | None = None


@dataclass(frozen=True, slots=True)
class CloudSubnet:
    """A subnet of any network. ``azs`` is None where none are named: then it is for instances without one.

    Manual: ``range`` and all that follows. VIP: only ``static``, in the order written. Dynamic: neither.
    ``reserved`` holds what was written; network id, last address, gateway, in-range DNS and the allocator's own
    addresses are restricted besides (``restricted``). ``prefix`` is the length of what is handed out.
    """

    azs: tuple[str, ...] | None = None
    dns: tuple[str, ...] = ()
    cloud_properties: Properties = field(default_factory=dict)
    range: Cidr | None = None
    gateway: int | None = None
    reserved: tuple[AddressRange, ...] = ()
    restricted: tuple[AddressRange, ...] = ()
    static: tuple[AddressRange, ...] = ()
    prefix: int = 32
    name: str | None = None
    netmask_bits: int | None = None

    def serves(self, az: str | None) -> bool:
        """Tell whether instances of an AZ get their addresses here; one without an AZ may come to any."""
        return az is None or self.azs is None or az in self.azs


@dataclass(frozen=True, slots=True)
class CloudNetwork:
    """A network of the cloud config."""

    name: str
    kind: str
    subnets: tuple[CloudSubnet, ...] = ()
    managed: bool = False
    cloud_properties: Properties = field(default_factory=dict)
    """Of a VIP network, which may come without subnets; all others have them on their subnets."""

    @property
    def has_azs(self) -> bool:
        """Tell whether its subnets name AZs; all do, or none."""
        return any(subnet.azs is not None for subnet in self.subnets)

    @property
    def azs(self) -> frozenset[str]:
        """Return all AZs that it reaches."""
        return frozenset(az for subnet in self.subnets for az in subnet.azs or ())


@dataclass(frozen=True, slots=True)
class Compilation:
    """Where packages are compiled."""

    network: str
    workers: int = 1
    az: str | None = None
    orphan_workers: bool = False


@dataclass(frozen=True, slots=True)
class CloudConfig:
    """All cloud configs of a site, put together. ``networks`` and ``azs`` keep the order in which they are written.

    ``own_addresses`` are restricted in every range: in those that are written, they are among ``restricted`` already.
    """

    azs: Mapping[str, Az] = field(default_factory=dict)
    networks: Mapping[str, CloudNetwork] = field(default_factory=dict)
    compilation: Compilation | None = None
    own_addresses: tuple[AddressRange, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupNetwork:
    """A network that a group's instances are on. ``static_ips`` is None where none are asked for."""

    name: str
    static_ips: tuple[int, ...] | None = None
    defaults: frozenset[str] = frozenset()
    nic_group: str | None = None


@dataclass(frozen=True, slots=True)
class MigratedFrom:
    """A group whose instances become ours."""

    name: str
    az: str | None = None


@dataclass(frozen=True, slots=True)
class InstanceGroup:
    """An instance group (the seed calls it a job). ``azs`` is None where none are named."""

    name: str
    instances: int
    networks: tuple[GroupNetwork, ...]
    azs: tuple[str, ...] | None = None
    migrated_from: tuple[MigratedFrom, ...] = ()
    lifecycle: str = SERVICE
    vm_strategy: str = DELETE_CREATE
    persistent_disk: bool = False


@dataclass(frozen=True, slots=True)
class Manifest:
    """A deployment as its author wants it. ``own`` are the AZs and networks that it brings in the in-memory mode."""

    name: str
    groups: Sequence[InstanceGroup]
    own: CloudConfig | None = None
