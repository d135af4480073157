"""Backups while processes work on the ledger, and copies that are killed half way."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tenure.interchange.content_digest import digest_of
from tenure.interchange.copy_ledger import backup, restore
from tenure.kernel.holdings.holding_model import Change, Row
from tenure.kernel.snapshot import Kind
from tenure.ports import LedgerStore
from tenure.service.read.verify import verify
from tenure.wiring import open_store
from tests.contract.providers import Provider, ledger_providers
from tests.interchange.busy import load, start
from tests.interchange.million import make_ledger
from tests.scale import in_proof, runs

SHARED = [provider for provider in ledger_providers() if provider.abilities.shared_by_processes]
HOLDINGS = runs(3_000, 10_000, proof=10_000)
Held = dict[tuple[int | None, int | None], tuple[str | None, str | None, int | None]]


@pytest.fixture(params=SHARED, ids=lambda provider: provider.name)
def shared(request: pytest.FixtureRequest) -> Provider[LedgerStore]:
    """Run the test on every store that processes can share."""
    provider: Provider[LedgerStore] = request.param
    return provider


@pytest.fixture
async def place(shared: Provider[LedgerStore]) -> AsyncIterator[str]:
    """Give the URL of an empty ledger."""
    async with shared.place() as url:
        yield url


async def read(url: str) -> tuple[list[Row], list[Change], list[str]]:
    """Read a ledger's holdings and log, and what ``verify`` finds."""
    store = await open_store(url)
    try:
        sections = [section async for section in store.contents()]
        breaches = [str(breach) for breach in await verify(store)]
    finally:
        await store.close()
    rows, changes = (
        [item for section in sections if section.kind is kind for item in section.items]
        for kind in (Kind.HOLDINGS, Kind.CHANGES)
    )
    return rows, changes, breaches


def replayed(changes: list[Change]) -> Held:
    """Play a log from nothing."""
    held: Held = {}
    for change in changes:
        where = (change.space, change.first)
        if change.verb in ("grant", "transfer"):
            held[where] = (change.owner, change.slot, change.generation)
        elif change.verb == "release":
            del held[where]
    return held


async def test_a_backup_under_load_restores_to_a_prefix_of_the_log(
    shared: Provider[LedgerStore], place: str, tmp_path: Path
) -> None:
    await make_ledger(place, HOLDINGS)
    meanwhile: list[tuple[int, int, int]] = []
    store = await open_store(place)

    async with load(place, 3):
        for number in range(runs(1, 30, proof=3)):
            before = await store.last_change()
            report = await backup(place, tmp_path / f"{number}.db")
            meanwhile.append((before, report.seq, await store.last_change()))
            await asyncio.sleep(0.1)

    await store.close()
    _, log, breaches = await read(place)
    assert breaches == []
    for number, (before, seq, after) in enumerate(meanwhile):
        assert before <= seq < after
        async with shared.place() as target:
            await restore(tmp_path / f"{number}.db", target)
            rows, changes, breaches = await read(target)
        assert changes == log[:seq]
        assert {(row.space, row.first): (row.owner, row.slot, row.generation) for row in rows} == replayed(changes)
        assert breaches == []


async def test_a_killed_restore_leaves_an_empty_ledger_that_can_be_restored(place: str, tmp_path: Path) -> None:
    made = await make_ledger(f"sqlite:///{tmp_path / 'kept.db'}", HOLDINGS)

    process = await start("restore", str(tmp_path / "kept.db"), place, "copying")
    process.kill()
    await process.communicate()

    assert await read(place) == ([], [], [])
    report = await restore(tmp_path / "kept.db", place)
    assert (report.digest, report.breaches) == (made, ())


@pytest.mark.parametrize("stage", ["copying", in_proof("comparing"), in_proof("verifying")])
async def test_a_killed_backup_leaves_no_file_of_its_name(place: str, tmp_path: Path, stage: str) -> None:
    made = await make_ledger(place, HOLDINGS)

    process = await start("backup", place, str(tmp_path / "kept.db"), stage)
    process.kill()
    await process.communicate()

    assert not (tmp_path / "kept.db").exists()
    report = await backup(place, tmp_path / "kept.db")
    assert (report.digest, report.breaches) == (made, ())
    store = await open_store(f"sqlite:///{tmp_path / 'kept.db'}")
    assert (await digest_of(store.contents(), lambda section: None)).whole == made
    await store.close()
