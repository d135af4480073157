"""The lane: claims served inside a transaction, from exact views, in order of arrival.

While a transaction holds a space's lane nothing in the space is freed and no other lane runs. So the exact view,
brought up to date from the log, is the state itself but for plain grants in flight; those show up as *taken* and
are passed over. What the lane calls the lowest free address is that, and what it calls exhausted is that (I8).

This code awaits nothing but the transaction it is given, so any driver can run it.
"""

from collections.abc import Sequence

from tenure.kernel.addresses import format_address
from tenure.kernel.configuration import Policy
from tenure.kernel.entries import grant_entry
from tenure.kernel.errors import AddressInUse, AlreadyExists, PoolExhausted, TenureError
from tenure.kernel.layout import Layout
from tenure.kernel.values import Entry, Outcome, Row, Verdict, Wish
from tenure.ports import Chance, Transaction
from tenure.service.claims import Claim, Granted
from tenure.service.exact import ExactLine, ExactViews
from tenure.service.views import LineKey

Answer = Granted | TenureError


class Restart(Exception):
    """The transaction met something it should have known: run it again from the start."""


def line_key(claim: Claim) -> LineKey:
    """Name the line a claim is served from."""
    return (claim.network, claim.pool, claim.subnet)


def wanted_address(claim: Claim, layout: Layout) -> int | None:
    """Return the one address that will do: the one that was named, or the one that waits for this owner."""
    if claim.address is not None:
        return claim.address
    return layout.preallocated(claim.network, claim.owner, claim.slot)


async def catch_up(tx: Transaction, exact: ExactViews) -> None:
    """Bring the exact views up to date inside the lane."""
    if exact.lines:
        exact.catch_up(await tx.effects(exact.layout.configuration.space, exact.oldest()))


def quick_picks(exact: ExactViews, claims: Sequence[Claim], chance: Chance) -> list[Wish] | None:
    """Choose for all claims from exact views that may be a little behind, laying each pick over them.

    None where it takes a transaction to choose: a line not read yet, nothing free, a claim that comes twice, a
    sticky one, or a named address.
    """
    if len({(claim.network, claim.owner, claim.slot) for claim in claims}) < len(claims):
        return None
    wishes: list[Wish] = []
    for claim in claims:
        wish = None if exact.layout.mixed_units else _quick_pick(exact, claim, chance)
        if wish is None:
            exact.lift()
            return None
        wishes.append(wish)
    return wishes


def _quick_pick(exact: ExactViews, claim: Claim, chance: Chance) -> Wish | None:
    layout, view = exact.layout, exact.lines.get(line_key(claim))
    if view is None or wanted_address(claim, layout) is not None:
        return None
    policy = claim.policy or view.line.policy
    if policy is Policy.STICKY:
        return None
    number = view.pick(policy, claim.owner, claim.slot, 0, chance)
    return None if number is None else claim.at(layout, *exact.lay_pick(view, number))


async def serve(
    tx: Transaction, exact: ExactViews, claims: Sequence[Claim], chance: Chance, *, together: bool
) -> tuple[list[Answer], list[Entry]]:
    """Serve claims of one space, whose lane the transaction holds and whose exact views are up to date.

    Returns one answer a claim, and what is to be logged. ``together``: the first that fails is raised.
    Cost: O(log n) a claim, and two store calls for all of them.
    """
    layout = exact.layout
    answers: list[Answer | None] = [None] * len(claims)
    known = await tx.rows_for([(layout.configuration.network(c.network).id, c.owner, c.slot) for c in claims])
    open_claims: list[int] = []
    for index, (claim, row) in enumerate(zip(claims, known, strict=True)):
        if row is None:
            open_claims.append(index)
        else:
            answers[index] = already(claim, row, layout)
    entries: list[Entry] = []
    while open_claims:
        open_claims = await _round(tx, exact, claims, open_claims, answers, entries, chance)
    failed = next((answer for answer in answers if isinstance(answer, TenureError)), None)
    if together and failed is not None:
        if isinstance(failed, PoolExhausted):
            wanted = sum((claim.network, claim.pool) == (failed.network, failed.pool) for claim in claims)
            raise PoolExhausted(failed.network, failed.pool, wanted=wanted)
        raise failed
    return [answer for answer in answers if answer is not None], entries


async def _round(
    tx: Transaction,
    exact: ExactViews,
    claims: Sequence[Claim],
    open_claims: list[int],
    answers: list[Answer | None],
    entries: list[Entry],
    chance: Chance,
) -> list[int]:
    """Choose an address for every open claim and ask for all of them at once; return those to try again."""
    chosen: list[tuple[int, Wish]] = []
    asked: set[tuple[str, str, str]] = set()
    later: list[int] = []
    for index in open_claims:
        claim = claims[index]
        twin = (claim.network, claim.owner, claim.slot)
        # The same claim twice: the second is answered by the first one's row. Mixed units: one at a time, since the
        # store probes only neighbours that it can see.
        if twin in asked or (chosen and exact.layout.mixed_units):
            later.append(index)
            continue
        try:
            wish = await _choose(tx, exact, claim, chance)
        except TenureError as error:
            answers[index] = error
            continue
        asked.add(twin)
        exact.lay(True, wish.first, wish.last)
        chosen.append((index, wish))
    layout = exact.layout
    verdicts = await tx.insert(layout.configuration.space, [wish for _, wish in chosen]) if chosen else []
    for (index, wish), verdict in zip(chosen, verdicts, strict=True):
        if verdict.outcome is Outcome.GRANTED and verdict.row is not None:
            answers[index] = Granted(verdict.row, layout)
            entries.append(grant_entry(verdict.row))
        elif verdict.outcome is Outcome.TAKEN and wanted_address(claims[index], layout) is None:
            later.append(index)
        elif verdict.outcome is Outcome.TAKEN:
            answers[index] = in_use(wish, verdict)
        else:
            raise Restart
    return _answer_twins(claims, sorted(later), answers, layout)


def _answer_twins(claims: Sequence[Claim], later: list[int], answers: list[Answer | None], layout: Layout) -> list[int]:
    """Answer claims that came twice in one batch with the row their twin got."""
    rows = {
        (claim.network, claim.owner, claim.slot): answer.row
        for claim, answer in zip(claims, answers, strict=True)
        if isinstance(answer, Granted)
    }
    left: list[int] = []
    for index in later:
        claim = claims[index]
        row = rows.get((claim.network, claim.owner, claim.slot))
        if row is None:
            left.append(index)
        else:
            answers[index] = already(claim, row, layout)
    return left


async def _choose(tx: Transaction, exact: ExactViews, claim: Claim, chance: Chance) -> Wish:
    layout = exact.layout
    address = wanted_address(claim, layout)
    if address is not None:
        unit = layout.check_wanted(claim.network, address, claim.owner, claim.slot, claim.reserved)
        return claim.at(layout, unit.first, unit.last)
    view = await _exact_line(tx, exact, line_key(claim))
    policy = claim.policy or view.line.policy
    number = None
    if policy is Policy.STICKY:
        number = await _former_number(tx, view, claim, layout)
    if number is None:
        number = view.pick(policy, claim.owner, claim.slot, 0, chance)
    if number is None:
        raise PoolExhausted(claim.network, claim.pool)
    return claim.at(layout, *view.line.unit(number))


async def _former_number(tx: Transaction, view: ExactLine, claim: Claim, layout: Layout) -> int | None:
    position = await tx.former(layout.configuration.network(claim.network).id, claim.owner, claim.slot)
    number = None if position is None else view.line.number(position)
    return number if number is not None and number in view.free else None


async def _exact_line(tx: Transaction, exact: ExactViews, key: LineKey) -> ExactLine:
    """Find the line, or read it inside the transaction."""
    view = exact.lines.get(key)
    if view is not None:
        return view
    line = exact.layout.line(*key)
    # The number is read first: what is granted between the two readings is read twice, never missed.
    seen = await tx.last_change()
    spans = await tx.spans(exact.layout.configuration.space, line.lowest, line.highest) if line.size else []
    return exact.adopt(key, spans, seen)


def already(claim: Claim, row: Row, layout: Layout) -> Answer:
    """Answer a claim whose owner's slot holds something: that, unless another address was asked for."""
    if claim.address is not None and not row.first <= claim.address <= row.last:
        held = format_address(row.first)
        hint = f"{claim.owner} holds {held} there; release it first, or use another slot"
        return AlreadyExists("holding", f"{claim.owner} in {claim.network}", hint=hint, field="owner")
    return Granted(row, layout)


def in_use(wish: Wish, verdict: Verdict) -> TenureError:
    """Tell who is in the way of a wanted address."""
    holder = verdict.row
    return AddressInUse(format_address(wish.first), "another owner" if holder is None else holder.owner)
