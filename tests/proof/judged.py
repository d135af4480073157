"""What a simulated run promised, judged against the log: every answer must be explained by some moment of its call."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tenure.kernel.addresses import parse_address
from tenure.kernel.configuration import Configuration
from tenure.kernel.errors import (
    AddressInUse,
    AddressReserved,
    AlreadyExists,
    Conflict,
    NotFound,
    NotOwner,
    PoolExhausted,
    StoreUnavailable,
)
from tenure.kernel.inline import run_inline
from tenure.kernel.layout import Layout
from tenure.kernel.values import Holding
from tenure.service.verifying import verify
from tests.proof.simulated import World

Held = dict[int, tuple[str | None, str | None, int | None, int | None]]
"""Who holds what: owner, slot, generation and network, by position."""

EXPECTED = (PoolExhausted, AddressInUse, NotOwner, AlreadyExists, AddressReserved, NotFound, Conflict)

PICKED = ("lowest", "random", "hashed", "sticky")


@dataclass
class Call:
    """One call of one client, and what came of it."""

    server: str
    verb: str
    values: dict[str, Any]
    began: int
    ended: int | None = None
    answer: Any = None
    error: Exception | None = None

    def __str__(self) -> str:
        came = repr(self.error) if self.error else self.answer
        return f"{self.server} {self.verb} {self.values} [{self.began}..{self.ended}] -> {came}"


@dataclass
class Judge:
    """The log replayed: who held what after every change, under which plan."""

    world: World
    calls: list[Call]
    states: list[Held] = field(default_factory=list)
    _laid: dict[tuple[int, str], list[int]] = field(default_factory=dict)

    def judge(self) -> list[str]:
        """Return what cannot be explained."""
        breaches = [str(breach) for breach in run_inline(verify(self.world.truth))]
        self._replay()
        faults = [*self._misplaced_grants(), *self._unasked_releases()]
        for call in self.calls:
            faults.extend(f"{problem}: {call}" for problem in self._unexplained(call))
        return breaches + faults

    def _replay(self) -> None:
        state: Held = {}
        self.states = [{}]
        for change in self.world.truth.log:
            state = dict(state)
            if change.first is not None and change.verb in ("grant", "transfer"):
                state[change.first] = (change.owner, change.slot, change.generation, change.network)
            elif change.first is not None and change.verb == "release":
                state.pop(change.first, None)
            self.states.append(state)

    def _plan(self, seq: int) -> Configuration:
        return [plan for number, plan in self.world.plans if number <= seq][-1]

    def _units(self, seq: int, network: str) -> list[int]:
        plan = self._plan(seq)
        if (plan.version, network) not in self._laid:
            line = Layout(plan).line(network)
            self._laid[plan.version, network] = [line.unit(number)[0] for number in range(line.size)]
        return self._laid[plan.version, network]

    def _network(self, number: int | None, seq: int) -> str:
        return next(name for name, network in self._plan(seq).networks.items() if network.id == number)

    def _misplaced_grants(self) -> Iterator[str]:
        """Yield picks that were not pickable (I4), and lowest picks that were not the lowest."""
        for change in self.world.truth.log:
            policy = (change.request or "").partition(":")[0]
            if change.verb != "grant" or policy not in PICKED or change.first is None:
                continue
            units = self._units(change.seq, self._network(change.network, change.seq))
            if change.first not in units:
                yield f"picked what was not to be picked: {change.seq} {change.address}"
            free = [unit for unit in units if unit not in self.states[change.seq - 1]]
            if policy == "lowest" and free and free[0] != change.first:
                yield f"not the lowest: {change.seq} {change.address}"

    def _unasked_releases(self) -> Iterator[str]:
        """Yield releases that nobody asked for with that owner and generation."""
        for change in self.world.truth.log:
            if change.verb == "release" and not any(_asks_for(call, change) for call in self.calls):
                yield f"released though nobody asked: {change.seq} {change.address} {change.owner}"

    def _unexplained(self, call: Call) -> Iterator[str]:
        if call.ended is None or isinstance(call.error, StoreUnavailable):
            return  # it died, or says itself that it does not know
        moments = self.states[call.began : call.ended + 1]
        for holding in _holdings(call):
            wanted = (str(holding.owner), holding.slot, holding.generation, holding.row.network)
            if call.verb != "release" and not any(state.get(holding.row.first) == wanted for state in moments):
                yield "answered what was never so"
        if isinstance(call.error, PoolExhausted) and not self._was_full(call):
            yield "called exhausted what was not"
        if isinstance(call.error, AddressInUse | NotOwner):
            place = parse_address(call.values["address"])
            network = self._plan(call.began).networks[call.values["network"]].id
            mine = (call.values["owner"], call.values.get("slot", ""), network)
            others = (state[place] for state in moments if place in state)
            if all((owner, slot, where) == mine for owner, slot, _, where in others):
                yield "said in use though nobody held it"
        if call.error is not None and not isinstance(call.error, EXPECTED):
            yield "raised what it must not"
        if call.verb == "release" and call.answer is None and call.error is None and not self._was_free(call):
            yield "said free though it was held all along"

    def _was_full(self, call: Call) -> bool:
        assert call.ended is not None
        for seq in range(call.began, call.ended + 1):
            free = [unit for unit in self._units(seq, call.values["network"]) if unit not in self.states[seq]]
            if len(free) < len(call.values.get("owners", "1")):
                return True
        return False

    def _was_free(self, call: Call) -> bool:
        place = parse_address(call.values["address"])
        assert call.ended is not None
        return any(place not in state for state in self.states[call.began : call.ended + 1])


def _holdings(call: Call) -> list[Holding]:
    answers = call.answer if isinstance(call.answer, list) else [call.answer]
    return [answer for answer in answers if isinstance(answer, Holding)]


def _asks_for(call: Call, change: Any) -> bool:
    if call.verb == "release_owner":
        return bool(call.values["owner"] == change.owner)
    if call.verb != "release" or call.values["owner"] != change.owner:
        return False
    same = parse_address(call.values["address"]) == change.first
    return same and call.values.get("generation") in (None, change.generation) and call.began < change.seq
