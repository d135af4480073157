"""What is known of a machine when its data is rendered: its objects, its number, its network cards, its addresses."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tenure.integrations.kubernetes.metal3_data.template.template_model import ObjectSort


@dataclass(frozen=True, slots=True)
class MachineObject:
    """One of the objects that make a machine."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """A machine; its host's cards are known once the host was inspected."""

    namespace: str
    index: int
    objects: Mapping[ObjectSort, MachineObject]
    interfaces: Mapping[str, str] | None = None
    """MAC addresses by the name of the card."""
    boot_mac: str = ""
    host_unknown: str = ""
    """Why nothing is known of the host but its name; empty if its object was read."""

    @property
    def provider_id(self) -> str:
        """Return what identifies the machine: namespace, host and Metal3Machine."""
        host, machine = (self.objects[sort].name for sort in (ObjectSort.HOST, ObjectSort.METAL3_MACHINE))
        return f"{self.namespace}/{host}/{machine}"


@dataclass(frozen=True, slots=True)
class PoolAddress:
    """The address that a machine has from a pool, and what comes with it."""

    address: str
    prefix: int = 0
    gateway: str = ""
    dns_servers: tuple[str, ...] = ()
