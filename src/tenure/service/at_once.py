"""The first step of an allocation, taken without waiting: for a door that need not begin a task for each request.

Nearly every plain wish ends with it: a pick from the doubtful view that the store grants, or a seat in the lane. Where
more is needed the door goes the usual way (``allocate``), as if this had not been tried: asking again gives the same
answer.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

from tenure.kernel.configuration import Policy
from tenure.kernel.errors import StoreUnavailable
from tenure.kernel.layout import Layout
from tenure.kernel.values import Holding, Outcome, Verdict, Wish
from tenure.service.claims import Claim, Granted
from tenure.service.lane import line_key, wanted_address
from tenure.service.ledger import AsyncLedger
from tenure.service.queueing import Seat
from tenure.service.showing import holding_of
from tenure.service.views import DoubtfulViews


@dataclass(slots=True)
class Begun:
    """A wish that the store or the lane was asked for."""

    answer: "asyncio.Future[Any]"
    layout: Layout
    views: DoubtfulViews | None = None
    """Where it was picked, if it was; the lane has views of its own."""
    wish: Wish | None = None

    def granted(self) -> Holding | None:
        """Show what was granted, once there is an answer; None if the usual way must find out more."""
        answer = None if self._failed() is not None else self.answer.result()
        if isinstance(answer, Granted):
            return holding_of(*answer)
        if isinstance(answer, Verdict):
            if answer.outcome is Outcome.GRANTED and answer.row is not None:
                return holding_of(answer.row, self.layout)
            if answer.outcome is Outcome.TAKEN:
                return None
        self._give_back()
        return None

    def in_doubt(self) -> bool:
        """Tell whether it may have been granted although nobody was told so."""
        error = self._failed()
        return isinstance(error, StoreUnavailable) and error.outcome == "unknown"

    def _failed(self) -> BaseException | None:
        return asyncio.CancelledError() if self.answer.cancelled() else self.answer.exception()

    def _give_back(self) -> None:
        if self.views is not None and self.wish is not None:
            self.views.give_back(self.wish.first, self.wish.last)


class AtOnce:
    """Plain allocations of one ledger."""

    def __init__(self, ledger: AsyncLedger) -> None:
        self._server = ledger._server

    def begin(self, claim: Claim) -> Begun | None:
        """Ask for an address as the policy has it; None where something must be read before.

        Cost: some 10 µs, whatever the fill, and a share of one commit.
        """
        server = self._server
        layout = server.known_layout(claim.network)
        if layout is None or wanted_address(claim, layout) is not None:
            return None
        policy = claim.policy or layout.line(*line_key(claim)).policy
        if policy is Policy.LOWEST or layout.mixed_units or layout.configuration.queued:
            return Begun(server.take_seat(layout, Seat(claim)), layout)
        return None if policy is Policy.STICKY else self._pick(claim, layout, policy)

    def _pick(self, claim: Claim, layout: Layout, policy: Policy) -> Begun | None:
        server = self._server
        views = server.doubtful(layout)
        view = views.lines.get(line_key(claim))
        number = None if view is None else view.pick(policy, claim.owner, claim.slot, 0, server.chance)
        if view is None or number is None:
            return None
        server.check_open()
        wish = claim.at(layout, *views.take_number(view, number))
        return Begun(server.grant(layout, wish), layout, views, wish)
