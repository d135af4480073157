"""Histories made by hand, to prove the checker: short words for calls, answers and entries of the log."""

from typing import Any

from tests.proof.checking import Finding, check_calls
from tests.proof.history import NEVER, Call, History, Logged, Tenancy
from tests.proof.plan import Plan
from tests.proof.replaying import check_log

PLAN = Plan(
    [
        ("net", "10.0.0.0/24", "10.0.0.20-10.0.0.21", "low", "lowest"),
        ("net", "10.0.0.0/24", "10.0.0.10-10.0.0.10", "low", "lowest"),
        ("net", "10.0.0.0/24", "10.0.0.31-10.0.0.32", "stick", "sticky"),
        ("net", "10.0.0.0/24", "10.0.0.41-10.0.0.42", "cool", "lowest", "1"),
    ]
)
A, B, C = "10.0.0.20", "10.0.0.21", "10.0.0.10"
"""The addresses of pool ``low``, in written order."""

S, T = "10.0.0.31", "10.0.0.32"
"""The addresses of pool ``stick``."""


X, Y = "10.0.0.41", "10.0.0.42"
"""The addresses of pool ``cool``."""


class Story:
    """A history in the making. Times are small numbers; a call that ends at NEVER was never answered."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.final: list[Tenancy] = []
        self.cooling: list[Tenancy] = []
        self.log: list[Logged] = []
        self._generation = 0

    def tell(self, verb: str, begin: float, end: float, *rows: Tenancy, error: str | None = None, **args: Any) -> Call:
        """Tell of a call and its answer; ``error="none"`` and ``"unknown"`` are outcomes of a store that was away."""
        away = error in ("none", "unknown")
        code, outcome = ("store_unavailable", error) if away else (error, None)
        request = args.pop("request", f"r{len(self.calls) + 1}")
        call = Call(request, verb, {"network": "net", **args}, begin, end, code, outcome, rows)
        self.calls.append(call)
        return call

    def ask(self, owner: str, begin: float, end: float, *, error: str | None = None, **args: Any) -> Call:
        """Tell of an allocation that was refused, or not answered."""
        return self.tell("allocate", begin, end, error=error, owner=owner, **{"pool": "low", **args})

    def tenancy(self, address: str, owner: str, request: str, slot: str = "") -> Tenancy:
        """Make a tenancy of its own generation."""
        self._generation += 1
        return Tenancy("net", address, self._generation, owner, slot, request)

    def grant(self, address: str, owner: str, begin: float, end: float, *, named: bool = False, **args: Any) -> Tenancy:
        """Tell of an allocation that was granted (of a named address, if so), and log it."""
        held = self.tenancy(address, owner, f"r{len(self.calls) + 1}", args.get("slot", ""))
        place = {"address": address} if named else {"pool": "low", **args}
        self.tell("allocate", begin, end, held, owner=owner, **place)
        self.enter("grant", held)
        return held

    def release(self, held: Tenancy, begin: float, end: float, *, answered: bool = True, **more: Any) -> Call:
        """Tell of a release by the right owner and generation, and log it if it was answered."""
        args = {"address": held.address, "owner": held.owner, "generation": held.generation, **more}
        call = self.tell("release", begin, end, *([held] if answered else []), **args)
        if answered:
            self.enter("release", held, call.request)
        return call

    def hold(self, address: str, owner: str, begin: float, end: float, *, lasts_s: float | None = 1.0) -> Tenancy:
        """Tell of an address of pool ``cool`` that was held for the time being, and log it."""
        held = self.tenancy(address, owner, f"r{len(self.calls) + 1}", "cool")
        self.tell("hold", begin, end, held, owner=owner, pool="cool", slot="cool", lasts_s=lasts_s)
        self.enter("grant", held, pending=True)
        return held

    def settle(self, verb: str, held: Tenancy, begin: float, end: float, *, error: str | None = None) -> Call:
        """Tell of a confirm, a cancel or a release, without the log."""
        args = {"address": held.address, "owner": held.owner, "generation": held.generation}
        return self.tell(verb, begin, end, *([] if error else [held]), error=error, **args)

    def enter(self, verb: str, held: Tenancy, request: str | None = None, **more: Any) -> None:
        """Write an entry of the log."""
        self.log.append(Logged(len(self.log) + 1, verb, held._replace(request=request or held.request), **more))

    def expire(self, held: Tenancy, because: str = "deadline") -> None:
        """Log that a deadline ended a holding."""
        self.enter("release", held._replace(request=None), because=because, at_us=1)

    def wait(self, owner: str, ticket: int, verb: str = "wait") -> None:
        """Log that somebody begins to wait for an address of pool ``cool``, or goes away."""
        self.enter(verb, Tenancy("net", "", 0, owner, "cool", None), ticket=ticket)

    def judge(self, *, exact: bool = True) -> list[Finding]:
        """Ask both halves of the checker."""
        history = History(self.calls, self.final, self.log, self.cooling)
        return [*check_calls(history, PLAN), *check_log(history, PLAN, exact=exact)]

    def kinds(self) -> set[str]:
        """Return what calls, answers and final state, without the log, are found guilty of."""
        return {finding.kind for finding in check_calls(History(self.calls, self.final), PLAN)}

    def log_kinds(self, *, exact: bool = True) -> set[str]:
        """Return what the log is found guilty of."""
        history = History(self.calls, self.final, self.log, self.cooling)
        return {finding.kind for finding in check_log(history, PLAN, exact=exact)}


__all__ = ["NEVER", "PLAN", "A", "B", "C", "S", "Story", "T", "X", "Y"]
