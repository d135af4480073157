"""The first step of an allocation without waiting, for a door that begins no task for each request.

Nearly every plain request ends with it: a pick from the doubtful view that the store grants, or a seat in the lane.
Where more is needed the door goes the usual way (``async_ledger.serve_claim``), as if this had not been tried: asking
again gives the same answer.
"""

from collections.abc import Callable

from tenure.kernel.errors import StoreUnavailable
from tenure.kernel.holdings.actor import Asker
from tenure.kernel.holdings.holding_model import Outcome, Verdict, Wish
from tenure.kernel.picking.policies import POLICIES
from tenure.kernel.plan.layout import Layout
from tenure.kernel.plan.plan_model import Policy
from tenure.service.allocator.claim import Claim, Granted
from tenure.service.allocator.doubtful_view import DoubtfulViews
from tenure.service.allocator.existing_holding import line_key, wanted_address
from tenure.service.allocator.waiting_line import Seat
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.service.ledger.engine_ledger import server_of

MOST_DOUBTS = 1000


class WishInFlight:
    """A wish that the store or the lane was asked for, and whoever is to be told of what becomes of it.

    It is what the batcher tells: a future would cost as much as the pick.
    """

    __slots__ = ("_answer", "_error", "_layout", "_tell", "_views", "_wish", "newest")

    def __init__(
        self, tell: "Tell", layout: Layout, newest: int, views: DoubtfulViews | None = None, wish: Wish | None = None
    ) -> None:
        self.newest = newest  # the number of the newest change from before it was asked for
        self._tell = tell
        self._layout = layout
        self._views = views  # where it was picked, if it was; the lane has views of its own
        self._wish = wish
        self._answer: object = None
        self._error: BaseException | None = None

    def done(self) -> bool:
        """Wait on, whatever happens: what is granted is granted."""
        return False

    def set_result(self, answer: object, /) -> None:
        """Take the answer, and tell of it."""
        self._answer = answer
        self._tell(self)

    def set_exception(self, error: BaseException, /) -> None:
        """Take it that there is no answer, and tell of it."""
        self._error = error
        self._tell(self)

    def granted(self) -> Granted | None:
        """Tell what was granted, once there is an answer; None if the usual way must find out more."""
        answer = self._answer
        if isinstance(answer, Verdict):
            if answer.outcome is Outcome.GRANTED and answer.row is not None:
                return Granted(answer.row, self._layout)
            # Another owner has the address, so the view keeps its mark.
            if answer.outcome is Outcome.TAKEN:
                return None
        if isinstance(answer, Granted):
            return answer
        # Neither granted nor taken: the address may be free, so the mark goes.
        if self._views is not None and self._wish is not None:
            self._views.give_back(self._wish.first, self._wish.last)
        return None

    def in_doubt(self) -> bool:
        """Tell whether it may have been granted although nobody was told so."""
        return isinstance(self._error, StoreUnavailable) and self._error.outcome == "unknown"


Tell = Callable[[WishInFlight], None]


class AtOnce:
    """Plain allocations of one ledger."""

    def __init__(self, ledger: AsyncLedger) -> None:
        self._server = server_of(ledger)

    def leave_in_doubt(self, asker: Asker, begun: WishInFlight) -> None:
        """Let the usual way know that this request may have been granted something: it looks for that first."""
        doubts = self._server.doubts
        while len(doubts) >= MOST_DOUBTS:  # of requests that never took the usual way
            doubts.pop(next(iter(doubts)))
        doubts[asker] = begun.newest

    def begin(self, claim: Claim, tell: Tell) -> bool:
        """Ask for an address as the policy has it; False, and nobody is told, where something must be read before.

        Cost: some 10 µs, whatever the fill, and a share of one commit.
        """
        server = self._server
        layout = server.known_layout(claim.network)
        if layout is None or wanted_address(claim, layout) is not None:
            return False
        policy = claim.policy or layout.line(*line_key(claim)).policy
        rules = POLICIES[policy]
        if rules.exact or layout.mixed_units or layout.configuration.queued:
            server.seat_for(WishInFlight(tell, layout, server.newest), layout, Seat(claim))
            return True
        return not rules.prefers_former and self._pick(claim, layout, policy, tell)

    def _pick(self, claim: Claim, layout: Layout, policy: Policy, tell: Tell) -> bool:
        server = self._server
        views = server.doubtful(layout)
        view = views.lines.get(line_key(claim))
        number = None if view is None else view.pick(policy, claim.owner, claim.slot, 0, server.chance)
        if view is None or number is None:
            return False
        server.check_open()  # before a pick is taken that nobody would give back
        wish = claim.at(layout, *views.take_number(view, number))
        server.grant_for(WishInFlight(tell, layout, server.newest, views, wish), layout, wish)
        return True
