"""Waiting through the blocking face: threads that wait, run out of time, are interrupted, or lose their ledger."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import tenure


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tenure.Ledger]:
    """Give a ledger with a pool of one address, which is held."""
    with tenure.open("memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/ledger.db") as opened:
        opened.add_network("net")
        opened.add_subnet("net", "192.0.2.0/24")
        opened.add_pool("net", "192.0.2.10")
        opened.allocate("net", owner="vm/full")
        yield opened


def until(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + 8
    while not condition():
        assert time.monotonic() < end, "it never came about"
        time.sleep(0.01)


def is_left(ledger: tenure.Ledger) -> bool:
    """Tell whether anything is left of those who waited."""
    return bool(ledger.waiting()) or any(space.queued for space in ledger.spaces())


@contextmanager
def interrupted(when: Callable[[], bool]) -> Iterator[None]:
    """Interrupt the main thread as a user does, as soon as something is so."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    main = threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        until(when)
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        yield
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)


def test_a_thread_waits_until_another_makes_room(ledger: tenure.Ledger) -> None:
    with ThreadPoolExecutor(3) as threads:
        waiting = [threads.submit(ledger.allocate, "net", owner=f"vm/{n}", wait_s=20) for n in range(3)]
        until(lambda: len(ledger.waiting()) == 3)
        order = [claim.owner for claim in ledger.waiting()]
        served = []
        holder = "vm/full"
        for _ in range(3):
            ledger.release_owner(holder)
            until(lambda: bool(ledger.holdings("net")))
            holder = ledger.holdings("net")[0].owner
            served.append(holder)

        assert served == order
        assert sorted(task.result(8).owner for task in waiting) == ["vm/0", "vm/1", "vm/2"]
    assert not is_left(ledger)


def test_a_thread_that_runs_out_of_time_leaves_nothing(ledger: tenure.Ledger) -> None:
    began = time.monotonic()
    with pytest.raises(tenure.PoolExhausted) as told:
        ledger.allocate("net", owner="vm/a", wait_s=0.2)

    assert told.value.waited_s == 0.2
    assert 0.2 <= time.monotonic() - began < 4
    assert not is_left(ledger)


def test_an_interrupted_thread_leaves_nothing(ledger: tenure.Ledger) -> None:
    with interrupted(lambda: len(ledger.waiting()) == 1), pytest.raises(KeyboardInterrupt):
        ledger.allocate("net", owner="vm/a", wait_s=20)

    until(lambda: not is_left(ledger))
    ledger.release_owner("vm/full")
    assert ledger.allocate("net", owner="vm/b").address == "192.0.2.10"
    assert ledger.holdings(owner="vm/a") == []


def test_threads_that_wait_are_told_when_the_ledger_is_closed(ledger: tenure.Ledger) -> None:
    with ThreadPoolExecutor(2) as threads:
        waiting = [threads.submit(ledger.hold, "net", owner=f"vm/{n}", wait_s=20, lasts_s=5) for n in range(2)]
        until(lambda: len(ledger.waiting()) == 2)
        ledger.close()

        for task in waiting:
            with pytest.raises(tenure.Conflict, match="closed"):
                task.result(8)


def test_polling_from_several_threads_keeps_one_place(ledger: tenure.Ledger) -> None:
    with ThreadPoolExecutor(4) as threads:
        polls = list(threads.map(lambda _: ledger.claim("net", owner="vm/a"), range(12)))

    assert {(poll.state, poll.place) for poll in polls} == {("waiting", 1)}
    assert [claim.owner for claim in ledger.waiting()] == ["vm/a"]
    assert ledger.withdraw("net", owner="vm/a") is True
    assert not is_left(ledger)
