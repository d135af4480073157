"""The log of a simulated run replayed: who holds what, who waits, and what no life of a holding allows."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tenure.kernel.holdings.holding_model import Change, State


class Standing(NamedTuple):
    """What stands at an address."""

    owner: str | None
    slot: str | None
    generation: int | None
    network: int | None
    state: State = State.HELD
    until_us: int | None = None

    @property
    def name(self) -> tuple[str | None, str | None, int | None, int | None]:
        """Return what sets it apart, whatever its state."""
        return self[:4]


Held = dict[int, Standing]
"""What stands where; what cools stands in the way as well."""

Line = dict[int, tuple[int | None, str | None, str | None]]
"""Who waits: network, owner and slot by ticket."""

ENDS = ("release", "cool")


class Lives:
    """The states of a run, one after each change, and the faults in how they follow each other."""

    def __init__(self, log: Sequence[Change], *, clock_stood: bool = True) -> None:
        self.states: list[Held] = [{}]
        self.lines: list[Line] = [{}]
        self.faults: list[str] = []
        self._clock_stood = clock_stood
        for change in log:
            self._step(change)

    def _step(self, change: Change) -> None:
        state, line = dict(self.states[-1]), dict(self.lines[-1])
        if change.first is not None:
            before = state.get(change.first)
            self.faults.extend(f"{fault}: {change}" for fault in self._faults(change, before))
            after = _after(change, before)
            if after is None:
                state.pop(change.first, None)
            else:
                state[change.first] = after
        claim = (change.network, change.owner, change.slot)
        if change.verb in ("grant", "transfer", "wait", "leave"):
            line = {ticket: waiter for ticket, waiter in line.items() if waiter != claim}
        if change.verb == "wait":
            line[change.details["ticket"]] = claim
        self.states.append(state)
        self.lines.append(line)

    def _faults(self, change: Change, before: Standing | None) -> Iterator[str]:
        """Yield what may not happen to what stands there."""
        if change.verb == "grant" and before is not None:
            yield f"granted over {before}"
        if change.verb in (*ENDS, "confirm") and (before is None or before.name != _name(change)):
            yield f"done to what was not there, but {before}"
        elif before is not None:
            because = change.details.get("because") if change.verb == "release" else None
            if change.verb == "confirm" and before.state is not State.PENDING:
                yield f"confirmed what was {before.state}"
            if because == "cancelled" and before.state is not State.PENDING:
                yield f"cancelled what was {before.state}"
            if because is None and change.verb in ENDS and before.state is State.COOLING:
                yield "released twice"
            if because in ("deadline", "cooled off"):
                yield from self._early(change, before, because)

    def _early(self, change: Change, before: Standing, because: str) -> Iterator[str]:
        """Yield an end by the clock that was not due by the store's clock (I10)."""
        if before.state is not (State.COOLING if because == "cooled off" else State.PENDING):
            yield f"ended by the clock while {before.state}"
        if before.until_us is None or (self._clock_stood and change.at_us < before.until_us):
            yield "ended before its time"


def _name(change: Change) -> tuple[str | None, str | None, int | None, int | None]:
    return (change.owner, change.slot, change.generation, change.network)


def _after(change: Change, before: Standing | None) -> Standing | None:
    """Return what stands at an address after a change."""
    if change.verb == "grant":
        told = change.details
        return Standing(*_name(change), State(told.get("state", "held")), told.get("until_us"))
    if before is None or change.verb == "release":
        return None
    if change.verb == "transfer":
        return Standing(*_name(change), before.state, before.until_us)
    if change.verb == "cool":
        return before._replace(state=State.COOLING, until_us=change.details["until_us"])
    return before._replace(state=State.HELD, until_us=None) if change.verb == "confirm" else before
