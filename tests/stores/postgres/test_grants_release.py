"""A release on PostgreSQL that had to wait judges what it finds then, not what was there when it began."""

import asyncio
from typing import Any

import asyncpg
import pytest

from tenure.kernel.addressing.addresses import key
from tenure.kernel.holdings.holding_model import State, Ticket
from tests.contract.book.conftest import prepared
from tests.contract.providers import provider_named

WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted AND transactionid IS NOT NULL"


async def _until_it_waits(rival: Any) -> None:
    async with asyncio.timeout(30):
        while not await rival.fetchval(WAITING):  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("cooling_us", [0, 60_000_000], ids=["at once", "to cool"])
async def test_what_got_another_owner_while_the_release_waited_stays(cooling_us: int) -> None:
    async with prepared(provider_named("postgres")) as site:
        mine, other = await site.held_by("192.0.2.10", "vm/a"), await site.held_by("192.0.2.11", "vm/b")
        server, _, schema = site.url.partition("&schema=")
        rival = await asyncpg.connect(server, server_settings={"search_path": schema})
        try:
            async with rival.transaction():
                await rival.execute("UPDATE space SET frees = frees + 1 WHERE id = $1", site.here.space)
                await rival.execute("UPDATE holding SET owner = 'vm/c' WHERE first = $1", key(mine.first))
                late = asyncio.create_task(
                    site.release(*(Ticket(r.network, r.first, r.owner, cooling_us=cooling_us) for r in (mine, other)))
                )
                await _until_it_waits(rival)
            told = await late
        finally:
            await rival.close()

        assert [row and row.owner for row in told] == ["vm/c", "vm/b"]
        left = {row.owner: row.state for row in await site.rows()}
        assert left.pop("vm/c") is State.HELD
        assert left == ({"vm/b": State.COOLING} if cooling_us else {})


@pytest.mark.parametrize("cooling_us", [0, 60_000_000], ids=["at once", "to cool"])
async def test_two_tickets_for_one_holding_end_it_once(cooling_us: int) -> None:
    async with prepared(provider_named("postgres")) as site:
        row = await site.held_by("192.0.2.10", "vm/a")
        ticket = Ticket(row.network, row.first, row.owner, remember=True, cooling_us=cooling_us)

        assert await site.release(ticket, ticket) == [row, row]
        assert [change.verb for change in await site.news()] == ["grant", "cool" if cooling_us else "release"]
