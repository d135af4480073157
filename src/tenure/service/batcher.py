"""Many waiting callers, one store call.

A batcher takes everything that waits for one key (a space) and hands it over as one call. There is no timer: an idle
system calls at once, a busy one makes bigger batches. Items of one identity never share a batch; the later one waits
for the next. Cost on top of the call: one future and two dictionary look-ups an item.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
I = TypeVar("I")  # noqa: E741 - items
A = TypeVar("A")

Identities = Callable[[I], tuple[Hashable, ...]]


class Batcher(Generic[K, I, A]):
    """Collects items by key and executes them in batches, a bounded number of batches at a time."""

    def __init__(
        self,
        execute: Callable[[K, Sequence[I]], Awaitable[Sequence[A]]],
        *,
        largest: int,
        at_once: int = 1,
        at_once_per_key: int = 1,
        identities: Identities[I] = lambda item: (),
    ) -> None:
        self._execute = execute
        self._largest = largest
        self._at_once = at_once
        self._per_key = at_once_per_key
        self._identities = identities
        self._waiting: dict[K, deque[tuple[I, asyncio.Future[A]]]] = {}
        self._running: dict[K, int] = {}
        self._active = 0
        self._tasks: set[asyncio.Task[None]] = set()  # the loop itself keeps only weak references
        self._scheduled = False

    def submit(self, key: K, item: I) -> "asyncio.Future[A]":
        """Put the item in line; the future will have its answer."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[A] = loop.create_future()
        queue = self._waiting.get(key)
        if queue is None:
            queue = self._waiting[key] = deque()
        queue.append((item, future))
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._start)
        return future

    def _start(self) -> None:
        """Begin as many batches as may run, oldest key first."""
        self._scheduled = False
        for key in list(self._waiting):
            while (
                key in self._waiting
                and self._active < self._at_once
                and self._running.get(key, 0) < self._per_key
                and (batch := self._drain(key))
            ):
                self._active += 1
                self._running[key] = self._running.get(key, 0) + 1
                task = asyncio.get_running_loop().create_task(self._run(key, batch))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def _drain(self, key: K) -> list[tuple[I, "asyncio.Future[A]"]]:
        """Take what one batch may carry: an even share of what waits for each batch that may still begin.

        One batch that took everything would leave the store idle while its callers think, and the callers idle
        while the store works.
        """
        queue = self._waiting.pop(key)
        free = min(self._at_once - self._active, self._per_key - self._running.get(key, 0))
        most = min(self._largest, -(-len(queue) // free))
        batch: list[tuple[I, asyncio.Future[A]]] = []
        seen: set[Hashable] = set()
        held_over: deque[tuple[I, asyncio.Future[A]]] = deque()
        while queue and len(batch) < most:
            entry = queue.popleft()
            if entry[1].done():  # its caller went away
                continue
            identities = self._identities(entry[0])
            if seen.isdisjoint(identities):
                seen.update(identities)
                batch.append(entry)
            else:
                held_over.append(entry)
        held_over.extend(queue)
        if held_over:
            self._waiting[key] = held_over
        return batch

    async def _run(self, key: K, batch: list[tuple[I, "asyncio.Future[A]"]]) -> None:
        try:
            answers = await self._execute(key, [item for item, _ in batch])
        except BaseException as error:
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            if not isinstance(error, Exception):
                raise
        else:
            for (_, future), answer in zip(batch, answers, strict=True):
                if not future.done():
                    future.set_result(answer)
        finally:
            self._active -= 1
            self._running[key] -= 1
            if not self._running[key]:
                del self._running[key]
            if self._waiting and not self._scheduled:
                self._scheduled = True
                asyncio.get_running_loop().call_soon(self._start)

    async def drain(self) -> None:
        """Wait until everything that was submitted has its answer."""
        while self._waiting or self._active:
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await asyncio.sleep(0)
