"""Time made to pass, without waiting for it: deadlines are moved in the store by its own verbs."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import tenure
from tenure.client.remote_ledger import RemoteLedger
from tenure.kernel.holdings.holding_model import Change, Row
from tenure.ports import LedgerStore, Transaction
from tenure.service.engine.engine import Engine
from tenure.service.ledger.engine_ledger import ledger_on, server_of
from tests.contract.providers import STORES_BEHIND

LONG_AGO_US = 1


def store_of(ledger: tenure.AsyncLedger) -> LedgerStore:
    """Return the store a ledger stands on; behind a server, the same one opened a second time."""
    if isinstance(ledger._end, RemoteLedger):
        return STORES_BEHIND[ledger._end.url]
    return server_of(ledger).store


async def let_deadlines_pass(ledger: tenure.AsyncLedger) -> None:
    """Put every deadline of every holding into the past."""
    store = store_of(ledger)
    for space, _ in await store.spaces():
        rows = [row async for page in store.held(space) for row in page if row.until_us is not None]
        late = [row._replace(until_us=LONG_AGO_US) for row in rows]
        await store.transact(lambda tx, late=late: tx.rewrite(late))  # type: ignore[misc]


async def let_waiters_die(ledger: tenure.AsyncLedger, *owners: str) -> None:
    """Put the time until which claims in line (all, or of these owners) are taken for alive into the past."""
    store = store_of(ledger)

    async def dying(tx: Transaction, space: int) -> None:
        line = await tx.waiters(space)
        await tx.linger([waiter.ticket for waiter in line if not owners or waiter.owner in owners], -1_000_000)

    for space, _ in await store.spaces():
        await store.transact(lambda tx, space=space: dying(tx, space))  # type: ignore[misc]


async def in_line(ledger: tenure.AsyncLedger) -> list[str]:
    """List the owners of all claims that the store has in line, dead or alive."""
    store, found = store_of(ledger), list[str]()
    for space, _ in await store.spaces():
        found += [waiter.owner for waiter in await store.transact(lambda tx, space=space: tx.waiters(space))]  # type: ignore[misc]
    return found


async def nothing_waits(ledger: tenure.AsyncLedger) -> bool:
    """Tell whether nothing is left of those who waited: no claim, and no mark on a space."""
    marked = [space.name for space in await ledger.spaces() if space.queued]
    return (await in_line(ledger), await ledger.waiting(), marked) == ([], [], [])


async def row_at(ledger: tenure.AsyncLedger, address: str, network: str = "net") -> Row:
    """Read the row of an address, whatever its state."""
    return (await ledger.holding(network, address)).row


async def news(ledger: tenure.AsyncLedger, after: int = 0) -> list[Change]:
    """Read the log behind a number."""
    return [change async for change in ledger.changes(after)]


async def verbs(ledger: tenure.AsyncLedger, after: int = 0) -> list[str]:
    """List the verbs of the log behind a number."""
    return [change.verb for change in await news(ledger, after)]


async def until(condition: Callable[[], Awaitable[bool]], *, within_s: float = 8.0) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(within_s):
        while not await condition():  # noqa: ASYNC110 - what happens in a store wakes nobody here
            await asyncio.sleep(0.01)


async def until_waiting(ledger: tenure.AsyncLedger, *owners: str) -> None:
    """Wait until these owners, and only they, are in line, in this order."""

    async def so() -> bool:
        return [claim.owner for claim in await ledger.waiting()] == list(owners)

    await until(so)


async def another(ledger: tenure.AsyncLedger, url: str) -> tenure.AsyncLedger:
    """Open a second ledger on the same store; one in memory is shared within the process."""
    if url != "memory:":
        return await tenure.open_async(url)
    return ledger_on(Engine(store_of(ledger), name="second", chance=random.Random(2)))
