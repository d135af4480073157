"""VD6: whatever write a process was killed at, the next call with that id, or a repair, puts it right."""

import asyncio
from collections.abc import Sequence

import pytest

from tenure.integrations.kubernetes.runtime.api_errors import error_of
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.pool_errors import PoolForbidden, PoolUnavailable, PoolWriteRefused
from tenure.integrations.vmpool.state.pool_state import VMAllocation
from tests.integrations.vmpool.modes.mode_stage import ON_CELLS, ModeStage
from tests.integrations.vmpool.pool_stage import SIX, PoolStage, Send, Trouble, loses_answers, no_trouble

MOST_REQUESTS = 12
"""An allocation, and a release, have not more requests once the pool was looked at."""


def stops_at(number: int, stopped: asyncio.Event, *, is_done: bool) -> Trouble:
    """Let requests pass until one of a number, and that one too if it is to be done; then never answer again."""
    sent = 0

    async def trouble(word: str, send: Send) -> Object:
        nonlocal sent
        sent += 1
        if sent < number:
            return await send()
        if sent == number and is_done:
            await send()
        stopped.set()
        await asyncio.Event().wait()
        raise AssertionError

    return trouble


@pytest.fixture(params=ON_CELLS)
def cells(request: pytest.FixtureRequest, stage: PoolStage) -> ModeStage:
    """Give a stage of each mode that is made of cells."""
    return ModeStage(stage, request.param, "")


async def broken_off(every: ModeStage, number: int, verb: str, *, is_done: bool) -> bool:
    """Break an operation off at one of its requests, as a kill does; return whether it was so long."""
    client = await every.stage.client()
    pool = await every.pool(*SIX, client=client, node_name="doomed")
    await pool.read()
    if verb == "deallocate":
        await pool.allocate("id")
    stopped = asyncio.Event()
    client.trouble = stops_at(number, stopped, is_done=is_done)
    work = asyncio.create_task(getattr(pool, verb)("id"))
    waiting = asyncio.create_task(stopped.wait())
    await asyncio.wait({work, waiting}, return_when=asyncio.FIRST_COMPLETED)
    for task in (work, waiting):
        task.cancel()
    await asyncio.gather(work, waiting, return_exceptions=True)
    return stopped.is_set()


@pytest.mark.parametrize("is_done", [pytest.param(False, marks=pytest.mark.proof), True], ids=["before", "after"])
@pytest.mark.parametrize("verb", ["allocate", "deallocate"])
async def test_vd6_a_kill_at_any_request_is_healed(cells: ModeStage, verb: str, is_done: bool) -> None:
    for number in range(1, MOST_REQUESTS):
        if not await broken_off(cells, number, verb, is_done=is_done):
            break
        healthy = await cells.pool(*SIX)
        if number % 2:
            # The next call with the same id.
            given = await healthy.allocate("id")
            assert await healthy.get("id") == given
            assert [each.allocation_id for each in await healthy.list()] == ["id"]
        else:
            await healthy.repair()
        await check_whole(healthy)
        for each in await healthy.list():
            await healthy.deallocate(each.allocation_id)
        assert (await healthy.repair()).unfinished == 0
    else:
        raise AssertionError("an operation has more requests than was thought")


async def check_whole(pool: AsyncVMPool) -> None:
    """Check that every address can be had once, and no address twice."""
    held = {each.ip: each.allocation_id for each in await pool.list()}
    for number in range(len(SIX) - len(held)):
        given = await pool.allocate(f"other-{number}")
        assert given.ip not in held
        held[given.ip] = given.allocation_id
    assert set(held) == set(SIX)


async def test_a_slow_writer_finds_out_that_its_claim_was_given_up_and_gets_what_the_id_has(cells: ModeStage) -> None:
    """The owner of a claim stops between its two writes; another call with the id goes ahead; then the owner wakes."""
    client = await cells.stage.client()
    slow, quick = await cells.pool(*SIX, client=client), await cells.pool(*SIX, node_name="node-2")
    await slow.read()
    writes, woken = 0, asyncio.Event()

    async def pauses(word: str, send: Send) -> Object:
        nonlocal writes
        writes += word != "get"
        if writes == 2 and word != "get":
            await woken.wait()
        return await send()

    client.trouble = pauses
    sleeping = asyncio.create_task(slow.allocate("id"))
    await asyncio.sleep(0.3)

    given = await quick.allocate("id")
    woken.set()

    assert (await sleeping).ip == given.ip
    assert [each.ip for each in await quick.list()] == [given.ip]
    assert (await quick.repair()).unfinished == 0


async def test_a_release_that_comes_too_late_does_not_end_the_ids_next_allocation(cells: ModeStage) -> None:
    client = await cells.stage.client()
    slow, quick = await cells.pool(*SIX, client=client), await cells.pool(*SIX, node_name="node-2")
    await slow.allocate("id")
    writes, woken = 0, asyncio.Event()

    async def pauses(word: str, send: Send) -> Object:
        nonlocal writes
        writes += word != "get"
        if writes == 1 and word != "get":
            await woken.wait()
        return await send()

    client.trouble = pauses
    sleeping = asyncio.create_task(slow.deallocate("id"))
    await asyncio.sleep(0.3)
    assert await quick.deallocate("id")
    given = await quick.allocate("id")
    assert sleeping.cancel()
    woken.set()
    await asyncio.gather(sleeping, return_exceptions=True)

    assert await quick.get("id") == given


async def test_vs1_an_answer_that_is_lost_is_settled_by_reading(cells: ModeStage) -> None:
    client = await cells.stage.client()
    pool = await cells.pool(*SIX, client=client)
    await pool.read()

    for number, on in enumerate(("create", "create", "replace", "delete") * 2):
        client.trouble = loses_answers(on=on, times=2, is_done=number % 2 == 0)
        given = await pool.allocate(f"id-{number}")
        assert await pool.get(f"id-{number}") == given
        assert await pool.deallocate(f"id-{number}") is True
    assert await pool.list() == []


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize(
    ("status", "error"), [(500, PoolUnavailable), (403, PoolForbidden), (422, PoolWriteRefused)], ids=str
)
async def test_case_23_and_24_a_write_that_is_refused_says_why_and_leaves_nothing(
    cells: ModeStage, status: int, error: type[Exception], number: int
) -> None:
    client = await cells.stage.client()
    pool = await cells.pool(*SIX, client=client, max_retries=1)
    assert await pool.deallocate((await pool.allocate("before")).allocation_id)
    client.trouble = refuses_write(number, status)
    given: dict[str, VMAllocation] = {}
    with pytest.raises(error, match="not this one"):
        await allocate_into(given, pool, ["id-0", "id-1"])  # in a shard the first may be one write

    client.trouble = no_trouble
    assert await pool.list() == list(given.values())
    await allocate_into(given, pool, ["id-0", "id-1"])
    assert await pool.list() == list(given.values())
    await pool.repair()
    assert (await pool.repair()).unfinished == 0
    assert await pool.verify() == ()


async def allocate_into(given: dict[str, VMAllocation], pool: AsyncVMPool, ids: Sequence[str]) -> None:
    """Allocate one after the other, and note each that was answered."""
    for id in ids:
        given[id] = await pool.allocate(id)


def refuses_write(number: int, status: int) -> Trouble:
    """Refuse writes from one of a number on."""
    writes = 0

    async def trouble(word: str, send: Send) -> Object:
        nonlocal writes
        writes += word != "get"
        if writes >= number and word != "get":
            raise error_of(status, {"kind": "Status", "reason": "Refused", "message": "not this one"})
        return await send()

    return trouble


def pauses_at(number: int, reached: asyncio.Event, woken: asyncio.Event) -> Trouble:
    """Hold back the write of a number until it is woken."""
    writes = 0

    async def trouble(word: str, send: Send) -> Object:
        nonlocal writes
        writes += word != "get"
        if writes == number and word != "get":
            reached.set()
            await woken.wait()
        return await send()

    return trouble


@pytest.mark.parametrize("number", [1, 2, 3, 4])
async def test_the_owner_of_a_claim_and_the_caller_that_gives_it_up_agree_whoever_sleeps(
    cells: ModeStage, number: int
) -> None:
    """The owner sleeps before its second write, and wakes while the other one sleeps before one of its own."""
    slow_client, quick_client = await cells.stage.client(), await cells.stage.client()
    slow = await cells.pool(*SIX, client=slow_client)
    quick = await cells.pool(*SIX, client=quick_client, node_name="node-2")
    await slow.read()
    await quick.read()
    first, second, wake_first, wake_second = (asyncio.Event() for _ in range(4))
    slow_client.trouble = pauses_at(2, first, wake_first)
    quick_client.trouble = pauses_at(number, second, wake_second)
    sleeping = asyncio.create_task(slow.allocate("id"))
    waiting = asyncio.create_task(first.wait())
    await asyncio.wait({sleeping, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()

    other = asyncio.create_task(quick.allocate("id"))
    reached = asyncio.create_task(second.wait())
    await asyncio.wait({other, reached}, return_when=asyncio.FIRST_COMPLETED)
    reached.cancel()
    wake_first.set()
    await asyncio.wait({sleeping}, timeout=1.0)
    wake_second.set()
    given = [await sleeping, await other]

    assert given[0].ip == given[1].ip
    assert [each.ip for each in await quick.list()] == [given[0].ip]
    assert await quick.get("id") == await slow.get("id") == given[0]
    assert (await quick.repair()).unfinished == 0


async def test_vs1_a_repeated_allocation_ends_in_time_whichever_request_is_not_answered(cells: ModeStage) -> None:
    """The last one reads whether a cleanup of the VM has failed."""
    client = await cells.stage.client()
    pool = await cells.pool(*SIX, client=client, operation_timeout_s=0.8)
    await pool.allocate("id")
    ends: list[bool] = []
    for number in range(1, MOST_REQUESTS):
        client.trouble = stops_at(number, stopped := asyncio.Event(), is_done=False)
        async with asyncio.timeout(10):
            ends.append(await is_served(pool))
        if not stopped.is_set():
            break
    client.trouble = no_trouble

    assert len(ends) > 1
    assert ends == [False] * (len(ends) - 1) + [True]


async def is_served(pool: AsyncVMPool) -> bool:
    """Ask for the VM of an id; return whether there was an answer in time."""
    try:
        await pool.allocate("id")
    except PoolUnavailable:
        return False
    return True
