"""VD7: a list of pools is tried in order, and an id has one VM, of one pool, whoever asks at the same time."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest

from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.lists.async_vm_pool_list import AsyncVMPoolList, PooledVM
from tenure.integrations.vmpool.machines.vm_port import ReadinessProbe
from tenure.integrations.vmpool.pool_errors import VMNotReady, VMPoolExhausted
from tenure.integrations.vmpool.pool_metrics import PoolMeter
from tenure.kernel.errors import Conflict
from tests.integrations.vmpool.pool_stage import PoolStage, Send, TroubledClient
from tests.integrations.vmpool.vms import FakeVM
from tests.scale import runs

GPU, SPARE, LAST = ("10.1.0.1",), ("10.2.0.1",), ("10.3.0.1",)
POOLS = {"gpu": GPU, "spare": SPARE, "last": LAST}


async def listed(stage: PoolStage, *names: str, client: TroubledClient | None = None, **words: Any) -> AsyncVMPoolList:
    """Open pools as another node would, with a client of their own."""
    shared = client or await stage.client()
    wanted = names or tuple(POOLS)
    return AsyncVMPoolList(
        [await stage.pool(*POOLS[name], client=shared, config_map_name=name, **words) for name in wanted]
    )


async def held(pools: AsyncVMPoolList, id: str) -> list[PooledVM]:
    return [each for each in await pools.list() if each.allocation.allocation_id == id]


async def test_vd7_pools_are_tried_in_order(stage: PoolStage) -> None:
    pools = await listed(stage)

    given = [await pools.allocate(id) for id in "abc"]

    assert [(each.pool, each.allocation.ip) for each in given] == [("gpu", *GPU), ("spare", *SPARE), ("last", *LAST)]
    with pytest.raises(VMPoolExhausted, match=r"^no available IPs in pool$"):
        await pools.allocate("d")


async def test_vd7_a_caller_may_name_some_of_them_in_its_own_order(stage: PoolStage) -> None:
    pools = await listed(stage)

    assert (await pools.allocate("a", pools=["last", "gpu"])).pool == "last"
    with pytest.raises(VMPoolExhausted):
        await pools.allocate("b", pools=["last"])
    assert (await pools.status())["gpu"].available == 1


async def test_vd7_an_id_keeps_its_vm_when_an_earlier_pool_has_room_again(stage: PoolStage) -> None:
    pools = await listed(stage)
    await pools.allocate("a")
    first = await pools.allocate("b")
    await pools.deallocate("a")
    again = await (await listed(stage)).allocate("b")

    assert again == first == PooledVM("spare", first.allocation)
    assert await pools.get("b") == first
    assert await pools.find_ip(SPARE[0]) == first
    assert (await pools.allocate("c")).pool == "gpu"


async def test_vd7_a_vm_is_taken_back_from_whichever_pool(stage: PoolStage) -> None:
    pools = await listed(stage)
    for id in "ab":
        await pools.allocate(id)

    assert await pools.deallocate("b") is True
    assert await pools.deallocate("b") is False
    assert await pools.deallocate_ip(GPU[0]) is True
    assert await pools.list() == []
    assert (await pools.allocate("b")).pool == "gpu", "it was released, so it is a new one"


async def test_vd7_a_caller_may_wait_for_the_first_vm_of_any_of_them(stage: PoolStage) -> None:
    pools = await listed(stage)
    for id in "abc":
        await pools.allocate(id)
    waiting = asyncio.create_task(pools.allocate("d", wait_s=30))
    await asyncio.sleep(0.3)
    assert not waiting.done()
    await pools.deallocate("b")

    assert (await waiting).pool == "spare"


async def test_vd7_a_pool_whose_vms_do_not_answer_is_an_error_or_passed_over(stage: PoolStage) -> None:
    client = await stage.client()
    async with FakeVM() as vm:
        silent = await stage.pool("127.0.0.9", client=client, config_map_name="silent")
        ready = await stage.pool("127.0.0.1", client=client, config_map_name="ready")
        pools = AsyncVMPoolList([silent, ready])
        with pytest.raises(VMNotReady, match=r"127\.0\.0\.9"):
            await pools.allocate("a", probe=ReadinessProbe(vm.port))
        assert await pools.list() == []
        given = await pools.allocate("a", probe=ReadinessProbe(vm.port, tries_next=True))

    assert given.pool == "ready"


async def test_a_list_is_counted_once_where_it_ended(stage: PoolStage) -> None:
    client = await stage.client()
    meters = {name: PoolMeter(name, stage.settings(*ips).line) for name, ips in POOLS.items()}
    pools = AsyncVMPoolList([
        AsyncVMPool(client, stage.settings(*ips, config_map_name=name), observer=meters[name])
        for name, ips in POOLS.items()
    ])  # fmt: skip
    for id in "abcd":
        try:
            await pools.allocate(id)
        except VMPoolExhausted:
            continue
    await pools.deallocate("b")
    await pools.deallocate("nobody")

    assert {name: dict(each.results) for name, each in meters.items()} == {
        "gpu": {("allocate", "new"): 1, ("allocate", "exhausted"): 1, ("deallocate", "not_found"): 1},
        "spare": {("allocate", "new"): 1, ("deallocate", "released"): 1},
        "last": {("allocate", "new"): 1},
    }  # fmt: skip


class Pause:
    """Stops a client before its next write of a kind, until the test goes on."""

    def __init__(self, client: TroubledClient, number: int = 1) -> None:
        self.reached, self._go_on, self._left = asyncio.Event(), asyncio.Event(), number
        client.trouble = self._meet

    async def _meet(self, word: str, send: Send) -> Object:
        if word in ("create", "replace"):
            self._left -= 1
            if not self._left:
                self.reached.set()
                await self._go_on.wait()
        return await send()

    def go_on(self) -> None:
        self._go_on.set()


async def test_vd7_whoever_finds_the_first_pool_full_gives_back_what_another_one_got_there(stage: PoolStage) -> None:
    one, other = await stage.client(), await stage.client()
    blocker = await listed(stage)
    await blocker.allocate("x")
    late, early = await listed(stage, client=one), await listed(stage, client=other)
    pause = Pause(one)
    going_on = asyncio.create_task(late.allocate("a"))
    await pause.reached.wait()  # the first pool was full, and the second is about to be written
    await blocker.deallocate("x")
    first = await early.allocate("a")
    pause.go_on()

    assert first.pool == "gpu"
    assert await going_on == first
    assert await held(blocker, "a") == [first]


async def test_vd7_whoever_finds_room_in_the_first_pool_sees_that_the_id_was_passed_on(stage: PoolStage) -> None:
    one, other = await stage.client(), await stage.client()
    blocker = await listed(stage)
    await blocker.allocate("x")
    passing, looking = await listed(stage, client=one), await listed(stage, client=other)
    before_second, before_first = Pause(one), Pause(other)
    going_on = asyncio.create_task(passing.allocate("a"))
    await before_second.reached.wait()
    await blocker.deallocate("x")
    coming = asyncio.create_task(looking.allocate("a"))
    await before_first.reached.wait()  # it has asked all pools, and is about to take the VM of the first
    before_second.go_on()
    passed = await going_on
    before_first.go_on()

    assert passed.pool == "spare"
    assert await coming == passed
    assert await held(blocker, "a") == [passed]


async def test_vd7_what_a_killed_process_left_unanswered_is_what_the_id_gets(stage: PoolStage) -> None:
    client = await stage.client()
    blocker, dying = await listed(stage), await listed(stage, client=client)
    await blocker.allocate("x")
    pause = Pause(client, number=2)
    killed = asyncio.create_task(dying.allocate("a"))
    await pause.reached.wait()  # the second pool is written, and the first does not know it
    killed.cancel()
    await asyncio.gather(killed, return_exceptions=True)
    await blocker.deallocate("x")

    given = await blocker.allocate("a")
    assert given.pool == "spare"
    assert await held(blocker, "a") == [given]


@pytest.mark.parametrize("seed", range(runs(4, 200, proof=20)))
async def test_vd7_an_id_has_one_vm_whoever_asks_and_releases_at_the_same_time(stage: PoolStage, seed: int) -> None:
    chance = random.Random(seed)

    async def late(word: str, send: Send) -> Object:
        await asyncio.sleep(chance.uniform(0, 0.02))
        return await send()

    blocker = await listed(stage)
    for id in "xyz":
        await blocker.allocate(id)
    clients = [await stage.client() for _ in range(4)]
    for client in clients:
        client.trouble = late
    callers = [await listed(stage, client=client) for client in clients]
    asked = [asyncio.create_task(caller.allocate("a", wait_s=20)) for caller in callers]
    for id in chance.sample("xyz", 3):
        await asyncio.sleep(chance.uniform(0, 0.1))
        await blocker.deallocate(id)

    answers = await asyncio.gather(*asked)
    assert set(answers) == set(await held(blocker, "a"))
    assert len(set(answers)) == 1


async def test_the_first_pool_decides_so_it_has_to_be_one_configmap(stage: PoolStage) -> None:
    client = await stage.client()
    objects = await stage.pool(*GPU, client=client, config_map_name="gpu", pool_mode="per-ip")
    second = await stage.pool(*SPARE, client=client, config_map_name="spare")

    with pytest.raises(ValueError, match="the first of a list of pools has to be in mode configmap, and 'gpu'"):
        await AsyncVMPoolList([objects, second]).allocate("a")
    pools = AsyncVMPoolList([second, objects])
    assert [(await pools.allocate(id)).pool for id in "ab"] == ["spare", "gpu"]
    assert (await pools.allocate("b")).pool == "gpu"


async def test_a_first_pool_that_was_moved_is_refused_with_the_reason(stage: PoolStage) -> None:
    pools = await listed(stage, "gpu", "spare")
    await pools.pools["gpu"].allocate("a")
    await pools.pools["gpu"].move("per-ip")

    with pytest.raises(Conflict, match="has to be in mode configmap"):
        await pools.allocate("b")


async def test_notes_that_cannot_say_who_was_passed_on_stop_a_list(stage: PoolStage) -> None:
    stage.put_object({"data": {"tenure-notes": "{"}}, "gpu")
    pools = await listed(stage, "gpu", "spare")

    with pytest.raises(Conflict, match="a list of pools needs the notes of its first one, 'gpu'"):
        await pools.allocate("a")
    assert await pools.list() == []


async def test_lists_that_make_no_sense_are_refused(stage: PoolStage) -> None:
    client = await stage.client()

    async def pool(name: str, *ips: str) -> AsyncVMPool:
        return await stage.pool(*ips, client=client, config_map_name=name)

    for wrong, said in (
        ([], "has one at least"),
        ([await pool("a", "10.0.0.1"), await pool("a", "10.0.0.2")], "one name"),
        (
            [await pool("a", "10.0.0.1"), await pool("b", "10.0.0.2", "10.0.0.1")],
            "10.0.0.1 is in the pools 'a' and 'b'",
        ),
    ):
        with pytest.raises(ValueError, match=f"^pools: .*{said}"):
            AsyncVMPoolList(wrong)
    pools = await listed(stage)
    names: Sequence[Sequence[str]] = (["gpu", "gpu"], ["none"], [], "gpu")
    for each in names:
        with pytest.raises(ValueError, match=r"^pools: "):
            await pools.allocate("a", pools=each)
