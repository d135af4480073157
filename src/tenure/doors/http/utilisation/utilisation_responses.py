"""What the API answers of counts, maps and trends."""

from typing import Annotated

import msgspec
from msgspec import Meta

from tenure.wire import responses

Units = Annotated[int, Meta(ge=0, description="Units: addresses, or the prefixes that the subnet hands out.")]


class Counts(responses.Shape, frozen=True, kw_only=True):
    """How many units there are. Each is one thing only: all but ``units`` and ``pooled`` add up to ``units``.

    held, pending, draining and cooling are the network's own; elsewhere: another network of the space holds it.
    kept_back, reserved and preallocated are those that nobody holds; retired: in a pool that picks no more;
    outside: in no pool. What is free can be picked now.
    """

    units: Units
    pooled: Units
    held: Units
    pending: Units
    draining: Units
    cooling: Units
    elsewhere: Units
    reserved: Units
    kept_back: Units
    preallocated: Units
    retired: Units
    outside: Units
    free: Units


class PoolCounts(Counts, frozen=True, kw_only=True):
    """Counts, and how pools are used: ``pooled`` is pooled_taken, pooled_kept, free and retired together.

    pooled_taken: held, pending, draining and cooling ones in pools; pooled_kept: those in pools that are reserved, kept
    back, pre-allocated, or held by another network.
    """

    pooled_taken: Units
    pooled_kept: Units


class FamilyCounts(responses.Shape, frozen=True, kw_only=True):
    """The counts of each family by itself; null where the network has no subnet of it."""

    ipv4: PoolCounts | None = None
    ipv6: PoolCounts | None = None


class PoolUse(responses.Shape, frozen=True, kw_only=True):
    """How much of a range of a pool is in use."""

    range: responses.Span
    name: str | None
    retired: bool
    counts: PoolCounts


class SubnetUse(responses.Shape, frozen=True, kw_only=True):
    """How much of a subnet is in use."""

    cidr: responses.Cidr
    uuid: str
    name: str | None
    unit: int
    retired: bool
    counts: PoolCounts
    pools: list[PoolUse]


class NetworkUse(responses.Shape, frozen=True, kw_only=True):
    """How much of a network is in use, and how many claims wait. ``counts`` is null while it is still being counted."""

    network: str
    number: int
    space: str
    retired: bool
    subnets: int
    waiting: int
    counts: FamilyCounts | None


class Utilisation(responses.Shape, frozen=True, kw_only=True):
    """All networks in order of name, as of an entry of the log."""

    seq: int
    items: list[NetworkUse]


class NetworkDetail(responses.Shape, frozen=True, kw_only=True):
    """How much of a network, its subnets and pools is in use, as of an entry of the log."""

    seq: int
    network: str
    number: int
    space: str
    retired: bool
    waiting: int
    counts: FamilyCounts
    subnets: list[SubnetUse]


class Spot(responses.Shape, frozen=True, kw_only=True, omit_defaults=True):
    """Who holds a unit, since when, and in which network of the space; what says nothing is left out."""

    address: responses.Address
    owner: responses.OwnerText
    slot: str = ""
    state: str
    since: responses.Time
    until: responses.Time | None = None
    network: str
    labels: responses.Labels = msgspec.field(default_factory=dict)
    description: str = ""


class Cell(responses.Shape, frozen=True, kw_only=True, omit_defaults=True):
    """A block of units: how many of each kind, if any. A single unit tells who holds it, or what bars it."""

    first: responses.Address
    held: Units = 0
    pending: Units = 0
    draining: Units = 0
    cooling: Units = 0
    elsewhere: Units = 0
    reserved: Units = 0
    kept_back: Units = 0
    preallocated: Units = 0
    retired: Units = 0
    outside: Units = 0
    free: Units = 0
    pooled: Units = 0
    holding: Spot | None = None
    barrier: Annotated[str, Meta(description="What keeps a single unit away from picking.")] | None = None


class Map(responses.Shape, frozen=True, kw_only=True):
    """A stretch of a subnet in equal cells. Ask for a cell's own first and last to look closer.

    ``cell_units`` is a power of two; ``cell_prefix`` is the prefix length of a cell.
    """

    seq: int
    network: str
    subnet: responses.Cidr
    name: str | None
    unit: int
    first: responses.Address
    last: responses.Address
    cell_units: Units
    cell_prefix: int
    counts: Counts
    cells: list[Cell]


class Moment(responses.Shape, frozen=True, kw_only=True):
    """How many holdings there were at a time: held (pending and draining among them), and cooling."""

    at: responses.Time
    held: int
    cooling: int


class FamilyTimeline(responses.Shape, frozen=True, kw_only=True):
    """A network's holdings of one family over time, exact at every point.

    ``capacity`` and ``units`` are those of the present: what the pools have, and what the subnets have.
    """

    capacity: Units
    units: Units
    points: list[Moment]


class Timeline(responses.Shape, frozen=True, kw_only=True):
    """A network's holdings over time, each family by itself; null where the network has no subnet of it.

    Nothing is told of times before ``complete_since``.
    """

    seq: int
    network: str
    step_s: int
    complete_since: responses.Time | None
    ipv4: FamilyTimeline | None = None
    ipv6: FamilyTimeline | None = None
