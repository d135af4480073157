"""A server that the tests of one file share, and a client that may do everything on it."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.doors.http.stage import LOOSE, Client, Server, running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_server() -> AsyncIterator[Server]:
    """Run one server for all tests of a file; they must ask in the loop of the file."""
    async with running(limits=LOOSE) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def admin(shared_server: Server) -> AsyncIterator[Client]:
    """Give a client of the shared server that may do everything."""
    async with shared_server.client() as client:
        yield client
