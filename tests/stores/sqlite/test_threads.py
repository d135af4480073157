"""The threads of a SQLite store: work in order, answers to whoever still asks, and an end."""

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import AsyncIterator
from functools import partial

import pytest

from tenure.kernel.errors import Conflict, StoreUnavailable
from tenure.stores.sqlite.threads import HAND_OVER_S, Worker


@pytest.fixture
async def worker() -> AsyncIterator[Worker]:
    """Give a worker, and end it."""
    one = Worker("tried")
    yield one
    await one.stop(lambda: None)


async def test_work_is_done_in_order_and_everybody_gets_the_own_answer(worker: Worker) -> None:
    done: list[int] = []

    def work(number: int) -> int:
        done.append(number)
        return number

    answers = await asyncio.gather(*(worker.do(partial(work, number)) for number in range(20)))

    assert answers == done == [*range(20)]


async def test_what_goes_wrong_is_raised_where_it_was_asked_for_and_the_worker_goes_on(worker: Worker) -> None:
    def fail() -> None:
        raise Conflict("no")

    with pytest.raises(Conflict):
        await worker.do(fail)
    assert await worker.do(lambda: 1) == 1


async def test_work_that_was_handed_over_has_begun(worker: Worker) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def work() -> bool:
        begun.set()
        return may_end.wait(30)

    answer = worker.hand_over(work)
    assert begun.wait(30)
    assert not answer.done()
    may_end.set()
    assert await answer


async def test_whoever_hands_over_to_a_busy_worker_does_not_wait_for_it(worker: Worker) -> None:
    gate = threading.Event()
    first = worker.do(lambda: gate.wait(30))
    began = time.monotonic()
    second = worker.hand_over(lambda: 2)

    assert not second.done()
    assert time.monotonic() - began < 1000 * HAND_OVER_S
    gate.set()
    assert (await first, await second) == (True, 2)


async def test_work_whose_caller_went_away_before_it_began_is_not_done(worker: Worker) -> None:
    gate, done = threading.Event(), threading.Event()
    first, second = worker.do(lambda: gate.wait(30)), worker.do(done.set)
    second.cancel()
    gate.set()
    await first
    await worker.do(lambda: None)

    assert not done.is_set()


async def test_a_caller_who_goes_away_while_it_is_done_harms_nobody(worker: Worker) -> None:
    gate = threading.Event()
    first = worker.hand_over(lambda: gate.wait(30))
    first.cancel()
    gate.set()

    assert await worker.do(lambda: 1) == 1


def test_a_loop_that_is_closed_meanwhile_harms_nobody() -> None:
    worker, gate = Worker("tried"), threading.Event()

    async def ask() -> None:
        worker.hand_over(lambda: gate.wait(30))

    async def ask_again() -> int:
        return await worker.do(lambda: 1)

    asyncio.run(ask())
    gate.set()

    assert asyncio.run(ask_again()) == 1
    asyncio.run(worker.stop(lambda: None))


async def test_a_worker_that_is_stopped_does_what_is_in_line_and_takes_no_more_work() -> None:
    worker, done = Worker("stopped"), list[str]()
    line = [worker.do(partial(done.append, "first")), asyncio.create_task(worker.stop(partial(done.append, "last")))]
    await asyncio.sleep(0)

    with pytest.raises(StoreUnavailable, match="closed"):
        worker.do(partial(done.append, "late"))
    await asyncio.gather(*line)
    assert done == ["first", "last"]


async def test_a_worker_that_nobody_knows_any_more_ends_and_keeps_nothing() -> None:
    class Something:
        pass

    worker, kept = Worker("forgotten"), Something()
    known = weakref.ref(kept)
    await worker.do(lambda kept=kept: None)  # type: ignore[misc]
    [thread] = [each for each in threading.enumerate() if each.name == "forgotten"]
    del kept
    await worker.do(lambda: None)
    assert known() is None

    del worker
    gc.collect()
    await asyncio.to_thread(thread.join, 30)
    assert not thread.is_alive()
