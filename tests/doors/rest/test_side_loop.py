"""What computes for long does so beside the server's loop, and asks the ledger where the ledger lives."""

import asyncio
import threading

import pytest

import tenure
from tenure.doors.rest.catalogue import ENDPOINTS
from tenure.doors.rest.side_loop import SideLoop, distant


async def test_the_servers_loop_goes_on_while_something_is_computed_beside_it() -> None:
    side, released = SideLoop(), threading.Event()

    async def compute() -> str:
        assert released.wait(30)  # it holds its thread, as a long computation does
        return threading.current_thread().name

    running = asyncio.create_task(side.run(compute()))
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

        assert (await side.run(add())).name == "net"
        with pytest.raises(tenure.NotFound):
            await side.run(away.network("other"))
        with pytest.raises(AttributeError, match="asked_by"):
            away.asked_by("somebody")
        await side.close()


async def test_closing_ends_what_still_waits_there() -> None:
    side = SideLoop()
    waiting = asyncio.create_task(side.run(asyncio.sleep(3600)))
    await side.run(asyncio.sleep(0))
    await side.close()

    with pytest.raises(asyncio.CancelledError):
        await waiting


def test_every_route_that_reads_documents_or_many_instances_is_worked_on_beside_the_loop() -> None:
    apart = {endpoint.path for endpoint in ENDPOINTS if endpoint.apart}

    assert {"/deployments:diff", "/deployments:plan", "/deployments:apply", "/cloud-configs/{config}"} <= apart
    assert apart == {endpoint.path for endpoint in ENDPOINTS if endpoint.section == "deployments"}
