"""Follow the log: a reader that stops and comes back misses nothing, and sees commit order."""

import asyncio

import tenure


async def main() -> None:
    """Write with one task, read with another, from a cursor that is only a number."""
    async with await tenure.open_async("memory:") as ledger:
        await ledger.add_network("net1")
        await ledger.add_subnet("net1", "192.0.2.0/24")
        await ledger.add_pool("net1", "192.0.2.10-192.0.2.20")
        cursor = await ledger.last_change()

        async def writer() -> None:
            for name in ("a", "b", "c"):
                holding = await ledger.allocate("net1", owner=f"vm/{name}")
                await ledger.release("net1", holding.address, owner=f"vm/{name}")

        writing = asyncio.create_task(writer())
        seen: list[int] = []
        async for change in ledger.tail(after=cursor):
            print(change.seq, change.verb, change.address, change.owner)
            seen.append(change.seq)
            if len(seen) == 6:
                break
        await writing
        assert seen == list(range(cursor + 1, cursor + 7))


asyncio.run(main())
