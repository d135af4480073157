"""How many holdings a network had, by family and time: the log as a short list of seconds and what changed in each."""

from array import array
from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from tenure.doors.http.utilisation.page_loader import HoldingChange
from tenure.kernel.addressing.addresses import Family, family_of
from tenure.kernel.holdings.deadlines import COOLED_OFF
from tenure.kernel.holdings.holding_model import Change, NetworkId, SpaceId, State

DAY_S = 86_400
KEPT_S = 31 * DAY_S
FINE_S = 26 * 3600
"""So far back seconds are kept apart; before that, minutes."""

THINNED = 150_000
"""Entries of a network at which it is thinned out: a day of seconds and a month of minutes are fewer."""

READ_BACK = 200_000
"""Entries of the log that are read at the start."""

MOST = 2_000_000
"""Entries of all networks; then the older half of each is forgotten."""


class Point(NamedTuple):
    """How many holdings there were at a time: held (or pending, or draining), and cooling."""

    at_s: int
    held: int
    cooling: int


class Trend:
    """What changed in a network. Exact at every whole second of the last day, and every whole minute before it."""

    def __init__(self) -> None:
        self._seconds = array("q")
        self._held = array("q")
        self._cooling = array("q")
        self.cut_s: int | None = None
        """Before this time it is not known what changed; None if all of it is."""

    def __len__(self) -> int:
        return len(self._seconds)

    @property
    def last_s(self) -> int:
        """Return the second of the newest change; 0 if there is none."""
        return self._seconds[-1] if self._seconds else 0

    def note(self, second: int, held: int, cooling: int) -> None:
        """Note a change. A clock that steps back does not move what the log has in order."""
        # Appended only in order, because `points` looks seconds up by bisection.
        if self._seconds and second <= self._seconds[-1]:
            self._held[-1] += held
            self._cooling[-1] += cooling
            return
        self._seconds.append(second)
        self._held.append(held)
        self._cooling.append(cooling)
        # Now and then is enough: thinning walks through everything.
        if len(self._seconds) % THINNED == 0:
            self.thin(second)

    def thin(self, now_s: int) -> None:
        """Let old seconds become minutes, and forget what is too old."""
        entries = list(zip(self._seconds, self._held, self._cooling, strict=True))
        if entries and entries[0][0] <= now_s - KEPT_S:
            self.cut_s = max(self.cut_s or 0, now_s - KEPT_S)
        self._seconds, self._held, self._cooling = array("q"), array("q"), array("q")
        for second, held, cooling in entries:
            if second > now_s - KEPT_S:
                # The end of the minute: points of old are whole minutes, and none may show what came after it.
                self.note(second if second >= now_s - FINE_S else -(-second // 60) * 60, held, cooling)

    def forget_half(self) -> None:
        """Forget the older half."""
        half = len(self._seconds) // 2
        if half:
            self.cut_s = self._seconds[half - 1]
            del self._seconds[:half], self._held[:half], self._cooling[:half]

    def points(self, now: Point, times: Iterable[int]) -> list[Point]:
        """Count at rising times, from what is there now backwards."""
        found: list[Point] = []
        # Backwards from the present count, which is exact: the log need not reach back to the first holding.
        held, cooling = now.held, now.cooling
        end = len(self._seconds)
        for at_s in sorted(times, reverse=True):
            place = bisect_right(self._seconds, at_s, 0, end)
            held -= sum(self._held[place:end])
            cooling -= sum(self._cooling[place:end])
            end = place
            found.append(Point(at_s, held, cooling))
        return found[::-1]


class Trends:
    """The trends of all networks, each family by itself. Changes that come before the past is read wait until it is."""

    def __init__(self) -> None:
        self.read = False
        self.cut = False
        """Whether the log has more of the past than was read, or had."""
        self.complete_s: int | None = None
        """Since when all that changed is known, where it is cut."""
        self._trends: dict[tuple[NetworkId, Family], Trend] = {}
        self._cooling: set[tuple[SpaceId | None, int]] = set()
        self._over: set[tuple[SpaceId | None, int]] = set()
        """Where time has ended a holding that no entry of the log has ended yet."""
        self._later: list[Change | tuple[SpaceId, HoldingChange]] = []
        self._noted = 0
        self.at = 0
        """The number of the newest change that is in."""

    def restart(self, at: int) -> None:
        """Begin again behind a number; there was more before."""
        self.at, self.cut, self.complete_s = at, True, None
        self._trends.clear()
        self._cooling.clear()
        self._over.clear()

    def missed(self) -> None:
        """Take nothing in that is told, until what was not told is read from the log; what is in stays."""
        self.read = False
        # Changes that wait here are read from the log; deadlines that passed are noticed again by the new count.
        self._later.clear()

    def follow(self, change: Change) -> None:
        """Take a change in that the log told of just now."""
        if self.read:
            self.take(change)
        else:
            self._later.append(change)

    def caught_up(self) -> None:
        """Take in what came while the past was read."""
        self.read = True
        for late in self._later:
            if isinstance(late, Change):
                self.take(late)
            else:
                self.run_out(*late)
        self._later.clear()

    def run_out(self, space: SpaceId, step: HoldingChange) -> None:
        """Take in that the time of a holding is over, at its deadline; the entry that ends it changes nothing more."""
        place = (space, step.first)
        if not self.read:
            self._later.append((space, step))
        # Once for each holding: a census that counts again notices the same deadline again.
        elif place not in self._over and step.until_us is not None:
            self._over.add(place)
            cools = step.before is State.COOLING
            key = (step.network, family_of(step.first))
            self._note(key, -(-step.until_us // 1_000_000), 0 if cools else -1, -1 if cools else 0)

    def take(self, change: Change) -> None:
        """Take a change in, in the order of the log."""
        self.at = change.seq
        # Rounded up, here and below: a point at a whole second shows what happened up to it, and nothing later.
        if self.cut and self.complete_s is None:
            self.complete_s = -(-change.at_us // 1_000_000)
        if change.network is None or change.first is None:
            return
        held, cooling = self._effect(change, (change.space, change.first))
        if held or cooling:
            self._note((change.network, family_of(change.first)), -(-change.at_us // 1_000_000), held, cooling)

    def _note(self, key: tuple[NetworkId, Family], second: int, held: int, cooling: int) -> None:
        trend = self._trends.get(key)
        if trend is None:
            trend = self._trends[key] = Trend()
        trend.note(second, held, cooling)
        self._noted += 1
        # The sum walks over all networks, so it is made seldom.
        if self._noted % THINNED == 0 and sum(map(len, self._trends.values())) > MOST:
            for each in self._trends.values():
                each.forget_half()

    def _effect(self, change: Change, place: tuple[SpaceId | None, int]) -> tuple[int, int]:
        """Say how many more are held, and cool. What cools already may be told to cool for another time."""
        if place in self._over and change.verb != "transfer":  # which leaves the deadline as it is
            self._over.discard(place)
            return self._after_time(change, place)
        if change.verb == "grant":
            self._cooling.discard(place)
            return 1, 0
        if change.verb == "cool":
            known = place in self._cooling
            self._cooling.add(place)
            return (0, 0) if known else (-1, 1)
        if change.verb != "release":
            return 0, 0
        self._cooling.discard(place)
        return (0, -1) if change.details.get("because") == COOLED_OFF else (-1, 0)

    def _after_time(self, change: Change, place: tuple[SpaceId | None, int]) -> tuple[int, int]:
        """Say the same of an entry about a holding that counts no more, since its time is over."""
        self._cooling.discard(place)
        if change.verb == "release":
            return 0, 0
        if change.verb == "cool":
            self._cooling.add(place)
            return 0, 1
        return 1, 0

    def of(self, network: NetworkId, family: Family) -> Trend:
        """Return the trend of a network's family; an empty one if nothing ever changed."""
        return self._trends.get((network, family)) or Trend()

    def since(self, now_s: int) -> int:
        """Return since when everything is known; 0 if always."""
        return (self.complete_s or now_s) if self.cut else 0

    def forget(self, networks: Iterable[NetworkId]) -> None:
        """Forget networks that are gone."""
        for number in networks:
            for family in Family:
                self._trends.pop((number, family), None)
