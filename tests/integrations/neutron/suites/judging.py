"""What to make of a run: a failure is whatever the catalogue does not foresee, and whatever it foresees in vain."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.integrations.neutron.suites.catalogue import Suite

DRIVER = "TenurePool"


@dataclass(frozen=True)
class Report:
    """What a child wrote down: all tests of the suite, those of its piece, what became of them, the drivers made."""

    known: Sequence[str]
    ran: Sequence[str]
    failed: Mapping[str, str]
    skipped: Mapping[str, str]
    pools: Mapping[str, int]


@dataclass(frozen=True)
class Outcome:
    """What a run was worth; ``failures`` is empty if all is well."""

    tests: int
    tied: int
    hollow: int
    skipped: int
    failures: tuple[str, ...]
    seconds: float = 0.0

    def __add__(self, other: "Outcome") -> "Outcome":
        return Outcome(
            self.tests + other.tests,
            self.tied + other.tied,
            self.hollow + other.hollow,
            self.skipped + other.skipped,
            (*self.failures, *other.failures),
            self.seconds + other.seconds,
        )

    @property
    def figures(self) -> dict[str, Any]:
        """Return the counts."""
        return {
            "tests": self.tests,
            "failures": len(self.failures),
            "tied": self.tied,
            "hollow": self.hollow,
            "skipped": self.skipped,
            "seconds": round(self.seconds, 1),
        }


def piece(names: Sequence[str], number: int, of: int) -> list[str]:
    """Choose every so manieth name: pieces of one length, with something of each class."""
    return list(names[number::of])


def judge(suite: Suite, report: Report, seconds: float = 0.0) -> Outcome:
    """Hold a report against the catalogue."""
    tied = sum(_by_its_tie(suite, name, reason) for name, reason in report.failed.items())
    hollow = sum(name in suite.hollow and name not in report.failed for name in report.ran)
    return Outcome(len(report.ran), tied, hollow, len(report.skipped), tuple(_faults(suite, report)), seconds)


def _by_its_tie(suite: Suite, name: str, reason: str) -> bool:
    return name in suite.tied and suite.tied[name].sign in reason


def _faults(suite: Suite, report: Report) -> Iterator[str]:
    yield from _not_foreseen(suite, report)
    yield from _foreseen_in_vain(suite, report)
    if len(report.known) < suite.least:
        yield f"only {len(report.known)} tests were found, and there should be {suite.least}"
    if set(report.pools) != {DRIVER}:
        yield f"the drivers made were {dict(report.pools)}, and should be {DRIVER} alone"


def _not_foreseen(suite: Suite, report: Report) -> Iterator[str]:
    for name, reason in report.failed.items():
        if not _by_its_tie(suite, name, reason):
            yield f"{name} failed: {reason}"
    for name, reason in report.skipped.items():
        if name not in suite.skipped:
            yield f"{name} was skipped and is not listed as such: {reason}"


def _foreseen_in_vain(suite: Suite, report: Report) -> Iterator[str]:
    for name in report.ran:
        if name in suite.tied and name not in report.failed:
            yield f"{name} is listed as tied to the stock driver and did not fail; take it off the list"
        if name in suite.skipped and name not in report.skipped:
            yield f"{name} is listed as skipped by Neutron and was not; take it off the list"
    for name in sorted({*suite.tied, *suite.hollow, *suite.skipped} - {*report.known}):
        yield f"{name} is listed and no longer there; take it off the list"
