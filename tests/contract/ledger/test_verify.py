"""``verify``: finds what should not be, planted behind the ledger's back."""

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from urllib.parse import parse_qsl, urlsplit

import asyncpg
import pytest

import tenure
from tenure.kernel.addressing.addresses import key
from tenure.kernel.addressing.ranges import parse_cidr
from tenure.kernel.plan.plan_model import Network, Subnet
from tenure.ports import LedgerStore
from tenure.service.ledger.engine_ledger import server_of
from tenure.service.read.verify import verify
from tests.contract.ledger.plan import small_plan
from tests.contract.sites import Site, at

PLANTED = [
    ("I1", "UPDATE holding SET last = {last} WHERE first = {first}"),
    ("I2", "DROP INDEX holding_claim; UPDATE holding SET owner = 'vm/0' WHERE owner = 'vm/1'"),
    ("I3", "UPDATE holding SET network = 999 WHERE first = {first}"),
    ("I3", "UPDATE holding SET first = {far}, last = {far} WHERE first = {first}"),
    ("I3", "UPDATE network SET document = replace(document, '192.0.2.10-192.0.2.19', '198.51.100.1-198.51.100.9')"),
    ("I7", "UPDATE holding SET generation = generation + 1000 WHERE first = {first}"),
    ("I7", "UPDATE holding SET owner = 'vm/z' WHERE first = {first}"),
    ("I7", "DELETE FROM holding WHERE first = {first}"),
    ("I7", "DELETE FROM change WHERE seq = 5"),
    ("I7", "DELETE FROM change WHERE seq = (SELECT max(seq) FROM change)"),
    ("I10", "UPDATE holding SET until_us = 5 WHERE first = {first}"),
]


def _literal(url: str, address: str) -> str:
    encoded = key(at(address)).hex()
    return f"X'{encoded}'" if url.startswith("sqlite") else f"'\\x{encoded}'::bytea"


async def _by_hand(url: str, sql: str) -> None:
    """Change the database as no ledger would."""
    told = sql.format(
        first=_literal(url, "192.0.2.10"), last=_literal(url, "192.0.2.11"), far=_literal(url, "203.0.113.7")
    )
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.executescript(told)
        return
    options = dict(parse_qsl(urlsplit(url).query))
    connection = await asyncpg.connect(url.partition("&schema=")[0])
    try:
        await connection.execute(f'SET search_path = "{options["schema"]}"; {told}')
    finally:
        await connection.close()


@pytest.fixture
async def planted(shared_site: Site[LedgerStore]) -> AsyncIterator[tuple[tenure.AsyncLedger, str]]:
    """Give a ledger with three holdings, and where it lives."""
    async with await tenure.open_async(shared_site.url) as ledger:
        await small_plan(ledger)
        for n in range(3):
            await ledger.allocate("net", owner=f"vm/{n}")
        yield ledger, shared_site.url


@pytest.mark.parametrize(("invariant", "sql"), PLANTED, ids=[f"{name}-{n}" for n, (name, _) in enumerate(PLANTED)])
async def test_a_planted_breach_is_found_and_named(
    planted: tuple[tenure.AsyncLedger, str], invariant: str, sql: str
) -> None:
    ledger, url = planted
    assert await ledger.verify() == []

    await _by_hand(url, sql)

    assert invariant in {breach.invariant for breach in await ledger.verify()}


async def test_a_ledger_with_parting_holdings_is_clean(site: Site[LedgerStore]) -> None:
    network = Network(site.here.networks[0], "net", "u", subnets=(Subnet(parse_cidr("192.0.2.0/24"), "s"),))
    await site.store.transact(lambda tx: tx.put_networks(site.here.space, [network]))
    await site.held_by("192.0.2.10", "vm/a", state=tenure.State.DRAINING)
    await site.held_by("192.0.2.11", "vm/a")

    assert await verify(site.store) == []


async def test_a_trimmed_ledger_is_clean(ledger: tenure.AsyncLedger) -> None:
    await small_plan(ledger)
    await ledger.allocate("net", owner="vm/a")
    await ledger.trim_changes(3)

    assert await ledger.verify() == []
    with pytest.raises(tenure.CursorExpired):
        [change async for change in ledger.changes(0)]
    assert [(change.seq, change.verb) async for change in ledger.changes(2)][1:] == [(4, "grant"), (5, "trim")]


async def test_papers_written_meanwhile_hide_no_breach(
    planted: tuple[tenure.AsyncLedger, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, url = planted
    await _by_hand(url, "UPDATE holding SET owner = 'vm/z' WHERE first = {first}")
    store = server_of(ledger).store
    spaces, written = store.spaces, list[str]()

    async def spaces_while_others_write() -> Sequence[tuple[int, str]]:
        written.append(f"p{len(written)}")
        await ledger.apply([tenure.WritePaper(kind="instance", name=written[-1], document={"n": 1})])
        return await spaces()

    monkeypatch.setattr(store, "spaces", spaces_while_others_write)

    assert {breach.invariant for breach in await ledger.verify()} == {"I7"}
    assert written
