"""A release that has to wait for a lane: what it says and what it locks, on stores where both run at the same time."""

import asyncio
from collections.abc import AsyncIterator

import pytest

import tenure
from tenure.kernel.addressing.addresses import parse_address
from tenure.kernel.holdings.holding_model import Row, Ticket, Wish
from tenure.kernel.holdings.log_entries import grant_entry
from tenure.ports import Guard, LedgerStore, Transaction
from tenure.wiring import open_store
from tests.contract.providers import Provider, ledger_providers

PARALLEL = [provider for provider in ledger_providers() if provider.abilities.parallel_writes]
PLACE = parse_address("10.0.0.10")
LONG_ENOUGH_S = 0.3
"""For the release to come up to the lane and wait there."""


class Site:
    """A store with one network, and a lane that grants an address while a release waits for it."""

    def __init__(self, store: LedgerStore, space: int, network: int) -> None:
        self.store = store
        self.space = space
        self.ticket = Ticket(network, PLACE, "vm/1")
        self.begun = 0
        self._lane_is_held = asyncio.Event()

    async def release_during_a_lane(self) -> Row | None:
        """Hold the lane, let the release come, then grant its owner the address; return what the release answers."""
        lane = asyncio.ensure_future(self.store.transact(self._lane))
        await self._lane_is_held.wait()
        answer, _ = await asyncio.gather(self.store.release(self.space, [self.ticket]), lane)
        row: Row | None = answer[0]
        return row

    async def _lane(self, tx: Transaction) -> None:
        self.begun += 1
        await tx.guard([self.space], Guard.LANE)
        self._lane_is_held.set()
        await asyncio.sleep(LONG_ENOUGH_S)
        [verdict] = await tx.insert(self.space, [Wish(self.ticket.network, PLACE, PLACE, "vm/1")])
        assert verdict.row is not None
        await tx.log([grant_entry(verdict.row)])


@pytest.fixture(params=PARALLEL, ids=lambda provider: provider.name)
async def site(request: pytest.FixtureRequest) -> AsyncIterator[Site]:
    """Give a site on every store whose transactions run at the same time."""
    provider: Provider[LedgerStore] = request.param
    async with provider.place() as url:
        async with await tenure.open_async(url) as ledger:
            network = await ledger.add_network("net")
            await ledger.add_subnet("net", "10.0.0.0/24")
        store = await open_store(url)
        yield Site(store, (await store.locate(["net"]))["net"], network.id)
        await store.close()


async def test_a_release_says_that_it_ended_a_holding_only_if_it_did(site: Site) -> None:
    answer = await site.release_during_a_lane()

    left = await site.store.by_owner(["vm/1"])
    assert (answer is not None) == (left == [])


async def test_a_release_that_finds_nobody_does_not_stand_in_the_way_of_the_lane(site: Site) -> None:
    await site.release_during_a_lane()

    assert site.begun == 1, "the lane was begun again: a deadlock was broken"
