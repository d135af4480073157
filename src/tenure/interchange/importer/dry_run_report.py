"""What a dry run found: faults, oddities, and how much is new."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tenure.interchange.formats.source_items import Fault, Oddity, Remark

KINDS = ("networks", "subnets", "pools", "reserved ranges", "pre-allocations", "connections", "retirements", "holdings")


@dataclass(slots=True)
class DryRunReport:
    """The answer of a dry run, and of an import."""

    source: str
    faults: list[Fault] = field(default_factory=list)
    oddities: list[Oddity] = field(default_factory=list)
    new: Counter[str] = field(default_factory=Counter)
    already: Counter[str] = field(default_factory=Counter)

    @property
    def ok(self) -> bool:
        """Tell whether nothing keeps the import from being written."""
        return not self.faults

    def add(self, remark: Remark) -> None:
        """Put a remark where it belongs."""
        if isinstance(remark, Fault):
            self.faults.append(remark)
        else:
            assert isinstance(remark, Oddity)
            self.oddities.append(remark)

    def as_document(self) -> dict[str, Any]:
        """Write the report for programs."""
        return {
            "source": self.source,
            "ok": self.ok,
            "faults": [remark_document(fault) for fault in self.faults],
            "oddities": [remark_document(oddity) for oddity in self.oddities],
            "new": {kind: self.new[kind] for kind in KINDS},
            "already": {kind: self.already[kind] for kind in KINDS},
        }


def remark_document(remark: Remark) -> dict[str, Any]:
    """Write a remark for programs."""
    return {
        "source": remark.place.source,
        "line": remark.place.line,
        "path": remark.place.path or None,
        "field": remark.field or None,
        "code": remark.code,
        "reason": remark.reason,
    }
