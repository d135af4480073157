"""One swap for all: conflicts, lost answers, deadlines and cancelled callers, on a real API server."""

import asyncio
import time
from collections.abc import Awaitable
from itertools import chain
from typing import Any

import pytest

from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.pool_document import PoolChange, PoolDocument
from tenure.integrations.vmpool.pool_errors import PoolSwapConflict, PoolUnavailable, VMPoolExhausted
from tenure.integrations.vmpool.state.pool_state import VMAllocation
from tenure.kernel.errors import Conflict
from tests.integrations.vmpool.pool_stage import (
    SIX,
    TWO,
    PoolStage,
    Send,
    loses_answers,
    refuses,
    state_with,
)

HUNDRED = tuple(f"10.0.0.{last}" for last in range(1, 101))


def stored_ips(stage: PoolStage) -> dict[str, str]:
    return {key: each["ip"] for key, each in stage.state()["allocatedIPs"].items()}


async def managers(stage: PoolStage, count: int, *ips: str, **words: Any) -> list[AsyncVMPool]:
    """Open managers with clients of their own, as on so many nodes."""
    return [await stage.pool(*ips, node_name=f"node-{number}", **words) for number in range(count)]


async def test_case_17_of_two_writes_on_one_version_one_wins_and_the_other_tries_again(stage: PoolStage) -> None:
    stage.put(state_with(list(HUNDRED)))
    first, second = await managers(stage, 2, *HUNDRED)
    found = await asyncio.gather(first.allocate("alloc-1"), second.allocate("alloc-2"))

    assert stored_ips(stage) == {each.allocation_id: each.ip for each in found}
    assert stage.state()["version"] == 7


async def test_case_17_the_loser_decides_again_on_what_is_there_then(stage: PoolStage) -> None:
    """The other one takes the very address between its read and its write."""
    stage.put(state_with(list(TWO)))
    client, other = await stage.client(), await stage.pool(*TWO, node_name="node-2")
    pool = await stage.pool(*TWO, client=client)
    taken: list[VMAllocation] = []

    async def trouble(word: str, send: Send) -> Any:
        if word == "replace" and not taken:
            taken.append(await other.allocate("test-allocation-1"))
        return await send()

    client.trouble = trouble
    found = await pool.allocate("test-allocation")

    assert {found.ip, taken[0].ip} == set(TWO)
    assert client.sent == ["get", "replace", "get", "replace"]


@pytest.mark.parametrize(
    ("words", "attempts"), [({"max_retries": 2}, 3), ({"retry": "go"}, 4), ({"max_retries": 0}, 1)]
)
async def test_case_19_conflicts_on_every_try_end_after_the_attempts(
    stage: PoolStage, words: dict[str, Any], attempts: int
) -> None:
    stage.put(state_with(list(TWO)))
    client = await stage.client()
    client.trouble = refuses(409, "Conflict", "the object has been modified")
    pool = await stage.pool(*TWO, client=client, **words)
    with pytest.raises(PoolSwapConflict, match=r"^failed to allocate IP after retries: conflict: 409") as caught:
        await pool.allocate("a")
    assert isinstance(caught.value, Conflict)
    assert (caught.value.attempts, client.sent.count("replace")) == (attempts, attempts)
    client.trouble = refuses(409, "Conflict", "the object has been modified")
    client.sent.clear()

    assert stage.state()["allocatedIPs"] == {}


async def test_vd1_by_default_conflicts_are_retried_until_the_time_is_up(stage: PoolStage) -> None:
    stage.put(state_with(list(TWO)))
    client = await stage.client()
    client.trouble = refuses(409, "Conflict", "the object has been modified")
    pool = await stage.pool(*TWO, client=client, operation_timeout_s=3.0)
    began = time.monotonic()
    with pytest.raises(PoolSwapConflict, match="no answer within 3 s"):
        await pool.allocate("a")

    assert 2.9 < time.monotonic() - began < 6.0
    assert client.sent.count("replace") > 1


async def test_a_deallocation_that_never_gets_through_says_so(stage: PoolStage) -> None:
    client = await stage.client()
    pool = await stage.pool(*TWO, client=client, retry="go")
    await pool.allocate("a")
    client.trouble = refuses(409, "Conflict", "the object has been modified")
    with pytest.raises(PoolSwapConflict, match=r"^failed to deallocate IP after retries: conflict: "):
        await pool.deallocate("a")

    assert list(stored_ips(stage)) == ["a"]


async def test_case_21_after_many_concurrent_allocations_reported_is_stored(stage: PoolStage) -> None:
    nodes = await managers(stage, 4, *HUNDRED, operation_timeout_s=60.0)

    async def work(number: int, pool: AsyncVMPool) -> list[VMAllocation]:
        return [await pool.allocate(f"node-{number}-{each}") for each in range(10)]

    found = list(chain(*await asyncio.gather(*[work(number, pool) for number, pool in enumerate(nodes)])))

    assert stored_ips(stage) == {each.allocation_id: each.ip for each in found}
    assert len({each.ip for each in found}) == 40
    assert sorted([*stage.state()["availableIPs"], *stored_ips(stage).values()]) == sorted(HUNDRED)


async def test_case_22_eight_nodes_begin_with_no_config_map(stage: PoolStage) -> None:
    nodes = await managers(stage, 8, *HUNDRED)
    found = await asyncio.gather(*[pool.allocate(f"id-{number}") for number, pool in enumerate(nodes)])

    assert stored_ips(stage) == {each.allocation_id: each.ip for each in found}
    assert len({each.ip for each in found}) == 8


async def test_case_25_more_callers_than_addresses(stage: PoolStage) -> None:
    nodes = await managers(stage, 10, *TWO, "192.168.1.12")

    async def work(number: int, pool: AsyncVMPool) -> list[VMAllocation | BaseException]:
        return await asyncio.gather(
            *[pool.allocate(f"worker-{number}-alloc-{each}") for each in range(2)], return_exceptions=True
        )

    ended = list(chain(*await asyncio.gather(*[work(number, pool) for number, pool in enumerate(nodes)])))
    found = [each for each in ended if isinstance(each, VMAllocation)]

    assert len(found) == 3
    assert stored_ips(stage) == {each.allocation_id: each.ip for each in found}
    assert len({each.ip for each in found}) == 3
    assert {type(each) for each in ended} == {VMAllocation, VMPoolExhausted}


async def test_case_26_allocations_and_releases_at_once_keep_the_total(stage: PoolStage) -> None:
    five = HUNDRED[:5]
    nodes = await managers(stage, 3, *five, operation_timeout_s=60.0)

    async def work(number: int, pool: AsyncVMPool) -> None:
        for each in range(5):
            await pool.allocate(f"w{number}-{each}")
            assert await pool.deallocate(f"w{number}-{each}") is True

    await asyncio.gather(*[work(number, pool) for number, pool in enumerate(nodes)])
    status = await nodes[0].status()

    assert (status.total, status.available, status.in_use) == (5, 5, 0)
    assert sorted(stage.state()["availableIPs"]) == sorted(five)


async def test_callers_of_one_process_share_a_write(stage: PoolStage) -> None:
    client = await stage.client()
    pool = await stage.pool(*HUNDRED, client=client)
    found = await asyncio.gather(*[pool.allocate(f"id-{number}") for number in range(50)])

    assert len({each.ip for each in found}) == 50
    assert client.sent == ["get", "create"]
    assert stage.state()["version"] == 2


async def test_callers_that_come_while_a_round_runs_share_the_next(stage: PoolStage) -> None:
    client = await stage.client()
    pool = await stage.pool(*HUNDRED, client=client)
    first = asyncio.create_task(pool.allocate("first"))
    await client.begun("get")
    await asyncio.gather(first, *[pool.allocate(f"id-{number}") for number in range(20)])

    assert client.sent == ["get", "create", "get", "replace"]


async def test_the_same_id_at_the_same_time_is_one_allocation(stage: PoolStage) -> None:
    first, second = await managers(stage, 2, *HUNDRED)
    found = await asyncio.gather(*[pool.allocate("same") for pool in (first, first, second, second)])

    assert len({each.ip for each in found}) == 1
    assert len(stored_ips(stage)) == 1


async def test_what_one_caller_cannot_have_is_no_matter_of_the_others(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO)
    ended = await asyncio.gather(
        *[pool.allocate(id) for id in ("a", "b", "c")], pool.deallocate("x"), return_exceptions=True
    )

    assert [type(each) for each in ended] == [VMAllocation, VMAllocation, VMPoolExhausted, bool]


@pytest.mark.parametrize("is_done", [True, False])
async def test_vs1_a_lost_answer_of_an_allocation_is_settled_by_reading_again(stage: PoolStage, is_done: bool) -> None:
    stage.put(state_with(list(TWO)))
    client = await stage.client()
    client.trouble = loses_answers(is_done=is_done)
    pool = await stage.pool(*TWO, client=client)
    found = await pool.allocate("a")

    assert stored_ips(stage) == {"a": found.ip}
    assert client.sent == ["get", "replace", "get"] if is_done else ["get", "replace", "get", "replace"]


@pytest.mark.parametrize("is_done", [True, False])
async def test_vs1_a_lost_answer_of_a_release_still_says_that_it_was_released(stage: PoolStage, is_done: bool) -> None:
    client = await stage.client()
    pool = await stage.pool(*TWO, client=client)
    await pool.allocate("a")
    client.trouble = loses_answers(is_done=is_done)

    assert await pool.deallocate("a") is True
    assert stored_ips(stage) == {}
    assert len(stage.state()["availableIPs"]) == 2


async def test_vs1_a_release_that_a_client_has_sent_twice_of_its_own_accord_was_made(stage: PoolStage) -> None:
    """Its connection was closed after the first was done: the second, on the old version, is refused."""
    client = await stage.client()
    pool = await stage.pool(*TWO, client=client)
    await pool.allocate("a")
    once = [True]

    async def trouble(word: str, send: Send) -> Any:
        if word == "replace" and once:
            once.clear()
            await send()
        return await send()

    client.trouble = trouble

    assert await pool.deallocate("a") is True
    assert stored_ips(stage) == {}


@pytest.mark.parametrize("status", [500, 503, 504])
async def test_vs1_a_5xx_may_have_been_done(stage: PoolStage, status: int) -> None:
    stage.put(state_with(list(TWO)))
    client = await stage.client()
    pool = await stage.pool(*TWO, client=client)
    left = [1]

    async def trouble(word: str, send: Send) -> Any:
        answer = await send()
        if word == "replace" and left[0]:
            left[0] -= 1
            return await refuses(status, on="replace")(word, send)
        return answer

    client.trouble = trouble
    found = await pool.allocate("a")

    assert stored_ips(stage) == {"a": found.ip}
    assert stage.state()["version"] == 6


async def test_vs1_an_answer_that_is_lost_while_another_writes_is_settled_too(stage: PoolStage) -> None:
    """The mark of our write is among the last ones, though another was written since."""
    client, other = await stage.client(), await stage.pool(*SIX, node_name="node-2")
    pool = await stage.pool(*SIX, client=client)
    await pool.allocate("a")
    lose = loses_answers()

    async def trouble(word: str, send: Send) -> Any:
        try:
            return await lose(word, send)
        finally:
            if word == "replace":
                await other.allocate("b")

    client.trouble = trouble
    assert await pool.deallocate("a") is True

    assert list(stored_ips(stage)) == ["b"]


async def test_vs1_a_write_that_arrives_late_is_not_done_twice(stage: PoolStage) -> None:
    stage.put(state_with(list(TWO)))
    client = await stage.client()
    client.trouble = loses_answers(late_s=0.2)
    pool = await stage.pool(*TWO, client=client, retry_interval_s=0.5)
    found = await pool.allocate("a")
    await asyncio.sleep(0.3)

    assert stored_ips(stage) == {"a": found.ip}
    assert len(stage.state()["availableIPs"]) == 1


async def test_vs1_nothing_is_said_of_a_version_on_which_a_lost_write_may_still_arrive(stage: PoolStage) -> None:
    """The caller gave up, and releases what it may have got: a write goes first, so the lost one comes too late."""
    stage.put(state_with(list(TWO)))
    client = await stage.client()
    client.trouble = loses_answers(late_s=0.5)
    pool = await stage.pool(*TWO, client=client, max_retries=0)
    with pytest.raises(PoolUnavailable) as caught:
        await pool.allocate("a")
    assert caught.value.outcome == "unknown"
    assert await pool.deallocate("a") is False
    await asyncio.sleep(0.6)

    assert stored_ips(stage) == {}


async def test_vs1_a_caller_whose_write_may_be_done_is_told_that_it_is_not_known(stage: PoolStage) -> None:
    stage.put(state_with(list(TWO)))
    client = await stage.client()
    client.trouble = loses_answers(times=1000)
    pool = await stage.pool(*TWO, client=client, max_retries=0)
    with pytest.raises(PoolUnavailable, match="repeat the same request") as caught:
        await pool.allocate("a")
    assert caught.value.outcome == "unknown"
    client.trouble = loses_answers(times=0)

    assert stored_ips(stage) == {"a": (await pool.allocate("a")).ip}


async def test_vs1_a_cancelled_caller_leaves_nothing_or_what_the_same_id_gets_again(stage: PoolStage) -> None:
    client = await stage.client()
    pool = await stage.pool(*HUNDRED, client=client)
    for number in range(30):
        calling = asyncio.create_task(pool.allocate(f"id-{number}"))
        await asyncio.sleep(0.0005 * number)
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
        await pool.close()
        stored = stored_ips(stage).get(f"id-{number}") if stage.object() else None
        found = await pool.allocate(f"id-{number}")
        assert stored in (None, found.ip)

    assert len(set(stored_ips(stage).values())) == 30


async def test_a_caller_that_leaves_before_its_turn_leaves_nothing(stage: PoolStage) -> None:
    client = await stage.client()
    pool = await stage.pool(*HUNDRED, client=client)
    first = asyncio.create_task(pool.allocate("first"))
    await client.begun("get")
    second = asyncio.create_task(pool.allocate("second"))
    await asyncio.sleep(0)
    second.cancel()
    await first
    await pool.close()

    assert list(stored_ips(stage)) == ["first"]
    assert client.sent == ["get", "create"]


async def hangs(word: str, send: Send) -> Any:
    await asyncio.sleep(60)


async def test_vs1_every_wait_ends_with_the_callers_deadline(stage: PoolStage) -> None:
    stage.put(state_with(list(TWO)))
    for trouble in (hangs, refuses(503, on="get"), refuses(409, "Conflict", "x"), loses_answers(times=1000)):
        client = await stage.client()
        client.trouble = trouble
        pool = await stage.pool(*TWO, client=client, operation_timeout_s=0.6)
        calls: list[Awaitable[object]] = [pool.allocate("a"), pool.allocate("b")]
        if trouble is hangs:
            calls.append(pool.status())
        began = time.monotonic()
        ended = await asyncio.gather(*calls, return_exceptions=True)
        assert time.monotonic() - began < 4.0
        assert {type(each) for each in ended} <= {PoolUnavailable, PoolSwapConflict, VMAllocation}
        client.trouble = refuses(503, times=0)


@pytest.mark.timeout(60)
async def test_vs1_requests_that_fail_at_once_do_not_keep_the_loop_from_the_deadline(stage: PoolStage) -> None:
    """No request suspends here: a round that followed without a pause would be the last thing that this loop does."""
    client = await stage.client()
    client.trouble = loses_answers(on="get", is_done=False, times=1_000_000)
    pool = await stage.pool(*TWO, client=client, operation_timeout_s=0.02)
    for _ in range(200):
        with pytest.raises(PoolUnavailable):
            await pool.allocate("a")


async def test_a_request_that_hangs_leaves_time_to_ask_again(stage: PoolStage) -> None:
    client = await stage.client()
    pool = await stage.pool(*TWO, client=client, operation_timeout_s=6.0)
    once = [True]

    async def trouble(word: str, send: Send) -> Any:
        if word == "create" and once:
            once.clear()
            await send()
            await asyncio.sleep(60)
        return await send()

    client.trouble = trouble
    found = await pool.allocate("a")

    assert stored_ips(stage) == {"a": found.ip}


async def test_a_config_map_that_is_deleted_meanwhile_is_made_again(stage: PoolStage) -> None:
    client = await stage.client()
    pool = await stage.pool(*TWO, client=client)
    stage.put(state_with(list(TWO)))
    left = [1]

    async def trouble(word: str, send: Send) -> Any:
        if word == "replace" and left[0]:
            left[0] -= 1
            stage.kube.ask("DELETE", f"/api/v1/namespaces/{stage.namespace}/configmaps/byom-ip-pool-state")
        return await send()

    client.trouble = trouble
    found = await pool.allocate("a")

    assert stored_ips(stage) == {"a": found.ip}
    assert client.sent == ["get", "replace", "get", "create"]


async def test_case_40_a_fresh_state_is_made_with_version_1_when_a_change_wants_it_there(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO)
    await pool.change("recover", lambda document: PoolChange(None, state=document.state))

    assert stage.state()["version"] == 1
    assert stage.state()["availableIPs"] == list(TWO)


async def test_a_change_sees_what_the_ones_before_it_in_the_round_have_left(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO)
    seen: list[int] = []

    def decide(document: PoolDocument) -> PoolChange[None]:
        seen.append(len(document.state.allocated))
        return PoolChange(None)

    await asyncio.gather(
        pool.allocate("a"), pool.change("look", decide), pool.allocate("b"), pool.change("look", decide)
    )

    assert seen == [1, 2]


async def test_what_a_decision_raises_reaches_its_caller_alone(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO)

    def decide(document: PoolDocument) -> PoolChange[None]:
        raise RuntimeError("a mistake of ours")

    wrong, right = await asyncio.gather(pool.change("look", decide), pool.allocate("a"), return_exceptions=True)

    assert isinstance(wrong, RuntimeError)
    assert isinstance(right, VMAllocation)


async def test_what_happens_is_counted(stage: PoolStage) -> None:
    counted: list[tuple[Any, ...]] = []

    class Counting:
        def operation(self, operation: str, result: str, seconds: float, attempts: int) -> None:
            counted.append((operation, result, attempts))

        def conflict(self, operation: str) -> None:
            counted.append(("conflict", operation))

        def repaired(self, kind: str, count: int = 1) -> None:
            counted.append(("repaired", kind))

        def read(self, document: PoolDocument) -> None:
            pass

    stage.put(state_with(["10.9.9.9", *TWO]))
    client = await stage.client()
    client.trouble = refuses(409, "Conflict", "x", times=1)
    pool = AsyncVMPool(client, stage.settings(), observer=Counting())
    for id in ("a", "a", "b"):
        await pool.allocate(id)
    with pytest.raises(VMPoolExhausted):
        await pool.allocate("c")
    for _ in range(2):
        await pool.deallocate("a")
    client.trouble = refuses(500)
    doomed = AsyncVMPool(client, stage.settings(max_retries=0), observer=Counting())
    with pytest.raises(PoolUnavailable):
        await doomed.allocate("d")

    assert counted == [
        ("conflict", "allocate"), ("repaired", "unknown"), ("allocate", "new", 2), ("allocate", "existing", 1),
        ("allocate", "new", 1), ("allocate", "exhausted", 1), ("deallocate", "released", 1),
        ("deallocate", "not_found", 1), ("allocate", "error", 1),
    ]  # fmt: skip
