"""What one server believes is free: the doubtful view, for *random*, *hashed* and *sticky*.

It may be stale in both directions, a wrong pick costs one try, and it is never believed when it says that nothing is
free. ``exact_view`` has the other kind.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from tenure.kernel.picking.free_set import FreePart, FreeSet
from tenure.kernel.picking.policies import FEW, POLICIES, FreeNumbers, Stripes
from tenure.kernel.plan.layout import Layout, LineKey
from tenure.kernel.plan.plan_model import Policy
from tenure.kernel.plan.pool_line import Line, RankPart
from tenure.ports import Chance

BLIND = 1 << 20
"""Lines longer than this are first tried without reading who holds what: a pick there is nearly always free."""


@dataclass(slots=True)
class FreeLine:
    """A line and the numbers on it that are believed free."""

    line: Line
    free: FreeSet

    def take(self, first: int, last: int) -> None:
        """Note that a span is in somebody's way."""
        for low, high in self.line.numbers(first, last):
            self.free.take(low, high)

    def give_back(self, first: int, last: int) -> None:
        """Note that a span is in nobody's way."""
        for low, high in self.line.numbers(first, last):
            self.free.give_back(low, high)

    def pick(self, policy: Policy, owner: str, slot: str, attempt: int, chance: Chance) -> int | None:
        """Pick a number as the policy wants it, among those of the first rank that has room. O(log n)."""
        # Nearly every line has one rank, and needs no search for it.
        if len(self.line.ranks) < 2:
            return POLICIES[policy].pick(self.free, owner, slot, attempt, chance)
        lowest = self.free.at_or_after(0)
        if lowest is None:
            return None
        return self.pick_from(self.line.rank_of(lowest), policy, owner, slot, attempt, chance)

    def pick_from(
        self, rank: RankPart, policy: Policy, owner: str, slot: str, attempt: int, chance: Chance
    ) -> int | None:
        """Pick a number as the policy wants it, among those of one rank. O(log n)."""
        number = POLICIES[policy].pick(FreePart(self.free, *rank), owner, slot, attempt, chance)
        return None if number is None else rank.start + number


@dataclass(slots=True)
class DoubtfulLine(FreeLine):
    """A free line that picks near the server's own stripes when chance decides."""

    first_rank: FreeNumbers
    stripes: Stripes
    seen: int = 0
    loaded: bool = False

    @classmethod
    def begin(cls, line: Line, taken: Iterable[tuple[int, int]], server: str, *, seen: int, loaded: bool) -> Self:
        """Begin a line, knowing which numbers are taken (or, blind, nothing)."""
        free = FreeSet(line.size, taken)
        first = free if len(line.ranks) < 2 else FreePart(free, *line.ranks[0])
        return cls(line, free, first, Stripes(first.size, server), seen, loaded)

    def pick(self, policy: Policy, owner: str, slot: str, attempt: int, chance: Chance) -> int | None:
        """Pick as the policy wants it; a striped one keeps to the server's stripes on lines that are long enough.

        Where the line has several ranks, only from the first: whether that is full, the lane decides (I8).
        Stripes keep servers apart, and neighbours in the store's index together: a line of a million scattered rows
        would touch a page of its own for every grant. After a pick that was taken it goes elsewhere: whoever was there
        has most of that stripe, and a view that no log corrects would run into him again and again.
        """
        first = self.first_rank
        if first.size >= FEW and POLICIES[policy].striped:
            if attempt:
                self.stripes.leave()
            # Eight bits make an offset below ``STRIPE``.
            return self.stripes.pick(first, chance.getrandbits(8))
        # The first rank begins with number 0, so its numbers are those of the line.
        return POLICIES[policy].pick(first, owner, slot, attempt, chance)


class DoubtfulViews:
    """A server's doubtful lines of one space, for one version of its configuration."""

    def __init__(self, layout: Layout, server: str) -> None:
        self.layout = layout
        self.lines: dict[LineKey, DoubtfulLine] = {}
        self._server = server

    def take_number(self, view: DoubtfulLine, number: int) -> tuple[int, int]:
        """Mark a pick as taken on its line and on every other line of the space; return its span."""
        first, last = view.line.unit(number)
        view.free.take(number, number)
        # A single line is marked already, by its number and without a search.
        if len(self.lines) > 1:
            self.take(first, last)
        return first, last

    def open(
        self, key: LineKey, taken: Iterable[tuple[int, int]] = (), *, seen: int = 0, loaded: bool = False
    ) -> DoubtfulLine:
        """Begin a line, knowing which numbers are taken (or, blind, nothing)."""
        line = self.layout.line(*key)
        view = self.lines[key] = DoubtfulLine.begin(line, taken, self._server, seen=seen, loaded=loaded)
        return view

    def take(self, first: int, last: int) -> None:
        """Note on every line that a span is in somebody's way."""
        for view in self.lines.values():
            view.take(first, last)

    def give_back(self, first: int, last: int) -> None:
        """Note on every line that a span is in nobody's way."""
        for view in self.lines.values():
            view.give_back(first, last)
