"""The log of a round replayed: what stands at each address after each entry, who waits, all tenancies there were."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tests.proof.fire.effects import Effect, Tenancy
from tests.proof.fire.evidence import Breach

Waiting = tuple[str, str]
"""Network and owner of a claim that waits."""

TenancyKey = tuple[str, int, str]


class Replay:
    """The state of the ledger after each entry of its log."""

    def __init__(self) -> None:
        self.standing: dict[str, Tenancy] = {}
        self.line: dict[int, Waiting] = {}
        self.tenancies: dict[TenancyKey, Tenancy] = {}
        self.history: dict[str, list[Effect]] = defaultdict(list)
        """All entries about each address, in order."""
        self.swept_due: dict[str, int] = {}
        """When what was swept away last at an address had been due."""
        self._seq = 0

    def step(self, effect: Effect) -> Iterator[Breach]:
        """Take one entry."""
        if effect.seq != self._seq + 1:
            yield Breach("R7", f"entry {effect.seq} of the log comes after {self._seq}", [effect])
        self._seq = effect.seq
        if effect.ticket is not None:
            self._stand_in_line(effect)
        if not effect.address:
            return
        self.history[effect.address].append(effect)
        before = self.standing.get(effect.address)
        if effect.verb == "grant":
            yield from self._grant(effect, before)
        elif effect.verb in ("release", "cool", "confirm", "transfer"):
            yield from self._go_on(effect, before)

    def _stand_in_line(self, effect: Effect) -> None:
        self._leave_line((effect.network, effect.owner))
        if effect.verb == "wait" and effect.ticket is not None:
            self.line[effect.ticket] = (effect.network, effect.owner)

    def _leave_line(self, waiting: Waiting) -> None:
        for ticket in [ticket for ticket, other in self.line.items() if other == waiting]:
            del self.line[ticket]

    def _grant(self, effect: Effect, before: Tenancy | None) -> Iterator[Breach]:
        if before is not None:
            yield Breach("R4", f"granted over {before.begun}", self.history[effect.address][-3:])
        self._begin(effect, Tenancy(effect, effect.pending, effect.until))

    def _begin(self, effect: Effect, tenancy: Tenancy) -> None:
        self.standing[effect.address] = tenancy
        self.tenancies[effect.address, effect.generation, effect.owner] = tenancy
        self._leave_line((effect.network, effect.owner))

    def _go_on(self, effect: Effect, before: Tenancy | None) -> Iterator[Breach]:
        holder = effect.former if effect.verb == "transfer" else effect.owner
        if before is None or before.owner != holder or not _same_holding(effect, before):
            yield Breach("R3", f"entry {effect.seq} ends or changes what was not there", self._near(effect))
            return
        wrong = _wrong_state(effect, before)
        if wrong:
            yield Breach("R3", f"entry {effect.seq}: {wrong}", self._near(effect))
        if effect.verb == "confirm":
            before.pending, before.until = False, None
        elif effect.verb == "transfer":
            before.ended = effect
            self._begin(effect, Tenancy(effect, before.pending, before.until))
        else:
            self._end(effect, before)

    def _end(self, effect: Effect, before: Tenancy) -> None:
        if effect.verb == "cool":
            before.ended, before.cooling, before.until = effect, True, effect.until
            return
        if before.ended is None:
            before.ended = effect
        self.swept_due[effect.address] = before.until or 0 if effect.because in ("deadline", "cooled off") else 0
        del self.standing[effect.address]

    def _near(self, effect: Effect) -> Sequence[Effect]:
        return self.history[effect.address][-4:]


def _same_holding(effect: Effect, before: Tenancy) -> bool:
    return effect.verb == "transfer" or effect.generation == before.begun.generation


def _wrong_state(effect: Effect, before: Tenancy) -> str | None:
    """Tell what is wrong with an effect on a holding in its state, if anything is."""
    if effect.because == "cooled off":
        early = before.until is None or effect.at < before.until
        return None if before.cooling and not early else "cooled off before its time, or while it was held"
    if before.cooling:
        return "done to what was released already"
    if effect.because == "deadline":
        early = before.until is None or effect.at < before.until
        return None if before.pending and not early else "ended by the clock before its time, or while it was held"
    if (effect.verb == "confirm" or effect.because == "cancelled") and not before.pending:
        return "done to what was not pending"
    return None
