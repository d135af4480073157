"""A clock that is set back: a claim behind which nobody stands keeps its place for its own time, and no longer."""

from collections.abc import AsyncIterator

import pytest

import tenure
from tenure.kernel.holdings.holding_model import Waiter
from tenure.ports import LedgerStore
from tests.contract.ledger.timing import store_of
from tests.contract.providers import Provider
from tests.infrastructure.store_clock import SECOND_US, StoreClock, clocked_ledger

pytestmark = pytest.mark.every_store

ONLY = "192.0.2.10"
HOUR_S = 3600
PATIENCE_S = 5


Full = tuple[tenure.AsyncLedger, StoreClock]


@pytest.fixture
async def full(ledger_provider: Provider[LedgerStore]) -> AsyncIterator[Full]:
    """Give a ledger with a pool of one address, which is held, and the clock of its store."""
    async with clocked_ledger(ledger_provider) as (ledger, clock):
        await ledger.add_network("net")
        await ledger.add_subnet("net", "192.0.2.0/24")
        await ledger.add_pool("net", ONLY)
        await ledger.allocate("net", owner="vm/full")
        yield ledger, clock
        assert await ledger.verify() == []


async def line(ledger: tenure.AsyncLedger) -> list[Waiter]:
    """Read the claims in line as the store has them."""
    store = store_of(ledger)
    [space] = [number for number, _ in await store.spaces()]
    return list(await store.transact(lambda tx: tx.waiters(space)))


async def test_a_dead_claim_blocks_its_address_no_longer_than_its_patience(full: Full) -> None:
    ledger, clock = full
    await ledger.claim("net", owner="vm/dead", patience_s=PATIENCE_S)
    await clock.advance(-HOUR_S)
    [ahead] = await line(ledger)
    await ledger.release("net", ONLY, owner="vm/full")
    with pytest.raises(tenure.PoolExhausted):
        await ledger.allocate("net", owner="vm/b")
    [met] = await line(ledger)
    met_us = clock.now_us
    await clock.advance(PATIENCE_S + 0.5)

    assert (await ledger.allocate("net", owner="vm/b")).address == ONLY
    assert ahead.until_us == met_us + (HOUR_S + PATIENCE_S) * SECOND_US
    assert met.until_us == met_us + PATIENCE_S * SECOND_US
    assert ahead.lasts_us == met.lasts_us == PATIENCE_S * SECOND_US


async def test_a_claim_that_is_asked_for_again_keeps_its_place(full: Full) -> None:
    ledger, clock = full
    await ledger.claim("net", owner="vm/first", patience_s=PATIENCE_S)
    await clock.advance(-HOUR_S)
    for _ in range(3):
        with pytest.raises(tenure.PoolExhausted):
            await ledger.allocate("net", owner="vm/b")
        await clock.advance(PATIENCE_S - 1)
        assert (await ledger.claim("net", owner="vm/first", patience_s=PATIENCE_S)).state == "waiting"
    await ledger.release("net", ONLY, owner="vm/full")
    with pytest.raises(tenure.PoolExhausted):
        await ledger.allocate("net", owner="vm/b")

    given = await ledger.claim("net", owner="vm/first", patience_s=PATIENCE_S)
    assert given.holding is not None
    assert given.holding.address == ONLY
