"""Edits of the address plan, as values: what ``apply`` takes and the log has.

An edit carries what the user wrote; ``apply_edit`` reads and checks it. ``KEEP`` in a modify means: leave as it is.
``labels`` of a modify are all that there are to be; ``add_labels`` and ``remove_labels`` leave the others as they are.
"""

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tenure.kernel.addressing.addresses import AddressLike
from tenure.kernel.addressing.ranges import AddressRange, NetworkLike


class Keep(enum.Enum):
    """The type of ``KEEP``."""

    KEEP = "keep"

    def __repr__(self) -> str:
        return "KEEP"


KEEP = Keep.KEEP
"""Leave this as it is."""

RangeLike = str | AddressLike | NetworkLike | AddressRange
Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One change of one network's plan."""

    verb: ClassVar[str]

    network: str

    def told(self) -> dict[str, Any]:
        """Return what the log says of it: every field that says something."""
        pairs = ((entry, getattr(self, entry.name)) for entry in dataclasses.fields(self))
        return {entry.name: _plain(value) for entry, value in pairs if _says_something(entry.default, value)}


def _says_something(default: object, value: object) -> bool:
    """Return whether a field is worth a word: where nothing need be said, "no gateway" and "0 seconds" are."""
    if default is KEEP or default is None:
        return value is not default
    return value not in ("", (), [], {}, False)


def _plain(value: object) -> object:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence | frozenset | set) and not isinstance(value, str):
        return [str(piece) for piece in value]
    return str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddNetwork(Edit):
    """Add a network, in a space of its own unless one is named."""

    verb = "network.add"

    space: str | None = None
    kind: str = "manual"
    mac_prefix: str | None = None
    tags: Sequence[str] = ()
    labels: Labels = field(default_factory=dict)
    description: str = ""
    uuid: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModifyNetwork(Edit):
    """Rename, retire or otherwise change a network."""

    verb = "network.modify"

    name: str | Keep = KEEP
    kind: str | Keep = KEEP
    mac_prefix: str | Keep | None = KEEP
    tags: Sequence[str] | Keep = KEEP
    retired: bool | Keep = KEEP
    labels: Labels | Keep = KEEP
    add_labels: Labels | Keep = KEEP
    remove_labels: Sequence[str] | Keep = KEEP
    description: str | Keep = KEEP


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveNetwork(Edit):
    """Remove a network that nobody uses, or with all its holdings."""

    verb = "network.remove"

    cascade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AddSubnet(Edit):
    """Add a block to a network. ``unit`` is the prefix length it hands out."""

    verb = "subnet.add"

    cidr: NetworkLike
    gateway: AddressLike | None = None
    name: str | None = None
    dns: Sequence[AddressLike] = ()
    dhcp: bool = False
    zones: Sequence[str] = ()
    unit: int | None = None
    keep_back: Sequence[str] | None = None
    labels: Labels = field(default_factory=dict)
    description: str = ""
    uuid: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModifySubnet(Edit):
    """Change a subnet, found by name, block or uuid; ``cidr`` grows, shrinks or moves it."""

    verb = "subnet.modify"

    subnet: str
    cidr: NetworkLike | Keep = KEEP
    gateway: AddressLike | Keep | None = KEEP
    name: str | Keep | None = KEEP
    dns: Sequence[AddressLike] | Keep = KEEP
    dhcp: bool | Keep = KEEP
    zones: Sequence[str] | Keep = KEEP
    keep_back: Sequence[str] | Keep = KEEP
    retired: bool | Keep = KEEP
    labels: Labels | Keep = KEEP
    add_labels: Labels | Keep = KEEP
    remove_labels: Sequence[str] | Keep = KEEP
    description: str | Keep = KEEP


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveSubnet(Edit):
    """Remove a subnet with its pools and reserved ranges."""

    verb = "subnet.remove"

    subnet: str
    cascade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPool(Edit):
    """Add a range to pick from; a name that exists gains a range.

    Policy, cooling and rank that are not said (None) are those of the pool's first range; of a new pool the defaults.
    """

    verb = "pool.add"

    range: RangeLike
    name: str | None = None
    policy: str | None = None
    cooling_s: int | None = None
    rank: int | None = None
    labels: Labels = field(default_factory=dict)
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModifyPool(Edit):
    """Change a pool, found by its name or its exact range."""

    verb = "pool.modify"

    pool: str
    name: str | Keep | None = KEEP
    policy: str | Keep = KEEP
    cooling_s: int | Keep = KEEP
    rank: int | Keep = KEEP
    retired: bool | Keep = KEEP
    labels: Labels | Keep = KEEP
    add_labels: Labels | Keep = KEEP
    remove_labels: Sequence[str] | Keep = KEEP
    description: str | Keep = KEEP


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovePool(Edit):
    """Remove a pool by name, or a range from all pools it touches; what is left keeps its name."""

    verb = "pool.remove"

    pool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve(Edit):
    """Keep a range away from picking."""

    verb = "reserve"

    range: RangeLike
    reason: str = ""
    labels: Labels = field(default_factory=dict)
    description: str = ""
    request: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreserve(Edit):
    """Lift a reservation, wholly or in part."""

    verb = "unreserve"

    range: RangeLike


@dataclass(frozen=True, slots=True, kw_only=True)
class Preallocate(Edit):
    """Let an address wait for one owner."""

    verb = "preallocation.add"

    owner: str
    address: AddressLike
    slot: str = ""
    labels: Labels = field(default_factory=dict)
    description: str = ""
    request: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovePreallocation(Edit):
    """Forget that an address waits for an owner."""

    verb = "preallocation.remove"

    owner: str
    slot: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connect(Edit):
    """Let a network reach a group of nodes, in a mode and by a link; said again, it replaces what was said."""

    verb = "network.connect"

    group: str
    mode: str = "bridged"
    link: str = ""
    vlan: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disconnect(Edit):
    """Let a network no longer reach a group of nodes."""

    verb = "network.disconnect"

    group: str
