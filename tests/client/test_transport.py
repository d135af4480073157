"""Closing the connections to a server while others wait on them."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

import tenure
from tenure.client.server_urls import read_servers
from tenure.client.transport import Transport


class SlowServer:
    """Answers nothing before it is allowed to; ``asked`` counts the requests that it has."""

    def __init__(self) -> None:
        self.asked = 0
        self.url = ""
        self.may_answer = asyncio.Event()

    async def answer(self, request: web.Request) -> web.Response:
        """Answer once that is allowed."""
        self.asked += 1
        await self.may_answer.wait()
        return web.json_response({})


@pytest.fixture
async def slow() -> AsyncIterator[SlowServer]:
    """Give a server that is slow to answer."""
    server, app = SlowServer(), web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


async def _until_asked(server: SlowServer, times: int) -> None:
    async with asyncio.timeout(8):
        while server.asked < times:  # noqa: ASYNC110 - several requests are counted
            await asyncio.sleep(0.01)


async def test_who_waits_is_sent_away_though_closing_still_waits_for_another_answer(slow: SlowServer) -> None:
    transport = Transport(read_servers(slow.url), None)
    quick: asyncio.Task[object] = asyncio.create_task(transport.ask("GET", "/quick", dict))
    waiting: asyncio.Task[object] = asyncio.create_task(transport.ask("POST", "/waits", dict, waits_s=60.0))
    await _until_asked(slow, 2)
    closing = asyncio.create_task(transport.close())

    with pytest.raises(tenure.Conflict, match="closed"):
        await asyncio.wait_for(waiting, 8)
    with pytest.raises(tenure.Conflict, match="closed"):
        await transport.ask("POST", "/waits", dict, waits_s=60.0)
    with pytest.raises(tenure.Conflict, match="closed"):
        async with transport.stream("/events", {}, {}, answer_s=1.0):
            pass
    assert not closing.done()
    slow.may_answer.set()
    assert await quick == {}
    await closing


async def test_a_stream_that_is_asked_for_after_closing_is_refused(slow: SlowServer) -> None:
    transport = Transport(read_servers(slow.url), None)
    await transport.close()

    with pytest.raises(tenure.Conflict, match="closed"):
        async with transport.stream("/events", {}, {}, answer_s=1.0):
            pass
