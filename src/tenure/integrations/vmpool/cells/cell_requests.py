"""Requests about cells: asked again until there is an answer, within a time, and refused in the words of the pool."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable, VersionExpired
from tenure.integrations.vmpool.config_map_swap import AnswerLost, named_error
from tenure.integrations.vmpool.pool_errors import READ_FAILED, WRITE_FAILED, PoolUnavailable, wrapped
from tenure.integrations.vmpool.retry_schedule import RetrySchedule
from tenure.kernel.errors import CursorExpired

T = TypeVar("T")

ANSWER_S = 30.0


@dataclass(frozen=True)
class CellRequests:
    """How long and how often a request is sent until it is answered.

    A write is sent again as it is: its conditions and its text, which no other write has, say whether it was done.
    """

    answer_s: float = ANSWER_S
    schedule: RetrySchedule = field(default_factory=RetrySchedule)
    check: Callable[[], None] = field(default=lambda: None, repr=False)
    """Asked before each write, also one that is sent again; raises if this process must not write any more."""
    needs_check: Callable[[], bool] = field(default=lambda: True, repr=False)
    """Return whether writes of the calling task are checked. This differs by task, so a task whose writes are not
    checked may not send a write of another task that needs the check."""

    async def answered(
        self, ask: Callable[[], Awaitable[T]], kept: tuple[type[ApiError], ...] = (), *, is_write: bool = False
    ) -> T:
        """Send a request until it is answered; errors that are ``kept`` are the caller's to judge."""
        loop = asyncio.get_running_loop()
        deadline, failed = loop.time() + self.answer_s, 0
        while True:
            try:
                # In each turn: between two tries this process may have slept, and lost its right to write.
                if is_write and self.needs_check():
                    self.check()
                async with asyncio.timeout_at(deadline):
                    return await ask()
            except kept:
                raise
            except (ApiError, ApiUnreachable, TimeoutError) as error:
                lost = _judged(error, is_write)
                failed += 1
                delay_s = self.schedule.delay_s(failed)
                if delay_s is None or loop.time() + delay_s >= deadline:
                    raise PoolUnavailable(str(lost), outcome="unknown" if is_write else "none") from error
            await asyncio.sleep(delay_s)


@contextlib.contextmanager
def reading_history(after: int) -> Iterator[None]:
    """Name what ends a watch: of all errors, 410 alone says that what came behind a revision is forgotten."""
    try:
        yield
    except VersionExpired as error:
        raise CursorExpired(after, after + 1) from error
    except (ApiError, ApiUnreachable) as error:
        raise PoolUnavailable(str(_judged(error, is_write=False)), outcome="none") from error


def _judged(error: Exception, is_write: bool) -> AnswerLost:
    """Return that another try may help, or raise why none does."""
    outer = WRITE_FAILED if is_write else READ_FAILED
    if not isinstance(error, ApiError):
        return AnswerLost(wrapped(outer, str(error) or "the API server did not answer in time"))
    named = named_error(error, outer)
    if not isinstance(named, AnswerLost):
        raise named from error
    return named
