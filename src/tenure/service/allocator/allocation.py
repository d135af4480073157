"""The allocator: one claim, from the first look to the answer.

Written once, without I/O of its own: it awaits the engine it is given (an ``AllocationEngine``) and nothing else, so
the batched asyncio driver, a caller's transaction and the exhaustive explorer in the tests all run this same code.

An exact policy (and everything else that needs the exact state) goes to the lane. The other policies pick from a
doubtful view and ask the store for that very address; a pick that was taken costs one more try.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from tenure.kernel.errors import (
    AddressReserved,
    AlreadyExists,
    Conflict,
    Invalid,
    KeyReused,
    NotFound,
    StoreUnavailable,
    TenureError,
)
from tenure.kernel.holdings.holding_model import Outcome, Row, Verdict, Wish
from tenure.kernel.picking.policies import POLICIES
from tenure.kernel.plan.layout import Layout
from tenure.kernel.plan.plan_model import Policy
from tenure.ports import Chance
from tenure.service.allocator.claim import Claim, Granted
from tenure.service.allocator.doubtful_view import BLIND, DoubtfulLine, DoubtfulViews
from tenure.service.allocator.existing_holding import (
    Answer,
    already,
    line_key,
    wanted_address,
    wanted_unit,
    with_warnings,
)
from tenure.service.allocator.lane import in_use
from tenure.service.allocator.revocable_grants import callers_of

T = TypeVar("T")

TRIES = 6
"""Taken picks in a row after which the lane, which cannot be mistaken, decides."""

PATIENCE = 200
"""Undecided answers in a row (each followed by a pause) after which the caller is told to try again."""

UNKNOWN_REPEATS = 3
"""Times a lost answer is asked for again before the caller is told that the outcome is unknown."""


MAYBE_STALE = (NotFound, AddressReserved, AlreadyExists, Invalid)
"""What the plan, as this server last read it, says no with: believed only after reading it again."""


class AllocationEngine(Protocol):
    """What the allocator asks of the server it runs on."""

    chance: Chance

    @property
    def newest(self) -> int:
        """The number of the newest change that the desk knows of; what it asks for now is numbered above it."""
        ...

    def known_layout(self, network: str) -> Layout | None:
        """Return the layout of the network's space as this server last read it, if it did."""
        ...

    async def layout(self, network: str, *, newer_than: int | None = None) -> Layout:
        """Return the layout of the network's space; a version that proved stale is read anew."""
        ...

    def doubtful(self, layout: Layout) -> DoubtfulViews:
        """Return the server's doubtful views of a space."""
        ...

    async def load(self, layout: Layout, claim: Claim) -> DoubtfulLine:
        """Read who holds what on the claim's line, now."""
        ...

    async def catch_up(self, layout: Layout) -> None:
        """Correct the doubtful views from the log, where there is one."""
        ...

    def grant(self, layout: Layout, wish: Wish) -> Awaitable[Verdict]:
        """Ask the store for one address."""
        ...

    async def serve_in_lane(self, layout: Layout, claim: Claim) -> Granted | None:
        """Serve the claim from exact views; None if the layout is stale."""
        ...

    async def mine(self, layout: Layout, claim: Claim) -> Answer | None:
        """Answer the claim by what its owner holds in this slot, or by what it was answered under its key, if any."""
        ...

    async def former(self, layout: Layout, claim: Claim) -> int | None:
        """Return the position the claim's owner had before."""
        ...

    async def first_try(self, layout: Layout, claim: Claim, newest: int) -> Row | None:
        """Return what this very request was granted behind a number of the log, whether or not it is still held."""
        ...

    async def pause(self, attempt: int) -> None:
        """Let others go on for a moment."""
        ...


async def allocate(claim: Claim, desk: AllocationEngine) -> Granted:
    """Serve one claim. O(log n) and one store call, whatever the fill; more only where others interfere."""
    layout = desk.known_layout(claim.network) or await desk.layout(claim.network)
    for attempt in range(PATIENCE):
        version = layout.configuration.version
        answer: Answer | None
        try:
            answer = await _attempt(claim, layout, desk)
        except MAYBE_STALE:
            layout = await desk.layout(claim.network, newer_than=version)
            if layout.configuration.version > version:
                continue
            # The plan may have changed since this very claim was granted: then the answer stays the same (I6).
            answer = await desk.mine(layout, claim)
            if answer is None:
                raise
        if isinstance(answer, Granted):
            return answer
        if isinstance(answer, TenureError):
            raise answer
        await desk.pause(attempt)
        layout = await desk.layout(claim.network, newer_than=version)
    raise Conflict(f"network {claim.network!r} kept changing while an address was chosen; try again")


async def _attempt(claim: Claim, layout: Layout, desk: AllocationEngine) -> Granted | TenureError | None:
    """Try once under one layout; None means that nothing is decided yet."""
    address = wanted_address(claim, layout)
    # Comes first: while claims wait, or units of different size overlap, no grant may go past the lane.
    if layout.mixed_units or layout.configuration.queued:
        return await desk.serve_in_lane(layout, claim)
    if address is not None:
        unit = wanted_unit(claim, address, layout)
        wish = claim.at(layout, unit.first, unit.last)
        verdict = await _asked(desk, layout, claim, wish)
        if verdict.outcome is Outcome.TAKEN and verdict.row is not None and verdict.row.until_us is not None:
            return await desk.serve_in_lane(layout, claim)  # what is in the way may have become overdue meanwhile
        return await _settled(claim, wish, layout, verdict, desk)
    policy = claim.policy or layout.line(*line_key(claim)).policy
    if POLICIES[policy].exact:
        return await desk.serve_in_lane(layout, claim)
    return await _pick(claim, layout, policy, desk)


async def _pick(claim: Claim, layout: Layout, policy: Policy, desk: AllocationEngine) -> Granted | TenureError | None:
    """Pick from the doubtful view until the store agrees; what the view cannot serve, the lane decides."""
    views = desk.doubtful(layout)
    view = views.lines.get(line_key(claim)) or await _open(claim, layout, views, desk)
    prefers_former = POLICIES[policy].prefers_former
    for attempt in range(TRIES):
        # Half of the tries missed on a line that was not read. It is fuller than its length promised.
        if attempt == TRIES // 2 and not view.loaded:
            view = await desk.load(layout, claim)
        # The former address gets one try; from then on the policy picks.
        number = await _former_number(claim, layout, view, desk) if prefers_former and not attempt else None
        if number is None:
            number = view.pick(policy, claim.owner, claim.slot, attempt, desk.chance)
        if number is None:
            break
        # Marked before the store is asked: callers that pick meanwhile get other numbers.
        first, last = views.take_number(view, number)
        wish = claim.at(layout, first, last)
        verdict = await _asked(desk, layout, claim, wish)
        if verdict.outcome is Outcome.GRANTED and verdict.row is not None:
            return Granted(verdict.row, layout)
        # The store did not say that the address is taken, so the mark goes; after *taken* the mark stays.
        if verdict.outcome is not Outcome.TAKEN:
            views.give_back(first, last)
            return await _settled(claim, wish, layout, verdict, desk)
        # A line that was not read has no number of the log to catch up from.
        if view.loaded:
            await desk.catch_up(layout)
    return await desk.serve_in_lane(layout, claim)


async def _open(claim: Claim, layout: Layout, views: DoubtfulViews, desk: AllocationEngine) -> DoubtfulLine:
    """Begin a view of the claim's line: blind where it is long, for then nearly every pick is free."""
    ranks = layout.line(*line_key(claim)).ranks
    # The view picks from the first rank only, so the length of that rank counts.
    if ranks and ranks[0].size > BLIND:
        return views.open(line_key(claim))
    return await desk.load(layout, claim)


async def _former_number(claim: Claim, layout: Layout, view: DoubtfulLine, desk: AllocationEngine) -> int | None:
    """Return the number this owner had before. Asked for even if the view calls it taken: the view may be old."""
    position = await desk.former(layout, claim)
    return None if position is None else view.line.number(position)


async def _asked(desk: AllocationEngine, layout: Layout, claim: Claim, wish: Wish) -> Verdict:
    """Ask for one address; where the answer was lost, look for it in the log before asking again."""
    # Read before the try: whatever the try does is numbered above it.
    newest = desk.newest
    try:
        return await desk.grant(layout, wish)
    except StoreUnavailable as error:
        if error.outcome != "unknown":
            raise
        lost = error
    await desk.pause(0)

    async def again() -> Verdict:
        row = await desk.first_try(layout, claim, newest)
        return await desk.grant(layout, wish) if row is None else Verdict(Outcome.GRANTED, row)

    return await insist(again, desk.pause, lost=lost)


async def insist(
    call: Callable[[], Awaitable[T]],
    pause: Callable[[int], Awaitable[None]],
    *,
    lost: StoreUnavailable | None = None,
    losses: list[StoreUnavailable] | None = None,
) -> T:
    """Ask again where the answer was lost (or was ``lost`` before); ``losses`` gets what was lost on the way.

    What is asked must be such that asking again does not do it again.
    """
    for attempt in range(0 if lost is None else 1, UNKNOWN_REPEATS + 1):
        try:
            return await call()
        except StoreUnavailable as error:
            lost = worse(lost, error)
            if losses is not None:
                losses.append(lost)
            if lost.outcome != "unknown":
                raise
            await pause(attempt)
    assert lost is not None
    raise lost


def worse(before: StoreUnavailable | None, error: StoreUnavailable) -> StoreUnavailable:
    """Return what is true of the whole call: an earlier try may have taken effect, whatever became of this one."""
    return error if before is None or error.outcome == "unknown" else before


async def _settled(
    claim: Claim, wish: Wish, layout: Layout, verdict: Verdict, desk: AllocationEngine
) -> Granted | TenureError | None:
    """Turn a verdict on a wish into the claim's answer."""
    if verdict.outcome is Outcome.REUSED:
        return KeyReused(claim.key or "")
    if verdict.outcome is Outcome.DUE:
        return await desk.serve_in_lane(layout, claim)  # which removes what is due, and then picks
    if verdict.outcome is Outcome.AGAIN or verdict.row is None:
        return None
    if verdict.outcome is Outcome.REPLAYED and callers_of(verdict.row):
        return await desk.serve_in_lane(layout, claim)  # it may still be given back: only there it can be reported
    if verdict.outcome is Outcome.GRANTED:
        return Granted(verdict.row, layout)
    if verdict.outcome is Outcome.REPLAYED:
        return with_warnings(claim, Granted(verdict.row, layout))
    if verdict.outcome is Outcome.ALREADY and (claim.key is not None or callers_of(verdict.row)):
        return await desk.serve_in_lane(layout, claim)  # only there the answer can be kept, and the row reported
    if verdict.outcome is Outcome.ALREADY:
        return already(claim, verdict.row, layout)
    return in_use(wish, verdict)
