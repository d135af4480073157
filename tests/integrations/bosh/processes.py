"""Processes of their own, forked from one that is kept clean for that: the tests' own has libraries that forbid it."""

import multiprocessing
from collections.abc import Callable
from typing import Any

from tests.infrastructure.forks import FORKS

Process = multiprocessing.context.ForkServerProcess


def begin(work: Callable[..., None], *said: Any) -> Process:
    """Begin work in a process; what it is told must be picklable."""
    process = FORKS.Process(target=work, args=said)
    process.start()
    return process


def ended(process: Process) -> int:
    """Wait for a process, and return its exit code."""
    process.join()
    code = process.exitcode
    process.close()
    assert code is not None
    return code


def gate(parties: int) -> Any:
    """Make a gate that opens when so many are there."""
    return FORKS.Barrier(parties)
