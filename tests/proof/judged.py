"""What a simulated run promised, judged against the log: every answer must be explained by some moment of its call."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tenure.kernel.addressing.addresses import parse_address
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
from tenure.kernel.holdings.holding_model import Change, Holding, State
from tenure.kernel.plan.layout import Layout
from tenure.kernel.plan.plan_model import Configuration
from tenure.kernel.run_inline import run_inline
from tenure.service.read.presenter import ClaimStatus
from tenure.service.read.verify import verify
from tests.proof.lives import Held, Line, Lives, Standing
from tests.proof.turns import passed_over
from tests.proof.world import World

EXPECTED = (PoolExhausted, AddressInUse, NotOwner, AlreadyExists, AddressReserved, NotFound, Conflict)

PICKED = ("lowest", "random", "hashed", "sticky")

ASKING = ("allocate", "allocate_many", "hold", "claim")

ENDERS = {"release": ("release", "release_owner"), "cool": ("release", "release_owner"), "confirm": ("confirm",)}
"""The calls that may have asked for an entry of the log."""

SOON_US = 2_500_000
"""How long an address may stand free before the next in line must have it, while nothing goes wrong."""


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
    cancelled: bool = False
    ended_us: int = 0

    def __str__(self) -> str:
        came = "cancelled" if self.cancelled else repr(self.error) if self.error else self.answer
        return f"{self.server} {self.verb} {self.values} [{self.began}..{self.ended}] -> {came}"


@dataclass
class Judge:
    """The log replayed: who held what and who waited after every change, under which plan."""

    world: World
    calls: list[Call]
    calm: bool = False
    states: list[Held] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    _laid: dict[tuple[int, str], list[int]] = field(default_factory=dict)

    def judge(self) -> list[str]:
        """Return what cannot be explained."""
        breaches = [str(breach) for breach in run_inline(verify(self.world.truth))]
        lives = Lives(self.world.truth.log, clock_stood=not self.world.shifts)
        self.states, self.lines = lives.states, lives.lines
        faults = [*lives.faults, *self._misplaced_grants(), *self._unasked(), *self._repeated(), *self._left_held()]
        faults += [*self._traces(), *self._unasked_grants()]
        for call in self.calls:
            faults.extend(f"{problem}: {call}" for problem in self._unexplained(call))
        return breaches + faults

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

    def _free(self, seq: int, network: str) -> list[int]:
        return [unit for unit in self._units(seq, network) if unit not in self.states[seq]]

    def _misplaced_grants(self) -> Iterator[str]:
        """Yield picks that were not pickable (I4), that were not the lowest, or not the picker's turn."""
        for change in self.world.truth.log[self.world.plans[0][0] :]:
            if change.verb != "grant" or change.first is None:
                continue
            older = self._older(change)
            yield from self._misplaced_pick(change, alone=not older)
            every = [unit for name in self._plan(change.seq).networks for unit in self._free(change.seq - 1, name)]
            for ticket in passed_over(change.first, sorted({*every}), older):
                yield f"passed over ticket {ticket}: {change.seq} {change.address} to {change.owner}"

    def _misplaced_pick(self, change: Change, *, alone: bool) -> Iterator[str]:
        policy = (change.request or "").partition(":")[0]
        network = self._network(change.network, change.seq)
        if policy not in PICKED:
            return
        if change.first not in self._units(change.seq, network):
            yield f"picked what was not to be picked: {change.seq} {change.address}"
        elif policy == "lowest" and alone and self._lower(change, network):
            yield f"not the lowest: {change.seq} {change.address}"

    def _lower(self, change: Change, network: str) -> list[int]:
        """Find what was free before the granted address in written order."""
        units = self._units(change.seq, network)
        below = set(units[: units.index(change.first or 0)]) - self._just_swept(change.seq)
        return [unit for unit in self._free(change.seq - 1, network) if unit in below]

    def _just_swept(self, seq: int) -> set[int | None]:
        """Find what the sweep of a grant's own transaction removed: earlier picks of it did not know that yet."""
        swept: set[int | None] = set()
        log, at_us = self.world.truth.log, self.world.truth.log[seq - 1].at_us
        for change in reversed(log[: seq - 1]):
            if change.at_us != at_us:
                break
            if change.details.get("because") in ("deadline", "cooled off"):
                swept.add(change.first)
        return swept

    def _older(self, change: Change) -> dict[int, list[int]]:
        """Find those in line before the one who got something, and where each may be served from."""
        seq = change.seq - 1
        line, claim = self.lines[seq], (change.network, change.owner, change.slot)
        mine = min((ticket for ticket, waiter in line.items() if waiter == claim), default=None)
        holders = {(each.network, each.owner, each.slot) for each in self.states[seq].values()}
        return {
            ticket: self._units(change.seq, self._network(waiter[0], change.seq))
            for ticket, waiter in line.items()
            if waiter != claim and waiter not in holders and (mine is None or ticket < mine)
        }

    def _unasked_grants(self) -> Iterator[str]:
        """Yield grants that no call asked for."""
        began = self.world.plans[0][0]
        asked = {
            (call.values["network"], owner, call.values.get("request"))
            for call in self.calls
            if call.verb in ASKING
            for owner in call.values.get("owners", [call.values.get("owner")])
        }
        for change in self.world.truth.log[began:]:
            if change.verb == "grant":
                wanted = (self._network(change.network, change.seq), change.owner, change.request)
                if wanted not in asked:
                    yield f"granted though nobody asked: {change.seq} {change.address} {change.owner}"

    def _unasked(self) -> Iterator[str]:
        """Yield effects on holdings that nobody asked for with that owner and generation."""
        for change in self.world.truth.log:
            because = change.details.get("because")
            if change.verb not in ENDERS or because in ("deadline", "cooled off"):
                continue
            verbs = ("cancel",) if because == "cancelled" else ENDERS[change.verb]
            asked = any(call.verb in verbs and _asks_for(call, change) for call in self.calls)
            returned = change.verb == "release" and self._gave_back(change)
            if not asked and not returned:
                yield f"{change.verb} though nobody asked: {change.seq} {change.address} {change.owner}"
            if change.verb == "release" and because is None and not returned and self._should_cool(change):
                yield f"freed at once what was to cool: {change.seq} {change.address}"

    def _should_cool(self, change: Change) -> bool:
        """Tell whether what was released stands in a cooling pool, and was more than pending."""
        assert change.first is not None
        before, plan = self.states[change.seq - 1].get(change.first), self._plan(change.seq)
        if before is None or before.state is State.PENDING:
            return False
        # Worked out from the plan alone: the layout is part of what is on trial.
        network = plan.networks[self._network(change.network, change.seq)]
        pools = [pool for subnet in network.subnets for pool in subnet.pools if pool.cooling_s]
        return any(pool.range.first <= change.first <= pool.range.last for pool in pools)

    def _gave_back(self, change: Change) -> bool:
        """Tell whether a release gives back what was granted to a caller who had gone away, and to nobody else."""
        if any(generation == change.generation for generation in self._reported()):
            return False
        grants = [each for each in self.world.truth.log if _same_tenancy(each, change) and each.verb == "grant"]
        return any(
            call.cancelled and call.values.get("request") == grant.request for call in self.calls for grant in grants
        )

    def _reported(self) -> Iterator[int]:
        """Yield the generations that callers who were there were answered with by a call that asks for an address."""
        for call in self.calls:
            if call.verb not in ASKING or call.cancelled or call.ended is None or call.error is not None:
                continue
            answer = call.answer.holding if isinstance(call.answer, ClaimStatus) else call.answer
            for each in answer if isinstance(answer, list) else [answer]:
                if isinstance(each, Holding):
                    yield each.generation

    def _left_held(self) -> Iterator[str]:
        """Yield what is held for a caller who went away while he waited, where no answer was lost."""
        standing = {(first, each.generation) for first, each in self.states[-1].items()}
        gone = {call.values["request"] for call in self.calls if call.cancelled and call.ended is not None}
        reported = {*self._reported()}
        for change in self.world.truth.log:
            left = change.verb == "grant" and (change.first, change.generation) in standing
            if left and change.request in gone and change.generation not in reported and not self.world.lost:
                yield f"held for one who went away: {change.seq} {change.address} {change.owner}"

    def _traces(self) -> Iterator[str]:
        """Yield what is held by calls that were answered with an error that says that nothing is (I5)."""
        grants = {change.request: change for change in self.world.truth.log if change.verb == "grant"}
        for call in self.calls:
            request = call.values.get("request") or ""
            alone = ":c" in request  # other calls may share their name
            if not alone or request not in grants or call.ended is None:
                continue
            change = grants[request]
            standing = self.states[call.ended].get(change.first or 0)
            left = standing is not None and standing.generation == change.generation
            if left and call.error and not isinstance(call.error, StoreUnavailable):
                yield f"answered with an error, yet granted: {call}"

    def _repeated(self) -> Iterator[str]:
        """Yield a second grant under one idempotency key; such calls name themselves by their key."""
        keyed = {call.values["request"] for call in self.calls if "key" in call.values}
        grants = Counter(change.request for change in self.world.truth.log if change.verb == "grant")
        yield from (f"granted {grants[name]} times under one key: {name}" for name in keyed if grants[name] > 1)

    def _unexplained(self, call: Call) -> Iterator[str]:
        if call.ended is None or isinstance(call.error, StoreUnavailable) or call.cancelled:
            return  # it died or went away, or says itself that it does not know
        moments = self.states[call.began : call.ended + 1]
        for holding in _holdings(call):
            if call.verb != "release" and not self._was_so(call, holding):
                yield "answered what was never so"
        if isinstance(call.error, PoolExhausted) and not self._was_full(call):
            yield "called exhausted what was not"
        if isinstance(call.error, PoolExhausted) and self.calm and self._stood_free(call):
            yield "not served though it was free for long"
        if isinstance(call.error, AddressInUse | NotOwner):
            place = parse_address(call.values["address"])
            network = self._plan(call.began).networks[call.values["network"]].id
            mine = (call.values["owner"], call.values.get("slot", ""), network)
            others = (state[place] for state in moments if place in state)
            if all((each.owner, each.slot, each.network) == mine for each in others):
                yield "said in use though nobody held it"
        if call.error is not None and not isinstance(call.error, EXPECTED):
            yield "raised what it must not"
        absent = call.verb in ("release", "cancel") and call.answer is None and call.error is None
        missed = call.verb in ("confirm", "cancel") and isinstance(call.error, NotFound)
        if (absent or missed) and not self._was_gone(call):
            yield "said gone though it was held all along"

    def _was_so(self, call: Call, holding: Holding) -> bool:
        """Tell whether an answer was so at a moment of the call; under a key it may be an old one."""
        assert call.ended is not None
        wanted = (str(holding.owner), holding.slot, holding.generation, holding.row.network)
        since = 0 if "key" in call.values else call.began
        found = [state.get(holding.row.first) for state in self.states[since : call.ended + 1]]
        return any(
            each is not None and each.name == wanted and (call.verb != "confirm" or each.state is State.HELD)
            for each in found
        )

    def _was_full(self, call: Call) -> bool:
        """Tell whether there was a moment with nothing free but what was kept for others who wait.

        Whether two in a row were free is not looked at.
        """
        assert call.ended is not None
        wanted = len(call.values.get("owners", "1"))
        return call.values.get("contiguous", False) or any(
            len(self._free(seq, call.values["network"])) < wanted + len(self.lines[seq])
            for seq in range(call.began, call.ended + 1)
        )

    def _others_in_line(self, call: Call, seq: int) -> int:
        return sum(waiter[1] != call.values.get("owner") for waiter in self.lines[seq].values())

    def _stood_free(self, call: Call) -> bool:
        """Tell whether a caller waited in vain though an address stood free for him for long."""
        assert call.ended is not None
        if "wait_s" not in call.values or call.values["wait_s"] * 1_000_000 < SOON_US:
            return False
        late = [seq for seq in range(call.began, call.ended + 1) if self._ends_us(seq) > call.ended_us - SOON_US]
        return bool(late) and all(
            len(self._free(seq, call.values["network"])) > self._others_in_line(call, seq) for seq in late
        )

    def _ends_us(self, seq: int) -> int:
        """Tell until when a state of the log lasted."""
        log = self.world.truth.log
        return log[seq].at_us if seq < len(log) else 1 << 62

    def _was_gone(self, call: Call) -> bool:
        """Tell whether there was a moment at which nobody, or another, had what the call names."""
        place = parse_address(call.values["address"])
        network = self._plan(call.began).networks[call.values["network"]].id
        assert call.ended is not None
        found = (state.get(place) for state in self.states[call.began : call.ended + 1])
        return any(each is None or each.state is State.COOLING or not _is_meant(call, each, network) for each in found)


def _is_meant(call: Call, standing: Standing, network: int) -> bool:
    named = (standing.owner, standing.network) == (call.values["owner"], network)
    return named and call.values.get("generation") in (None, standing.generation)


def _same_tenancy(one: Change, other: Change) -> bool:
    return (one.space, one.first, one.generation) == (other.space, other.first, other.generation)


def _holdings(call: Call) -> list[Holding]:
    answer = call.answer.holding if isinstance(call.answer, ClaimStatus) else call.answer
    answers = answer if isinstance(answer, list) else [answer]
    return [answer for answer in answers if isinstance(answer, Holding)]


def _asks_for(call: Call, change: Change) -> bool:
    if call.verb == "release_owner":
        return bool(call.values["owner"] == change.owner)
    if call.values.get("owner") != change.owner:
        return False
    same = parse_address(call.values["address"]) == change.first
    return same and call.values.get("generation") in (None, change.generation) and call.began < change.seq
