"""Contiguous runs: several addresses that follow each other, all or none, inside the lane."""

from collections.abc import Sequence
from itertools import pairwise

from tenure.kernel.errors import Conflict
from tenure.kernel.holdings.holding_model import Outcome, Row
from tenure.kernel.holdings.log_entries import grant_entry
from tenure.kernel.picking.contiguous import run_at_or_after
from tenure.kernel.picking.policies import POLICIES
from tenure.kernel.plan.pool_line import RankPart
from tenure.ports import Chance, Transaction
from tenure.service.allocator.claim import Claim, Granted, case_of_line, exhausted
from tenure.service.allocator.exact_view import ExactLine, ExactViews
from tenure.service.allocator.existing_holding import already, line_key
from tenure.service.allocator.lane import Restart, Serving, all_or_none, exact_line
from tenure.service.allocator.revocable_grants import report


async def serve_run(
    tx: Transaction, exact: ExactViews, serving: Serving, claims: Sequence[Claim], chance: Chance
) -> list[Granted]:
    """Give claims of one line addresses in a row. Cost: linear in the free intervals below the run."""
    await serving.sweep_due()
    network = exact.layout.configuration.network(claims[0].network).id
    # All slots are looked up before anything is picked: a run that is asked for again gets the same answer (I6).
    rows = await tx.rows_for([(network, claim.owner, claim.slot) for claim in claims])
    if any(rows):
        answers = _held_already(exact, claims, rows)
        # Before the answer: from here on no server may give the holdings back.
        return [answer._replace(row=await report(tx, answer.row)) for answer in answers]
    view = await exact_line(tx, exact, line_key(claims[0]))
    number = _pick(view, claims, chance)
    # Before the refusal: a deadline may have passed since the views were brought up to date.
    if number is None and await serving.sweep():
        number = _pick(view, claims, chance)
    if number is None:
        raise exhausted(claims[0], case_of_line(view.line), wanted=len(claims), in_a_row=True)
    wishes = [claim.at(exact.layout, *view.line.unit(number + index)) for index, claim in enumerate(claims)]
    verdicts = await tx.insert(exact.layout.configuration.space, wishes)
    if any(verdict.outcome is not Outcome.GRANTED for verdict in verdicts):
        raise Restart  # a plain grant in flight came first; the log will tell the next attempt
    # Later operations of the same ``apply`` pick from these views.
    for wish in wishes:
        exact.lay(True, wish.first, wish.last)
    granted = [verdict.row for verdict in verdicts if verdict.row is not None]
    serving.entries.extend(grant_entry(row) for row in granted)
    return [Granted(row, exact.layout) for row in granted]


def _pick(view: ExactLine, claims: Sequence[Claim], chance: Chance) -> int | None:
    """Pick where a run begins: the first that fits, in the first rank that has one, from where the policy looks."""
    for rank in view.line.ranks:
        if (found := _pick_from(view, rank, claims, chance)) is not None:
            return found
    return None


def _pick_from(view: ExactLine, rank: RankPart, claims: Sequence[Claim], chance: Chance) -> int | None:
    policy = claims[0].policy or view.line.policy
    point, end = rank.start, rank.start + rank.size
    if not POLICIES[policy].ascending:
        point = view.pick_from(rank, policy, claims[0].owner, claims[0].slot, 0, chance) or rank.start
    found = run_at_or_after(view.line, view.free, point, len(claims), below=end)
    if found is None and point > rank.start:
        return run_at_or_after(view.line, view.free, rank.start, len(claims), below=point)
    return found


def _held_already(exact: ExactViews, claims: Sequence[Claim], rows: Sequence[Row | None]) -> list[Granted]:
    """Answer a run that was asked for before: the same, if it is whole and in a row."""
    held = [row for row in rows if row is not None]
    follow = all(after.first == before.last + 1 for before, after in pairwise(held))
    if len(held) < len(claims) or not follow:
        taken = ", ".join(claim.slot or claim.owner for claim, row in zip(claims, rows, strict=True) if row)
        raise Conflict(f"some of the run hold something else already: {taken}; release them, or use another slot")
    answers = [already(claim, row, exact.layout) for claim, row in zip(claims, held, strict=True)]
    return all_or_none(claims, answers)
