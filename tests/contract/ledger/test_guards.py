"""The guards of a space, as ``ports.Guard`` words them: who runs together, who waits."""

import asyncio

import pytest

import tenure
from tenure.kernel.holdings.holding_model import Outcome
from tenure.ports import Guard, LedgerStore, Transaction
from tests.contract.sites import Site

pytestmark = pytest.mark.every_store

TOGETHER = {(Guard.GRANT, Guard.GRANT), (Guard.GRANT, Guard.LANE), (Guard.LANE, Guard.GRANT)}
WAITS_S = 0.15


class Holder:
    """A transaction that holds a space until it is told to end."""

    def __init__(self, site: Site[LedgerStore], strength: Guard, *, bump: bool = False) -> None:
        self._site = site
        self._strength = strength
        self._bump = bump
        self.has_it = asyncio.Event()
        self.may_end = asyncio.Event()
        self.task = asyncio.create_task(site.store.transact(self._work))

    async def _work(self, tx: Transaction) -> None:
        await tx.guard([self._site.here.space], self._strength)
        if self._bump:
            await tx.bump(self._site.here.space)
        self.has_it.set()
        await self.may_end.wait()

    async def end(self) -> None:
        self.may_end.set()
        await self.task


async def _within(event: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize("second", list(Guard), ids=lambda guard: f"then {guard.value}")
@pytest.mark.parametrize("first", list(Guard), ids=lambda guard: f"{guard.value}")
async def test_guards_run_together_or_wait_as_the_port_says(
    parallel_site: Site[LedgerStore], first: Guard, second: Guard
) -> None:
    one = Holder(parallel_site, first)
    await one.has_it.wait()
    other = Holder(parallel_site, second)

    together = await _within(other.has_it, 5 if (first, second) in TOGETHER else WAITS_S)
    await one.end()
    afterwards = await _within(other.has_it, 5)
    await other.end()

    assert together is ((first, second) in TOGETHER)
    assert afterwards


async def test_a_grant_that_waited_behind_an_edit_is_told_to_look_again(parallel_site: Site[LedgerStore]) -> None:
    edit = Holder(parallel_site, Guard.EDIT, bump=True)
    await edit.has_it.wait()

    grant = asyncio.create_task(parallel_site.grant(parallel_site.wish("192.0.2.10")))
    await asyncio.sleep(WAITS_S)
    waited = not grant.done()
    await edit.end()

    assert waited
    assert [verdict.outcome for verdict in await grant] == [Outcome.AGAIN]
    assert await parallel_site.rows() == []


@pytest.mark.parametrize("strength", [Guard.LANE, Guard.EDIT], ids=lambda guard: guard.value)
async def test_nothing_is_freed_while_a_lane_or_an_edit_runs(parallel_site: Site[LedgerStore], strength: Guard) -> None:
    row = await parallel_site.held_by("192.0.2.10")
    lane = Holder(parallel_site, strength)
    await lane.has_it.wait()

    release = asyncio.create_task(parallel_site.release(parallel_site.ticket(row)))
    await asyncio.sleep(WAITS_S)
    kept = await parallel_site.rows()
    await lane.end()

    assert kept == [row]
    assert await release == [row]
    assert await parallel_site.rows() == []


async def test_plain_grants_pass_a_lane(parallel_site: Site[LedgerStore]) -> None:
    lane = Holder(parallel_site, Guard.LANE)
    await lane.has_it.wait()

    row = await asyncio.wait_for(parallel_site.held_by("192.0.2.10"), 5)
    await lane.end()

    assert await parallel_site.rows() == [row]


async def test_guards_of_one_space_are_nothing_to_another(parallel_site: Site[LedgerStore]) -> None:
    edit = Holder(parallel_site, Guard.EDIT)
    await edit.has_it.wait()

    row = await asyncio.wait_for(parallel_site.held_by("192.0.2.10", ground=parallel_site.there), 5)
    await edit.end()

    assert await parallel_site.rows(ground=parallel_site.there) == [row]


async def test_a_guard_tells_the_versions_and_leaves_out_spaces_that_are_gone(site: Site[LedgerStore]) -> None:
    async def work(tx: Transaction) -> dict[int, int]:
        return await tx.guard([site.here.space, site.there.space, site.there.space + 1000], Guard.LANE)

    found = await site.store.transact(work)

    assert found == {site.here.space: site.here.version, site.there.space: site.there.version}


async def test_who_expects_no_holdings_waits_for_a_grant_that_is_not_committed_yet(
    parallel_site: Site[LedgerStore],
) -> None:
    site, granted, may_end = parallel_site, asyncio.Event(), asyncio.Event()
    network = f"here-{site.here.networks[0]}"
    expected = tenure.ExpectNoHoldings(network=network, range="192.0.2.0/24")

    async def grant(tx: Transaction) -> None:
        await tx.guard([site.here.space], Guard.GRANT)
        await tx.insert(site.here.space, [site.wish("192.0.2.10")])
        granted.set()
        await may_end.wait()

    async with await tenure.open_async(site.url) as ledger:
        holder = asyncio.create_task(site.store.transact(grant))
        await granted.wait()
        looking = asyncio.create_task(ledger.apply([expected]))
        await asyncio.sleep(WAITS_S)
        waited = not looking.done()
        may_end.set()
        await holder
        with pytest.raises(tenure.StillInUse, match="vm/a"):
            await looking

    assert waited
