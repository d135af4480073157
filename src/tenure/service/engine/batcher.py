"""Many waiting callers, one store call.

A batcher takes what waits for one key (a space) and hands it over as one call; where many wait, half of them. There is
no timer: an idle system calls at once, a busy one makes bigger batches. Items of one identity never share a batch; the
later one waits for the next. An item that failed alone is its own caller's affair. Cost on top of the call: whoever
waits, and two dictionary look-ups an item.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from tenure.ports import Failed

K = TypeVar("K", bound=Hashable)
I = TypeVar("I")  # noqa: E741 - items
A = TypeVar("A")

WORTH_A_CALL = 16
"""How many items cost a store about as much as a call of its own."""


class AnswerReceiver(Protocol):
    """Whoever is to have an answer: a future, or somebody who costs less. He is told once."""

    def done(self) -> bool:
        """Tell whether he does not wait any more."""

    def set_result(self, answer: Any, /) -> None:
        """Take the answer."""

    def set_exception(self, error: BaseException, /) -> None:
        """Take it that there is none."""


Batch = list[tuple[I, AnswerReceiver]]
Identities = Callable[[I], tuple[Hashable, ...]]


class Batcher(Generic[K, I, A]):
    """Collects items by key and executes them in batches, a bounded number of batches at a time."""

    def __init__(
        self,
        execute: Callable[[K, Sequence[I]], Awaitable[Sequence[A | Failed]]],
        *,
        largest: int,
        at_once: int = 1,
        at_once_per_key: int = 1,
        worth_a_call: int = WORTH_A_CALL,
        identities: Identities[I] = lambda item: (),
    ) -> None:
        self._execute = execute
        self._largest = largest
        self._at_once = at_once
        self._per_key = at_once_per_key
        self._worth = worth_a_call
        self._identities = identities
        self._waiting: dict[K, deque[tuple[I, AnswerReceiver]]] = {}
        self._running: dict[K, int] = {}
        self._active = 0
        self._tasks: set[asyncio.Task[None]] = set()  # the loop itself keeps only weak references
        self._scheduled = False
        self._unanswered = 0
        """Batches that were executed, and whose callers have no answers yet."""

    def submit(self, key: K, item: I) -> "asyncio.Future[A]":
        """Put the item in line; the future will have its answer."""
        future: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self.submit_for(future, key, item)
        return future

    def submit_for(self, waiter: AnswerReceiver, key: K, item: I) -> None:
        """Put the item in line; the waiter will have its answer."""
        queue = self._waiting.get(key)
        if queue is None:
            queue = self._waiting[key] = deque()
        queue.append((item, waiter))
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            # In the next turn of the loop: whatever is submitted until then shares the batch.
            asyncio.get_running_loop().call_soon(self._start)

    def _start(self) -> None:
        """Begin as many batches as may run."""
        self._scheduled = False
        while (work := self._next()) is not None:
            task = asyncio.get_running_loop().create_task(self._run(*work))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _next(self, answered: tuple[K, Batch[I]] | None = None) -> tuple[K, Batch[I]] | None:
        """Take the batch that is to run now, oldest key first; None if nothing waits that may run."""
        if self._active < self._at_once:
            # A copy: ``_drain`` takes the key out, and puts it back behind the others if something is left.
            for key in list(self._waiting):
                back = 0 if answered is None or answered[0] != key else len(answered[1])
                if self._running.get(key, 0) < self._per_key and (batch := self._drain(key, back)):
                    self._active += 1
                    self._running[key] = self._running.get(key, 0) + 1
                    return key, batch
        return None

    def _drain(self, key: K, answering: int) -> Batch[I]:
        """Take what one batch may carry: an even share of what waits for each batch that may still begin.

        One batch that took everything would leave the store idle while its callers think, and the callers idle
        while the store works. So where only one batch of a key runs at a time it takes half of all there are, those
        among them who are being answered now, and will soon be back; unless so few would not be worth a call.
        """
        queue = self._waiting.pop(key)
        if self._per_key == 1:
            most = max(self._worth, -(-(len(queue) + answering) // 2))
        else:
            most = -(-len(queue) // min(self._at_once - self._active, self._per_key - self._running.get(key, 0)))
        most = min(self._largest, most)
        batch: Batch[I] = []
        seen: set[Hashable] = set()
        held_over: deque[tuple[I, AnswerReceiver]] = deque()
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

    async def _run(self, key: K, batch: Batch[I]) -> None:
        """Execute a batch, and whatever waits then: the store has its next one before the callers of the last answer.

        They take their time, in which the store would be idle.
        """
        work: tuple[K, Batch[I]] | None = (key, batch)
        while work is not None:
            key, batch = work
            await self._execute_one(key, batch)
            if self._unanswered > 1:  # the store never waited, so nobody else had a turn
                await asyncio.sleep(0)
            work = self._next(work)

    async def _execute_one(self, key: K, batch: Batch[I]) -> None:
        try:
            answers = await self._execute(key, [item for item, _ in batch])
        except GeneratorExit:
            raise  # the loop was closed: there is nobody to be told
        except BaseException as error:
            self._tell_soon(_refuse, batch, error)
            if not isinstance(error, Exception):
                self._schedule()  # somebody else must go on
                raise
        else:
            self._tell_soon(_answer, batch, answers)
        finally:
            self._end(key)

    def _tell_soon(self, tell: Callable[[Batch[I], Any], None], batch: Batch[I], what: Any) -> None:
        def telling() -> None:
            self._unanswered -= 1
            tell(batch, what)

        self._unanswered += 1
        # Not at once: the next batch begins before the callers of this batch wake (docs/why/0024).
        asyncio.get_running_loop().call_soon(telling)

    def _end(self, key: K) -> None:
        self._active -= 1
        self._running[key] -= 1
        if not self._running[key]:
            del self._running[key]

    async def drain(self) -> None:
        """Wait until everything that was submitted has its answer; what is under way goes on if this is cancelled."""
        while self._waiting or self._active or self._unanswered:
            if self._tasks:
                await asyncio.wait(self._tasks)
            # The loop gives the answers, not the tasks.
            await asyncio.sleep(0)


def _answer(batch: Batch[I], answers: Sequence[Any]) -> None:
    for (_, waiter), answer in zip(batch, answers, strict=True):
        if not waiter.done():
            _tell(*(waiter.set_exception, answer.error) if isinstance(answer, Failed) else (waiter.set_result, answer))


def _refuse(batch: Batch[I], error: BaseException) -> None:
    for _, waiter in batch:
        if not waiter.done():
            _tell(waiter.set_exception, error)


def _tell(tell: Callable[[Any], None], what: Any) -> None:
    """Tell one of many; what he makes of it is no business of the others."""
    try:
        tell(what)
    except Exception as error:
        loop = asyncio.get_running_loop()
        loop.call_exception_handler({"message": "somebody could not take his answer", "exception": error})
