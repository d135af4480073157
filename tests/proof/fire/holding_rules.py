"""R3 and R4: what was acknowledged is held until its owner or time ends it, and never by two."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.proof.fire.attempts import Attempt, Row, Wish
from tests.proof.fire.effects import BY_THE_CLOCK, GIVEN_BACK, CommitTimes, Effect, Tenancy
from tests.proof.fire.evidence import Breach, Evidence
from tests.proof.fire.replay import Replay, TenancyKey

SLACK_US = 20_000
"""How far two readings of the machine's clock may be apart."""


def asks_for(wish: Wish, effect: Effect) -> bool:
    """Tell whether a wish can have asked for an effect."""
    if effect.verb == "grant":
        named = wish.address in (None, effect.address)
        return wish.verb == "grant" and (wish.network, wish.owner) == (effect.network, effect.owner) and named
    if effect.verb == "transfer":
        right = (wish.owner, wish.to) == (effect.former, effect.owner)
        return wish.verb == "transfer" and right and wish.address == effect.address
    verb = "cancel" if effect.because == "cancelled" else {"cool": "release"}.get(effect.verb, effect.verb)
    if wish.verb != verb or wish.owner != effect.owner or wish.network not in (None, effect.network):
        return False
    return wish.address in (None, effect.address) and wish.generation in (None, effect.generation)


class HoldingRules:
    """Holds acknowledgements against tenancies."""

    def __init__(self, evidence: Evidence, replay: Replay, times: CommitTimes) -> None:
        self._evidence = evidence
        self._replay = replay
        self._times = times
        self._told: dict[TenancyKey, list[Attempt]] = defaultdict(list)
        self._keys = Counter(attempt.key for attempt in evidence.attempts)
        for attempt in evidence.attempts:
            for row in attempt.acknowledged:
                self._told[row.address, row.generation, row.owner].append(attempt)

    def breaches(self) -> Iterator[Breach]:
        """Yield all breaches."""
        for attempt in self._evidence.attempts:
            for row in attempt.acknowledged:
                yield from self._acknowledged(attempt, row)
        for key, tenancy in self._replay.tenancies.items():
            if tenancy.ended is not None:
                yield from self._ended(key, tenancy, tenancy.ended)

    def _acknowledged(self, attempt: Attempt, row: Row) -> Iterator[Breach]:
        """Find the tenancy that an answer speaks of, alive at some moment of the call."""
        tenancy = self._replay.tenancies.get((row.address, row.generation, row.owner))
        if tenancy is None:
            yield Breach("R4", f"{attempt.id} was answered with {row}, of which the log knows nothing", [attempt])
            return
        if attempt.key is not None and self._keys[attempt.key] > 1:
            return  # an old answer is repeated, whatever became of the holding since
        assert attempt.ended is not None
        late = attempt.ended < self._times.lower[tenancy.begun.seq] - SLACK_US
        gone = tenancy.ended is not None and attempt.called > self._times.upper[tenancy.ended.seq] + SLACK_US
        if late or gone:
            text = (
                f"{attempt.id} was told of {row.address}#{row.generation}, which was not held at any moment of the call"
            )
            yield Breach("R4", text, [attempt, *self._story(tenancy)])

    def _ended(self, key: TenancyKey, tenancy: Tenancy, ended: Effect) -> Iterator[Breach]:
        if ended.because in BY_THE_CLOCK:
            return  # the replay has looked at its time
        told = self._told.get(key, [])
        if ended.because == GIVEN_BACK:
            text = f"{key[0]}#{key[1]} was acknowledged to {key[2]}, and given back" if told else ""
        else:
            asker = self._evidence.by_id.get(ended.by or "")
            asked = asker is not None and any(asks_for(wish, ended) for wish in asker.wishes)
            text = "" if asked else f"{key[0]}#{key[1]} of {key[2]} was ended by a release that nobody sent"
        if text:
            yield Breach("R3", text, [*told, *self._story(tenancy)])
            yield from self._second_holder(key, tenancy, ended)

    def _second_holder(self, key: TenancyKey, tenancy: Tenancy, ended: Effect) -> Iterator[Breach]:
        """Find who was told next that he holds an address which another was told he holds."""
        later = [each for each in self._replay.history[key[0]] if each.seq > ended.seq and each.verb == "grant"]
        second = self._told.get((later[0].address, later[0].generation, later[0].owner)) if later else None
        if second and self._told.get(key):
            text = f"{key[0]} had two acknowledged holders: {key[2]} and {later[0].owner}"
            yield Breach("R4", text, [*self._told[key], *second, *self._story(tenancy)])

    def _story(self, tenancy: Tenancy) -> list[Attempt | Effect]:
        """Tell all of an address from a tenancy's beginning to whoever had it next."""
        every = self._replay.history[tenancy.begun.address]
        end = 1 << 62 if tenancy.ended is None else tenancy.ended.seq
        later = [each.seq for each in every if each.seq > end and each.verb == "grant"]
        near = [each for each in every if tenancy.begun.seq <= each.seq <= (later[0] if later else end)]
        askers = [self._evidence.by_id[each.by] for each in near if each.by in self._evidence.by_id]
        return [*near, *askers]
