"""The ledger as one process of Neutron's reaches it: opened after the fork, asked for a bounded time.

A request that gave up leaves a task behind that makes amends when the ledger answers again. What cannot be done at
once (the ledger is down when Neutron has committed) is owed, and tried again until it is done; a process that ends
before that leaves it to ``tenure neutron reconcile``.
"""

import asyncio
import logging
import os
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl

from tenure.kernel.errors import OUTCOMES, NotFound, StoreUnavailable
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.service.ledger.blocking.loop_thread import LoopThread
from tenure.wiring import is_there, open_async, without_secrets

T = TypeVar("T")
Work = Callable[[AsyncLedger], Awaitable[T]]

LOG = logging.getLogger(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
"""How long a debt waits before it is tried again: twice as long each time."""


class Debt(NamedTuple):
    """Something that the ledger is yet to be told: what it is, for people, and how it is done."""

    text: str
    work: Work[object]


class Reach:
    """One ledger, for all threads of a process."""

    def __init__(self, url: str, timeout_s: float, *, may_make: bool = True, reading: bool = False) -> None:
        """Make a way; ``may_make``: a ledger that is not there is made; ``reading``: nobody asks for a change."""
        self._url = url
        self._timeout_s = timeout_s
        self._may_make = may_make
        self._reading = reading
        self._portal = LoopThread()
        self._ledger: AsyncLedger | None = None
        self._opening: asyncio.Task[AsyncLedger] | None = None
        self._debts: deque[Debt] = deque()
        self._given_up: set[asyncio.Task[Any]] = set()
        self._payer: asyncio.Task[None] | None = None

    @property
    def owed(self) -> int:
        """Count what is still to be done."""
        return len(self._debts) + len(self._given_up)

    def ask(self, work: Work[T], *, amends: Work[object] | None = None) -> T:
        """Do work with the ledger; StoreUnavailable after the time-out, and then ``amends`` are made when it can be."""
        owed = None if amends is None else Debt("what a request that was given up left in the ledger", amends)
        # A request that is known to have changed nothing has nothing to amend.
        return self._portal.run(self._bounded(work, owed, after_failing=("unknown",)))

    def owe(self, text: str, work: Work[object]) -> None:
        """Do work with the ledger now if it can be done, and otherwise as soon as it can be, behind what is owed."""
        try:
            put_off = self._portal.run(self._settle(Debt(text, work)))
        except StoreUnavailable as error:
            put_off = plain_reason(error)
        except Exception as error:  # Neutron has committed, or rolled back: nobody can be told but the operator
            LOG.error("%s: the ledger cannot be told: %s; see `tenure neutron verify`", text, error)
            return
        if put_off:
            LOG.warning("%s: the ledger is told later: %s; things owed to it now: %d", text, put_off, self.owed)

    async def _settle(self, debt: Debt) -> str:
        """Do what is owed; or put it behind what is, and say so."""
        # Debts are paid in the order they were made: a later one may rest on an earlier one.
        if self._debts:
            self._add(debt)
            return "other things are owed to it before"
        # A debt stays owed, whether the try changed nothing or its outcome is unknown.
        await self._bounded(debt.work, debt, after_failing=("none", "unknown"))
        return ""

    async def _bounded(self, work: Work[T], amends: Debt | None, *, after_failing: tuple[str, ...]) -> T:
        begun = asyncio.Event()
        task: asyncio.Task[T] = asyncio.ensure_future(self._with_ledger(work, begun))
        # Not wait_for(), which cancels: work that has begun goes on to its end, and is amended when that is known.
        done, _ = await asyncio.wait({task}, timeout=self._timeout_s)
        if not done:
            self._give_up(task, amends, begun=begun.is_set(), always="none" in after_failing)
            message = f"the ledger {named(self._url)} did not answer within {self._timeout_s:g} s"
            raise StoreUnavailable(message, outcome="unknown" if begun.is_set() and not self._reading else "none")
        try:
            return task.result()
        except StoreUnavailable as error:
            if amends is not None and error.outcome in after_failing:
                self._add(amends)
            reason = plain_reason(error)
            # The reason names already which of the two databases is away.
            if reason.startswith(("the ledger ", "Neutron's database ")):
                raise
            # Which one it is has to be said: Neutron's own database may be of the same kind.
            outcome = "none" if self._reading else error.outcome
            raise StoreUnavailable(f"the ledger {named(self._url)}: {reason}", outcome=outcome) from error

    async def _with_ledger(self, work: Work[T], begun: asyncio.Event | None = None) -> T:
        ledger = self._ledger or await self._open()
        if begun is not None:
            # Before this the ledger was not even open: a request that gives up here has surely changed nothing.
            begun.set()
        return await work(ledger)

    async def _open(self) -> AsyncLedger:
        """Open the ledger, once for all who wait; who gives up does not end it for the others, or for the next one."""
        if self._opening is None:
            self._opening = asyncio.ensure_future(_opened(self._url, self._may_make))
            self._opening.add_done_callback(self._opened)
        return await asyncio.shield(self._opening)

    def _opened(self, opening: asyncio.Task[AsyncLedger]) -> None:
        # Also after a failure: the next request opens anew.
        self._opening = None
        if not opening.cancelled() and opening.exception() is None:
            self._ledger = opening.result()

    def _give_up(self, task: asyncio.Task[Any], amends: Debt | None, *, begun: bool, always: bool) -> None:
        """Leave a task that nobody waits for any more: what has not begun never does, the rest is amended behind it."""
        if not begun:
            task.cancel()
            if amends is not None and always:
                self._add(amends)
            return

        def ended(_: object) -> None:
            self._given_up.discard(task)
            LOG.info("the ledger has answered a request that was given up: %s", task.exception() or "done")
            if amends is not None:
                self._add(amends)

        self._given_up.add(task)
        task.add_done_callback(ended)

    def _add(self, debt: Debt) -> None:
        """Put something behind what is owed."""
        self._debts.append(debt)
        if self._payer is None or self._payer.done():
            self._payer = asyncio.ensure_future(self._pay())

    async def _pay(self) -> None:
        """Do what is owed, in order; each try has all the time it wants."""
        pause_s = FIRST_PAUSE_S
        while self._debts:
            try:
                # The debt stays at the head until it is paid: ``_settle`` must see it, and line up behind it.
                await self._with_ledger(self._debts[0].work)
                pause_s = FIRST_PAUSE_S
            except StoreUnavailable:
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
                continue
            except Exception as error:  # nobody else is there to be told
                text = self._debts[0].text
                LOG.error("%s: the ledger cannot be told: %s; see `tenure neutron verify`", text, error)
            self._debts.popleft()

    def close(self) -> None:
        """Let go of the ledger; what is owed stays undone."""
        ledger = self._ledger
        self._portal.close(None if ledger is None else ledger.close())


def named(url: str) -> str:
    """Name a ledger without who logs in; its schema is part of the name."""
    schema = dict(parse_qsl(url.partition("?")[2])).get("schema")
    return without_secrets(url) + (f" (schema {schema})" if schema else "")


def plain_reason(error: StoreUnavailable) -> str:
    """Say why a store did not answer, without what was to be done about it."""
    return error.message.removesuffix(f" ({OUTCOMES[error.outcome]})")


async def _opened(url: str, may_make: bool) -> AsyncLedger:
    try:
        if not may_make and not await is_there(url):
            raise NotFound("ledger", named(url), hint="only `tenure neutron import` makes a new one", field="ledger")
        return await open_async(url)
    except OSError as error:
        raise StoreUnavailable(f"the ledger {named(url)} cannot be opened: {error}", outcome="none") from error


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

    def to(self, url: str, timeout_s: float) -> Reach:
        """Return the way to a ledger."""
        with self._lock:
            if url not in self._reaches:
                # A reach starts a thread, which no fork survives: it is made at the first use, not beforehand.
                self._reaches[url] = Reach(url, timeout_s)
            return self._reaches[url]


REACHES = Reaches()
os.register_at_fork(after_in_child=REACHES.begin)
