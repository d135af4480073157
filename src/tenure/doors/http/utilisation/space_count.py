"""One space as the census knows it: its plan, a tally of every subnet, and the states that the log does not repeat."""

import asyncio
from collections.abc import Iterator
from heapq import heappop, heappush

from tenure.doors.http.utilisation.page_loader import Feed, HoldingChange
from tenure.doors.http.utilisation.position_index import Spots
from tenure.doors.http.utilisation.subnet_tally import Tally, UnitUse, added
from tenure.doors.http.utilisation.subnet_terrain import Terrain, terrain_of
from tenure.doors.http.utilisation.tally_router import Router, move
from tenure.kernel.addressing.addresses import Family
from tenure.kernel.holdings.deadlines import has_passed
from tenure.kernel.holdings.holding_model import Change, NetworkId, SpaceId, State
from tenure.kernel.plan.blocked_ranges import Barriers
from tenure.kernel.plan.plan_model import Configuration, Network, Subnet

AT_ONCE = 100
"""Subnets that are laid out before others get the loop."""

SubnetKey = tuple[NetworkId, str]
STATED = {"confirm": State.HELD, "cool": State.COOLING, "release": None}


class SpaceCount:
    """Counts of one space. ``edits`` counts the edits that the log told of, ``laid_out`` those that are in the plan."""

    def __init__(self, number: SpaceId) -> None:
        self.number = number
        self.plan: Configuration | None = None
        self.barriers: Barriers | None = None
        # `edits` begins ahead of `laid_out`, so that a new space counts as unsettled until its plan is read.
        self.edits = 1
        self.laid_out = 0
        self.queued = False
        self.waits = 0
        self.feeds: list[Feed] = []
        self.tallies: dict[SubnetKey, Tally] = {}
        self.spots: dict[SubnetKey, Spots] = {}
        self._counted: Router[Tally] = Router(())
        self._counted_ids: set[int] = set()
        # Only states other than `held`, in which nearly every holding is.
        self._odd: dict[int, State] = {}
        self._timed: dict[int, HoldingChange] = {}
        self._deadlines: list[tuple[int, int]] = []
        """A heap of what ``_timed`` has or had: deadline and place."""
        self._over: set[int] = set()
        """Where the time of a holding is over, and no entry of the log has ended it yet."""

    @property
    def settled(self) -> bool:
        """Tell whether the plan is the newest that is known of, and every subnet is counted."""
        # Only ids of tallies that are kept are among the counted ones, so equal numbers mean all of them.
        return self.edits == self.laid_out and len(self._counted_ids) == len(self.tallies)

    def uncounted(self) -> list[Tally]:
        """Return the tallies that are still to be filled."""
        return [tally for tally in self.tallies.values() if id(tally) not in self._counted_ids]

    def is_counted(self, network: Network) -> bool:
        """Tell whether every subnet of a network is counted, as the plan is known."""
        keys = ((network.id, subnet.uuid) for subnet in network.subnets)
        return self.edits == self.laid_out and all(id(self.tallies[key]) in self._counted_ids for key in keys)

    def counts(self, network: Network) -> dict[Family, dict[str, int]]:
        """Count the units of a network, by each family that it has subnets of.

        Families are not added up: one address of IPv4 says nothing beside a /64 of IPv6.
        """
        parts: dict[Family, list[dict[str, int]]] = {}
        for subnet in network.subnets:
            parts.setdefault(subnet.family, []).append(self.tallies[network.id, subnet.uuid].counts())
        return {family: added(parts[family]) for family in Family if family in parts}

    def total(self, network: Network, family: Family, *ways: UnitUse) -> int:
        """Count the units of a network's family that are taken in some ways."""
        tallies = [self.tallies[network.id, s.uuid] for s in network.subnets if s.family is family]
        return sum(tally.total(taken) for tally in tallies for taken in ways)

    def is_over(self, first: int) -> bool:
        """Return whether the time of the holding at a place is over, as far as was noticed."""
        return first in self._over

    def meet(self, step: HoldingChange) -> None:
        """Note the state and the deadline that a reading shows: the log tells of a release, but not what it ends."""
        first = step.first
        if step.after is None or step.after is State.HELD:
            self._odd.pop(first, None)
        else:
            self._odd[first] = step.after
        if step.until_us is None:
            self._timed.pop(first, None)
        else:
            self._timed[first] = step
            heappush(self._deadlines, (step.until_us, first))

    @property
    def timed(self) -> bool:
        """Return whether a holding of the space has a deadline that may pass."""
        return bool(self._deadlines)

    def run_out(self, now_us: int) -> Iterator[HoldingChange]:
        """Take holdings out whose time is over by the store's clock; yield each. The log will end them some day."""
        while self._deadlines and has_passed(self._deadlines[0][0], now_us):
            until_us, first = heappop(self._deadlines)
            known = self._timed.get(first)
            # The heap also has deadlines that were changed since; only the one that still stands counts.
            if known is not None and known.until_us == until_us and first not in self._over:
                step = known._replace(before=self._odd.pop(first, State.HELD), after=None)
                self._over.add(first)
                self._take(step)
                yield step

    def follow(self, change: Change) -> None:
        """Take a change of a holding in. Some 4 µs."""
        step = self._step(change)
        if step is not None:
            self._take(step)

    def _take(self, step: HoldingChange) -> None:
        states = (step.before, step.after)
        for tally in self._counted.over(step.first, step.last):
            move(tally, step.network, step.first, step.last, states)
        for spots in self.spots.values():
            if step.first <= spots.terrain.last and spots.terrain.first <= step.last:
                move(spots, step.network, step.first, step.last, states)
        for feed in self.feeds:
            feed.follow(step)

    def _step(self, change: Change) -> HoldingChange | None:
        """Say what a change made of a holding; what it was is known only where it has been counted."""
        network, first, last, verb = change.network, change.first, change.last, change.verb
        if network is None or first is None or last is None:
            return None
        before: State | None = None
        after: State | None
        until_us: int | None = change.details.get("until_us")
        if verb == "grant":
            told = change.details.get("state")
            after = State.HELD if told is None else State(told)
        else:
            # A holding whose time is over was taken out of the counts when that was noticed.
            before = None if first in self._over else self._odd.get(first, State.HELD)
            after = STATED[verb] if verb in STATED else State(change.details["state"])
            if verb == "modify" and first in self._timed:  # which leaves the deadline as it is
                until_us = self._timed[first].until_us
        # The log has ended or renewed the holding: from here on its entries count again.
        self._over.discard(first)
        step = HoldingChange(network, first, last, before, after, until_us)
        self.meet(step)
        return step

    async def lay_out(self, plan: Configuration) -> set[NetworkId]:
        """Take a plan over: subnets that count as before stay counted, the others begin anew.

        Return the networks that are gone.
        """
        old = self.plan
        # The plan that was read last may have had this edit already.
        if old is not None and old.version == plan.version:
            return set()
        barriers = Barriers(plan)
        terrains: dict[SubnetKey, Terrain] = {}
        for number, (network, subnet) in enumerate(_subnets(plan)):
            if number % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)
            terrains[network.id, subnet.uuid] = terrain_of(network, subnet, barriers)
        # From here on without an await: every change must meet either all old tallies or all new ones.
        kept = {key: tally for key, tally in self.tallies.items() if terrains.get(key) == tally.terrain}
        self.tallies = {key: kept.get(key) or Tally(key[0], terrain) for key, terrain in terrains.items()}
        self.spots = {key: spots for key, spots in self.spots.items() if terrains.get(key) == spots.terrain}
        self.plan, self.barriers = plan, barriers
        self.queued = self.queued or plan.queued
        self._let_follow(self._counted_ids)
        return _numbers(old) - _numbers(plan)

    def finished(self, feed: Feed) -> None:
        """Let tallies that were filled follow the log; those that the plan no longer has are let go."""
        self.feeds.remove(feed)
        self._let_follow(self._counted_ids | {id(book) for book in feed.books})

    def abandoned(self, feed: Feed) -> None:
        """Begin tallies anew that were filled in part."""
        self.feeds.remove(feed)
        halves = {id(book) for book in feed.books}
        for key, tally in self.tallies.items():
            if id(tally) in halves:
                self.tallies[key] = Tally(key[0], tally.terrain)

    def numbers(self) -> set[NetworkId]:
        """Return the numbers of its networks."""
        return _numbers(self.plan)

    def _let_follow(self, counted: set[int]) -> None:
        self._counted = Router(tally for tally in self.tallies.values() if id(tally) in counted)
        # Only ids of tallies that are kept: the id of a dropped one may come back as that of a new one.
        self._counted_ids = {id(tally) for tally in self._counted.books}


def _numbers(plan: Configuration | None) -> set[NetworkId]:
    return set() if plan is None else {network.id for network in plan.networks.values()}


def _subnets(plan: Configuration) -> Iterator[tuple[Network, Subnet]]:
    for network in plan.networks.values():
        for subnet in network.subnets:
            yield network, subnet
