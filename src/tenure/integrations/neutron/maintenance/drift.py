"""Drift: where Neutron's tables, ours and the ledger do not say the same; and what became of it."""

import enum
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tenure.kernel.addressing.addresses import format_address


@dataclass(frozen=True, slots=True)
class Drift:
    """One thing that is not as Neutron has it. ``repairable``: it can be put right here, without harm to others."""

    kind: str
    subnet: str
    text: str
    place: int | None = None
    repairable: bool = True

    @property
    def address(self) -> str | None:
        """Write the address, where it is about one."""
        return None if self.place is None else format_address(self.place)

    def __str__(self) -> str:
        where = f"{self.subnet} {self.address}" if self.address else self.subnet
        return f"{self.kind}: {where}: {self.text}"


class DriftOutcome(enum.StrEnum):
    """What became of a drift. Of what is in flight a transaction is still open, which will settle it."""

    FOUND = "found"
    REPAIRED = "repaired"
    LEFT = "left"
    IN_FLIGHT = "in-flight"


SETTLED = (DriftOutcome.FOUND, DriftOutcome.REPAIRED)
FOLLOWING = {
    "subnet-missing": frozenset({"row-missing", "plan-differs"}),
    "subnet-unreadable": frozenset({"plan-differs"}),
}
"""What is not as it should be because of something else: without our record of a subnet there are no rows either."""


LEAVABLE = frozenset({"address-conflict", "address-outside", "network-extra", "row-unreadable", "subnet-unreadable"})
"""What may be left: an address has two holders in the world already, or none in its subnet; a network has a guest; what
Neutron's own tables say cannot be read.
"""


@dataclass(slots=True)
class DriftReport:
    """What a round found, and what it did."""

    mode: str
    subnets: int = 0
    addresses: int = 0
    agreed: bool = False
    found: list[tuple[Drift, DriftOutcome]] = field(default_factory=list)
    folds: bool = False
    removal: tuple[int, int] = (0, 0)
    """Networks with held addresses that go, or would go, because no subnet is there any more; and the addresses."""
    notes: list[str] = field(default_factory=list)
    _causes: dict[str, frozenset[str]] = field(default_factory=dict)

    def note(self, drifts: Iterable[Drift], outcome: DriftOutcome) -> None:
        """Note drifts, and what became of them; if it ``folds``, what follows from another drift is not told again."""
        for drift in drifts:
            became = outcome if drift.repairable else DriftOutcome.LEFT
            if not (self.folds and became in SETTLED and self._follows(drift)):
                self.found.append((drift, became))

    def _follows(self, drift: Drift) -> bool:
        """Tell whether a drift was to be expected from one that was told of its subnet before."""
        if drift.kind in FOLLOWING:
            self._causes[drift.subnet] = FOLLOWING[drift.kind]
            return False
        return drift.kind in self._causes.get(drift.subnet, frozenset())

    def of(self, *outcomes: DriftOutcome) -> Iterator[Drift]:
        """Yield the drifts with one of these outcomes."""
        return (drift for drift, outcome in self.found if outcome in outcomes)

    @property
    def left(self) -> list[Drift]:
        """Return what cannot be repaired here."""
        return list(self.of(DriftOutcome.LEFT))

    @property
    def leavable(self) -> bool:
        """Tell whether a deployment can do with what is left."""
        return {drift.kind for drift in self.left} <= LEAVABLE

    @property
    def in_flight(self) -> list[Drift]:
        """Return what a transaction is open behind."""
        return list(self.of(DriftOutcome.IN_FLIGHT))

    @property
    def clean(self) -> bool:
        """Tell whether everything agrees, now that the round is over, but for what is in flight."""
        return not any(self.of(DriftOutcome.FOUND, DriftOutcome.LEFT))

    @property
    def counts(self) -> dict[str, int]:
        """Count the drifts of each kind."""
        return dict(Counter(drift.kind for drift, _ in self.found))

    def as_document(self, *, agreeing: bool) -> dict[str, Any]:
        """Write it as a document; ``agreeing``: the round was one after which a deployment may agree on its mode."""
        return {
            "mode": self.mode,
            "clean": self.clean,
            **({"agreed": self.agreed} if agreeing else {}),
            "subnets": self.subnets,
            "addresses": self.addresses,
            **({"removal": dict(zip(("networks", "addresses"), self.removal, strict=True))} if agreeing else {}),
            "notes": self.notes,
            "counts": self.counts,
            "drifts": [_document(drift, outcome) for drift, outcome in self.found],
        }


def _document(drift: Drift, outcome: DriftOutcome) -> dict[str, Any]:
    return {
        "kind": drift.kind,
        "subnet": drift.subnet,
        "address": drift.address,
        "text": drift.text,
        "repairable": drift.repairable,
        "outcome": str(outcome),
    }
