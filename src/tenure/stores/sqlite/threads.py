"""The threads of a SQLite store: one that writes, because SQLite has one writer at a time, and one that reads.

They are no executor's threads, whose futures, locks and conditions cost as much as granting some addresses.
"""

import asyncio
import contextlib
import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from tenure.kernel.errors import StoreUnavailable

T = TypeVar("T")

Jobs = SimpleQueue[Callable[[], None] | None]

HAND_OVER_S = 0.001
"""How long a caller waits for a worker that may be at something else."""


class Worker:
    """Does work, one piece after the other. It lives until it is stopped, or its process ends."""

    def __init__(self, name: str) -> None:
        self._jobs: Jobs = SimpleQueue()
        self._stopped = False
        # A daemon: a store that was never closed must not keep its process alive.
        self._thread = threading.Thread(target=_serve, args=[self._jobs], name=name, daemon=True)
        self._thread.start()
        weakref.finalize(self, self._jobs.put, None)  # the thread knows the line only, and ends with whoever fills it

    def do(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Put work in line; the future will have what it returns, or raises."""
        if self._stopped:
            raise StoreUnavailable("the ledger is closed; open it again", outcome="none")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def job() -> None:
            if answer.cancelled():
                return
            try:
                result = work()
            except BaseException as error:
                # Every kind of error belongs to the caller: raised here, it would end the thread.
                _tell(loop, _refuse, answer, error)
            else:
                _tell(loop, _answer, answer, result)

        self._jobs.put(job)
        return answer

    def hand_over(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Put work in line, and stand still until it has begun, and lets go of the interpreter for the first time.

        Else it would begin when this thread has nothing more to do: only then another one gets the interpreter.
        """
        begun = threading.Lock()
        begun.acquire()

        def beginning() -> T:
            begun.release()
            return work()

        answer = self.do(beginning)
        begun.acquire(timeout=HAND_OVER_S)
        return answer

    async def stop(self, last: Callable[[], None]) -> None:
        """Finish what is in line, then do one thing more, and end the thread. Nothing gets in between."""
        done = self.do(last)
        self._stopped = True
        self._jobs.put(None)
        await done
        self._thread.join()


def _serve(jobs: Jobs) -> None:
    while (job := jobs.get()) is not None:
        job()
        del job  # it knows its answer, and whoever asked


def _tell(loop: asyncio.AbstractEventLoop, *words: Any) -> None:
    with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: nobody asks any more
        loop.call_soon_threadsafe(*words)


def _answer(answer: "asyncio.Future[Any]", result: Any) -> None:
    if not answer.done():  # else whoever asked went away
        answer.set_result(result)


def _refuse(answer: "asyncio.Future[Any]", error: BaseException) -> None:
    if not answer.done():
        answer.set_exception(error)
