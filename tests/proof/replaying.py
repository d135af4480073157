"""The other half of the history checker: the log replayed, entry by entry, against the calls that made it.

On stores of the ledger tier the log is exact: no number is missing, every *lowest* grant was the first free address
in written order at its number, and a sticky owner came back to its address if that stood empty. A book's log is
told to watchers only; there the order of effects counts, and that every effect is in it once.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.proof.checking import Finding, fits
from tests.proof.history import ASKING, NEVER, Call, History, Logged, Tenancy
from tests.proof.plan import Plan, addresses
from tests.proof.turns import passed_over


def check_log(history: History, plan: Plan, *, exact: bool) -> list[Finding]:
    """Replay the log and hold it against answers, final state and plan."""
    replay = Replay(history, plan, exact=exact)
    findings = [finding for entry in history.log or () for finding in replay.step(entry)]
    findings.extend(replay.end())
    findings.extend(_everything_once(history))
    return findings


class Standing(NamedTuple):
    """What the log says of an address: whose it is, or was if it cools."""

    tenancy: Tenancy
    state: str = "held"


MADE_BY = {
    "grant": ASKING,
    "release": ("release", "release_owner"),
    "cool": ("release", "release_owner"),
    "confirm": ("confirm",),
    "transfer": ("transfer",),
}
"""The calls that make an entry; what was ``cancelled`` is made by ``cancel``."""

BREATH_US = 1000

FIRM = ("grant", "transfer", "confirm")
"""Entries after which a holding is held, unless they say that it is pending."""

REPEATED = ("release", "cool", "confirm")
"""Entries whose call may be answered with an error: its first answer was lost, and the second try found others."""


class Replay:
    """The state of the ledger after each entry of its log."""

    def __init__(self, history: History, plan: Plan, *, exact: bool) -> None:
        self._history = history
        self._plan = plan
        self._exact = exact
        self._seq = 0
        self._held: dict[str, Standing] = {}
        self._line: dict[int, tuple[str, str, str]] = {}
        self._swept: tuple[int, set[str]] = (0, set())
        self._freed_by: dict[str, float] = {}  # address: when its last release had been answered
        self._former: dict[tuple[str, str, str], str] = {}
        self._latest_invoke = -NEVER

    def step(self, entry: Logged) -> Iterator[Finding]:
        """Take one entry."""
        expected = self._seq + 1
        if entry.seq < expected or (self._exact and entry.seq > expected):
            yield Finding("log order", f"entry {entry.seq} comes after {self._seq}")
        self._seq = entry.seq
        if entry.tenancy is None:
            return
        if entry.ticket is not None:
            self._stand_in_line(entry.verb, entry.ticket, entry.tenancy)
            return
        call = self._history.by_request.get(entry.tenancy.request or "")
        if call is not None:
            yield from self._match(entry, entry.tenancy, call)
        elif not entry.by_the_clock:
            yield Finding("unasked", f"nobody asked for {entry}")
        yield from self._apply(entry, entry.tenancy, call)

    def _stand_in_line(self, verb: str, ticket: int, tenancy: Tenancy) -> None:
        self._leave_line(tenancy)
        if verb == "wait":
            self._line[ticket] = tenancy.claim

    def _leave_line(self, tenancy: Tenancy) -> None:
        self._line = {ticket: claim for ticket, claim in self._line.items() if claim != tenancy.claim}

    def _match(self, entry: Logged, tenancy: Tenancy, call: Call) -> Iterator[Finding]:
        """Hold an effect against the call that made it."""
        verbs = ("cancel",) if entry.because == "cancelled" else MADE_BY[entry.verb]
        if call.verb not in verbs or not fits(call, tenancy, self._plan):
            yield Finding("wrong effect", f"{call.verb} {dict(call.args)} made {entry}")
        if call.returned < self._latest_invoke:
            yield Finding("log order", f"{entry} was answered before an earlier entry was asked for")
        self._latest_invoke = max(self._latest_invoke, call.invoked)
        refused = call.error is not None and not call.unknown
        if refused and (entry.verb not in REPEATED or call.outcome == "none"):
            yield Finding("trace of an error", f"{call.request} was answered {call.error}, and there is {entry}")

    def _apply(self, entry: Logged, tenancy: Tenancy, call: Call | None) -> Iterator[Finding]:
        before = self._held.get(tenancy.address)
        if entry.verb == "grant":
            if before is not None:
                yield Finding("doubled", f"{entry} was granted over {before}")
            elif call is not None and self._exact:
                yield from self._judge_pick(tenancy, call, entry.at_us)
            self._held[tenancy.address] = Standing(tenancy, "pending" if entry.pending else "held")
            self._leave_line(tenancy)
        elif entry.verb == "transfer":
            if before is None or (before.tenancy.owner, before.tenancy.slot) != entry.former:
                yield Finding("wrong effect", f"{entry} was handed over, but held was {before}")
            self._held[tenancy.address] = Standing(tenancy, "held" if before is None else before.state)
            self._leave_line(tenancy)
        else:
            yield from self._go_on(entry, tenancy, before, call)

    def _go_on(self, entry: Logged, tenancy: Tenancy, before: Standing | None, call: Call | None) -> Iterator[Finding]:
        """Confirm, cool or end what stands there."""
        if before is None or (before.tenancy.key, before.tenancy.claim) != (tenancy.key, tenancy.claim):
            yield Finding("wrong effect", f"{entry}: {entry.verb} of what was not there, but {before}")
        elif before.state not in _states_before(entry):
            yield Finding("wrong effect", f"{entry}: {entry.verb} of what was {before.state}")
        elif entry.verb == "release" and before.state == "held" and self._cools(tenancy):
            yield Finding("not cooled", f"{entry} was free at once")
        if entry.verb == "confirm":
            if before is not None:
                self._held[tenancy.address] = before._replace(state="held")
            return
        self._former[tenancy.claim] = tenancy.address
        if entry.verb == "cool":
            self._held[tenancy.address] = Standing(tenancy if before is None else before.tenancy, "cooling")
            return
        self._held.pop(tenancy.address, None)
        self._freed_by[tenancy.address] = NEVER if call is None else call.returned
        if entry.by_the_clock:
            known = self._swept_by(entry.at_us)
            self._swept = (entry.at_us, {*known, tenancy.address})

    def _swept_by(self, at_us: int) -> set[str]:
        """Find what was swept away in the same breath: a transaction writes all its entries in one."""
        return self._swept[1] if abs(at_us - self._swept[0]) <= BREATH_US else set()

    def _cools(self, tenancy: Tenancy) -> bool:
        pools = self._plan.pools_of(tenancy.network, None)
        return any(pool.cooling != "0" and tenancy.address in addresses(pool.range) for pool in pools)

    def _judge_pick(self, tenancy: Tenancy, call: Call, at_us: int) -> Iterator[Finding]:
        if call.args.get("address") is not None:
            return
        network, pool = call.args["network"], call.args.get("pool")
        policy = call.args.get("policy") or self._plan.policy(network, pool)
        order = self._plan.order(network, pool)
        older = self._older(tenancy)
        if policy == "lowest" and not any(tenancy.address in line for line in older.values()):
            # What the grant's own transaction swept away was not yet free for the first whom it served.
            swept = self._swept_by(at_us)
            below = order[: order.index(tenancy.address)]
            lower = [address for address in below if address not in self._held and address not in swept]
            if lower:
                yield Finding("not the lowest", f"{tenancy} was granted when {lower[0]} was free")
        yield from self._judge_turn(tenancy, older)
        if policy == "sticky" and self._plan.remembers(network):
            former = self._former.get(tenancy.claim)
            free = (
                former in order and former not in self._held and self._freed_by.get(former or "", NEVER) < call.invoked
            )
            if free and former != tenancy.address:
                yield Finding("not sticky", f"{tenancy} was granted when its former {former} was free")

    def _older(self, tenancy: Tenancy) -> dict[int, list[str]]:
        """Find those in line before a claim that have nothing, and where they may be served from: their slot's pool."""
        mine = min((ticket for ticket, claim in self._line.items() if claim == tenancy.claim), default=None)
        holders = {standing.tenancy.claim for standing in self._held.values() if standing.state != "cooling"}
        return {
            ticket: self._plan.order(claim[0], claim[2])
            for ticket, claim in self._line.items()
            if claim != tenancy.claim and claim not in holders and (mine is None or ticket < mine)
        }

    def _judge_turn(self, tenancy: Tenancy, older: Mapping[int, Sequence[str]]) -> Iterator[Finding]:
        free = [address for line in older.values() for address in line if address not in self._held]
        for ticket in passed_over(tenancy.address, [*dict.fromkeys(free)], older):
            yield Finding("passed over", f"{tenancy} was granted before ticket {ticket} {self._line[ticket]}")

    def end(self) -> Iterator[Finding]:
        """Hold the replayed state against what the store holds."""
        final = {tenancy.address: tenancy for tenancy in self._history.final}
        cooling = {tenancy.address: tenancy for tenancy in self._history.cooling}
        said: dict[bool, dict[str, Tenancy]] = {True: {}, False: {}}
        for address, (tenancy, state) in self._held.items():
            said[state == "cooling"][address] = tenancy
        for told, found in ((said[False], final), (said[True], cooling)):
            for address in sorted(told.keys() | found.keys()):
                if told.get(address) != found.get(address):
                    text = f"{address}: the log says {told.get(address)}, the store {found.get(address)}"
                    yield Finding("log and holdings differ", text)


def _states_before(entry: Logged) -> tuple[str, ...]:
    """Return the states in which an entry may find what it is about."""
    if entry.verb == "confirm" or entry.because in ("deadline", "cancelled"):
        return ("pending",)
    if entry.because == "cooled off":
        return ("cooling",)
    return ("held",) if entry.verb == "cool" else ("held", "pending")


def _everything_once(history: History) -> Iterator[Finding]:
    """Find each acknowledged effect in the log, once."""
    log = [entry for entry in history.log or () if entry.tenancy is not None and entry.ticket is None]
    begun = Counter(entry.tenancy[:5] for entry in log if entry.tenancy and entry.verb in ("grant", "transfer"))
    ended = Counter(entry.tenancy for entry in log if entry.verb in ("release", "cool"))
    firm = {entry.tenancy[:5] for entry in log if entry.tenancy and not entry.pending and entry.verb in FIRM}
    for call in history.calls:
        if call.unknown or call.error is not None:
            continue
        for tenancy in call.rows:
            times = begun[tenancy[:5]]
            if times != 1:
                yield Finding("lost from the log", f"{tenancy} was answered, and begins {times} times")
            times = ended[tenancy._replace(request=call.request)]
            if call.verb in ("release", "cancel") and times != 1:
                yield Finding("lost from the log", f"{tenancy} was released by {call.request}, and ends {times} times")
            if call.verb == "confirm" and tenancy[:5] not in firm:
                yield Finding("lost from the log", f"{tenancy} was confirmed by {call.request}, and the log knows not")
