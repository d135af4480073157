"""The threads of a SQLite store: one that writes, because SQLite has one writer at a time, and one that reads.

They are no executor's threads, whose futures, locks and conditions cost as much as granting some addresses.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from tenure.kernel.errors import StoreUnavailable

T = TypeVar("T")

HAND_OVER_S = 0.001
"""How long a caller stands still at most; the worker may be at something else."""


class Worker:
    """Does work, one piece after the other. It lives until it is stopped, or its process ends."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._stopped = False
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

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
                _tell(loop, _refuse, answer, error)
            else:
                _tell(loop, _answer, answer, result)

        self._jobs.put(job)
        return answer

    def hand_over(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Put work in line, and stand still until it has begun: some 100 µs.

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

    def stop(self) -> None:
        """Finish what is in line, and end the thread."""
        self._stopped = True
        self._jobs.put(None)
        self._thread.join()

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


def _tell(loop: asyncio.AbstractEventLoop, *words: Any) -> None:
    with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: nobody asks any more
        loop.call_soon_threadsafe(*words)


def _answer(answer: "asyncio.Future[Any]", result: Any) -> None:
    if not answer.done():  # else whoever asked went away
        answer.set_result(result)


def _refuse(answer: "asyncio.Future[Any]", error: BaseException) -> None:
    if not answer.done():
        answer.set_exception(error)
