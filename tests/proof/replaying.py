"""The other half of the history checker: the log replayed, entry by entry, against the calls that made it.

On stores of the ledger tier the log is exact: no number is missing, every *lowest* grant was the first free address
in written order at its number, and a sticky owner came back to its address if that stood empty. A book's log is
told to watchers only; there the order of effects counts, and that every effect is in it once.
"""

from collections import Counter
from collections.abc import Iterator

from tests.proof.checking import Finding, fits
from tests.proof.history import NEVER, Call, History, Logged, Tenancy
from tests.proof.plan import Plan


def check_log(history: History, plan: Plan, *, exact: bool) -> list[Finding]:
    """Replay the log and hold it against answers, final state and plan."""
    replay = Replay(history, plan, exact=exact)
    findings = [finding for entry in history.log or () for finding in replay.step(entry)]
    findings.extend(replay.end())
    findings.extend(_everything_once(history))
    return findings


class Replay:
    """The state of the ledger after each entry of its log."""

    def __init__(self, history: History, plan: Plan, *, exact: bool) -> None:
        self._history = history
        self._plan = plan
        self._exact = exact
        self._seq = 0
        self._held: dict[str, Tenancy] = {}
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
        call = self._history.by_request.get(entry.tenancy.request or "")
        if call is None:
            yield Finding("unasked", f"nobody asked for {entry}")
        else:
            yield from self._match(entry, entry.tenancy, call)
        yield from self._apply(entry, entry.tenancy, call)

    def _match(self, entry: Logged, tenancy: Tenancy, call: Call) -> Iterator[Finding]:
        """Hold an effect against the call that made it."""
        verbs = {"grant": ("allocate", "allocate_many"), "release": ("release", "release_owner")}
        if call.verb not in verbs.get(entry.verb, ("transfer",)) or not fits(call, tenancy, self._plan):
            yield Finding("wrong effect", f"{call.verb} {dict(call.args)} made {entry}")
        if call.returned < self._latest_invoke:
            yield Finding("log order", f"{entry} was answered before an earlier entry was asked for")
        self._latest_invoke = max(self._latest_invoke, call.invoked)
        refused = call.error is not None and not call.unknown
        if refused and (entry.verb != "release" or call.outcome == "none"):
            yield Finding("trace of an error", f"{call.request} was answered {call.error}, and there is {entry}")

    def _apply(self, entry: Logged, tenancy: Tenancy, call: Call | None) -> Iterator[Finding]:
        before = self._held.get(tenancy.address)
        if entry.verb == "grant":
            if before is not None:
                yield Finding("doubled", f"{entry} was granted over {before}")
            elif call is not None and self._exact:
                yield from self._judge_pick(tenancy, call)
            self._held[tenancy.address] = tenancy
        elif entry.verb == "transfer":
            if before is None or (before.owner, before.slot) != entry.former:
                yield Finding("wrong effect", f"{entry} was handed over, but held was {before}")
            self._held[tenancy.address] = tenancy
        else:
            if before is None or (before.key, before.claim) != (tenancy.key, tenancy.claim):
                yield Finding("wrong effect", f"{entry} was released, but held was {before}")
            self._held.pop(tenancy.address, None)
            self._freed_by[tenancy.address] = NEVER if call is None else call.returned
            self._former[tenancy.claim] = tenancy.address

    def _judge_pick(self, tenancy: Tenancy, call: Call) -> Iterator[Finding]:
        if call.args.get("address") is not None:
            return
        network, pool = call.args["network"], call.args.get("pool")
        policy = call.args.get("policy") or self._plan.policy(network, pool)
        order = self._plan.order(network, pool)
        if policy == "lowest":
            lowest = next((address for address in order if address not in self._held), None)
            if lowest != tenancy.address:
                yield Finding("not the lowest", f"{tenancy} was granted when {lowest} was free")
        if policy == "sticky" and self._plan.remembers(network):
            former = self._former.get(tenancy.claim)
            free = (
                former in order and former not in self._held and self._freed_by.get(former or "", NEVER) < call.invoked
            )
            if free and former != tenancy.address:
                yield Finding("not sticky", f"{tenancy} was granted when its former {former} was free")

    def end(self) -> Iterator[Finding]:
        """Hold the replayed state against what the store holds."""
        final = {tenancy.address: tenancy for tenancy in self._history.final}
        for address in sorted(self._held.keys() | final.keys()):
            if self._held.get(address) != final.get(address):
                text = f"{address}: the log says {self._held.get(address)}, the store {final.get(address)}"
                yield Finding("log and holdings differ", text)


def _everything_once(history: History) -> Iterator[Finding]:
    """Find each acknowledged effect in the log, once."""
    log = [entry for entry in history.log or () if entry.tenancy is not None]
    begun = Counter(entry.tenancy[:5] for entry in log if entry.tenancy and entry.verb != "release")
    ended = Counter(entry.tenancy for entry in log if entry.verb == "release")
    for call in history.calls:
        if call.unknown or call.error is not None:
            continue
        for tenancy in call.rows:
            times = begun[tenancy[:5]]
            if times != 1:
                yield Finding("lost from the log", f"{tenancy} was answered, and begins {times} times")
            times = ended[tenancy._replace(request=call.request)]
            if call.verb == "release" and times != 1:
                yield Finding("lost from the log", f"{tenancy} was released by {call.request}, and ends {times} times")
