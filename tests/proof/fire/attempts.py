"""Attempts: what one client asked one server once, and what it heard. Each has a request id of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

GRANTING = frozenset({"allocate", "hold", "claim", "allocate_many", "apply", "run", "transfer", "confirm"})
"""Verbs whose answer says that somebody holds something now."""

Outcome = Literal["done", "none", "unknown"]


class Row(NamedTuple):
    """A holding as an answer shows it."""

    network: str
    address: str
    generation: int
    owner: str
    state: str = "held"


class Wish(NamedTuple):
    """One thing that an attempt asks for; most attempts ask for one. ``verb`` is what it would do to the ledger."""

    verb: str
    network: str | None
    owner: str
    address: str | None = None
    generation: int | None = None
    pool: str | None = None
    to: str | None = None

    @property
    def picks(self) -> bool:
        """Tell whether the ledger chooses the address."""
        return self.verb == "grant" and self.address is None


@dataclass(slots=True)
class Attempt:
    """A request and its answer, or its want of one. Times are microseconds of the machine's clock."""

    id: str
    verb: str
    server: int
    wishes: Sequence[Wish]
    called: int
    key: str | None = None
    wait_s: float = 0.0
    together: bool = True
    """Several wishes: all or none of them, not each on its own."""
    ended: int | None = None
    """When it was answered, or given up by its caller."""
    hung_up: bool = False
    status: int | None = None
    code: str | None = None
    said: str | None = None
    """The outcome that an error names: none or unknown."""
    rows: Sequence[Row] = ()
    """What the answer shows."""
    refused: Mapping[str, Outcome] = field(default_factory=dict)
    """Where wishes stand each on its own: the outcome of those that were refused, by owner."""

    @property
    def outcome(self) -> Outcome:
        """Tell what the caller knows: it was done, nothing was changed, or he cannot say."""
        if self.status is None:
            return "unknown"
        if self.status < 300:
            return "done"
        return "unknown" if self.said == "unknown" or self.status == 500 else "none"

    @property
    def acknowledged(self) -> Sequence[Row]:
        """Return what the answer says is held now."""
        return self.rows if self.outcome == "done" and self.verb in GRANTING else ()

    def told_nothing_changed(self, owner: str) -> bool:
        """Tell whether the caller was told that nothing was changed for an owner."""
        return self.outcome == "none" or (self.outcome == "done" and self.refused.get(owner) == "none")

    def __str__(self) -> str:
        asked = "; ".join(_said(wish) for wish in self.wishes)
        more = "".join([f" wait {self.wait_s:g} s" if self.wait_s else "", f" key {self.key}" if self.key else ""])
        took = "never" if self.ended is None else f"+{(self.ended - self.called) / 1e6:.3f} s"
        heard = "hung up" if self.status is None else f"{self.status} {self.code or ''} {self.said or ''}".strip()
        rows = ", ".join(f"{row.address}#{row.generation} {row.owner} {row.state}" for row in self.rows)
        return f"{self.called} {self.id} at s{self.server}: {self.verb} {asked}{more} -> {took} {heard} {rows}".rstrip()


def _said(wish: Wish) -> str:
    words = [wish.network or "everywhere", wish.pool, wish.address, wish.owner]
    words += [None if wish.generation is None else f"#{wish.generation}", None if wish.to is None else f"to {wish.to}"]
    return " ".join(word for word in words if word)


def problem_of(document: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Read code and outcome of a problem document."""
    outcome = document.get("data", {}).get("outcome")
    return document.get("code"), outcome if isinstance(outcome, str) else None
