"""The allocator's driver inside Neutron's transaction: every grant is an insert through the caller's session.

There is no batcher and no lane here, and nothing is awaited: the database answers while the caller waits. Where the
allocator would go to the lane (the lowest, the last free ones) the database is read instead.
"""

from random import SystemRandom
from typing import Any

from tenure.integrations.neutron.database import subnet_records
from tenure.integrations.neutron.database.allocation_rows import SessionBook
from tenure.integrations.neutron.modes.shared_views import SharedLine, SharedViews
from tenure.kernel.holdings.holding_model import Outcome, Row, State, Verdict, Wish
from tenure.kernel.picking.free_set import FreeSet
from tenure.kernel.picking.policies import POLICIES, first_free
from tenure.kernel.plan.layout import Layout
from tenure.kernel.plan.plan_model import Policy
from tenure.ports import Chance
from tenure.service.allocator.allocation import TRIES
from tenure.service.allocator.claim import Claim, Granted, exhausted
from tenure.service.allocator.doubtful_view import DoubtfulLine, DoubtfulViews, FreeLine
from tenure.service.allocator.existing_holding import Answer, line_key


class SessionAllocator:
    """The desk of one subnet, in one transaction."""

    def __init__(self, session: Any, book: SessionBook, views: SharedViews) -> None:
        self.chance: Chance = SystemRandom()
        self._session = session
        self._book = book
        self._views = views

    def known_layout(self, network: str) -> Layout | None:
        """Return the layout of the subnet, as the transaction sees it."""
        return self._views.layout

    async def layout(self, network: str, *, newer_than: int | None = None) -> Layout:
        """Return the same layout: the transaction sees no newer one."""
        return self._views.layout

    def doubtful(self, layout: Layout) -> DoubtfulViews:
        """Return what this process believes is free."""
        return self._views

    async def load(self, layout: Layout, claim: Claim) -> DoubtfulLine:
        """Read who holds what. O(holdings), once a process, or when it ran out of free ones."""
        return self._open(claim, self._book.held())

    def _open(self, claim: Claim, held: list[int]) -> SharedLine:
        view = self._views.open(line_key(claim), self._taken(claim, held), loaded=True)
        view.rows = len(held)
        return view

    def _taken(self, claim: Claim, held: list[int]) -> list[tuple[int, int]]:
        line = self._views.layout.line(*line_key(claim))
        return list(line.taken([(place, place) for place in sorted(held) if line.lowest <= place <= line.highest]))

    async def catch_up(self, layout: Layout) -> None:
        """Leave the views as they are: the database has no log of ours."""

    async def mine(self, layout: Layout, claim: Claim) -> Answer | None:
        """Return nothing: a port may hold any number of addresses in a subnet."""
        return None

    @property
    def newest(self) -> int:
        """Nothing: a caller's transaction loses no answer without being lost itself."""
        return 0

    async def first_try(self, layout: Layout, claim: Claim, newest: int) -> Row | None:
        """Return nothing, likewise."""
        return None

    async def former(self, layout: Layout, claim: Claim) -> int | None:
        """Return nothing: no policy here asks for it."""
        return None

    async def pause(self, attempt: int) -> None:
        """Go on at once: nothing here is ever undecided."""

    async def grant(self, layout: Layout, wish: Wish) -> Verdict:
        """Ask for one address. O(log n); waits for whoever is about to have it."""
        row = Row(1, wish.network, wish.first, wish.last, wish.owner, wish.slot, State.HELD, 0, 0)
        return Verdict(Outcome.GRANTED if self._book.grant(wish.first, wish.owner) else Outcome.TAKEN, row)

    async def serve_in_lane(self, layout: Layout, claim: Claim) -> Granted | None:
        """Serve a claim from what is in the database; that nothing is free is said only after reading it there."""
        policy = claim.policy or layout.line(*line_key(claim)).policy
        if POLICIES[policy].ascending:
            served = self._lowest(layout, claim)
            if served is not None:
                return served
        return self._search(layout, claim, policy)

    def _lowest(self, layout: Layout, claim: Claim) -> Granted | None:
        """Ask for the lowest that this process believes free; the subnet is read first where that is due.

        O(log n) and one insert, as for any address; a reading of the subnet after each hundredth of its rows.
        """
        view = self._views.lines.get(line_key(claim))
        if view is None or view.is_due():
            view = self._open(claim, self._book.held())
        for _ in range(TRIES):
            number = view.lowest()
            if number is None:
                break
            served = self._ask(layout, claim, view.line.unit(number)[0])
            if served is not None:
                return served
        return None

    def _search(self, layout: Layout, claim: Claim, policy: Policy) -> Granted:
        """Pick and ask until the database agrees or, freshly read, has nothing that was not refused."""
        # Without the subnet MySQL refuses every insert as taken, and the search would ask for address after address.
        subnet_records.enter(self._session, layout.configuration.name)
        # A refused address counts as held if either reading of ``held_now`` has it: otherwise the loop might not end.
        refused: set[int] = set()
        while True:
            held = self._book.held_now(refused)
            self._open(claim, held)  # what all threads pick from; the reading that decides is this one's alone
            line = layout.line(*line_key(claim))
            reading = FreeLine(line, FreeSet(line.size, self._taken(claim, held)))
            if first_free(reading.free) is None:
                raise exhausted(claim)
            while (number := reading.pick(policy, claim.owner, claim.slot, 0, self.chance)) is not None:
                # Each number is asked for once in a reading, whatever the answer, so that the inner loop ends, too.
                reading.free.take(number, number)
                place, _ = line.unit(number)
                served = self._ask(layout, claim, place)
                if served is not None:
                    return served
                refused.add(place)

    def _ask(self, layout: Layout, claim: Claim, place: int) -> Granted | None:
        # Before the insert: while it waits for another transaction, other threads must pick elsewhere.
        self._views.take(place, place)
        if not self._book.grant(place, claim.owner):
            return None
        row = Row(1, 1, place, place, claim.owner, claim.slot, State.HELD, 0, 0)
        return Granted(row, layout)
