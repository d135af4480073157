"""The batcher: many callers, few calls, and nobody left waiting."""

import asyncio
from collections.abc import Hashable, Sequence

import pytest

from tenure.kernel.errors import Conflict
from tenure.service.engine.batcher import WORTH_A_CALL, Batcher


class Desk:
    """Executes batches when told to, and keeps what it was given."""

    def __init__(self, *, gated: bool = False) -> None:
        self.batches: list[tuple[str, list[str]]] = []
        self.running = self.most_running = 0
        self.open = asyncio.Event()
        if not gated:
            self.open.set()

    async def execute(self, key: str, items: Sequence[str]) -> Sequence[str]:
        self.batches.append((key, list(items)))
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await self.open.wait()
        finally:
            self.running -= 1
        return [item.upper() for item in items]


def first_letter(item: str) -> tuple[Hashable, ...]:
    return (item[0],)


async def settle() -> None:
    """Let everything that can run, run."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_lone_item_is_executed_at_once() -> None:
    desk = Desk()
    batcher = Batcher(desk.execute, largest=10)

    assert await batcher.submit("k", "a") == "A"
    assert desk.batches == [("k", ["a"])]


async def test_what_arrives_together_goes_together_and_everybody_gets_the_own_answer() -> None:
    desk = Desk()
    batcher = Batcher(desk.execute, largest=100)

    answers = await asyncio.gather(*(batcher.submit("k", f"i{n}") for n in range(WORTH_A_CALL)))

    assert answers == [f"I{n}" for n in range(WORTH_A_CALL)]
    assert len(desk.batches) == 1


async def test_a_crowd_is_cut_in_two_so_that_one_half_is_executed_while_the_other_thinks() -> None:
    desk = Desk()
    batcher = Batcher(desk.execute, largest=1000)

    async def caller(number: int) -> None:
        for turn in range(5):
            assert await batcher.submit("k", f"i{number}-{turn}") == f"I{number}-{turn}"

    await asyncio.gather(*(caller(n) for n in range(100)))

    assert [len(items) for _, items in desk.batches] == [50] * 10


async def test_what_arrives_while_a_batch_runs_forms_the_next_one() -> None:
    desk = Desk(gated=True)
    batcher = Batcher(desk.execute, largest=100)
    first = asyncio.ensure_future(batcher.submit("k", "a"))
    await settle()
    others = [asyncio.ensure_future(batcher.submit("k", item)) for item in "bcd"]
    await settle()

    desk.open.set()
    await asyncio.gather(first, *others)

    assert [items for _, items in desk.batches] == [["a"], ["b", "c", "d"]]


async def test_no_batch_is_larger_than_allowed_and_nothing_stalls() -> None:
    desk = Desk()
    batcher = Batcher(desk.execute, largest=7)

    await asyncio.gather(*(batcher.submit("k", f"i{n}") for n in range(100)))

    assert max(len(items) for _, items in desk.batches) == 7
    assert sum(len(items) for _, items in desk.batches) == 100


async def test_keys_never_share_a_batch() -> None:
    desk = Desk()
    batcher = Batcher(desk.execute, largest=100, at_once=2)

    await asyncio.gather(*(batcher.submit(f"k{n % 3}", f"i{n}") for n in range(9)))

    assert sorted(key for key, _ in desk.batches) == ["k0", "k1", "k2"]


async def test_items_of_one_identity_never_share_a_batch_and_keep_their_order() -> None:
    desk = Desk()
    batcher = Batcher(desk.execute, largest=100, identities=first_letter)

    await asyncio.gather(*(batcher.submit("k", item) for item in ("a1", "b1", "a2", "a3", "b2")))

    assert [items for _, items in desk.batches] == [["a1", "b1"], ["a2", "b2"], ["a3"]]


@pytest.mark.parametrize(("at_once", "per_key", "most"), [(1, 1, 1), (4, 1, 3), (4, 2, 4), (2, 2, 2)])
async def test_no_more_batches_run_at_a_time_than_allowed(at_once: int, per_key: int, most: int) -> None:
    desk = Desk(gated=True)
    batcher = Batcher(desk.execute, largest=1, at_once=at_once, at_once_per_key=per_key)
    tasks = [asyncio.ensure_future(batcher.submit(f"k{n % 3}", f"i{n}")) for n in range(30)]
    await settle()

    desk.open.set()
    await asyncio.gather(*tasks)

    assert desk.most_running == most


async def test_callers_who_went_away_are_not_executed() -> None:
    desk = Desk(gated=True)
    batcher = Batcher(desk.execute, largest=10)
    tasks = [asyncio.ensure_future(batcher.submit("k", "a"))]
    await settle()
    tasks += [asyncio.ensure_future(batcher.submit("k", item)) for item in "bcd"]
    await settle()
    tasks[2].cancel()

    desk.open.set()
    await asyncio.gather(*tasks, return_exceptions=True)

    assert [items for _, items in desk.batches] == [["a"], ["b", "d"]]


async def test_a_queue_of_callers_who_all_went_away_does_not_stall_the_next() -> None:
    desk = Desk(gated=True)
    batcher = Batcher(desk.execute, largest=10)
    first = asyncio.ensure_future(batcher.submit("k", "a"))
    await settle()
    gone = [asyncio.ensure_future(batcher.submit("k", item)) for item in "bc"]
    await settle()
    for task in gone:
        task.cancel()
    desk.open.set()
    await asyncio.gather(first, *gone, return_exceptions=True)

    assert await asyncio.wait_for(batcher.submit("k", "d"), 5) == "D"
    await asyncio.wait_for(batcher.drain(), 5)


async def test_a_caller_who_goes_away_while_its_batch_runs_does_not_harm_the_others() -> None:
    desk = Desk(gated=True)
    batcher = Batcher(desk.execute, largest=10)
    gone, stays = (asyncio.ensure_future(batcher.submit("k", item)) for item in "ab")
    await settle()
    gone.cancel()
    await settle()

    desk.open.set()

    assert await stays == "B"


async def test_an_error_reaches_every_caller_of_the_batch_and_the_next_batch_runs() -> None:
    calls = 0

    async def execute(key: str, items: Sequence[str]) -> Sequence[str]:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise Conflict("no")
        return items

    batcher = Batcher(execute, largest=3)

    answers = await asyncio.gather(*(batcher.submit("k", item) for item in "abcd"), return_exceptions=True)

    assert [isinstance(answer, Conflict) for answer in answers] == [True, True, True, False]
    assert answers[3] == "d"


async def test_the_next_batch_begins_before_the_last_one_is_answered() -> None:
    order: list[str] = []

    async def execute(key: str, items: Sequence[str]) -> Sequence[str]:
        order.append(f"begin {items[0]}")
        await asyncio.sleep(0)
        return items

    batcher = Batcher(execute, largest=1)
    callers = [batcher.submit("k", item) for item in "abc"]
    for caller in callers:
        caller.add_done_callback(lambda answered: order.append(f"answer {answered.result()}"))
    await asyncio.gather(*callers)

    assert order.index("begin b") < order.index("answer a")
    assert order.index("begin c") < order.index("answer b")


@pytest.mark.parametrize(("answered", "waiting", "next_one"), [(1, 59, 30), (16, 16, 16), (16, 50, 33), (1, 20, 16)])
async def test_who_is_being_answered_will_be_back_and_has_a_share(answered: int, waiting: int, next_one: int) -> None:
    desk = Desk(gated=True)
    batcher = Batcher(desk.execute, largest=100)
    callers = [batcher.submit("k", f"first {n}") for n in range(answered)]
    await settle()
    callers += [batcher.submit("k", f"second {n}") for n in range(waiting)]
    desk.open.set()
    await asyncio.gather(*callers)

    assert len(desk.batches[1][1]) == next_one
    assert sum(len(items) for _, items in desk.batches) == answered + waiting


async def test_a_store_that_never_waits_lets_others_have_their_turn() -> None:
    executed: list[str] = []
    first_answer_after: list[int] = []

    async def execute(key: str, items: Sequence[str]) -> Sequence[str]:
        executed.extend(items)
        return items

    batcher = Batcher(execute, largest=1)
    callers = [batcher.submit("k", str(n)) for n in range(100)]
    callers[0].add_done_callback(lambda _: first_answer_after.append(len(executed)))
    await asyncio.gather(*callers)

    assert len(executed) == 100
    assert first_answer_after[0] < 5


async def test_drain_waits_until_the_last_answer_is_given() -> None:
    desk = Desk()
    batcher = Batcher(desk.execute, largest=10)
    caller = batcher.submit("k", "a")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (desk.batches, caller.done()) == ([("k", ["a"])], False)  # executed, and not answered yet
    await batcher.drain()

    assert caller.done()


async def test_when_a_batch_is_cancelled_the_others_are_still_served() -> None:
    async def execute(key: str, items: Sequence[str]) -> Sequence[str]:
        await asyncio.sleep(0)
        if "a" in items:
            raise asyncio.CancelledError
        return items

    batcher = Batcher(execute, largest=1)
    callers = [batcher.submit("k", item) for item in "ab"]
    told = await asyncio.gather(*callers, return_exceptions=True)

    assert isinstance(told[0], asyncio.CancelledError)
    assert told[1] == "b"


async def test_drain_waits_for_everything_that_was_submitted() -> None:
    desk = Desk(gated=True)
    batcher = Batcher(desk.execute, largest=2, identities=first_letter)
    tasks = [asyncio.ensure_future(batcher.submit("k", item)) for item in ("a1", "a2", "b1", "c1")]
    await settle()
    draining = asyncio.create_task(batcher.drain())
    await settle()
    assert not draining.done()

    desk.open.set()
    await asyncio.wait_for(draining, 5)

    assert all(task.done() for task in tasks)
    assert len(desk.batches) >= 2


async def test_draining_an_idle_batcher_returns_at_once() -> None:
    batcher = Batcher(Desk().execute, largest=2)

    await asyncio.wait_for(batcher.drain(), 5)


async def test_one_who_cannot_take_his_answer_harms_nobody_else() -> None:
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: faults.append(told["exception"]))

    class Clumsy:
        def done(self) -> bool:
            return False

        def set_result(self, answer: object, /) -> None:
            raise OSError("no room for it")

        def set_exception(self, error: BaseException, /) -> None:
            raise OSError("no room for that, either")

    for fails in (False, True):

        async def execute(key: str, items: Sequence[str], fails: bool = fails) -> Sequence[str]:
            if fails:
                raise Conflict("no")
            return items

        batcher = Batcher(execute, largest=10)
        callers = [batcher.submit("k", "a")]
        batcher.submit_for(Clumsy(), "k", "b")
        callers.append(batcher.submit("k", "c"))
        told = await asyncio.gather(*callers, return_exceptions=True)

        assert [isinstance(each, Conflict) for each in told] == [fails, fails]
    assert [str(fault) for fault in faults] == ["no room for it", "no room for that, either"]


async def test_who_waits_for_one_key_stops_no_other() -> None:
    stuck = asyncio.Event()

    async def execute(key: str, items: Sequence[str]) -> Sequence[str]:
        if key == "stuck":
            await stuck.wait()
        return items

    batcher = Batcher(execute, largest=10, at_once=2)
    waiting = [batcher.submit("stuck", str(n)) for n in range(30)]
    async with asyncio.timeout(5):
        for n in range(50):
            assert await batcher.submit("free", str(n)) == str(n)
    assert not any(each.done() for each in waiting)
    stuck.set()

    assert await asyncio.gather(*waiting) == [str(n) for n in range(30)]


async def test_those_of_one_key_who_will_be_back_have_no_share_of_another() -> None:
    desk = Desk(gated=True)
    batcher = Batcher(desk.execute, largest=100)
    callers = [batcher.submit("k", f"first {n}") for n in range(16)]
    await settle()
    callers += [batcher.submit("other", f"second {n}") for n in range(40)]
    desk.open.set()
    await asyncio.gather(*callers)

    assert [(key, len(items)) for key, items in desk.batches][:2] == [("k", 16), ("other", 20)]
