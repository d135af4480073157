"""R5 and R7: lowest is lowest, also with cooling; the line goes by arrival; only what is full is called full."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence

from tests.proof.fire.attempts import Attempt, Wish
from tests.proof.fire.effects import FAR, CommitTimes, Effect, Tenancy
from tests.proof.fire.evidence import Breach, Evidence
from tests.proof.fire.holding_rules import asks_for
from tests.proof.fire.replay import Replay
from tests.proof.turns import passed_over

MARGIN_US = 200_000
"""What became due so shortly before a grant may go either way: the clock is read before the commit."""

PoolKey = tuple[str, str | None]
Dues = tuple[int, ...]
"""From when on each address of a pool may be had, in written order: 0 is free, FAR is held."""


class OrderRules:
    """Judges every pick at its place in the log, and every refusal against the states it may have met."""

    def __init__(self, evidence: Evidence, replay: Replay, times: CommitTimes) -> None:
        self._evidence = evidence
        self._plan = evidence.plan
        self._replay = replay
        self._times = times
        self._dues: dict[PoolKey, list[tuple[int, Dues]]] = defaultdict(list)
        self._lines: list[tuple[int, tuple[tuple[str, str], ...]]] = [(0, ())]
        self._freed: tuple[str | None, set[str]] = (None, set())
        self._pools = [(pool.network, name) for pool in self._plan.pools for name in (None, pool.name)]
        for key in dict.fromkeys(self._pools):
            self._note(key, 0)

    def before(self, effect: Effect) -> Iterator[Breach]:
        """Judge an entry against the state that it met."""
        asker = self._evidence.by_id.get(effect.by or "")
        if effect.verb == "grant" and asker is not None:
            for wish in asker.wishes:
                if wish.picks and asks_for(wish, effect):
                    yield from self._judge(effect, asker, wish)
                    break
        if effect.verb in ("release", "cool"):
            freed = self._freed[1] if self._freed[0] == effect.by else set()
            self._freed = (effect.by, {*freed, effect.address})

    def after(self, effect: Effect) -> None:
        """Take note of the state behind an entry."""
        for key in dict.fromkeys(key for key in self._pools if key[0] == effect.network):
            if effect.address in self._plan.order(*key):
                self._note(key, effect.seq)
        if effect.ticket is not None or effect.verb in ("grant", "transfer"):
            self._lines.append((effect.seq, tuple(self._replay.line.values())))

    def _note(self, key: PoolKey, seq: int) -> None:
        self._dues[key].append((seq, tuple(self._due(address) for address in self._plan.order(*key))))

    def _due(self, address: str) -> int:
        standing = self._replay.standing.get(address)
        if standing is None:
            return 0
        return standing.until if standing.until is not None and (standing.cooling or standing.pending) else FAR

    def _judge(self, effect: Effect, asker: Attempt, wish: Wish) -> Iterator[Breach]:
        order = self._plan.order(effect.network, wish.pool)
        if effect.address not in order:
            yield Breach("R5", f"entry {effect.seq}: {effect.address} is not in the pool", [effect, asker])
            return
        older = self._older(effect, is_run=asker.verb == "run")
        if self._plan.policy(effect.network, wish.pool) == "lowest":
            lower = self._lower(effect, asker, order[: order.index(effect.address)])
            if len(lower) > len(older):
                past = self._replay.history[lower[0]][-2:]
                text = f"entry {effect.seq} took {effect.address}, though {lower[0]} was free"
                yield Breach("R5", text, [effect, asker, *past])
        free = [each for each in self._plan.order(effect.network, None) if self._due(each) <= effect.at + MARGIN_US]
        lines = dict.fromkeys(older, self._plan.order(effect.network, None))
        for ticket in passed_over(effect.address, free, lines):
            text = f"entry {effect.seq} passed over {self._replay.line[ticket]}, who waits under ticket {ticket}"
            yield Breach("R7", text, [effect, asker])

    def _lower(self, effect: Effect, asker: Attempt, below: Sequence[str]) -> list[str]:
        """Find what could have been had below a grant's address; what its own request freed may go either way."""
        # Between the clock's reading and the grant anything may have been slow; the call is certainly before both.
        latest = min(effect.at - MARGIN_US, asker.called)
        freed = self._freed[1] if self._freed[0] == effect.by else set()
        return [each for each in below if each not in freed and self._was_free(each, latest)]

    def _was_free(self, address: str, latest: int) -> bool:
        standing: Tenancy | None = self._replay.standing.get(address)
        if standing is not None:
            return standing.due(latest)
        return self._replay.swept_due.get(address, 0) <= latest

    def _older(self, effect: Effect, *, is_run: bool) -> list[int]:
        """Find those in line before a grant who hold nothing yet; a run stands behind all, its own owner too."""
        mine = (effect.network, effect.owner)
        own = (number for number, claim in self._replay.line.items() if claim == mine and not is_run)
        ticket = min(own, default=FAR)
        holders = {
            (each.begun.network, each.owner) for each in self._replay.standing.values() if not each.cooling
        }  # fmt: skip
        line = self._replay.line.items()
        return [
            number
            for number, claim in line
            if claim[0] == effect.network and number < ticket and (is_run or claim != mine) and claim not in holders
        ]

    def refusals(self) -> Iterator[Breach]:
        """Yield refusals of pools that were at no moment of the call full."""
        for attempt in self._evidence.attempts:
            if attempt.code == "pool_exhausted" and attempt.verb != "apply" and attempt.ended is not None:
                wish = attempt.wishes[0]
                if not self._was_full(attempt, attempt.ended, wish):
                    text = (
                        f"{attempt.id} met a full pool {wish.network} {wish.pool or ''}, which never was full meanwhile"
                    )
                    yield Breach("R7", text, [attempt])

    def _was_full(self, attempt: Attempt, ended: int, wish: Wish) -> bool:
        moments = self._times.between(attempt.called - MARGIN_US, ended)
        dues = self._dues[wish.network or "", wish.pool]
        latest, wanted = attempt.called - MARGIN_US, len(attempt.wishes)
        owners = {(each.network, each.owner) for each in attempt.wishes}
        first = max(bisect_right(dues, (moments.start, (FAR + 1,))) - 1, 0)
        for seq, state in dues[first:]:
            if seq > moments.stop:
                break
            free = sum(due <= latest for due in state)
            if free < wanted + self._most_in_line(max(seq, moments.start), moments.stop, owners):
                return True
        return False

    def _most_in_line(self, begin: int, end: int, owners: set[tuple[str | None, str]]) -> int:
        """Count those of the network who waited, at most, between two numbers; all but the one who asks."""
        first = max(bisect_right(self._lines, (begin, (("\uffff", ""),))) - 1, 0)
        network = next(iter(owners))[0]
        most = 0
        for seq, line in self._lines[first:]:
            if seq > end:
                break
            most = max(most, sum(each[0] == network and each not in owners for each in line))
        return most
