"""The ledger as one process of Neutron's reaches it: opened after the fork, asked for a bounded time.

A request that gave up leaves a task behind that makes amends when the ledger answers again. What cannot be done at
once (the ledger is down when Neutron has committed) is owed, and tried again until it is done; a process that ends
before that leaves it to ``tenure neutron reconcile``.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from tenure.kernel.errors import Invalid, StoreUnavailable, TenureError
from tenure.service.ledger import AsyncLedger
from tenure.service.portal import Portal
from tenure.wiring import open_async, without_secrets

T = TypeVar("T")
Work = Callable[[AsyncLedger], Awaitable[T]]

LOG = logging.getLogger(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
"""How long a debt waits before it is tried again: twice as long each time."""


class Reach:
    """One ledger, for all threads of a process."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self.owed = 0
        self._url = url
        self._timeout_s = timeout_s
        self._portal = Portal()
        self._ledger: AsyncLedger | None = None
        self._opening = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    def ask(self, work: Work[T], *, amends: Work[object] | None = None) -> T:
        """Do work with the ledger; StoreUnavailable after the time-out, and then ``amends`` are made when it can be."""
        return self._portal.run(self._bounded(work, amends, after_failing=("unknown",)))

    def owe(self, text: str, work: Work[object]) -> None:
        """Do work with the ledger now if it can be done, and otherwise as soon as it can be."""
        try:
            self._portal.run(self._bounded(work, work, after_failing=("none", "unknown")))
        except StoreUnavailable as error:
            LOG.warning("%s: put off until the ledger answers (%s)", text, error)
        except Exception as error:  # Neutron has committed, or rolled back: nobody can be told but the operator
            LOG.error("%s: %s; see `tenure neutron verify`", text, error)

    async def _bounded(self, work: Work[T], amends: Work[object] | None, *, after_failing: tuple[str, ...]) -> T:
        task: asyncio.Task[T] = asyncio.ensure_future(self._with_ledger(work))
        done, _ = await asyncio.wait({task}, timeout=self._timeout_s)
        if not done:
            self._keep(self._after(task, amends))
            message = f"the ledger {without_secrets(self._url)} did not answer within {self._timeout_s:g} s"
            raise StoreUnavailable(message, outcome="unknown")
        try:
            return task.result()
        except StoreUnavailable as error:
            if amends is not None and error.outcome in after_failing:
                self._keep(self._pay(amends))
            raise

    async def _with_ledger(self, work: Work[T]) -> T:
        async with self._opening:
            if self._ledger is None:
                self._ledger = await _opened(self._url)
        return await work(self._ledger)

    async def _after(self, task: asyncio.Task[Any], amends: Work[object] | None) -> None:
        """Wait for a task that nobody waits for any more, then make amends for it."""
        await asyncio.wait({task})
        LOG.info("the ledger has answered a request that was given up: %s", task.exception() or "done")
        if amends is not None:
            await self._pay(amends)

    async def _pay(self, work: Work[object]) -> None:
        """Do work until it is done; each try has all the time it wants."""
        self.owed += 1
        pause_s = FIRST_PAUSE_S
        try:
            while True:
                try:
                    await self._with_ledger(work)
                    return
                except StoreUnavailable:
                    await asyncio.sleep(pause_s)
                    pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
                except TenureError as error:
                    LOG.error("something owed to the ledger cannot be done: %s; see `tenure neutron verify`", error)
                    return
        finally:
            self.owed -= 1

    def _keep(self, work: Any) -> None:
        """Let work run on its own; the loop keeps only weak references to tasks."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Let go of the ledger; what is owed stays undone."""
        ledger = self._ledger
        self._portal.close(None if ledger is None else ledger.close())


async def _opened(url: str) -> AsyncLedger:
    try:
        return await open_async(url)
    except OSError as error:
        raise StoreUnavailable(
            f"the ledger {without_secrets(url)} cannot be opened: {error}", outcome="none"
        ) from error


class Reaches:
    """The ledgers of a process by URL; a process that was forked begins with none."""

    def __init__(self) -> None:
        self._inherited: list[dict[str, Reach]] = []
        self._reaches: dict[str, Reach] = {}
        self.begin()

    def begin(self) -> None:
        """Begin with nothing. What the parent opened is kept, unused: letting go of it would end its connections."""
        self._lock = threading.Lock()
        self._inherited.append(self._reaches)
        self._reaches = {}

    def to(self, url: str | None, timeout_s: float) -> Reach:
        """Return the way to a ledger."""
        if not url:
            raise Invalid("[tenure] ledger: mode 'ledger' needs the URL of one", field="ledger")
        with self._lock:
            if url not in self._reaches:
                self._reaches[url] = Reach(url, timeout_s)
            return self._reaches[url]


REACHES = Reaches()
os.register_at_fork(after_in_child=REACHES.begin)
