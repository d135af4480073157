"""Releases that wait for each other, where transactions run at the same time: each sees what the other did."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

import tenure
from tenure.kernel.holdings.holding_model import State
from tenure.ports import Guard, LedgerStore, Transaction
from tests.contract.ledger.timing import news, row_at
from tests.contract.sites import Site

pytestmark = pytest.mark.every_store

ADDRESS = "192.0.2.10"


@asynccontextmanager
async def two_ledgers(site: Site[LedgerStore]) -> AsyncIterator[tuple[tenure.AsyncLedger, tenure.AsyncLedger]]:
    """Open two ledgers with a pool whose addresses cool."""
    async with await tenure.open_async(site.url) as first, await tenure.open_async(site.url) as second:
        await first.add_network("net")
        await first.add_subnet("net", "192.0.2.0/24")
        await first.add_pool("net", ADDRESS, cooling_s=60)
        yield first, second


async def behind_the_lane(
    site: Site[LedgerStore],
    work: Callable[[Transaction], Coroutine[Any, Any, None]],
    *calls: Coroutine[Any, Any, tenure.Holding | None],
) -> list[tenure.Holding | None]:
    """Begin calls while the lane is held, so that they have looked before they go on; then do work, and let them."""
    [space] = (await site.store.locate(["net"])).values()
    tasks: list[asyncio.Task[tenure.Holding | None]] = []

    async def holding(tx: Transaction) -> None:
        await tx.guard([space], Guard.LANE)
        if not tasks:
            tasks.extend(asyncio.create_task(call) for call in calls)
        await asyncio.sleep(0.3)
        await work(tx)

    await site.store.transact(holding)
    return [await task for task in tasks]


async def nothing(tx: Transaction) -> None:
    """Do no work."""


async def test_two_releases_at_the_same_time_cool_once(parallel_site: Site[LedgerStore]) -> None:
    async with two_ledgers(parallel_site) as (first, second):
        given = await first.allocate("net", owner="vm/a")
        cursor = await first.last_change()
        calls = (ledger.release("net", ADDRESS, owner="vm/a") for ledger in (first, second))
        answers = await behind_the_lane(parallel_site, nothing, *calls)

        assert sorted(answers, key=lambda answer: answer is None) == [given, None]
        assert [each.verb for each in await news(first, cursor)] == ["cool"]


@pytest.mark.parametrize("generation", [True, False])
async def test_what_is_confirmed_while_its_release_waits_cools(
    parallel_site: Site[LedgerStore], generation: bool
) -> None:
    async with two_ledgers(parallel_site) as (first, second):
        pending = await first.hold("net", owner="vm/a", lasts_s=60)
        named = pending.generation if generation else None

        async def confirm(tx: Transaction) -> None:
            await tx.rewrite([pending.row._replace(state=State.HELD, until_us=None)])

        release = second.release("net", ADDRESS, owner="vm/a", generation=named)
        [released] = await behind_the_lane(parallel_site, confirm, release)

        assert released is not None
        assert (released.state, (await row_at(first, ADDRESS)).state) == ("held", "cooling")


async def test_a_confirm_that_waits_for_the_sweep_comes_too_late(parallel_site: Site[LedgerStore]) -> None:
    async with two_ledgers(parallel_site) as (first, second):
        pending = await first.hold("net", owner="vm/a", lasts_s=60)

        async def sweep(tx: Transaction) -> None:
            await tx.remove([pending.row])

        with pytest.raises(tenure.NotFound):
            await behind_the_lane(parallel_site, sweep, second.confirm("net", ADDRESS, owner="vm/a"))
