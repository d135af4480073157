"""The words that rules and stores share: how strongly a space is held, what a store can do, what went wrong."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass


class Guard(enum.Enum):
    """How strongly a transaction holds a space, weakest first.

    Grants run together with each other and with one lane; a lane runs alone but for plain grants; an edit runs
    alone. Whatever frees an address holds the lane, so nothing is freed while somebody in the lane picks the lowest
    address, and no grant passes a configuration that is being changed.
    """

    GRANT = "grant"
    LANE = "lane"
    EDIT = "edit"


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a store can do beyond the book; suites and callers ask this, never the store's name."""

    ledger: bool = False
    mixed_units: bool = False
    survives_restart: bool = True
    shared_by_processes: bool = True
    quick_lane: bool = False
    parallel_writes: bool = False
    largest_batch: int = 1000


@dataclass(frozen=True, slots=True)
class Effects:
    """What happened to a space's addresses behind a cursor: (number, whether taken or freed, first, last).

    ``upto``: every change up to this number has been looked at. ``complete``: false where the cursor lies so far
    behind that reading the holdings anew is cheaper; then there are no steps. ``frees`` counts the commits that freed
    something in the space, where the store has a quick lane. ``due``: the time of a holding there was over by the
    store's clock; a transaction says so, a reading outside of one need not.
    """

    upto: int
    steps: Sequence[tuple[int, bool, int, int]]
    complete: bool = True
    frees: int = 0
    due: bool = False


@dataclass(frozen=True, slots=True)
class Size:
    """How large a ledger is: the number of its newest change, and how many of what it keeps.

    ``bytes`` is what all of it takes where it is kept, indexes and room for more included; None if the store does not
    know.
    """

    newest: int
    changes: int
    archived: int
    replies: int
    bytes: int | None = None


FAR_BEHIND = 50_000
"""Changes behind the log from which ``effects`` answers that it is not complete."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Stands in place of one answer among several: this one failed, the others have answers of their own."""

    error: Exception


class Stale(Exception):
    """The configuration has another version than the one that was named; nothing was done."""


class KeyTaken(Exception):
    """Another request with the same idempotency key came first; run again, its answer is there now."""


class NotAll(Exception):
    """Something was in the way of a grant of all or none; the transaction is spent."""
