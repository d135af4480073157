"""One operation is counted once, with the result that it ended with, however often it was tried on the way.

An allocation that waits for a VM, or dials several, or finds that the pool was moved, tries again and again. Whoever
begins such an operation says so by ``one_operation``; what is tried inside is then a part of it.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

from tenure.integrations.vmpool.pool_errors import PoolSwapConflict, VMPoolExhausted

ERROR = "error"


class OperationCounter(Protocol):
    """Whoever counts operations."""

    def operation(self, operation: str, result: str, seconds: float, attempts: int) -> None:
        """Count an operation that has ended."""


@dataclass
class OperationCount:
    """An operation that is under way."""

    operation: str
    result: str = ERROR
    """How its last try ended, in a word for the metrics."""
    attempts: int = 1
    """How often the write of its last try was tried."""
    is_noted: bool = False
    """Whether a write has carried its result into the notes of the pool, or still may."""
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Return how long it has taken, since it last began."""
        return time.monotonic() - self.began

    def begin_again(self) -> None:
        """Forget the time that a caller has waited of its own will."""
        self.began = time.monotonic()


_UNDER_WAY: ContextVar[OperationCount | None] = ContextVar("operation under way", default=None)


def under_way() -> OperationCount | None:
    """Return the operation that this is a part of, if it is part of one."""
    return _UNDER_WAY.get()


@contextlib.contextmanager
def one_operation(count: OperationCount) -> Iterator[None]:
    """Make what is tried inside a part of one operation; it is the caller's to count when it has ended."""
    token = _UNDER_WAY.set(count)
    try:
        yield
    except VMPoolExhausted:
        count.result = "exhausted"
        raise
    except PoolSwapConflict:
        count.result = "conflict"
        raise
    except asyncio.CancelledError:
        # Its write may still be done, and then notes what it did.
        count.result, count.is_noted = ERROR, True
        raise
    except BaseException:
        count.result = ERROR
        raise
    finally:
        _UNDER_WAY.reset(token)


def count_try(counter: OperationCounter, operation: str, result: str, seconds: float, attempts: int) -> None:
    """Count an operation that has ended; as a try of another one, only how it ended; as a step of one, not at all."""
    whole = under_way()
    if whole is None:
        counter.operation(operation, result, seconds, attempts)
    elif whole.operation == operation:
        whole.result, whole.attempts = result, attempts
