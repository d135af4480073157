"""What one server believes is free: the doubtful view, for *random*, *hashed* and *sticky*.

It may be stale in both directions, a wrong pick costs one try, and it is never believed when it says that nothing is
free. ``exact_view`` has the other kind.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tenure.kernel.picking.free_set import FreeSet
from tenure.kernel.picking.policies import FEW, POLICIES, Stripes
from tenure.kernel.plan.layout import Layout, LineKey
from tenure.kernel.plan.plan_model import Policy
from tenure.kernel.plan.pool_line import Line
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
        """Pick a number as the policy wants it. O(log n)."""
        return POLICIES[policy].pick(self.free, owner, slot, attempt, chance)


@dataclass(slots=True)
class DoubtfulLine(FreeLine):
    """A free line that picks near the server's own stripes when chance decides."""

    stripes: Stripes
    seen: int = 0
    loaded: bool = False

    def pick(self, policy: Policy, owner: str, slot: str, attempt: int, chance: Chance) -> int | None:
        """Pick as the policy wants it; a striped one keeps to the server's stripes on lines that are long enough.

        Stripes keep servers apart, and neighbours in the store's index together: a line of a million scattered rows
        would touch a page of its own for every grant. After a pick that was taken it goes elsewhere: whoever was there
        has most of that stripe, and a view that no log corrects would run into him again and again.
        """
        if self.line.size >= FEW and POLICIES[policy].striped:
            if attempt:
                self.stripes.leave()
            # Eight bits make an offset below ``STRIPE``.
            return self.stripes.pick(self.free, chance.getrandbits(8))
        # A zero-argument super() does not survive dataclass(slots=True), which makes the class anew.
        return FreeLine.pick(self, policy, owner, slot, attempt, chance)


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
        view = DoubtfulLine(line, FreeSet(line.size, taken), Stripes(line.size, self._server), seen, loaded)
        self.lines[key] = view
        return view

    def take(self, first: int, last: int) -> None:
        """Note on every line that a span is in somebody's way."""
        for view in self.lines.values():
            view.take(first, last)

    def give_back(self, first: int, last: int) -> None:
        """Note on every line that a span is in nobody's way."""
        for view in self.lines.values():
            view.give_back(first, last)
