"""A second loop on a thread of its own, for requests that compute for long: meanwhile the server's loop serves others.

Reading a document, and working out what it means for thousands of instances, is pure Python. On the server's own loop
it would hold up everybody; on a thread, the interpreter takes turns between the two every few milliseconds. A few
requests are worked on at a time, so that memory is bounded by the dearest of them, and fewer of one token: whoever
sends many waits for itself.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

from tenure.service.ledger.async_ledger import AsyncLedger

T = TypeVar("T")

AT_ONCE, AT_ONCE_OF_ONE = 4, 2
"""Requests that are worked on at a time, and those of one token among them."""


class Turns:
    """The turns of one token: how many requests may be worked on, and how many are or wait to be."""

    __slots__ = ("free", "users")

    def __init__(self) -> None:
        self.free = asyncio.Semaphore(AT_ONCE_OF_ONE)
        self.users = 0


class SideLoop:
    """Runs coroutines beside the server's loop. The thread is started by the first; a call costs some 100 µs."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._callers: dict[str, Turns] = {}

    async def run(self, work: Callable[[], Coroutine[Any, Any, T]], caller: str = "") -> T:
        """Run a coroutine on the other loop when it is the caller's turn; return what it returns, raise what it raises.

        Whoever goes away before is not worked for. What has begun is worked on to its end, and keeps its turn so long:
        else callers who hang up and ask again would have it done many times at once.
        """
        own = self._callers.setdefault(caller, Turns())
        own.users += 1
        try:
            # The caller's own turn comes first: its requests wait for each other here and take no place from others.
            await own.free.acquire()
            try:
                await self._turns.acquire()
            except asyncio.CancelledError:
                own.free.release()
                raise
        except asyncio.CancelledError:
            self._leave(caller, own)
            raise

        # wrap_future makes a future of the server's loop, so this runs there, where the semaphores live.
        def done(_: object) -> None:
            self._turns.release()
            own.free.release()
            self._leave(caller, own)

        future = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), self._started()))
        future.add_done_callback(done)
        # A caller that hangs up cancels only its own wait; the turn is given back by `done`, when the work ends.
        return await asyncio.shield(future)

    def _leave(self, caller: str, own: Turns) -> None:
        """Count a request no longer; a token that has none is forgotten, so that tokens of long ago take no memory."""
        own.users -= 1
        if not own.users:
            del self._callers[caller]

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="tenure-side", daemon=True)
            self._thread.start()
        return self._loop

    async def close(self) -> None:
        """End what still runs there, and the thread."""
        if self._loop is None or self._thread is None:
            return
        # The tasks end first: a loop that stops with tasks in it would leave their callers waiting for ever.
        ending = asyncio.run_coroutine_threadsafe(_end_others(), self._loop)
        await asyncio.wrap_future(ending)
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)
        self._loop.close()
        self._loop = self._thread = None


async def _end_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def distant(ledger: AsyncLedger) -> AsyncLedger:
    """Return a ledger of the running loop for use on another loop: its verbs that are awaited run where it lives."""
    return cast(AsyncLedger, _DistantLedger(ledger, asyncio.get_running_loop()))


class _DistantLedger:
    def __init__(self, ledger: AsyncLedger, home: asyncio.AbstractEventLoop) -> None:
        self._ledger = ledger
        self._home = home

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        verb = getattr(self._ledger, name)
        # An asynchronous generator would run on the wrong loop.
        if not asyncio.iscoroutinefunction(verb):
            raise AttributeError(f"{name} is no verb that can be awaited from another loop")

        async def asked(*words: Any, **more: Any) -> Any:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(verb(*words, **more), self._home))

        return asked
