"""A queue gives each key once, never to two workers, and later if it failed."""

import asyncio
import time
from collections import Counter
from itertools import pairwise

import pytest

from tenure.integrations.kubernetes.runtime.work_queue import WorkQueue


async def test_a_thousand_additions_of_a_key_are_one_pass() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for _ in range(1000):
        queue.add("a")
    queue.add("b")

    assert [await queue.take(), await queue.take()] == ["a", "b"]
    assert len(queue) == 0


async def test_a_key_that_is_added_while_it_is_worked_on_comes_again_and_only_then() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    key = await queue.take()
    queue.add("a")
    queue.add("a")

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.take(), 0.02)
    queue.done(key)
    assert await queue.take() == "a"
    queue.done("a")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.take(), 0.02)


async def test_what_is_to_come_later_comes_at_the_earliest_of_its_times() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("late", 0.05)
    queue.add_after("a", 60)
    queue.add_after("a", 0.01)

    assert [await asyncio.wait_for(queue.take(), 5) for _ in range(2)] == ["a", "late"]
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.take(), 0.02)


async def test_a_key_that_is_taken_back_does_not_come() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for key in ("a", "b", "c"):
        queue.add(key)
    queue.add_after("d", 0.01)
    queue.failed("e")
    for key in ("a", "c", "d", "e", "never added"):
        queue.discard(key)
    await asyncio.sleep(0.03)

    assert await queue.take() == "b"
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.take(), 0.02)
    queue.add("a")
    assert await queue.take() == "a"


async def test_a_key_that_fails_waits_longer_each_time_up_to_a_limit_and_others_do_not() -> None:
    queue: WorkQueue[str] = WorkQueue(longest_delay_s=1.0)
    delays = [queue.failed("a") for _ in range(12)]

    assert all(later > earlier for earlier, later in pairwise(delays[:6]))
    assert max(delays) <= 1.2
    assert queue.failed("b") < 0.05
    queue.succeeded("a")
    assert queue.failed("a") < 0.05


async def test_workers_never_have_one_key_at_once_and_miss_no_change() -> None:
    queue: WorkQueue[int] = WorkQueue()
    at_work: Counter[int] = Counter()
    seen: dict[int, int] = {}
    state: Counter[int] = Counter()

    async def handle(key: int) -> None:
        at_work[key] += 1
        assert at_work[key] == 1
        read = state[key]
        await asyncio.sleep(0.001)
        seen[key] = read
        at_work[key] -= 1
        if read % 7 == 3:
            raise RuntimeError("a pass that fails")

    work = asyncio.create_task(queue.work(handle, 4, lambda key, error, delay_s: None))
    for number in range(400):
        state[number % 5] += 1
        queue.add(number % 5)
        if number % 10 == 0:
            await asyncio.sleep(0)
    async with asyncio.timeout(10):
        while any(seen.get(key) != state[key] for key in state) or len(queue):  # noqa: ASYNC110 - a queue is polled
            await asyncio.sleep(0.01)
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


def test_the_age_of_the_oldest_key_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    queue: WorkQueue[str] = WorkQueue()
    assert queue.oldest_s == 0.0
    queue.add("a")
    now = 107.0
    queue.add("b")

    assert queue.oldest_s == 7.0


@pytest.mark.parametrize("turns", range(5))
async def test_a_worker_that_is_cancelled_while_a_key_comes_ends(turns: int) -> None:
    """A delayed key makes the worker wait with a limit; ``asyncio.wait_for`` swallows this cancellation in 3.11."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("later", 60)
    passes = 0

    async def handle(key: str) -> None:
        nonlocal passes
        passes += 1

    work = asyncio.create_task(queue.work(handle, 1, lambda key, error, delay_s: None))
    await asyncio.sleep(0.01)
    queue.add("a")
    for _ in range(turns):
        await asyncio.sleep(0)
    work.cancel()
    done, _ = await asyncio.wait({work}, timeout=1)
    work.cancel()

    assert done
    assert passes + len(queue) == 1  # the key was handled, or waits for the next worker


async def test_a_key_whose_pass_is_cancelled_is_not_lost() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    begun = asyncio.Event()

    async def handle(key: str) -> None:
        begun.set()
        await asyncio.Event().wait()

    work = asyncio.create_task(queue.work(handle, 2, lambda key, error, delay_s: None))
    await begun.wait()
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)

    assert await asyncio.wait_for(queue.take(), 1) == "a"
