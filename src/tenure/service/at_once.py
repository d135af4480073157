"""The first step of an allocation, taken without waiting: for a door that need not begin a task for each request.

Nearly every plain wish ends with it: a pick from the doubtful view, which the store grants. Where more is needed the
door goes the usual way (``allocate``), as if this had not been tried: asking again gives the same answer.
"""

import asyncio
from typing import NamedTuple

from tenure.kernel.configuration import Policy
from tenure.kernel.errors import TenureError
from tenure.kernel.layout import Layout
from tenure.kernel.values import Holding, Outcome, Verdict, Wish
from tenure.service.claims import Claim
from tenure.service.lane import line_key, wanted_address
from tenure.service.ledger import AsyncLedger
from tenure.service.showing import holding_of
from tenure.service.views import DoubtfulViews

BLIND_PICKS = (Policy.RANDOM, Policy.HASHED)
"""Policies that need nothing but the doubtful view."""


class Picked(NamedTuple):
    """A pick that the store was asked for."""

    layout: Layout
    views: DoubtfulViews
    wish: Wish
    verdict: "asyncio.Future[Verdict]"

    def granted(self) -> Holding | None:
        """Show what the store granted, once it has answered; None if the usual way must find out more."""
        outcome = None
        if not self.verdict.cancelled() and self.verdict.exception() is None:
            outcome, row = self.verdict.result()
            if outcome is Outcome.GRANTED and row is not None:
                return holding_of(row, self.layout)
        if outcome is not Outcome.TAKEN:
            self.views.give_back(self.wish.first, self.wish.last)
        return None


class AtOnce:
    """Plain allocations of one ledger."""

    def __init__(self, ledger: AsyncLedger) -> None:
        self._server = ledger._server

    def pick(self, claim: Claim) -> Picked | None:
        """Ask the store for an address that is believed free; None where that takes more than a look.

        Cost: some 10 µs, whatever the fill, and a share of one commit.
        """
        server = self._server
        layout = server.known_layout(claim.network)
        if layout is None or layout.mixed_units or layout.configuration.queued:
            return None
        views = server.doubtful(layout)
        view = views.lines.get(line_key(claim))
        if view is None or wanted_address(claim, layout) is not None:
            return None
        policy = claim.policy or view.line.policy
        number = view.pick(policy, claim.owner, claim.slot, 0, server.chance) if policy in BLIND_PICKS else None
        if number is None:
            return None
        wish = claim.at(layout, *views.take_number(view, number))
        try:
            return Picked(layout, views, wish, server.grant(layout, wish))
        except TenureError:  # closed meanwhile
            views.give_back(wish.first, wish.last)
            raise
