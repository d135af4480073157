"""Holdings, wishes, verdicts and changes: what rules, stores and doors say to each other.

Stores speak of spaces and networks by number and of addresses by position; ``Holding`` is what users see.
What a hot path makes by the thousand is a NamedTuple: as frozen as a dataclass, at a third of the price.
Times are microseconds since 1970 by the store's clock.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tenure.kernel.addressing.addresses import Family, family_of, format_address, unit_text, width
from tenure.kernel.names import Owner

SpaceId = int
NetworkId = int

NO_DETAILS: Mapping[str, Any] = {}


class State(enum.StrEnum):
    """Where a holding is in its life."""

    PENDING = "pending"
    HELD = "held"
    DRAINING = "draining"
    COOLING = "cooling"


OWNED = frozenset({State.PENDING, State.HELD})
"""The states in which an owner's slot counts as taken (invariant I2)."""


class Row(NamedTuple):
    """A holding as stores keep it."""

    space: SpaceId
    network: NetworkId
    first: int
    last: int
    owner: str
    slot: str
    state: State
    generation: int
    since_us: int
    until_us: int | None = None
    request: str | None = None
    details: Mapping[str, Any] = NO_DETAILS


class Wish(NamedTuple):
    """One address (or prefix) for one owner's slot, to be created if nobody is in the way."""

    network: NetworkId
    first: int
    last: int
    owner: str
    slot: str = ""
    state: State = State.HELD
    lasts_us: int | None = None
    request: str | None = None
    details: Mapping[str, Any] = NO_DETAILS
    key: str | None = None
    body: bytes = b""

    @property
    def claim(self) -> tuple[NetworkId, str, str]:
        """Return what may hold at most one address."""
        return (self.network, self.owner, self.slot)


class Outcome(enum.Enum):
    """The store's five answers to a wish, and two to one whose idempotency key it knows: as before, or refused.

    DUE: the time of a holding in the space is over. Nothing was granted; the lane removes that holding first.
    """

    GRANTED = "granted"
    ALREADY = "already"
    TAKEN = "taken"
    AGAIN = "again"
    DUE = "due"
    REPLAYED = "replayed"
    REUSED = "reused"


class Verdict(NamedTuple):
    """The store's answer: the outcome, and the row that decided it (ours, or the one in the way)."""

    outcome: Outcome
    row: Row | None = None


AGAIN = Verdict(Outcome.AGAIN)
DUE = Verdict(Outcome.DUE)


class Ticket(NamedTuple):
    """What a release names: the address, its network and owner and, where known, the generation."""

    network: NetworkId
    first: int
    owner: str
    generation: int | None = None
    request: str | None = None
    remember: bool = False
    cooling_us: int = 0
    by: tuple[str, str | None] | None = None

    def names(self, row: Row) -> bool:
        """Tell whether a row is the one that is meant. What is cooling has been released: nobody's ticket names it."""
        return (
            (self.network, self.owner) == (row.network, row.owner)
            and self.generation in (None, row.generation)
            and row.state is not State.COOLING
        )


class Reply(NamedTuple):
    """What a request with an idempotency key was answered, kept so that the same key gets the same answer.

    Of a grant: the address, the generation and, as ``answer``, who asked; the rest is in the request, which must be the
    same. Of anything else: the whole answer, written out, and no address.
    """

    key: str
    body: bytes
    at_us: int = 0
    space: SpaceId | None = None
    network: NetworkId | None = None
    first: int | None = None
    last: int | None = None
    generation: int | None = None
    until_us: int | None = None
    answer: str | None = None


class Paper(NamedTuple):
    """A document that a door keeps in the ledger: of a kind, by name, with a revision that every writing raises."""

    kind: str
    name: str
    revision: int
    document: Mapping[str, Any] = NO_DETAILS


class Waiter(NamedTuple):
    """A claim in line for an address. It lives until ``until_us`` by the store's clock, and longer if it says so.

    ``lasts_us`` is how long it had when it last said so: with more than that left, the clock was set back since.
    """

    ticket: int
    space: SpaceId
    network: NetworkId
    owner: str
    slot: str
    since_us: int
    until_us: int
    document: Mapping[str, Any] = NO_DETAILS
    lasts_us: int = 0

    @property
    def key(self) -> tuple[SpaceId, NetworkId, str, str]:
        """Return whose claim it is, and where: one slot of an owner has one claim in a network."""
        return self.space, self.network, self.owner, self.slot


class Entry(NamedTuple):
    """A change about to be logged; the store adds the number and the time."""

    verb: str
    space: SpaceId | None = None
    network: NetworkId | None = None
    first: int | None = None
    last: int | None = None
    owner: str | None = None
    slot: str | None = None
    generation: int | None = None
    request: str | None = None
    details: Mapping[str, Any] = NO_DETAILS


class Rewrite(NamedTuple):
    """A row that is to be written again if it is still as it was seen, and the entry that the log gets.

    State, deadline and details may differ between the two; everything else is the same.
    """

    seen: Row
    row: Row
    entry: Entry


class Change(NamedTuple):
    """One entry of the ordered log."""

    seq: int
    at_us: int
    verb: str
    space: SpaceId | None
    network: NetworkId | None
    first: int | None
    last: int | None
    owner: str | None
    slot: str | None
    generation: int | None
    request: str | None
    details: Mapping[str, Any] = NO_DETAILS
    network_name: str | None = None
    actor: str | None = None
    request_id: str | None = None

    @property
    def address(self) -> str | None:
        """Write the address the change is about, if it is about one."""
        return None if self.first is None else format_address(self.first)

    @property
    def at(self) -> datetime:
        """Tell when, by the store's clock."""
        return moment(self.at_us)


@dataclass(frozen=True, slots=True, repr=False)
class Holding:
    """An address held by an owner, as users see it.

    ``warnings`` name what a request said of a holding that was there before, and what is not so; readings have none.
    """

    network: str
    row: Row
    prefix: int
    gateway: str | None = None
    # Not compared: a warning is about a request, and the answer to it is the holding that is read later.
    warnings: tuple[str, ...] = field(default=(), compare=False)

    @property
    def address(self) -> str:
        """Write the held address (of a prefix: its first)."""
        return format_address(self.row.first)

    @property
    def last_address(self) -> str:
        """Write the last address of what is held; the same as ``address`` unless a prefix is held."""
        return format_address(self.row.last)

    @property
    def family(self) -> Family:
        """Return the family of what is held."""
        return family_of(self.row.first)

    @property
    def unit(self) -> int:
        """Return the prefix length of what is held: 32 or 128 for a single address."""
        return width(self.row.first) - (self.row.last - self.row.first).bit_length()

    @property
    def owner(self) -> Owner:
        """Tell who holds."""
        return Owner.trusted(self.row.owner)

    @property
    def slot(self) -> str:
        """Tell which of the owner's slots."""
        return self.row.slot

    @property
    def state(self) -> State:
        """Tell the state."""
        return self.row.state

    @property
    def generation(self) -> int:
        """Return the number that sets this holding apart from earlier ones of the same address."""
        return self.row.generation

    @property
    def since(self) -> datetime:
        """Return since when, by the store's clock."""
        return moment(self.row.since_us)

    @property
    def until(self) -> datetime | None:
        """Tell the deadline of a pending or cooling holding, if it has one."""
        return None if self.row.until_us is None else moment(self.row.until_us)

    @property
    def request(self) -> str | None:
        """Name the request that made it; of one that an answer reports as ended, the request that ended it."""
        return self.row.request

    @property
    def labels(self) -> dict[str, str]:
        """Return a copy of the labels."""
        return dict(self.row.details.get("labels", {}))

    @property
    def description(self) -> str:
        """Return the description."""
        return str(self.row.details.get("description", ""))

    @property
    def carrier(self) -> str | None:
        """Name the machine that carries the address now."""
        return self.row.details.get("carrier")

    @property
    def plan(self) -> str | None:
        """Name the operation it belongs to."""
        return self.row.details.get("plan")

    @property
    def actor(self) -> str | None:
        """Return on whose word, like ``request``; None if no door said so."""
        by = self.row.details.get("by")
        return None if by is None else str(by[0])

    @property
    def request_id(self) -> str | None:
        """Return by which request of a door, like ``request``; None if no door said so."""
        by = self.row.details.get("by")
        return None if by is None else by[1]

    def __repr__(self) -> str:
        return f"<Holding {self}, generation {self.generation}>"

    def __str__(self) -> str:
        text = unit_text(self.row.first, self.row.last)
        return f"{text} {self.state} by {self.owner}{self.slot and ' ' + self.slot} in {self.network}"


def moment(microseconds: int) -> datetime:
    """Turn the store's microseconds into a time."""
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC)
