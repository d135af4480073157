"""Every store, and every way to release, lets an address cool for exactly as long as the kernel's rule says."""

from collections.abc import Awaitable, Callable

import pytest

import tenure
from tenure.kernel.holding_states import cooling_us
from tenure.kernel.holdings.holding_model import Change, Row, State, Ticket
from tenure.ports import LedgerStore
from tests.contract.ledger.timing import news, store_of
from tests.contract.sites import Site

pytestmark = pytest.mark.every_store

SECOND_US = 1_000_000
BEGUN = (State.PENDING, State.HELD, State.DRAINING)
"""The states in which a release finds a holding; what is cooling was released before."""

POOLS_S = {"warm": 0, "cold": 60}
LINGERS_S = (None, 30, 90)


async def clock(store: LedgerStore) -> int:
    """Read the store's clock."""
    return await store.transact(lambda tx: tx.now_us())


def follows_rule(told: Change, expected_us: int, before_us: int, after_us: int) -> bool:
    """Say whether the log tells of a release between two times after which the address cools exactly so long."""
    if not expected_us:
        return told.verb == "release"
    return told.verb == "cool" and before_us <= told.details["until_us"] - expected_us <= after_us


async def row_in(site: Site[LedgerStore], state: State) -> Row:
    """Grant an address and bring its row into a state."""
    held = await site.held_by("192.0.2.10")
    row = held._replace(state=state, until_us=1 << 60 if state in (State.PENDING, State.COOLING) else None)
    await site.store.transact(lambda tx: tx.rewrite([row]))
    return row


@pytest.mark.sampled
@pytest.mark.parametrize("wanted_us", [0, 1, 60 * SECOND_US])
@pytest.mark.parametrize("among_others", [False, True], ids=["alone", "among others that cool"])
@pytest.mark.parametrize("state", BEGUN)
async def test_a_store_lets_a_row_cool_as_the_rule_says_of_its_state(
    site: Site[LedgerStore], state: State, among_others: bool, wanted_us: int
) -> None:
    row = await row_in(site, state)
    # A batch in which another one cools is served by another statement.
    others = [await site.held_by("192.0.2.99", "vm/other")] if among_others else []
    cursor = (await site.news())[-1].seq
    tickets = [
        Ticket(row.network, row.first, row.owner, row.generation, cooling_us=wanted_us),
        *(Ticket(each.network, each.first, each.owner, cooling_us=SECOND_US) for each in others),
    ]
    before_us = await clock(site.store)
    answers = await site.release(*tickets)
    after_us = await clock(site.store)

    assert answers == [row, *others]
    [told] = [change for change in await site.news(cursor) if change.first == row.first]
    assert follows_rule(told, cooling_us(state, wanted_us), before_us, after_us)
    left = [each for each in await site.rows() if each.first == row.first]
    cools = row._replace(state=State.COOLING, until_us=told.details.get("until_us"))
    assert left == ([cools] if told.verb == "cool" else [])


@pytest.mark.parametrize("wanted_us", [0, 60 * SECOND_US])
async def test_a_store_leaves_alone_what_is_cooling(site: Site[LedgerStore], wanted_us: int) -> None:
    row = await row_in(site, State.COOLING)
    cursor = (await site.news())[-1].seq

    assert await site.release(Ticket(row.network, row.first, row.owner, cooling_us=wanted_us)) == [None]
    assert (await site.rows(), await site.news(cursor)) == ([row], [])


Way = Callable[[tenure.AsyncLedger, tenure.Holding, float | None], Awaitable[object]]


async def by_verb(ledger: tenure.AsyncLedger, given: tenure.Holding, lingers_s: float | None) -> object:
    """Release by the verb, which gives the store a ticket."""
    return await ledger.release("net", given.address, owner=given.owner, lingers_s=lingers_s)


async def by_apply(ledger: tenure.AsyncLedger, given: tenure.Holding, lingers_s: float | None) -> object:
    """Release in a transaction of the ledger's own."""
    release = tenure.Release(network="net", address=given.address, owner=given.owner, lingers_s=lingers_s)
    return await ledger.apply([release])


@pytest.mark.sampled
@pytest.mark.parametrize("way", [by_verb, by_apply])
@pytest.mark.parametrize("state", BEGUN)
async def test_a_release_cools_as_the_rule_says(ledger: tenure.AsyncLedger, state: State, way: Way) -> None:
    await ledger.add_network("net")
    await ledger.add_subnet("net", "192.0.2.0/24")
    await ledger.add_pool("net", "192.0.2.10-192.0.2.19", name="warm", cooling_s=POOLS_S["warm"])
    await ledger.add_pool("net", "192.0.2.20-192.0.2.29", name="cold", cooling_s=POOLS_S["cold"])

    for pool, cooling_s in POOLS_S.items():
        for lingers_s in LINGERS_S:
            given = await _given(ledger, pool, state)
            cursor, before_us = await ledger.last_change(), await clock(store_of(ledger))
            await way(ledger, given, lingers_s)
            [told], after_us = await news(ledger, cursor), await clock(store_of(ledger))

            expected_us = cooling_us(state, cooling_s * SECOND_US, (lingers_s or 0) * SECOND_US)
            assert follows_rule(told, expected_us, before_us, after_us), (pool, lingers_s, told)


async def _given(ledger: tenure.AsyncLedger, pool: str, state: State) -> tenure.Holding:
    """Give an address of a pool to an owner, in a state."""
    if state is State.PENDING:
        return await ledger.hold("net", owner="vm/a", pool=pool)
    given = await ledger.allocate("net", owner="vm/a", pool=pool)
    if state is State.DRAINING:
        await ledger.modify_holding("net", given.address, owner="vm/a", state="draining")
    return given
