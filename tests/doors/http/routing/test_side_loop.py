"""What computes for long does so beside the server's loop, and asks the ledger where the ledger lives."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import tenure
from tenure.doors.http.routes.route_table import ENDPOINTS
from tenure.doors.http.routing.side_loop import AT_ONCE, AT_ONCE_OF_ONE, SideLoop, distant


async def test_the_servers_loop_goes_on_while_something_is_computed_beside_it() -> None:
    side, released = SideLoop(), threading.Event()

    async def compute() -> str:
        assert released.wait(30)  # it holds its thread, as a long computation does
        return threading.current_thread().name

    running = asyncio.create_task(side.run(compute))
    for _ in range(100):  # the loop turns, though nothing of the computation is done
        await asyncio.sleep(0)
    assert not running.done()
    released.set()

    assert await running == "tenure-side"
    await side.close()


async def test_a_ledger_is_asked_on_the_loop_it_lives_on_and_refuses_as_ever() -> None:
    side = SideLoop()
    async with await tenure.open_async("memory:") as ledger:
        away = distant(ledger)

        async def add() -> tenure.Network:
            await away.add_network("net")
            return await away.network("net")

        assert (await side.run(add)).name == "net"
        with pytest.raises(tenure.NotFound):
            await side.run(lambda: away.network("other"))
        with pytest.raises(AttributeError, match="asked_by"):
            away.asked_by("somebody")
        await side.close()


async def test_closing_ends_what_still_waits_there() -> None:
    side = SideLoop()
    waiting = asyncio.create_task(side.run(lambda: asyncio.sleep(3600)))
    await side.run(lambda: asyncio.sleep(0))
    await side.close()

    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_one_token_has_only_a_part_of_the_turns_and_hanging_up_gives_none_back_early() -> None:
    side, released, begun = SideLoop(), threading.Event(), list[str]()

    def work(name: str) -> Callable[[], Coroutine[Any, Any, None]]:
        async def compute() -> None:
            begun.append(name)
            assert await asyncio.to_thread(released.wait, 30)

        return compute

    greedy = [asyncio.create_task(side.run(work(f"greedy-{n}"), "greedy")) for n in range(5)]
    await until(lambda: len(begun) == AT_ONCE_OF_ONE)
    for task in greedy[:AT_ONCE_OF_ONE]:
        task.cancel()  # it hangs up, and what has begun goes on
    await side.run(lambda: asyncio.sleep(0), "another")
    assert begun == ["greedy-0", "greedy-1"]
    greedy[2].cancel()
    released.set()
    await asyncio.gather(*greedy, return_exceptions=True)

    assert begun == ["greedy-0", "greedy-1", "greedy-3", "greedy-4"]
    await side.close()


async def test_tokens_that_have_nothing_there_are_forgotten() -> None:
    side, released = SideLoop(), threading.Event()

    async def compute() -> None:
        assert await asyncio.to_thread(released.wait, 30)

    async def refuse() -> None:
        raise tenure.Invalid("no")

    for number in range(50):
        await side.run(lambda: asyncio.sleep(0), f"passing-{number}")
        with pytest.raises(tenure.Invalid):
            await side.run(refuse, f"refused-{number}")
    busy = [asyncio.create_task(side.run(compute, f"busy-{number // 2}")) for number in range(AT_ONCE)]
    late = [asyncio.create_task(side.run(compute, name)) for name in ("busy-0", "late")]
    await asyncio.sleep(0)
    assert set(side._callers) == {"busy-0", "busy-1", "late"}
    for task in late:
        task.cancel()  # one waits for its own turns, the other for those of all
    await asyncio.gather(*late, return_exceptions=True)
    assert set(side._callers) == {"busy-0", "busy-1"}
    released.set()
    await asyncio.gather(*busy)
    await until(lambda: not side._callers)

    assert side._turns._value == AT_ONCE
    await side.close()


async def until(so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not so():  # noqa: ASYNC110 - the other thread wakes nobody here
            await asyncio.sleep(0.01)


def test_every_route_that_reads_documents_or_many_instances_is_worked_on_beside_the_loop() -> None:
    apart = {endpoint.path for endpoint in ENDPOINTS if endpoint.apart}

    assert {"/deployments:diff", "/deployments:plan", "/deployments:apply", "/cloud-configs/{config}"} <= apart
    assert apart == {endpoint.path for endpoint in ENDPOINTS if endpoint.section == "deployments"}
