"""What a process remembers of a pool between two looks at it: its book, the claims to look at, and those that wait."""

import asyncio
import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeVar

from tenure.integrations.kubernetes.metal3.ledger_state import LedgerState
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId
from tenure.integrations.kubernetes.metal3.objects.cooling_addresses import CoolingAddress
from tenure.integrations.kubernetes.metal3.pool_book import PoolBook
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.kernel.addressing.ranges import AddressRange

SHORT = 100
"""A line of so many entries is not tidied up."""
FIRST_DELAY_S, LONGEST_DELAY_S = 0.05, 30.0

Arrival = tuple[str, str]
Ranges = tuple[AddressRange, ...]
T = TypeVar("T", int, Ranges)


@dataclass
class PoolRecord:
    """The affairs of one pool. Every addition and removal is O(1), or O(log n) for the order of arrival."""

    book: PoolBook = field(default_factory=PoolBook)
    ledger: LedgerState = field(default_factory=LedgerState)
    """What the ledger says that the pool is bound to, if it is bound to one."""
    dirty: set[ClaimId] = field(default_factory=set)
    """Claims to look at in the next pass."""
    unsettled: set[ClaimId] = field(default_factory=set)
    """Claims that wait for anything, and are looked at again when the pool or its cluster changes."""
    indexes: dict[str, str] = field(default_factory=dict)
    """Addresses by the names of existing claims, as ``status.indexes`` has them."""
    foreign: dict[str, Object] = field(default_factory=dict)
    """Addresses that others made and no claim has adopted, as the status lists them, by the object's name."""
    idle: set[ClaimId] = field(default_factory=set)
    """Claims that wait for something else than an address: their pool, its cluster, objects or changes of others."""
    unnamed: dict[ClaimId, float] = field(default_factory=dict)
    """Claims that were served and do not name their address yet, oldest first, with when they were served."""
    strangers: dict[str, float] = field(default_factory=dict)
    """Uids with a reservation, of which no claim was ever seen, with when the reservation was seen first."""
    left_by_force: set[str] = field(default_factory=set)
    """Address objects that claims left which went by force, as holders are named; the next pass releases them. The
    objects, and not the claims: Kubernetes' garbage collector takes an owner that is gone off an object."""
    addresses: dict[str, None] = field(default_factory=dict)
    """The address objects that name the pool, as holders of its book are named; also those that cannot be read. No set:
    a large one takes three times the memory."""
    cooling: dict[int, CoolingAddress] = field(default_factory=dict)
    """What the pool says that cools off, by the address."""
    noting: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while it is written down what is about to be released."""
    reported_overlap: str = ""
    """What the pool shares with others, as the last event about it says."""
    is_in_pass: bool = False
    """Whether a pass over the pool is under way: then it is not forgotten."""
    is_status_due: bool = True
    counted: tuple[int, int] | None = None
    """The ``waiting_counts`` that the last status told. A claim leaves those that wait in many ways, and none need say
    that the status is due: the counts do."""
    status_at: float = float("-inf")
    """When the status was written last."""

    def __post_init__(self) -> None:
        self._line: list[tuple[Arrival, ClaimId]] = []
        self._listed: set[tuple[Arrival, ClaimId]] = set()
        """What is in the line, also of claims that left it: one that joins again is not listed twice."""
        self._arrivals: dict[ClaimId, Arrival] = {}
        self._wanted: dict[int, set[ClaimId]] = {}
        self._wants: dict[ClaimId, int] = {}
        self._within: dict[Ranges, set[ClaimId]] = {}
        self._wants_within: dict[ClaimId, Ranges] = {}
        self._failures: dict[ClaimId, int] = {}
        self._retries: list[tuple[float, ClaimId]] = []

    def take_dirty(self) -> list[ClaimId]:
        """Return the claims to look at, those whose retry is due included; none of them is left."""
        now = time.monotonic()
        while self._retries and self._retries[0][0] <= now:
            self.dirty.add(heapq.heappop(self._retries)[1])
        taken, self.dirty = list(self.dirty), set()
        return taken

    def look_again(self) -> None:
        """Look at everything that waits, since what it waits for may have come, or that must wait no longer."""
        self.dirty |= self.unsettled | self.unnamed.keys()

    def failed(self, claim: ClaimId) -> float:
        """Look at a claim again later, each time later, and return when; other claims are not delayed."""
        count = self._failures[claim] = self._failures.get(claim, 0) + 1
        # The exponent is bounded: 2.0 ** 1024 raises OverflowError.
        delay_s = min(FIRST_DELAY_S * 2.0 ** min(count, 20), LONGEST_DELAY_S)
        heapq.heappush(self._retries, (time.monotonic() + delay_s, claim))
        return delay_s

    @property
    def retry_in_s(self) -> float | None:
        """Return after how long a failed claim is looked at again; nothing if there is none."""
        return max(self._retries[0][0] - time.monotonic(), 0.0) if self._retries else None

    @property
    def cooled_in_s(self) -> float | None:
        """Return after how long the first cooling address is free again; nothing if none cools off."""
        first = min((each.until for each in self.cooling.values()), default=None)
        return None if first is None else first - time.time()

    @property
    def is_idle(self) -> bool:
        """Return whether nothing is left of the pool: no claim, no address, no holder."""
        left = self.dirty or self.idle or self.unsettled or self.left_by_force or self.indexes or self._retries
        return not (left or self.addresses or self.book.held or self.is_in_pass)

    def name_later(self, claim: ClaimId) -> None:
        """Let a claim name its address when nothing else is to be done."""
        self.unnamed.setdefault(claim, time.monotonic())

    def tried_again(self, claim: ClaimId) -> None:
        """Go on counting a claim that failed among those that wait, so that the number does not change to and fro."""
        if claim in self._failures:
            self.idle.add(claim)

    def succeeded(self, claim: ClaimId) -> None:
        """Forget the failures of a claim."""
        self._failures.pop(claim, None)

    def forget(self, claim: ClaimId) -> None:
        """Forget everything of a claim that is gone."""
        self.unsettled.discard(claim)
        self.dirty.discard(claim)
        self.idle.discard(claim)
        self.unnamed.pop(claim, None)
        self.leave_line(claim)
        self.stop_wanting(claim)
        self._failures.pop(claim, None)

    def join_line(self, claim: ClaimId, arrival: Arrival) -> None:
        """Let a claim wait for any address; it keeps its place by when it arrived (KD10)."""
        if self._arrivals.get(claim) != arrival:
            self._arrivals[claim] = arrival
            if (arrival, claim) not in self._listed:
                self._listed.add((arrival, claim))
                heapq.heappush(self._line, (arrival, claim))
            # Claims that left stay in the heap until they are its first: a line that never moves would grow for ever.
            if len(self._line) > 2 * len(self._arrivals) + SHORT:
                self._drop_left()

    def _drop_left(self) -> None:
        """Forget those that left the line and stand behind its first."""
        self._listed = {(arrival, claim) for claim, arrival in self._arrivals.items()}
        self._line = sorted(self._listed)

    def leave_line(self, claim: ClaimId) -> None:
        """Let a claim wait no longer for any address."""
        self._arrivals.pop(claim, None)

    def next_in_line(self) -> ClaimId | None:
        """Take the claim that has waited longest out of the line."""
        if self._first() is None:
            return None
        claim = self._pop()[1]
        del self._arrivals[claim]
        return claim

    def _first(self) -> Arrival | None:
        """Return when the first of the line arrived, without those that left it."""
        while self._line and self._arrivals.get(self._line[0][1]) != self._line[0][0]:
            self._pop()
        return self._line[0][0] if self._line else None

    def _pop(self) -> tuple[Arrival, ClaimId]:
        entry = heapq.heappop(self._line)
        self._listed.discard(entry)
        return entry

    def has_earlier(self, arrival: Arrival) -> bool:
        """Return whether a claim that arrived earlier waits for any address."""
        first = self._first()
        return first is not None and first < arrival

    @property
    def waiting(self) -> int:
        """Return how many claims wait for any address."""
        return len(self._arrivals)

    @property
    def without_address(self) -> int:
        """Return how many claims have no address, whatever they wait for."""
        return len(self._arrivals) + len(self._wants) + len(self._wants_within) + len(self.idle)

    @property
    def waiting_counts(self) -> tuple[int, int]:
        """Return what a status tells of claims that wait: how many do for any address, and how many have none."""
        return self.waiting, self.without_address

    @property
    def claims_without_address(self) -> Iterator[ClaimId]:
        """Return the claims that have no address, whatever they wait for."""
        return chain(self._arrivals, self._wants, self._wants_within, self.idle)

    def is_in_line(self, claim: ClaimId) -> bool:
        """Return whether a claim waits for any address."""
        return claim in self._arrivals

    def wait_idly(self, claim: ClaimId) -> None:
        """Let a claim wait for something else than an address."""
        self.idle.add(claim)

    def want(self, claim: ClaimId, position: int) -> None:
        """Let a claim wait for one address."""
        self.stop_wanting(claim)
        self._wants[claim] = position
        self._wanted.setdefault(position, set()).add(claim)

    def want_within(self, claim: ClaimId, ranges: Ranges) -> None:
        """Let a claim wait for an address of some ranges."""
        self.stop_wanting(claim)
        self._wants_within[claim] = ranges
        self._within.setdefault(ranges, set()).add(claim)

    def stop_wanting(self, claim: ClaimId) -> None:
        """Let a claim wait no longer for one address, or for some ranges."""
        if (position := self._wants.pop(claim, None)) is not None:
            _take_out(self._wanted, position, claim)
        if (ranges := self._wants_within.pop(claim, None)) is not None:
            _take_out(self._within, ranges, claim)

    def take_woken(self) -> list[ClaimId]:
        """Return the claims to look at that wait for certain addresses; none of them is left. O(n) of those."""
        if not self._wants and not self._wants_within:
            return []
        woken = [each for each in self.dirty if each in self._wants or each in self._wants_within]
        self.dirty.difference_update(woken)
        return woken

    def freed(self, position: int) -> None:
        """Look at the claims that wait for an address. O(n) of the different ranges that claims wait for."""
        self.dirty |= self._wanted.get(position, set())
        for ranges, claims in self._within.items():
            if any(position in each for each in ranges):
                self.dirty |= claims


def _take_out(waiting: dict[T, set[ClaimId]], wanted: T, claim: ClaimId) -> None:
    """Take a claim out of those that wait for something."""
    claims = waiting[wanted]
    claims.discard(claim)
    if not claims:
        del waiting[wanted]
