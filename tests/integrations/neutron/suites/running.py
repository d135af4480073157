"""Run Neutron's suites in processes of their own, a piece a process, in one mode of the driver."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import tenure
from tenure.integrations.neutron.options import DATABASE, LEDGER
from tests.infrastructure.postgres import run_folder, schema_in_thread
from tests.integrations.neutron.suites.catalogue import SUITES, Suite
from tests.integrations.neutron.suites.judging import Outcome, Report, judge

ROOT = Path(__file__).parents[4]
MODES = (DATABASE, LEDGER)
ONE_TEST_S = 180
"""After so long a test of Neutron's hangs; it fails, and the others go on."""

AT_ONCE = 2


class EndedEarly(RuntimeError):
    """Raised where a child died before it had a report to write; carries the end of what it said."""


def run_piece(suite: Suite, mode: str, number: int = 0, of: int = 1) -> Outcome:
    """Run one of so many pieces of a suite; in mode ``ledger`` on a ledger of its own, which is looked at after."""
    begun = time.monotonic()
    try:
        report, faults = _run_in(mode, suite, number, of)
    except EndedEarly as error:
        return Outcome(0, 0, 0, 0, (f"{suite.name} in mode {mode}: {error}",), time.monotonic() - begun)
    outcome = judge(suite, report, time.monotonic() - begun)
    return replace(outcome, failures=(*outcome.failures, *faults))


def _run_in(mode: str, suite: Suite, number: int, of: int) -> tuple[Report, list[str]]:
    chosen = {"OS_DEFAULT__IPAM_DRIVER": "tenure", "OS_TENURE__MODE": mode}
    if mode == DATABASE:
        return _run(suite, number, of, chosen), []
    with schema_in_thread() as ledger:
        return _run(suite, number, of, {**chosen, "OS_TENURE__LEDGER": ledger}), _look_at(ledger)


def _run(suite: Suite, number: int, of: int, chosen: Mapping[str, str]) -> Report:
    program = [sys.executable, "-m", "tests.integrations.neutron.suites.runner", suite.name, str(number), str(of)]
    quiet = {"OS_LOG_CAPTURE": "0", "OS_TEST_TIMEOUT": str(ONE_TEST_S), "PYTHONPATH": _path()}
    with tempfile.TemporaryDirectory(prefix="tenure-suite-") as name:
        report, log, empty = (Path(name) / word for word in ("report", "log", "empty"))
        empty.mkdir()
        with log.open("wb") as heard:
            subprocess.run(
                [*program, str(report)], cwd=empty, env={**os.environ, **quiet, **chosen}, check=False,
                stdin=subprocess.DEVNULL, stdout=heard, stderr=heard,
            )  # fmt: skip
        if not report.exists():
            raise EndedEarly(log.read_text("utf-8", "replace")[-4000:])
        return Report(**json.loads(report.read_text("utf-8")))


def _path() -> str:
    """Return where the child looks for modules: here, and where this process does."""
    return os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])


def _look_at(url: str) -> list[str]:
    """Find what is wrong with the ledger after a run: breaches, nothing written, or something still undecided."""
    with tenure.open(url) as ledger:
        faults = [f"the ledger has a breach: {breach}" for breach in ledger.verify()]
        if ledger.last_change() == 0:
            faults.append("nothing was written to the ledger")
        pending = [
            f"left undecided in the ledger: {holding}"
            for network in ledger.networks()
            for holding in ledger.holdings(network.name)
            if holding.state is tenure.State.PENDING
        ]
    return faults + pending


def run_all() -> dict[str, Outcome]:
    """Run every suite in both modes, each in as many pieces as run at once."""
    jobs = [(suite, mode) for suite in SUITES.values() for mode in MODES]
    outcomes = {}
    with run_folder(), ThreadPoolExecutor(AT_ONCE) as crew:
        pieces = {
            f"{suite.name}, {mode}": [crew.submit(run_piece, suite, mode, number, AT_ONCE) for number in range(AT_ONCE)]
            for suite, mode in jobs
        }
        for name, parts in pieces.items():
            first, *others = (part.result() for part in parts)
            outcomes[name] = sum(others, start=first)
            print(f"  {name}: {outcomes[name].figures}", flush=True)
            for failure in outcomes[name].failures:
                print(f"    {failure}", flush=True)
    return outcomes
