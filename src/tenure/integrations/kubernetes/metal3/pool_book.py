"""What is free in a pool, as this process knows it: the pool as a line of numbers, and the holders of each address.

A holder is an IPAddress object, a reservation in the pool, a claim that names the address as its own or had it when its
object went, a pick that is not written yet, a name that another pool's object has, an entry of the pool that says that
the address cools off, or whoever has the address in the ledger that the pool is bound to. An address is free when no
holder is left, so every source can only make addresses less available (KP13). The pick is the kernel's.
"""

import random
import time
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain

from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import kind_of
from tenure.integrations.kubernetes.metal3.objects.pool_plan import NetworkPlan, within_plan
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolReading, PoolSpec, SpecFault
from tenure.integrations.kubernetes.metal3.objects.remembered_addresses import RememberedAddresses
from tenure.integrations.kubernetes.runtime.resource_types import Key, Object, key_of
from tenure.kernel.addressing.addresses import Family, family_of
from tenure.kernel.addressing.ranges import AddressRange, merge
from tenure.kernel.picking.free_set import FreePart, FreeSet
from tenure.kernel.picking.policies import POLICIES, Chance
from tenure.kernel.plan.plan_model import Policy
from tenure.kernel.plan.pool_line import Line

Holder = tuple[str, str]
"""What holds an address: the sort of holder, and which."""

OBJECT, RESERVED, LOST, CLAIM, PICKED, NAME = "object", "reserved", "lost", "claim", "picked", "name"
"""Sorts of holders: an address object by kind and name; a reservation, a claim whose object went by force, a claim that
names the address and a pick that is being written, each by the claim's uid; a taken name."""
LEDGER = "ledger"
"""And of what a ledger says: an owner there, or why the address is not to be had."""
COOLING = "cooling"
"""And an address that was released and is not to be given to another claim yet, by that claim and the address."""
OF_CLAIMS = (RESERVED, LOST, CLAIM, PICKED)
"""Sorts that are known by the uid of a claim."""
LISTED = (RESERVED, LOST, PICKED, LEDGER, COOLING)
"""Sorts that are asked for by themselves. The others have a holder for every address, and no list is kept of them."""

RESTS_S = 600.0
"""For so long, *random* picks a released address only when nothing else is free (KS6)."""


def holder_of(address: Object) -> Holder:
    """Return an address object as a holder: by its kind, namespace and name, since a pool may serve namespaces."""
    return OBJECT, kind_of(address).holder_prefix + "/".join(key_of(address))


def object_key(holder: str) -> Key:
    """Return namespace and name of the address object that a holder is named after."""
    *_, namespace, name = holder.split("/")
    return namespace, name


def cooling_holder(position: int, claim: ClaimId) -> Holder:
    """Return what holds an address that cools off after a claim; made again under its name, that may have it back."""
    return COOLING, f"{position} of {claim}"


class PoolBook:
    """The free addresses and the holders of one pool.

    Cost: O(log n) a pick, a hold and a drop, whatever the pool; O(n log n) to lay the line again after the pool's
    ``spec`` has changed.
    """

    def __init__(self, chance: Chance | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.spec = PoolSpec()
        self.faults: list[SpecFault] = []
        self._reading = PoolReading(self.spec, self.faults)
        self._plan: NetworkPlan | None = None
        """The network of a ledger that the pool is bound to, as far as it is known."""
        self._chance = chance or random.SystemRandom()
        self._clock = clock
        self._line = Line((), Policy.LOWEST)
        self._free = FreeSet(0)
        self._rank_starts: list[int] = []
        self._at: dict[int, tuple[Holder, ...]] = {}
        """Tuples, since most addresses have two holders: with a set for each a pool takes twice the memory."""
        self._where: dict[Holder, int] = {}
        self._of_sort: dict[str, set[Holder]] = {sort: set() for sort in LISTED}
        self._late = FreeSet(0, ())
        """Free numbers of the line that are picked only when nothing else is free: they rest, or are spared."""
        self._resting: OrderedDict[int, float] = OrderedDict()
        """Released addresses of a *random* pool, oldest first, with when they were released."""
        self.remembered = RememberedAddresses()
        """What claims had that are gone; for these their addresses are spared."""
        self._spared: dict[int, None] = {}
        """Free addresses that are remembered, in the order in which they became free."""
        self._given: set[int] = set()
        """Held addresses which an object has left: others may know them. What was only picked need not rest."""
        self.doubled: set[int] = set()
        """Addresses that more than one object holds, which no pick of ours leads to."""
        self.off_line: set[int] = set()
        """Addresses that an object holds and that are not picked: in no entry, or kept back."""
        self._wide: dict[Holder, AddressRange] = {}
        """Objects that hold more than one unit of a pool of prefixes, which no pick of ours leads to (KD18)."""
        self.outside: set[int] = set()
        """Addresses that an object holds and that are in no entry: made by hand, or left there by a change."""
        self.draining: set[int] = set()
        """Addresses that claims or objects still have in a range from which the pool picks no more."""
        self.drains: list[AddressRange] = []
        """What the pool itself drains, in order."""
        self._aside_of = dict.fromkeys(Family, 0)
        """How many held addresses of the entries are kept back, such as pre-allocations that their claims have."""
        self._cools: set[int] = set()
        """Addresses of the entries that only cool off."""
        self._cools_of = dict.fromkeys(Family, 0)
        self._line_of = dict.fromkeys(Family, 0)
        self._free_of = dict.fromkeys(Family, 0)

    def lay(self, reading: PoolReading) -> None:
        """Lay the line again for another ``spec``; holders stay where they are."""
        self._reading = reading
        self._lay()

    def follow_plan(self, plan: NetworkPlan | None) -> None:
        """Lay the line again where the ledger has another plan of the pool's network than before."""
        if plan != self._plan:
            self._plan = plan
            self._lay()

    def _lay(self) -> None:
        self.spec, self.faults = self._reading
        if self.spec.ledger is not None and self._plan is not None:
            self.spec = within_plan(self.spec, self._plan)
        self._align()
        unit = self.spec.unit
        # What is held so stays an address of the pool, which another pool may have as well.
        picked = replace(self.spec, excluded=(*self.spec.excluded, *self._wide.values())) if self._wide else self.spec
        runs = [[(each.first, unit, each.size // unit) for each in of_entry] for of_entry in picked.runs()]
        self._line = Line(runs[0] if runs else (), self.spec.policy, later=runs[1:])
        self._rank_starts = [part.start for part in self._line.ranks]
        self._free = FreeSet(self._line.size, self._line.taken((held, held) for held in sorted(self._at)))
        self._line_of = dict.fromkeys(Family, 0)
        for piece in self._line.pieces:
            self._line_of[family_of(piece.first)] += piece.count
        self._count_held()
        given = [position for position in self._at if self._objects_at(position)]
        self.doubled = {position for position in given if self._objects_at(position) > 1}
        self.outside = {position for position in given if self._is_outside(position)}
        self.off_line = {position for position in given if not self.is_on_line(position)}
        # Without what the plan of a ledger keeps back: nobody is asked to leave that.
        self.drains = merge(self._reading.spec.drained)
        self.draining = {position for position in self._at if self._is_draining(position)}
        self._late = FreeSet(self._line.size, [(0, self._line.size - 1)])
        # A policy cannot change, so only addresses that left the line must not rest any more.
        self._resting = OrderedDict((each, since) for each, since in self._resting.items() if self.is_on_line(each))
        spared = (each for _, each in self.remembered if each not in self._at and each not in self._resting)
        self._spared = {each: None for each in spared if self.is_on_line(each)}
        for position in (*self._resting, *self._spared):
            self._put_last(position)

    def _count_held(self) -> None:
        """Count again what is held, by family."""
        self._free_of, self._aside_of = dict(self._line_of), dict.fromkeys(Family, 0)
        for position in self._at:
            self._free_of[family_of(position)] -= self.is_on_line(position)
            self._aside_of[family_of(position)] += self._is_aside(position)
        self._cools, self._cools_of = set(), dict.fromkeys(Family, 0)
        for holder in self._of_sort[COOLING]:
            self._judge_cooling(self._where[holder])

    def _align(self) -> None:
        """Let each holder hold the unit that its address lies in, where units became known after their holders."""
        if self.spec.unit == 1 or all(self.spec.unit_at(position) == position for position in self._at):
            return
        self._where = {holder: self.spec.unit_at(position) for holder, position in self._where.items()}
        self._at = {}
        for holder, position in self._where.items():
            self._at[position] = (*self._at.get(position, ()), holder)
        self._given = {self.spec.unit_at(position) for position in self._given}

    def hold_range(self, holder: Holder, range: AddressRange | None) -> bool:
        """Let an object keep all units of a range from being picked; nothing: it holds one unit, or none.

        Return whether it kept others back before, which may be free now.
        """
        before = self._wide.pop(holder, None)
        if range is not None:
            self._wide[holder] = range
        if range != before:
            self._lay()
        return before is not None and range != before

    def hold(self, holder: Holder, position: int | None) -> None:
        """Note where a holder is; nothing: nowhere any more."""
        position = self.spec.unit_at(position) if position is not None else None
        before = self._where.get(holder)
        if before == position:
            return
        if before is not None:
            self._leave(holder, before)
        if position is not None:
            holders = self._at.get(position, ())
            if holders:
                position = self._where[holders[0]]  # the same number, and not another object for each holder
            else:
                self._take(position)
            self._at[position] = (*holders, holder)
            self._where[holder] = position
            if holder[0] in self._of_sort:
                self._of_sort[holder[0]].add(holder)
            self._judge_cooling(position)
            self._judge_drain(position)
            if holder[0] == OBJECT:
                self._judge_objects(position)

    def remember(self, remembered: RememberedAddresses) -> None:
        """Spare exactly these addresses: they are picked only when nothing else is free."""
        before, self.remembered = self.remembered.positions, remembered
        after = remembered.positions
        for position in before - after:
            if position in self._spared:
                del self._spared[position]
                self._put_first(position)
        for position in after - before:
            if position in self._at or not self.is_on_line(position):
                continue
            # An address that rests is among the last already.
            if self._resting.pop(position, None) is None:
                self._put_last(position)
            self._spared[position] = None

    def drop(self, holder: Holder) -> None:
        """Note that a holder holds nothing any more."""
        self.hold(holder, None)

    def position_of(self, holder: Holder) -> int | None:
        """Return where a holder is."""
        return self._where.get(holder)

    def holders(self) -> list[Holder]:
        """Return all holders. O(n)."""
        return list(self._where)

    def holders_of_sort(self, sort: str) -> list[Holder]:
        """Return the holders of one of the sorts that are listed."""
        return list(self._of_sort[sort])

    def holders_at(self, position: int) -> frozenset[Holder]:
        """Return the holders of an address; in a pool of prefixes, of the prefix that it lies in."""
        return frozenset(self._holders(position))

    def _holders(self, position: int) -> Collection[Holder]:
        held = self._at.get(self.spec.unit_at(position), ())
        return {*held, *(each for each, range in self._wide.items() if position in range)} if self._wide else held

    def others_at(self, position: int, uid: str, own_holders: Iterable[Holder] = ()) -> list[Holder]:
        """Return the holders of an address besides a claim, its reservation and others that are its own."""
        own = {*((sort, uid) for sort in OF_CLAIMS), *own_holders}
        # In one order, so that a message names the same holder at each look, and is written once.
        return sorted(holder for holder in self._holders(position) if holder not in own)

    def is_on_line(self, position: int) -> bool:
        """Return whether an address is one that may be picked: in the pool, and not kept back."""
        return self._line.number(position) is not None

    def _is_aside(self, position: int) -> bool:
        return not self.is_on_line(position) and self.spec.entry_at(position) is not None

    def _is_outside(self, position: int) -> bool:
        """Return whether an address is in no entry; if a ledger says which entries there are, once that is read."""
        is_known = self.spec.ledger is None or bool(self.spec.entries) or self._plan is not None
        return is_known and self.spec.entry_at(position) is None

    def pick(self, ranges: Sequence[AddressRange] = ()) -> int | None:
        """Return a free address by the pool's policy, or nothing; the caller holds it at once. O(log n).

        Entries are used in their order: the first free number of the line says which entry has room (C5). ``ranges``:
        only from there, in their order; O(log n) for each.
        """
        # No event says that an address has rested for long enough.
        self._wake(self._clock() - RESTS_S)
        if not ranges:
            number = self._pick_between(0, self._line.size - 1)
            # Of the last ones, those that a claim may come back for go last.
            late = next(iter(self._resting or self._spared), None)
            return late if number is None else self._line.unit(number)[0]
        parts = [part for each in ranges for part in self._line.between(each.first, each.last)]
        found = (self._pick_between(*part) for part in parts)
        late_found = (self._late_between(*part) for part in parts)
        number = next((each for each in chain(found, late_found) if each is not None), None)
        return None if number is None else self._line.unit(number)[0]

    def gives(self, ranges: Sequence[AddressRange]) -> bool:
        """Return whether the pool has addresses in some ranges that may be picked, free or not."""
        return any(self._line.between(each.first, each.last) for each in ranges)

    def _pick_between(self, low: int, high: int) -> int | None:
        """Pick a number of a part of the line."""
        first = self._free.at_or_after(low)
        if first is None or first > high:
            return None
        part = self._line.ranks[bisect_right(self._rank_starts, first) - 1]
        start = max(low, part.start)
        free = FreePart(self._free, start, min(high + 1, part.start + part.size) - start)
        number = POLICIES[self.spec.policy].pick(free, "", "", 0, self._chance)
        assert number is not None, "the first free number lies in this part"
        return start + number

    def _late_between(self, low: int, high: int) -> int | None:
        """Return a number of a part of the line that is picked only when nothing else is free."""
        first = self._late.at_or_after(low)
        return first if first is not None and first <= high else None

    @property
    def size(self) -> int:
        """Return how many addresses the pool gives, free ones and held ones."""
        return self._line.size

    @property
    def free(self) -> int:
        """Return how many addresses can be picked."""
        return self._free.free + self._late.free

    def free_of(self, family: Family) -> int:
        """Return how many addresses of a family can be picked."""
        return self._free_of[family]

    @property
    def held(self) -> int:
        """Return how many addresses have a holder, in the pool or not."""
        return len(self._at)

    @property
    def used(self) -> int:
        """Return how many addresses of the pool have a holder: all that are neither free nor kept back."""
        return sum(self.used_of(family) for family in Family)

    def used_of(self, family: Family) -> int:
        """Return how many addresses of a family have a holder."""
        on_line = self._line_of[family] - self._free_of[family]
        return on_line + self._aside_of[family] - self._cools_of[family]

    @property
    def kept_back(self) -> int:
        """Return how many addresses are neither held nor picked."""
        return sum(self.kept_back_of(family) for family in Family)

    def kept_back_of(self, family: Family) -> int:
        """Return how many addresses of a family nobody gets: gateways, waiting pre-allocations, drained, cooling."""
        off_line = self.spec.size_of(family) - self._line_of[family]
        return off_line - self._aside_of[family] + self._cools_of[family]

    def cooling_of(self, family: Family) -> int:
        """Return how many addresses of a family only cool off; they are among those that are kept back."""
        return self._cools_of[family]

    def _objects_at(self, position: int) -> int:
        return sum(sort == OBJECT for sort, _ in self._at[position])

    def _judge_objects(self, position: int) -> None:
        """Note whether an address has two objects, and whether it has one outside of the pool."""
        objects = self._objects_at(position)
        (self.doubled.add if objects > 1 else self.doubled.discard)(position)
        (self.outside.add if objects and self._is_outside(position) else self.outside.discard)(position)
        (self.off_line.add if objects and not self.is_on_line(position) else self.off_line.discard)(position)

    def _judge_drain(self, position: int) -> None:
        """Note whether a claim or an object has an address of a drained range."""
        if self.drains:
            (self.draining.add if self._is_draining(position) else self.draining.discard)(position)

    def _is_draining(self, position: int) -> bool:
        at = bisect_right(self.drains, position, key=lambda each: each.first) - 1
        if at < 0 or position > self.drains[at].last:
            return False
        return any(sort == OBJECT or sort in OF_CLAIMS for sort, _ in self._at.get(position, ()))

    def _judge_cooling(self, position: int) -> None:
        """Note whether an address of the entries has no other holder than that it cools off."""
        # Asked with every hold and drop, and most pools have nothing that cools off.
        if not self._of_sort[COOLING]:
            return
        holders = self._at.get(position, ())
        cools = bool(holders) and all(sort == COOLING for sort, _ in holders)
        cools = cools and self.spec.entry_at(position) is not None
        if cools != (position in self._cools):
            (self._cools.add if cools else self._cools.discard)(position)
            self._cools_of[family_of(position)] += 1 if cools else -1

    def _take(self, position: int) -> None:
        """Take an address off the free ones."""
        number = self._line.number(position)
        if number is None:
            self._aside_of[family_of(position)] += self._is_aside(position)
            return
        self._free_of[family_of(position)] -= 1
        if position in self._resting or position in self._spared:
            self._resting.pop(position, None)
            self._spared.pop(position, None)
            self._late.take(number, number)
        else:
            self._free.take(number, number)

    def _leave(self, holder: Holder, position: int) -> None:
        del self._where[holder]
        holders = self._at[position] = tuple(each for each in self._at[position] if each != holder)
        self._judge_cooling(position)  # while this holder still counts as one of its sort
        self._judge_drain(position)
        if holder[0] in self._of_sort:
            self._of_sort[holder[0]].discard(holder)
        if holder[0] == OBJECT:
            self._given.add(position)
            self._judge_objects(position)
        if holders:
            return
        del self._at[position]
        was_given = position in self._given
        self._given.discard(position)
        number = self._line.number(position)
        if number is None:
            self._aside_of[family_of(position)] -= self._is_aside(position)
            return
        self._free_of[family_of(position)] += 1
        # Where any address is as good as another, a released one can rest.
        rests = POLICIES[self.spec.policy].striped and was_given
        if position in self.remembered:
            self._spared[position] = None
        elif rests:
            self._resting[position] = self._clock()
        late = position in self.remembered or rests
        (self._late if late else self._free).give_back(number, number)

    def _put_last(self, position: int) -> None:
        """Let a free address be picked only when nothing else is free."""
        number = self._line.number(position)
        assert number is not None, "it is on the line"
        self._free.take(number, number)
        self._late.give_back(number, number)

    def _put_first(self, position: int) -> None:
        """Let a free address be picked as any other."""
        number = self._line.number(position)
        assert number is not None, "it is on the line"
        self._late.take(number, number)
        self._free.give_back(number, number)

    def _wake(self, before: float) -> None:
        """Return addresses that were released before a time to the free ones."""
        while self._resting:
            position, since = next(iter(self._resting.items()))
            if since > before:
                return
            del self._resting[position]
            self._put_first(position)
