"""Run Neutron's suites in processes of their own, a piece a process, in one mode of the driver."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tenure.doors.neutron.options import DATABASE, LEDGER
from tests.doors.neutron.suites.catalogue import SUITES, Suite
from tests.doors.neutron.suites.judging import Outcome, Report, judge
from tests.infrastructure.postgres import run_folder, schema_in_thread

ROOT = Path(__file__).parents[4]
MODES = (DATABASE, LEDGER)
ONE_TEST_S = 180
"""After so long a test of Neutron's hangs; it fails, and the others go on."""

AT_ONCE = 2


@contextmanager
def settings(mode: str) -> Iterator[dict[str, str]]:
    """Give the environment that sets the driver to a mode; for mode ``ledger`` with a ledger of its own."""
    chosen = {"OS_DEFAULT__IPAM_DRIVER": "tenure", "OS_TENURE__MODE": mode}
    if mode == DATABASE:
        yield chosen
        return
    with schema_in_thread() as ledger:
        yield {**chosen, "OS_TENURE__LEDGER": ledger}


def run_piece(suite: Suite, mode: str, number: int = 0, of: int = 1) -> Outcome:
    """Run one of so many pieces of a suite, from an empty directory."""
    program = [sys.executable, "-m", "tests.doors.neutron.suites.runner", suite.name, str(number), str(of)]
    quiet = {"OS_LOG_CAPTURE": "0", "OS_TEST_TIMEOUT": str(ONE_TEST_S), "PYTHONPATH": str(ROOT)}
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tenure-suite-") as name, settings(mode) as chosen:
        report, log, empty = (Path(name) / word for word in ("report", "log", "empty"))
        empty.mkdir()
        with log.open("wb") as heard:
            subprocess.run(
                [*program, str(report)], cwd=empty, env={**os.environ, **quiet, **chosen}, check=False,
                stdin=subprocess.DEVNULL, stdout=heard, stderr=heard,
            )  # fmt: skip
        if not report.exists():
            raise RuntimeError(f"{suite.name} in mode {mode} ended early: {log.read_text('utf-8', 'replace')[-4000:]}")
        told = Report(**json.loads(report.read_text("utf-8")))
    return judge(suite, told, time.monotonic() - begun)


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
