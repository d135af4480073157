"""Ledgers that pools are bound to are opened once, and closed with the last pool, also while they are being opened."""

import asyncio
from pathlib import Path

import pytest

import tenure
from tenure.integrations.kubernetes.metal3.ledger.ledger_secret import LedgerPlace
from tenure.integrations.kubernetes.metal3.ledger.open_ledgers import OpenLedgers
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId

FIRST, SECOND = PoolId("metal", "first"), PoolId("metal", "second")


@pytest.fixture
async def place(tmp_path: Path) -> LedgerPlace:
    """Give the place of a ledger that is there."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    async with await tenure.open_async(url):
        pass
    return LedgerPlace(url)


async def test_pools_of_one_place_share_a_ledger_which_closes_with_the_last(place: LedgerPlace) -> None:
    ledgers = OpenLedgers()
    ledger = await ledgers.get(place, FIRST)
    assert await ledgers.get(place, SECOND) is ledger
    await ledgers.leave(FIRST)
    assert await ledger.networks() == []
    await ledgers.leave(SECOND)

    with pytest.raises(tenure.TenureError, match="closed"):
        await ledger.networks()


@pytest.mark.parametrize("is_end", [False, True])
async def test_a_ledger_that_is_left_while_it_is_being_opened_is_closed(place: LedgerPlace, is_end: bool) -> None:
    ledgers = OpenLedgers()
    opening = asyncio.create_task(ledgers.get(place, FIRST))
    await asyncio.sleep(0)  # the file is being opened in a thread now
    assert not opening.done()
    await (ledgers.close() if is_end else ledgers.leave(FIRST))
    ledger = await opening

    with pytest.raises(tenure.TenureError, match="closed"):
        await ledger.networks()
