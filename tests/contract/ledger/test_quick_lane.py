"""``grant_unless_freed``: all or none in one call, if nothing was freed since; of stores that offer it."""

from collections.abc import AsyncIterator

import pytest

from tenure.kernel.holdings.holding_model import Outcome
from tenure.ports import LedgerStore
from tests.contract.ledger.conftest import prepared
from tests.contract.providers import ledger_providers
from tests.contract.sites import Site

QUICK = [provider for provider in ledger_providers() if provider.abilities.quick_lane]


@pytest.fixture(params=QUICK, ids=lambda provider: provider.name)
async def quick(request: pytest.FixtureRequest) -> AsyncIterator[Site[LedgerStore]]:
    """Give a prepared store of every kind with a quick lane."""
    async with prepared(request.param) as opened:
        yield opened


async def _frees(site: Site[LedgerStore]) -> int:
    return (await site.store.effects(site.here.space, 0)).frees


async def test_all_are_granted_and_logged_in_the_order_they_were_asked(quick: Site[LedgerStore]) -> None:
    wishes = [
        quick.wish("192.0.2.12", "vm/a", request="r", details={"labels": {"a": "b"}}),
        quick.wish("192.0.2.10", "vm/b"),
        quick.wish("192.0.2.11", "vm/c"),
    ]

    verdicts = await quick.store.grant_unless_freed(quick.here.space, quick.here.version, await _frees(quick), wishes)

    assert verdicts is not None
    assert [verdict.outcome for verdict in verdicts] == [Outcome.GRANTED] * 3
    rows = {row.owner: row for row in await quick.rows()}
    assert [verdict.row for verdict in verdicts] == [rows["vm/a"], rows["vm/b"], rows["vm/c"]]
    assert [(change.seq, change.owner) for change in await quick.news()] == [(1, "vm/a"), (2, "vm/b"), (3, "vm/c")]


@pytest.mark.parametrize("in_the_way", ["address", "claim", "version", "freed by release", "freed by transaction"])
async def test_none_is_granted_where_not_all_can_be(quick: Site[LedgerStore], in_the_way: str) -> None:
    frees, version = await _frees(quick), quick.here.version
    if in_the_way == "address":
        await quick.held_by("192.0.2.11", "vm/x")
    elif in_the_way == "claim":
        await quick.held_by("192.0.2.99", "vm/b")
    elif in_the_way == "version":
        await quick.store.transact(lambda tx: tx.bump(quick.here.space))
    elif in_the_way == "freed by release":
        await quick.release(quick.ticket(await quick.held_by("192.0.2.99", "vm/x")))
    else:
        row = await quick.held_by("192.0.2.99", "vm/x")
        await quick.store.transact(lambda tx: tx.remove([row]))
    before, news = await quick.rows(), await quick.news()

    answer = await quick.store.grant_unless_freed(
        quick.here.space, version, frees, [quick.wish("192.0.2.10", "vm/a"), quick.wish("192.0.2.11", "vm/b")]
    )

    assert answer is None
    assert await quick.rows() == before
    assert await quick.news() == news


async def test_what_is_granted_or_freed_elsewhere_is_nothing_to_it(quick: Site[LedgerStore]) -> None:
    frees = await _frees(quick)
    row = await quick.held_by("192.0.2.10", "vm/x", ground=quick.there)
    await quick.release(quick.ticket(row), ground=quick.there)
    await quick.held_by("192.0.2.11", "vm/y")

    answer = await quick.store.grant_unless_freed(
        quick.here.space, quick.here.version, frees, [quick.wish("192.0.2.10", "vm/a")]
    )

    assert answer is not None
    assert [row.owner for row in await quick.rows()] == ["vm/a", "vm/y"]
