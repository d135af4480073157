"""The child: ``python -m tests.integrations.neutron.suites.runner SUITE NUMBER OF REPORT`` runs a piece of one suite.

It runs in a process of its own because Neutron's suites change what is global: options, plugins, the database.
"""

import json
import os
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.integrations.neutron.suites import shim
from tests.integrations.neutron.suites.catalogue import SUITES, Suite
from tests.integrations.neutron.suites.judging import piece


class Noting(unittest.TestResult):
    """Notes by name what failed, and why, and what was skipped."""

    def __init__(self) -> None:
        super().__init__()
        self.failed: dict[str, str] = {}
        self.passed_over: dict[str, str] = {}

    def startTest(self, test: Any) -> None:  # noqa: N802
        """Let each test be a deployment of its own: it has a database of its own, and all share a ledger."""
        super().startTest(test)
        os.environ["OS_TENURE__REALM"] = f"suite-{self.testsRun}"

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        """Note an error."""
        super().addError(test, err)
        self.failed[name_of(test)] = self.errors[-1][1]

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        """Note a failure."""
        super().addFailure(test, err)
        self.failed[name_of(test)] = self.failures[-1][1]

    def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: N802
        """Note a test that Neutron thought would fail."""
        super().addUnexpectedSuccess(test)
        self.failed[name_of(test)] = "passed, though Neutron expects it to fail"

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
        """Note a skip."""
        super().addSkip(test, reason)
        self.passed_over[name_of(test)] = reason


def name_of(test: Any) -> str:
    """Call a test ``Class.test_name``."""
    return ".".join(str(test.id()).split(".")[-2:])


def load(suite: Suite) -> dict[str, Any]:
    """Load a suite's tests, by name and in the order of names."""
    loaded = unittest.defaultTestLoader.loadTestsFromNames(suite.loads)
    tests = [test for test in _flat(loaded) if type(test).__name__ not in suite.left_out]
    named = {name_of(test): test for test in tests}
    assert len(named) == len(tests), "two tests have one name"
    return dict(sorted(named.items()))


def _flat(tests: Any) -> Iterator[Any]:
    for test in tests:
        if isinstance(test, unittest.TestSuite):
            yield from _flat(test)
        else:
            yield test


def main(name: str, number: int, of: int, report: Path) -> None:
    """Run one piece and write down what came of it."""
    suite = SUITES[name]
    shim.install(classes=suite.direct)
    tests = load(suite)
    chosen = piece(list(tests), number, of)
    result = Noting()
    unittest.TestSuite(tests[each] for each in chosen).run(result)
    told = {
        "known": list(tests),
        "ran": chosen,
        "failed": result.failed,
        "skipped": result.passed_over,
        "pools": shim.POOLS,
    }
    report.write_text(json.dumps(told), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
