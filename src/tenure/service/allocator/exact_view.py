"""What one server knows to be free: the exact view, for the lane.

It was read at one moment of the log and is brought up to date from the log while the lane keeps others from freeing
anything, so what it calls the lowest free address is that.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tenure.kernel.picking.free_set import FreeSet
from tenure.kernel.plan.layout import Layout, LineKey
from tenure.ports import Effects
from tenure.service.allocator.doubtful_view import FreeLine

NOTHING_TO_LEARN = 1 << 62
"""A number that no log reaches."""


@dataclass(slots=True)
class ExactLine(FreeLine):
    """A free line as of one number of the log."""

    seen: int


class ExactViews:
    """A server's exact lines of one space, for one version of its configuration.

    Only the log changes them for good. What a running transaction takes or frees is laid over them and lifted
    before it ends, so an attempt that comes to nothing leaves no mark. Only code that holds the lane may touch them.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.lines: dict[LineKey, ExactLine] = {}
        self.frees = 0
        self.calm = False
        self.own = 0
        self.due = True
        """Whether the time of a holding in the space may be over, as of the last look in the lane."""
        self.swept: list[tuple[int, int]] = []
        """What the running transaction removed because its time was over."""
        self._steps: list[tuple[bool, int, int]] = []
        self._undo: list[tuple[ExactLine, bool, int, int]] = []
        self._passing: list[LineKey] = []

    def adopt(self, key: LineKey, spans: Sequence[tuple[int, int]], seen: int) -> ExactLine:
        """Begin a line from what was held at one number of the log."""
        line = self.layout.line(*key)
        view = ExactLine(line, FreeSet(line.size, line.taken(spans)), seen)
        self.lines[key] = view
        if self._steps:  # the spans show this transaction's own steps, which may yet come to nothing
            self._passing.append(key)
            # A pick that is not written yet, or is kept free for a ghost, is missing in the spans.
            for takes, first, last in self._steps:
                (view.take if takes else view.give_back)(first, last)
        return view

    def oldest(self) -> int:
        """Return the number from which the log must be read to bring every line up to date."""
        return min((view.seen for view in self.lines.values()), default=NOTHING_TO_LEARN)

    def catch_up(self, effects: Effects) -> None:
        """Bring the lines up to date; lines too far behind are dropped, to be read anew."""
        self.due = effects.due
        if effects.complete:
            self.learn(effects)
        else:
            self.lines.clear()

    def learn(self, effects: Effects) -> None:
        """Bring the lines up to date; each line skips what it has seen.

        ``calm`` afterwards: nobody but this server has touched the space since the last time.
        """
        # Every step of this server comes back from the log. More steps than those are the work of another server.
        self.calm = len(effects.steps) <= self.own
        self.own = 0
        self.frees = effects.frees
        for view in self.lines.values():
            for number, takes, first, last in effects.steps:
                if number > view.seen:
                    (view.take if takes else view.give_back)(first, last)
            view.seen = max(view.seen, effects.upto)

    def lay(self, takes: bool, first: int, last: int) -> None:
        """Lay a step of the running transaction over the lines."""
        self._steps.append((takes, first, last))
        for view in self.lines.values():
            for low, high in view.line.numbers(first, last):
                # Only real changes are noted: ``lift`` must leave taken what was taken before the step.
                changed = view.free.take(low, high) if takes else view.free.give_back(low, high)
                self._undo.extend((view, takes, *interval) for interval in changed)

    def lay_pick(self, view: ExactLine, number: int) -> tuple[int, int]:
        """Lay a pick over the lines; return its span."""
        first, last = view.line.unit(number)
        # On a single line the number is known already; ``lay`` would search for it again.
        if len(self.lines) > 1:
            self.lay(True, first, last)
        else:
            self._steps.append((True, first, last))
            self._undo.extend((view, True, *interval) for interval in view.free.take(number, number))
        return first, last

    def keep(self) -> None:
        """Make what was laid permanent: it was granted, and the log will say the same."""
        self.own += len(self._steps)
        self._steps.clear()
        self._undo.clear()
        self._passing.clear()
        self.swept.clear()

    def lift(self) -> None:
        """Take off what the running transaction laid."""
        # Backwards: later steps lie over earlier ones.
        while self._undo:
            view, takes, low, high = self._undo.pop()
            (view.free.give_back if takes else view.free.take)(low, high)
        for key in self._passing:
            self.lines.pop(key, None)
        if self.swept:  # it stands there still
            self.due = True
        self.swept.clear()
        self._steps.clear()
        self._passing.clear()


def renewed(exact: ExactViews | None, layout: Layout) -> ExactViews:
    """Return exact views for another version; where only the line of waiters began or ended, they stay as they are."""
    if exact is None or not renewable(exact, layout):
        return ExactViews(layout)
    exact.layout = layout
    return exact


def renewable(exact: ExactViews, layout: Layout) -> bool:
    """Tell whether exact views may go on under a layout: of the same version, or saying the same of every network."""
    if exact.layout.configuration.version == layout.configuration.version:
        return True
    return exact.layout.configuration.networks == layout.configuration.networks
