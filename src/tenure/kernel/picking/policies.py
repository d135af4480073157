"""The policies: how each one picks a free number of a line, and what the rest of the house must know of it.

``POLICIES`` is the one table. A new policy is a member of ``Policy`` and a row in ``_rules``; nothing else compares
policies. Chance and names come in from outside; the same input gives the same pick. Every pick is O(log n) of the free
set. A *point* is a number to look from: the pick is the first free number at or after it, around the end of the line
if need be.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol, assert_never

from tenure.kernel.plan.plan_model import Policy

STRIPE = 256
"""Numbers that one server prefers to fill before it goes elsewhere, so servers seldom meet."""

FEW = 16 * STRIPE
"""Lines shorter than this are picked from all over: stripes would make neighbours of everything."""


class Chance(Protocol):
    """Where randomness comes from; ``random.Random`` is one."""

    def getrandbits(self, count: int, /) -> int:
        """Return a number of that many random bits."""
        ...


class FreeNumbers(Protocol):
    """Free numbers 0..size-1 to pick from: a ``FreeSet``, or a part of one."""

    size: int

    def at_or_after(self, number: int, /) -> int | None:
        """Return the lowest free number that is not below ``number``."""
        ...


class Pick(Protocol):
    """Picks a free number for an owner's slot, or returns None if nothing is free.

    ``attempt`` counts the picks before this one that turned out to be taken.
    """

    def __call__(self, free: FreeNumbers, owner: str, slot: str, attempt: int, chance: Chance, /) -> int | None:
        """Pick a number."""
        ...


@dataclass(frozen=True, slots=True)
class PolicyRules:
    """What the house must know of a policy. No field has a default: a new policy answers every question."""

    pick: Pick
    exact: bool
    """The policy promises one particular free number. Only the lane, which knows the exact state, can keep that
    promise, and a number that is kept for such a claim cannot be exchanged for another."""
    ascending: bool
    """That number is the lowest: a search may begin at the lowest gap."""
    prefers_former: bool
    """The address that the owner's slot had before comes first: it is noted on release, and read before the pick."""
    striped: bool
    """Any number is as good as another, so a server may keep to its own stripes of a long line."""


def first_free(free: FreeNumbers) -> int | None:
    """Pick the lowest free number."""
    return free.at_or_after(0)


def from_point(free: FreeNumbers, point: int) -> int | None:
    """Pick the free number at or after a point, around the end if need be."""
    found = free.at_or_after(point)
    # A look from 0 has met the whole line, so a second look would find nothing either.
    return free.at_or_after(0) if found is None and point else found


def hashed_point(size: int, owner: str, slot: str, attempt: int = 0) -> int:
    """Return the point that an owner's slot always looks from."""
    # No name has a zero byte, so two pairs of owner and slot never give the same text. Another text or another hash
    # would send every owner of a *hashed* pool to another address.
    digest = blake2b(f"{owner}\0{slot}\0{attempt}".encode(), digest_size=16).digest()
    return int.from_bytes(digest, "big") % size


def _pick_lowest(free: FreeNumbers, owner: str, slot: str, attempt: int, chance: Chance, /) -> int | None:
    return free.at_or_after(0)


def _pick_random(free: FreeNumbers, owner: str, slot: str, attempt: int, chance: Chance, /) -> int | None:
    if not free.size:
        return None
    # Sixteen bits more than needed make the bias of the remainder too small to see.
    return from_point(free, chance.getrandbits(free.size.bit_length() + 16) % free.size)


def _pick_hashed(free: FreeNumbers, owner: str, slot: str, attempt: int, chance: Chance, /) -> int | None:
    return from_point(free, hashed_point(free.size, owner, slot, attempt)) if free.size else None


def _rules(policy: Policy) -> PolicyRules:
    match policy:
        case Policy.LOWEST:
            return PolicyRules(_pick_lowest, exact=True, ascending=True, prefers_former=False, striped=False)
        case Policy.RANDOM:
            return PolicyRules(_pick_random, exact=False, ascending=False, prefers_former=False, striped=True)
        case Policy.HASHED:
            return PolicyRules(_pick_hashed, exact=False, ascending=False, prefers_former=False, striped=False)
        case Policy.STICKY:
            return PolicyRules(_pick_hashed, exact=False, ascending=False, prefers_former=True, striped=False)
        case _:
            assert_never(policy)  # mypy reports a member without a row here


POLICIES: Mapping[Policy, PolicyRules] = {policy: _rules(policy) for policy in Policy}
"""The rules of every policy, looked up once a pick."""

_WITH_FORMER = frozenset(policy for policy, rules in POLICIES.items() if rules.prefers_former)


def notes_former(policies: Iterable[Policy]) -> bool:
    """Return whether releases in a network whose pools have these policies note where the owner was."""
    return not _WITH_FORMER.isdisjoint(policies)


class Stripes:
    """One server's own order of stripes over a line, for *random*.

    The server fills its current stripe, then moves to the next of an order that only its name decides. Two servers
    meet only where their orders do. ``chance`` gives numbers from 0 up to a bound.
    """

    __slots__ = ("_server", "_start", "_turn", "size")

    def __init__(self, size: int, server: str) -> None:
        self.size = size
        self._server = server
        self._turn = 0
        self._start = self._stripe(0)

    def _stripe(self, turn: int) -> int:
        # Whole stripes only: numbers behind the last one are picked when eight stripes in a row were full.
        stripes = max(self.size // STRIPE, 1)
        # By hash and not in sequence: servers in neighbouring stripes would meet at the very next stripe.
        return hashed_point(stripes, self._server, "stripe", turn) * STRIPE

    def pick(self, free: FreeNumbers, offset: int) -> int | None:
        """Pick from the current stripe, from a chance offset below ``STRIPE``; a full stripe is left behind.

        After a few full stripes in a row the line is nearly full: any free number will do.
        """
        for _ in range(8):
            found = free.at_or_after(self._start + offset)
            # Behind the offset the stripe may be full while its beginning is not.
            if found is None or found >= self._start + STRIPE:
                found = free.at_or_after(self._start)
            if found is not None and found < self._start + STRIPE:
                return found
            self.leave()
        return from_point(free, self._start)

    def leave(self) -> None:
        """Go to the next stripe: this one is full, or somebody else fills it."""
        self._turn += 1
        self._start = self._stripe(self._turn)
