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
    ]
)
A, B, C = "10.0.0.20", "10.0.0.21", "10.0.0.10"
"""The addresses of pool ``low``, in written order."""

S, T = "10.0.0.31", "10.0.0.32"
"""The addresses of pool ``stick``."""


class Story:
    """A history in the making. Times are small numbers; a call that ends at NEVER was never answered."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.final: list[Tenancy] = []
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
        held = self.tenancy(address, owner, f"r{len(self.calls) + 1}")
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

    def enter(self, verb: str, held: Tenancy, request: str | None = None) -> None:
        """Write an entry of the log."""
        self.log.append(Logged(len(self.log) + 1, verb, held._replace(request=request or held.request)))

    def judge(self, *, exact: bool = True) -> list[Finding]:
        """Ask both halves of the checker."""
        history = History(self.calls, self.final, self.log)
        return [*check_calls(history, PLAN), *check_log(history, PLAN, exact=exact)]

    def kinds(self) -> set[str]:
        """Return what calls, answers and final state, without the log, are found guilty of."""
        return {finding.kind for finding in check_calls(History(self.calls, self.final), PLAN)}

    def log_kinds(self, *, exact: bool = True) -> set[str]:
        """Return what the log is found guilty of."""
        history = History(self.calls, self.final, self.log)
        return {finding.kind for finding in check_log(history, PLAN, exact=exact)}


__all__ = ["NEVER", "PLAN", "A", "B", "C", "S", "Story", "T"]
