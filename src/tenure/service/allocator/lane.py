"""The lane: claims served inside a transaction, from exact views, in order of arrival.

While a transaction holds a space's lane nothing in the space is freed and no other lane runs. So the exact view,
brought up to date from the log, is the state itself but for plain grants in flight; those show up as *taken* and
are passed over. What the lane calls the lowest free address is that, and what it calls exhausted is that (I8).
Before it picks it removes what is overdue: time alone frees nothing (I10), but who picks is not to pass over what is
free to everybody.

This code awaits nothing but the transaction it is given, so any driver can run it.
"""

import contextlib
from collections.abc import Collection, Sequence

from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.addressing.ranges import AddressRange
from tenure.kernel.errors import AddressInUse, AddressReserved, KeyReused, PoolExhausted, TenureError
from tenure.kernel.holdings.holding_model import Entry, Outcome, Reply, Row, State, Verdict, Wish, moment
from tenure.kernel.holdings.idempotency import replayed, reply_to
from tenure.kernel.holdings.log_entries import grant_entry, overdue_entry
from tenure.kernel.picking.policies import POLICIES
from tenure.kernel.plan.layout import LineKey
from tenure.ports import Chance, Transaction
from tenure.service.allocator.claim import Claim, Granted, Known, case_of_line, exhausted
from tenure.service.allocator.exact_view import ExactLine, ExactViews
from tenure.service.allocator.existing_holding import (
    Answer,
    already,
    line_key,
    wanted_address,
    wanted_unit,
    with_warnings,
)
from tenure.service.allocator.overdue_pages import PAGE, MuchDue
from tenure.service.allocator.revocable_grants import (
    callers_of,
    marked_for,
    report,
    report_kept,
    report_twin,
    reported,
    unmarked,
)


class Restart(Exception):
    """The transaction met something it should have known: run it again from the start."""


async def catch_up(tx: Transaction, exact: ExactViews) -> None:
    """Bring the exact views up to date inside the lane; where there are none yet, something may be due."""
    exact.due = True
    if exact.lines:
        exact.catch_up(await tx.effects(exact.layout.configuration.space, exact.oldest()))


def quick_picks(exact: ExactViews, claims: Sequence[Claim], chance: Chance) -> list[Wish] | None:
    """Choose for all claims from exact views that may be a little behind, laying each pick over them.

    None where it takes a transaction to choose: a line not read yet, nothing free, a claim that comes twice, one that
    prefers its former address, or a named address; where others wait; and where something overdue is to be removed
    first.
    """
    if exact.due or exact.layout.configuration.queued or len({_twin(claim) for claim in claims}) < len(claims):
        return None
    # The second claim under a key must wait for the answer of the first.
    keys = [claim.key for claim in claims if claim.key is not None]
    if len(set(keys)) < len(keys):
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
    if POLICIES[policy].prefers_former:
        return None
    number = view.pick(policy, claim.owner, claim.slot, 0, chance)
    return None if number is None else claim.at(layout, *exact.lay_pick(view, number))


class Serving:
    """One attempt at serving claims of a space whose lane the transaction holds, its exact views up to date.

    Cost: O(log n) a claim, and two store calls for all of them; one more for idempotency keys, for each sticky claim,
    and before a pool is called full; where something is due, three for every thousand of that. ``entries`` is what is
    to be logged.
    """

    def __init__(self, tx: Transaction, exact: ExactViews, chance: Chance, *, bounded: bool = True) -> None:
        self.entries: list[Entry] = []
        self._tx = tx
        self._exact = exact
        self._bounded = bounded
        self._layout = exact.layout
        self._chance = chance
        self._swept = False
        self._kept_free: list[tuple[Claim, int, int]] = []
        self._claims: Sequence[Claim] = ()
        self._ghosts: Collection[int] = ()
        self._answers: list[Answer | None] = []
        self._fresh: set[int] = set()
        self._known_keys: set[str] = set()

    async def serve(self, claims: Sequence[Claim], ghosts: Collection[int] = ()) -> list[Answer | None]:
        """Serve claims in the order given; return one answer a claim.

        ``ghosts`` are indexes of claims that somebody else will serve: their picks are kept free, unanswered, until
        ``let_go``.
        """
        self._claims, self._ghosts, self._answers = claims, ghosts, [None] * len(claims)
        # A kept answer stands whatever has happened since, so keys come before everything else.
        await self._answer_known_keys()
        open_claims = [index for index, answer in enumerate(self._answers) if answer is None]
        if open_claims:
            # Before the owners' rows are read: an owner whose own hold ran out gets a new hold, not the old row.
            await self.sweep_due()
            open_claims = await self._answer_holders(open_claims)
        # Every round grants an address or learns what is in the way, so the rounds come to an end.
        while open_claims:
            open_claims = await self._round(open_claims)
        await self._keep_replies()
        return self._answers

    async def sweep_due(self) -> None:
        """Remove what is overdue, where the exact views do not know that nothing is: comes before every pick."""
        if self._exact.due:
            await self.sweep()

    async def sweep(self) -> bool:
        """Remove what is overdue, once an attempt; return whether anything became free.

        MuchDue if it is a page or more: others must not wait while one claim removes it all. Where nothing can be
        committed in between, not ``bounded``, it is removed nevertheless.
        """
        if self._swept:
            return False
        self._swept = True
        swept, space = False, self._layout.configuration.space
        while rows := await self._tx.overdue(space, limit=PAGE):
            if self._bounded and len(rows) == PAGE:
                raise MuchDue(space)
            swept = True
            await self._tx.remove(rows)
            self.entries.extend(overdue_entry(row) for row in rows)
            for row in rows:
                # The exact views have it free at once; ``swept`` is for the doubtful views, once the commit is known.
                self._exact.lay(False, row.first, row.last)
                self._exact.swept.append((row.first, row.last))
        self._exact.due = False
        return swept

    def let_go(self) -> None:
        """Stop keeping addresses free for ghosts: only a grant, of which the log tells, takes them for good."""
        for _, first, last in self._kept_free:
            self._exact.lay(False, first, last)
        self._kept_free.clear()

    async def _make_room(self, unit: AddressRange) -> bool:
        """Let ghosts have other addresses than the one that somebody names, if they do not care which."""
        for place, (claim, first, last) in enumerate(self._kept_free):
            if first <= unit.last and unit.first <= last:
                view = await exact_line(self._tx, self._exact, line_key(claim))
                policy = claim.policy or view.line.policy
                # The ghost's own address still counts as taken here, so the pick is another one.
                number = view.pick(policy, claim.owner, claim.slot, 0, self._chance)
                if number is None or POLICIES[policy].exact:
                    return False
                other = view.line.unit(number)
                self._exact.lay(True, *other)
                self._exact.lay(False, first, last)
                self._kept_free[place] = (claim, *other)
        return True

    async def _answer_known_keys(self) -> None:
        """Give claims whose idempotency key is known their old answer."""
        keyed = [(index, claim) for index, claim in enumerate(self._claims) if claim.key is not None]
        if not keyed:
            return
        for (index, claim), reply in zip(keyed, await self._tx.replies([c.key or "" for _, c in keyed]), strict=True):
            if reply is not None:
                # The answer is built from these details, and the mark of this caller is no part of the kept grant.
                row = replayed(unmarked(claim).at(self._layout, 0, 0), reply).row
                self._known_keys.add(reply.key)
                if row is None:
                    self._answers[index] = KeyReused(reply.key)
                else:
                    await report_kept(self._tx, row, claim)
                    self._answers[index] = with_warnings(claim, Known(reported(row), self._layout))

    async def _keep_replies(self) -> None:
        """Keep the new answers of claims with an idempotency key, one a key, in the effect's own transaction."""
        replies: dict[str, Reply] = {}
        for index, (claim, answer) in enumerate(zip(self._claims, self._answers, strict=True)):
            if claim.key is None or claim.key in self._known_keys or not isinstance(answer, Granted):
                continue
            # What can still be given back is kept whole, with its mark: whoever is answered with it sees that.
            plain = index in self._fresh and not callers_of(claim)
            verdict = Verdict(Outcome.GRANTED if plain else Outcome.ALREADY, marked_for(answer.row, claim))
            reply = reply_to(claim.at(self._layout, 0, 0), verdict)
            replies.setdefault(claim.key, reply)
        if replies:
            await self._tx.keep_replies([*replies.values()])

    async def _answer_holders(self, indexes: list[int]) -> list[int]:
        """Answer claims whose owner holds something already; return the others."""
        # Ghosts are answered by their own server.
        asked = [index for index in indexes if index not in self._ghosts]
        network = self._layout.configuration.network
        claims = [self._claims[index] for index in asked]
        rows = await self._tx.rows_for([(network(c.network).id, c.owner, c.slot) for c in claims]) if asked else []
        stored = {_twin(claim): row for claim, row in zip(claims, rows, strict=True) if row is not None}
        for index, claim in zip(asked, claims, strict=True):
            if (row := stored.get(_twin(claim))) is not None:
                answer = already(claim, row, self._layout)
                if isinstance(answer, Granted):
                    # Before the answer: from here on no other server may give the holding back. Claims of one owner
                    # see the mark as the one before them left it.
                    stored[_twin(claim)] = row = await report(self._tx, row, claim)
                    # A waiting caller on the mark may still give it back; every other caller must leave it alone.
                    told = Granted if callers_of(row) and callers_of(claim) else Known
                    answer = told(reported(row), self._layout, answer.warnings)
                self._answers[index] = answer
        return [index for index in indexes if self._answers[index] is None]

    async def _round(self, open_claims: list[int]) -> list[int]:
        """Choose an address for every open claim and ask for all of them at once; return those to try again."""
        chosen, later = await self._choose_all(open_claims)
        space = self._layout.configuration.space
        verdicts = await self._tx.insert(space, [wish for _, wish in chosen]) if chosen else []
        for (index, wish), verdict in zip(chosen, verdicts, strict=True):
            if verdict.row is not None:
                # What is in the way may be of another size than the wish.
                self._exact.lay(True, verdict.row.first, verdict.row.last)
            if verdict.outcome is Outcome.GRANTED and verdict.row is not None:
                row = reported(verdict.row)
                self._answers[index] = Granted(row, self._layout)
                self._fresh.add(index)
                self.entries.append(grant_entry(row))
            # A plain grant in flight has served this owner since ``_answer_holders`` looked.
            elif verdict.outcome is not Outcome.TAKEN:
                raise Restart
            elif wanted_address(self._claims[index], self._layout) is None or await self._made_way(verdict.row):
                later.append(index)
            else:
                self._answers[index] = in_use(wish, verdict)
        return await self._answer_twins(sorted(later))

    async def _choose_all(self, open_claims: list[int]) -> tuple[list[tuple[int, Wish]], list[int]]:
        """Choose for claims in order; those that must wait for another's answer are left for later."""
        chosen: list[tuple[int, Wish]] = []
        later: list[int] = []
        asked: set[object] = set()
        for index in open_claims:
            claim = self._claims[index]
            if index in self._ghosts:
                await self._keep_free(claim)
                continue
            # The same claim or key twice: the second is answered by the first one's row. Mixed units: one at a time,
            # since the store probes only neighbours that it can see.
            names = {_twin(claim), claim.key} - {None}
            if asked & names or (chosen and self._layout.mixed_units):
                later.append(index)
                continue
            try:
                wish = await self._choose(claim)
            except TenureError as error:
                self._answers[index] = error
                continue
            if wish.first in asked:  # one address named twice, or named and picked: the first has it
                later.append(index)
                continue
            # With mixed units a small row may be in the way of a large wish, and the rest of the span is still free.
            # So ``_round`` lays the row only.
            if not self._layout.mixed_units:
                self._exact.lay(True, wish.first, wish.last)
            asked |= {*names, wish.first}
            chosen.append((index, wish))
        return chosen, later

    async def _keep_free(self, claim: Claim) -> None:
        """Keep an address free for somebody whom another server will serve, if there is one for him."""
        if wanted_address(claim, self._layout) is not None:
            return  # nobody else can be given what waits for him
        # Where nothing is free for the ghost, its own server answers so.
        with contextlib.suppress(TenureError):
            wish = await self._choose(claim)
            self._exact.lay(True, wish.first, wish.last)
            self._kept_free.append((claim, wish.first, wish.last))

    async def _made_way(self, row: Row | None) -> bool:
        """Tell whether the row in the way of a named address was overdue, and is gone now."""
        if row is None or row.until_us is None or not await self.sweep():
            return False
        # ``sweep`` may have removed other rows than this one.
        [still] = await self._tx.rows_at(row.space, [row.first])
        return still is None

    async def _answer_twins(self, later: list[int]) -> list[int]:
        """Answer claims that came twice in one batch, or whose key did, with the row their twin got."""
        granted = [
            (claim, answer)
            for index, (claim, answer) in enumerate(zip(self._claims, self._answers, strict=True))
            if index in self._fresh and isinstance(answer, Granted)  # an old answer may be of what another holds by now
        ]
        rows = {_twin(claim): answer.row for claim, answer in granted}
        callers = {_twin(claim): callers_of(claim) for claim, _ in granted}
        bodies = {claim.key: claim.body for claim, _ in granted if claim.key is not None}
        left: list[int] = []
        for index in later:
            claim = self._claims[index]
            if claim.key in bodies and bodies[claim.key] != claim.body:
                self._answers[index] = KeyReused(claim.key or "")
            elif _twin(claim) in rows:
                answer = already(claim, row := rows[_twin(claim)], self._layout)
                if isinstance(answer, Granted):
                    callers[_twin(claim)] = await report_twin(self._tx, row, callers[_twin(claim)], claim)
                self._answers[index] = answer
            else:
                left.append(index)
        return left

    async def _choose(self, claim: Claim) -> Wish:
        layout = self._layout
        address = wanted_address(claim, layout)
        if address is not None:
            unit = wanted_unit(claim, address, layout)
            if not await self._make_room(unit):
                reason = "kept for an owner who waits for one"
                raise AddressReserved(format_address(unit.first), reason, kept_as="waiting")
            return claim.at(layout, unit.first, unit.last)
        view = await exact_line(self._tx, self._exact, line_key(claim))
        policy = claim.policy or view.line.policy
        number = None
        if POLICIES[policy].prefers_former:
            number = await self._former_number(view, claim)
        if number is None:
            number = view.pick(policy, claim.owner, claim.slot, 0, self._chance)
        # Before the refusal: a deadline may have passed since the views were brought up to date.
        if number is None and await self.sweep():
            number = view.pick(policy, claim.owner, claim.slot, 0, self._chance)
        if number is None:
            raise exhausted(claim, case_of_line(view.line))
        return claim.at(layout, *view.line.unit(number))

    async def _former_number(self, view: ExactLine, claim: Claim) -> int | None:
        network = self._layout.configuration.network(claim.network).id
        position = await self._tx.former(network, claim.owner, claim.slot)
        number = None if position is None else view.line.number(position)
        return number if number is not None and number in view.free else None


def all_or_none(claims: Sequence[Claim], answers: Sequence[Answer | None]) -> list[Granted]:
    """Return the answers of a group, or raise the first that failed."""
    failed = next((answer for answer in answers if isinstance(answer, TenureError)), None)
    if isinstance(failed, PoolExhausted):
        # The group asked for several addresses, and the refusal names their number.
        place = (failed.network, failed.pool, failed.subnet, failed.zone, failed.family)
        alike = [claim for claim in claims if line_key(claim) == place]
        raise exhausted(alike[0], failed.case, wanted=len(alike))
    if failed is not None:
        raise failed
    return [answer for answer in answers if isinstance(answer, Granted)]


def _twin(claim: Claim) -> tuple[str, str, str]:
    return (claim.network, claim.owner, claim.slot)


async def exact_line(tx: Transaction, exact: ExactViews, key: LineKey) -> ExactLine:
    """Find the line, or read it inside the transaction."""
    view = exact.lines.get(key)
    if view is not None:
        return view
    line = exact.layout.line(*key)
    # The number is read first: what is granted between the two readings is read twice, never missed.
    seen = await tx.last_change()
    spans = await tx.spans(exact.layout.configuration.space, line.lowest, line.highest) if line.size else []
    return exact.adopt(key, spans, seen)


def in_use(wish: Wish, verdict: Verdict) -> TenureError:
    """Tell who is in the way of a wanted address."""
    holder, address = verdict.row, format_address(wish.first)
    if holder is not None and holder.state is State.COOLING and holder.until_us is not None:
        until = moment(holder.until_us).strftime("%Y-%m-%d %H:%M:%S UTC")
        return AddressReserved(address, f"cooling until {until}, {holder.owner} had it", kept_as="cooling")
    return AddressInUse(address, "another owner" if holder is None else holder.owner)
