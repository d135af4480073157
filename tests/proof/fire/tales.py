"""Rounds made by hand, to prove the rules: short words for attempts, answers and entries of the log."""

from collections.abc import Sequence
from typing import Any

from tests.proof.fire.attempts import Attempt, Outcome, Row, Wish
from tests.proof.fire.effects import Effect, Mark
from tests.proof.fire.evidence import Breach, Evidence, Excuse
from tests.proof.fire.rules import check
from tests.proof.plan import Plan

PLAN = Plan(
    [
        ("net", "10.0.0.0/24", "10.0.0.20-10.0.0.21", "low", "lowest"),
        ("net", "10.0.0.0/24", "10.0.0.10-10.0.0.10", "low", "lowest"),
        ("net", "10.0.0.0/24", "10.0.0.31-10.0.0.32", "any", "random"),
    ]
)
A, B, C = "10.0.0.20", "10.0.0.21", "10.0.0.10"
"""The addresses of pool ``low``, in written order."""

X, Y = "10.0.0.31", "10.0.0.32"
"""The addresses of pool ``any``."""

SECOND = 1_000_000


class Tale:
    """A round in the making. Times are seconds."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.log: list[Effect] = []
        self.events: list[tuple[int, str, str | None, int | None, str | None]] | None = None
        self.marks: list[Mark] = []
        self.verified: list[str] = []
        self.excuses: list[Excuse] = []

    def ask(self, verb: str, begin: float, end: float, *wishes: Wish, status: int | None = 200, **said: Any) -> Attempt:
        """Tell of an attempt; without a status its caller hung up."""
        name = said.pop("name", f"r{len(self.attempts) + 1}")
        attempt = Attempt(name, verb, said.pop("server", 0), wishes, _us(begin), **said)
        attempt.ended, attempt.status, attempt.hung_up = _us(end), status, status is None
        self.attempts.append(attempt)
        return attempt

    def allocate(self, owner: str, begin: float, end: float, *rows: Row, **said: Any) -> Attempt:
        """Tell of an attempt to get an address of a pool (``low`` if none is named), or that very address."""
        wish = Wish("grant", "net", owner, said.pop("address", None), pool=said.pop("pool", "low"))
        return self.ask("allocate", begin, end, wish, rows=rows, **said)

    def release(self, row: Row, begin: float, end: float, *, sure: bool = True, **said: Any) -> Attempt:
        """Tell of a release; if not sure, without the generation."""
        wish = Wish("release", "net", row.owner, row.address, row.generation if sure else None)
        return self.ask("release", begin, end, wish, **said)

    def enter(self, verb: str, at: float, row: Row, by: str | None, **more: Any) -> Effect:
        """Write an entry of the log."""
        if "until" in more:
            more["until"] = _us(more["until"])
        effect = Effect(len(self.log) + 1, _us(at), verb, "net", row.address, row.owner, row.generation, by, **more)
        self.log.append(effect)
        return effect

    def wait(self, at: float, owner: str, ticket: int) -> None:
        """Log that somebody begins to wait."""
        self.log.append(Effect(len(self.log) + 1, _us(at), "wait", "net", owner=owner, ticket=ticket))

    def granted(self, owner: str, address: str, at: float, **said: Any) -> Row:
        """Tell of a grant that was asked for, logged and answered within a moment."""
        row = held(address, len(self.log) + 1, owner)
        attempt = self.allocate(owner, at, at + 0.2, row, **{"pool": pool_of(address), **said})
        self.enter("grant", at + 0.1, row, attempt.id)
        return row

    def look(self, at: float) -> None:
        """Look at the log from outside: so far it had got by then."""
        self.marks.append(Mark(_us(at), _us(at), len(self.log)))

    def breaches(self) -> list[Breach]:
        """Hold it against the rules."""
        told = {"marks": self.marks, "events": self.events, "verified": self.verified, "excuses": self.excuses}
        return check(Evidence(PLAN, self.attempts, self.log, **told))  # type: ignore[arg-type]

    def broken(self) -> set[str]:
        """Name the rules that were broken."""
        return {breach.rule for breach in self.breaches()}


def held(address: str, generation: int, owner: str) -> Row:
    """Make a holding."""
    return Row("net", address, generation, owner)


def pool_of(address: str) -> str:
    """Name the pool of an address."""
    return "any" if address in (X, Y) else "low"


def refused(owners: Sequence[str], outcome: Outcome) -> dict[str, Outcome]:
    """Say that wishes of a list were refused with an outcome."""
    return dict.fromkeys(owners, outcome)


def _us(seconds: float) -> int:
    return int(seconds * SECOND)
