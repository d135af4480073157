"""The rules that a round under fire is held against; none broken means that every answer can be explained.

R1  *none* means that nothing changed: no entry of the log bears the request id of an attempt that was told so.
R2  One request id, one effect, which that attempt asked for, and none after an answer that says it was done; what an
    answer says was ended or handed over is in the log.
R3  What was acknowledged is held until its owner or time ends it.
R4  Never two acknowledged holders; what an answer says was so at some moment of its call.
R5  *lowest* is the lowest, counting what has cooled off or is past its deadline.
R6  Under one key there is one effect, and one answer.
R7  The log has no gap, the stream equals it and reaches its end, ``verify`` is clean, nobody sees an error that is none
    of ours, the line goes by arrival, only what is full is called full.
R8  No server that is frozen or cut off holds up callers of another for long.

A request whose caller hung up, or was told *unknown*, may take effect at any later time, but once.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from tests.proof.fire.attempts import Attempt, Row
from tests.proof.fire.effects import CommitTimes, Effect, by_request
from tests.proof.fire.evidence import Breach, Evidence, Excuse
from tests.proof.fire.holding_rules import SLACK_US, HoldingRules, asks_for
from tests.proof.fire.order_rules import OrderRules
from tests.proof.fire.replay import Replay

HELD_UP_US = 10_000_000
"""How long the ledger lets a server that does not move hold up the others."""

HELD_UP_MARGIN_US = 6_000_000

ENDING = frozenset({"release", "release_owner", "cancel"})
"""Verbs whose answer shows what was ended."""

STATUSES = frozenset({200, 404, 409, 429, 503})
"""What callers who ask in order may be answered, whatever goes wrong."""


def check(evidence: Evidence) -> list[Breach]:
    """Return every breach of a rule, in the order of the rules."""
    effects = by_request(evidence.log)
    seen = [
        (effect.seq, attempt.ended)
        for attempt in evidence.attempts
        if attempt.status is not None and attempt.ended is not None and attempt.outcome == "done"
        for effect in effects.get(attempt.id, ())[:1]
    ]
    times = CommitTimes.of(evidence.log, evidence.marks, seen)
    replay = Replay()
    order = OrderRules(evidence, replay, times)
    found: list[Breach] = []
    for effect in evidence.log:
        found += order.before(effect)
        found += replay.step(effect)
        order.after(effect)
    for rule in (
        _none_means_nothing(evidence, effects),
        _one_effect(evidence, effects, times),
        _done_is_logged(evidence, effects, replay, times),
        HoldingRules(evidence, replay, times).breaches(),
        _one_answer_a_key(evidence, effects),
        order.refusals(),
        _in_order(evidence),
        _held_up(evidence),
    ):
        found += rule
    return sorted(found, key=lambda breach: breach.rule)


def _none_means_nothing(evidence: Evidence, effects: dict[str, list[Effect]]) -> Iterator[Breach]:
    for attempt in evidence.attempts:
        for effect in effects.get(attempt.id, ()):
            owner = effect.former if effect.former is not None else effect.owner
            if attempt.told_nothing_changed(owner):
                text = f"{attempt.id} was told that nothing was changed, and {effect.verb} was done"
                yield Breach("R1", text, [attempt, effect])


def _one_effect(evidence: Evidence, effects: dict[str, list[Effect]], times: CommitTimes) -> Iterator[Breach]:
    asked_for = [effect for effect in evidence.log if effect.asked_for]
    place = {effect.seq: number for number, effect in enumerate(asked_for)}
    for request, done in effects.items():
        attempt = evidence.by_id.get(request)
        if attempt is None:
            yield Breach("R2", f"nobody asked for what was done under {request}", done)
            continue
        alien = [effect for effect in done if not any(asks_for(wish, effect) for wish in attempt.wishes)]
        if alien:
            yield Breach("R2", f"{request} did not ask for this", [attempt, *alien])
        elif _too_many(attempt, done) or _apart(attempt, done, place):
            yield Breach("R2", f"{request} took effect more than once", [attempt, *done])
        # What is called unknown may still be on its way.
        late = [each for each in done if attempt.outcome == "done" and _after(each, attempt, times)]
        if late:
            yield Breach("R2", f"{request} took effect after it had been answered", [attempt, *late])
    unasked = [effect for effect in asked_for if effect.by is None and effect.because is None]
    yield from (Breach("R2", f"entry {effect.seq} was asked for by nobody", [effect]) for effect in unasked)


def _done_is_logged(
    evidence: Evidence, effects: dict[str, list[Effect]], replay: Replay, times: CommitTimes
) -> Iterator[Breach]:
    """Yield answers that show a holding as ended or handed over, of which the log knows nothing."""
    keyed: dict[str, list[str]] = defaultdict(list)
    for attempt in evidence.attempts:
        if attempt.key is not None:
            keyed[attempt.key].append(attempt.id)
    for attempt in evidence.attempts:
        if attempt.outcome != "done" or attempt.verb not in (*ENDING, "transfer"):
            continue
        ids = [attempt.id] if attempt.key is None else keyed[attempt.key]
        done = {(each.address, each.generation, each.owner) for name in ids for each in effects.get(name, ())}
        for row in attempt.rows:
            if (row.address, row.generation, row.owner) not in done and not _done_before(attempt, row, replay, times):
                text = (
                    f"{attempt.id} was answered that {attempt.verb} was done to {row.address}, which is not in the log"
                )
                yield Breach("R2", text, [attempt, *replay.history[row.address][-4:]])


def _done_before(attempt: Attempt, row: Row, replay: Replay, times: CommitTimes) -> bool:
    """Return whether there was nothing left to do: the new owner had it already, or the ledger itself had ended it."""
    tenancy = replay.tenancies.get((row.address, row.generation, row.owner))
    if attempt.verb == "transfer":  # whether it was held at that time, R4 says
        return tenancy is not None and row.owner == attempt.wishes[0].to
    ended = None if tenancy is None else tenancy.ended
    return ended is not None and ended.by is None and not _after(ended, attempt, times)


def _after(effect: Effect, attempt: Attempt, times: CommitTimes) -> bool:
    return attempt.ended is not None and times.lower[effect.seq] > attempt.ended + SLACK_US


def _too_many(attempt: Attempt, done: Sequence[Effect]) -> bool:
    """Tell whether there are more effects than wishes, of any one wish; all holdings of an owner are one wish."""
    wishes = Counter((wish.verb, wish.owner) for wish in attempt.wishes if wish.network is not None)
    effects = Counter((_verb(effect), effect.former or effect.owner) for effect in done)
    return bool(wishes) and any(count > wishes[kind] for kind, count in effects.items())


def _verb(effect: Effect) -> str:
    if effect.because == "cancelled":
        return "cancel"
    return "release" if effect.verb == "cool" else effect.verb


def _apart(attempt: Attempt, done: Sequence[Effect], place: dict[int, int]) -> bool:
    """Tell whether what is to be done together was done in several batches."""
    numbers = [place[effect.seq] for effect in done]
    return attempt.together and max(numbers) - min(numbers) + 1 != len(numbers)


def _one_answer_a_key(evidence: Evidence, effects: dict[str, list[Effect]]) -> Iterator[Breach]:
    keyed: dict[str, list[Attempt]] = defaultdict(list)
    for attempt in evidence.attempts:
        if attempt.key is not None:
            keyed[attempt.key].append(attempt)
    for key, attempts in keyed.items():
        done = [effect for attempt in attempts for effect in effects.get(attempt.id, ())]
        if len({effect.by for effect in done}) > 1 and attempts[0].together:
            yield Breach("R6", f"done more than once under the key {key}", [*attempts, *done])
        answered = [attempt for attempt in attempts if attempt.outcome == "done" and attempt.together]
        if len({_answer(attempt) for attempt in answered}) > 1:
            yield Breach("R6", f"different answers under the key {key}", answered)


def _answer(attempt: Attempt) -> tuple[object, ...]:
    return tuple((row.address, row.generation, row.owner) for row in attempt.rows)


def _in_order(evidence: Evidence) -> Iterator[Breach]:
    for attempt in evidence.attempts:
        if attempt.status is not None and attempt.status not in STATUSES:
            yield Breach("R7", f"{attempt.id} was answered {attempt.status}", [attempt])
    yield from (Breach("R7", f"verify: {text}") for text in evidence.verified)
    if evidence.events is None:
        return
    log = [
        (each.seq, each.verb, each.address or None, each.generation or None, each.owner or None)
        for each in evidence.log
    ]
    for number, (told, event) in enumerate(zip(log, evidence.events, strict=False)):
        if told != event:
            yield Breach("R7", f"event {number + 1} was {event}, the log has {told}")
            return
    reached, newest = evidence.events[-1][0] if evidence.events else 0, evidence.marks[-1].seq if evidence.marks else 0
    if reached < newest:
        yield Breach("R7", f"the stream ended with change {reached}, though the log had reached {newest}")
    if len(evidence.events) > len(log):
        yield Breach("R7", f"the stream told of {len(evidence.events)} changes, the log has {len(log)}")


def _held_up(evidence: Evidence) -> Iterator[Breach]:
    for attempt in evidence.attempts:
        if attempt.ended is None or attempt.ended - attempt.called <= HELD_UP_US + HELD_UP_MARGIN_US:
            continue
        took = (
            attempt.ended
            - attempt.called
            - int(attempt.wait_s * 1_000_000)
            - _excused(attempt, attempt.ended, evidence)
        )
        if took > HELD_UP_US + HELD_UP_MARGIN_US:
            yield Breach("R8", f"{attempt.id} was held up for {took / 1e6:.1f} s", [attempt])


def _excused(attempt: Attempt, ended: int, evidence: Evidence) -> int:
    """Add up how long an attempt had a good reason to take longer."""
    excuses = [each for each in evidence.excuses if each.server in (None, attempt.server)]
    return _covered([Excuse(None, max(each.begin, attempt.called), min(each.end, ended)) for each in excuses])


def _covered(excuses: Sequence[Excuse]) -> int:
    total, reached = 0, 0
    for _, begin, end in sorted(excuses, key=lambda each: each.begin):
        begin = max(begin, reached)
        if end > begin:
            total += end - begin
            reached = end
    return total
