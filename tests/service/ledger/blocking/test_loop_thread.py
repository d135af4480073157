"""The portal: blocking callers of many threads on one loop."""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import tenure
from tenure.service.ledger.blocking.loop_thread import LoopThread


@pytest.fixture
def portal() -> Iterator[LoopThread]:
    portal = LoopThread()
    yield portal
    portal.close()


class Counting:
    """Counts up to a number; notes where it ran and whether it was closed."""

    def __init__(self, upto: int) -> None:
        self.upto = upto
        self.closed = False

    async def numbers(self) -> AsyncIterator[int]:
        try:
            for number in range(self.upto):
                await asyncio.sleep(0)
                yield number
        finally:
            self.closed = True


async def echo(value: int) -> int:
    await asyncio.sleep(0)
    return value


async def fail() -> None:
    raise tenure.Conflict("no")


def test_a_coroutine_is_run_to_its_end_on_another_thread(portal: LoopThread) -> None:
    async def where() -> str:
        return threading.current_thread().name

    assert portal.run(where()) == "tenure"
    assert portal.run(echo(5)) == 5


def test_an_error_comes_out_as_it_was_raised(portal: LoopThread) -> None:
    with pytest.raises(tenure.Conflict, match="no"):
        portal.run(fail())


def test_many_threads_get_their_own_answers(portal: LoopThread) -> None:
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda number: portal.run(echo(number)), range(200)))

    assert answers == list(range(200))


def test_an_iterator_is_walked_to_its_end_and_closed(portal: LoopThread) -> None:
    counting = Counting(5)

    assert list(portal.iterate(counting.numbers())) == [0, 1, 2, 3, 4]
    assert counting.closed


def test_an_iterator_that_is_left_early_is_closed(portal: LoopThread) -> None:
    counting = Counting(10**9)
    numbers = portal.iterate(counting.numbers())

    assert (next(numbers), next(numbers)) == (0, 1)
    numbers.close()  # type: ignore[attr-defined]
    assert counting.closed


def test_an_iterators_error_comes_out_and_closes_it(portal: LoopThread) -> None:
    async def breaking() -> AsyncIterator[int]:
        yield 1
        raise tenure.Conflict("no")

    numbers = portal.iterate(breaking())

    assert next(numbers) == 1
    with pytest.raises(tenure.Conflict):
        next(numbers)


def test_closing_twice_does_no_harm() -> None:
    before = set(threading.enumerate())
    portal = LoopThread()

    portal.close()
    portal.close()

    assert set(threading.enumerate()) <= before


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # newer Pythons warn, and we want the fork
def test_a_forked_child_is_told_to_open_its_own_ledger() -> None:
    ledger = tenure.open("memory:")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # no assertion of pytest must run in here, and no clean-up of the parent's
        os.write(writing, _told_in_child(ledger).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        told = answer.read()
    assert os.waitpid(child, 0)[1] == 0

    assert told.startswith("conflict: this ledger was opened before the process forked; open another one")
    assert ledger.networks() == []
    ledger.close()


def _told_in_child(ledger: tenure.Ledger) -> str:
    signal.alarm(20)  # a child that hangs must not keep the parent waiting
    try:
        ledger.networks()
    except tenure.TenureError as error:
        return f"{error.code}: {error}"
    return "nothing"


def test_a_ledger_serves_many_threads_and_gives_each_another_address() -> None:
    with tenure.open("memory:") as ledger, ThreadPoolExecutor(8) as threads:
        ledger.add_network("net1")
        ledger.add_subnet("net1", "10.0.0.0/24")
        ledger.add_pool("net1", "10.0.0.0/24")

        held = list(threads.map(lambda n: ledger.allocate("net1", owner=f"pod/{n}").address, range(100)))

        assert len(set(held)) == 100
        assert ledger.verify() == []


@pytest.mark.parametrize("call", ["networks", "last_change", "verify", "close"])
def test_a_closed_ledger_says_so(call: str) -> None:
    ledger = tenure.open("memory:")
    ledger.close()

    if call == "close":
        ledger.close()
        return
    with pytest.raises(tenure.TenureError):
        getattr(ledger, call)()
