"""Grants on PostgreSQL: who waits for one space stops nobody in another."""

import asyncio

import asyncpg

import tenure
from tests.contract.providers import provider_named


async def test_a_space_that_somebody_holds_stops_no_grants_in_others() -> None:
    async with provider_named("postgres").place() as url, await tenure.open_async(url) as ledger:
        for number, name in enumerate(("locked", "free")):
            await ledger.add_network(name)
            await ledger.add_subnet(name, f"10.{number}.0.0/16")
            await ledger.add_pool(name, f"10.{number}.1.0-10.{number}.250.0", policy="random")
            await ledger.allocate(name, owner="vm/first")
        server, _, schema = url.rpartition("&schema=")
        holder = await asyncpg.connect(server, server_settings={"search_path": schema})
        try:
            async with holder.transaction():
                assert await holder.fetchval("SELECT id FROM space WHERE name = 'locked' FOR UPDATE")
                waiting = [asyncio.create_task(ledger.allocate("locked", owner=f"vm/{n}")) for n in range(40)]
                await asyncio.sleep(0.2)  # longer than a batch waits before it goes on one by one
                async with asyncio.timeout(10):
                    held = [await ledger.allocate("free", owner=f"vm/{n}") for n in range(20)]
                assert not any(each.done() for each in waiting)
            late = await asyncio.gather(*waiting)
        finally:
            await holder.close()

    assert len({each.address for each in held}) == 20
    assert len({each.address for each in late}) == 40
