"""A SQLite ledger where nothing can be written is still read; what went wrong is said in words."""

import asyncio
import os
from pathlib import Path

import pytest

import tenure
from tenure.interchange.copy_ledger import backup, restore
from tenure.ports import Transaction
from tenure.service.ledger.engine_ledger import server_of
from tenure.stores.sqlite import connection as sqlite_connection
from tenure.stores.sqlite import store as store_module
from tenure.stores.sqlite.store import SqliteStore
from tenure.stores.sqlite.transaction import SqliteTransaction
from tenure.wiring import without_secrets


@pytest.fixture
async def saved(tmp_path: Path) -> Path:
    """Make a backup in a folder of its own."""
    folder = tmp_path / "medium"
    folder.mkdir()
    async with await tenure.open_async(f"sqlite:///{tmp_path}/live.db") as ledger:
        await ledger.add_network("net")
        await ledger.add_subnet("net", "192.0.2.0/24")
        await ledger.allocate("net", owner="vm/a", address="192.0.2.7")
    await backup(f"sqlite:///{tmp_path}/live.db", folder / "saved.db")
    return folder / "saved.db"


@pytest.fixture(params=["read-only medium", "no permission"])
def unwritable(request: pytest.FixtureRequest, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the operating system say that nothing can be written; who runs this may be above such rules."""
    allowed, shape = os.access, os.statvfs(saved)
    if request.param == "no permission":
        monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and allowed(path, mode))
    else:
        read_only = os.statvfs_result((*shape[:8], shape.f_flag | os.ST_RDONLY, shape.f_namemax))
        monkeypatch.setattr(os, "statvfs", lambda path: read_only)


@pytest.mark.usefixtures("unwritable")
async def test_a_backup_where_nothing_can_be_written_is_read_as_it_is(saved: Path) -> None:
    before = await asyncio.to_thread(saved.read_bytes)

    async with await tenure.open_async(f"sqlite:///{saved}") as ledger:
        assert [held.address for held in await ledger.holdings("net")] == ["192.0.2.7"]
        assert (await ledger.verify(), await ledger.waiting()) == ([], [])
        with pytest.raises(tenure.StoreUnavailable, match="can only be read") as told:
            await ledger.allocate("net", owner="vm/b", address="192.0.2.8")

    assert told.value.outcome == "none"
    assert [path.name for path in saved.parent.iterdir()] == ["saved.db"]
    assert await asyncio.to_thread(saved.read_bytes) == before


async def test_a_backup_leaves_nothing_beside_it_and_is_restored(saved: Path, tmp_path: Path) -> None:
    report = await restore(saved, f"sqlite:///{tmp_path}/again.db")

    assert report.breaches == ()
    assert [path.name for path in saved.parent.iterdir()] == ["saved.db"]


async def test_a_full_disk_is_told_and_nothing_was_changed(tmp_path: Path) -> None:
    async with await tenure.open_async(f"sqlite:///{tmp_path}/full.db") as ledger:
        await ledger.add_network("net")
        await ledger.add_subnet("net", "10.0.0.0/8")
        store = server_of(ledger).store
        assert isinstance(store, SqliteStore)
        pages = await store._read(lambda connection: connection.execute("PRAGMA page_count").fetchone()[0])
        await store.transact(lambda tx: _limit(tx, pages + 20))
        answered: list[tenure.Holding] = []
        with pytest.raises(tenure.StoreUnavailable, match="disk is full") as told:
            await _fill(ledger, answered)

        assert told.value.outcome == "none"
        assert await ledger.holdings("net") == answered != []


async def _fill(ledger: tenure.AsyncLedger, answered: list[tenure.Holding]) -> None:
    for number in range(1000):
        place = f"10.{number // 256}.{number % 256}.1"
        answered.append(await ledger.allocate("net", owner=f"vm/{number}", address=place, description="x" * 4000))


async def _limit(tx: Transaction, pages: int) -> None:
    assert isinstance(tx, SqliteTransaction)
    tx._connection.execute(f"PRAGMA max_page_count = {pages}")


@pytest.mark.parametrize(
    "url", ["postgresql://me:s3cret@localhost:abc/x", "mysql://me:s3cret@host/x", "postgres://h:p/x?password=s3cret"]
)
def test_no_message_tells_a_password(url: str) -> None:
    with pytest.raises(tenure.Invalid) as told:
        tenure.open(url)

    assert "s3cret" not in str(told.value)
    assert "s3cret" not in without_secrets(url)


async def test_a_file_that_can_be_written_again_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a medium that was mounted read-only when the store was opened: such a connection sees nothing new."""
    path = tmp_path / "ledger.db"
    async with await tenure.open_async(f"sqlite:///{path}") as first:
        await first.add_network("net")
    monkeypatch.setattr(sqlite_connection, "for_reading", lambda _: f"file:{path}?mode=ro&immutable=1")
    monkeypatch.setattr(store_module, "for_reading", lambda _: "read only")
    async with await tenure.open_async(f"sqlite:///{path}") as reading:
        with pytest.raises(tenure.StoreUnavailable):
            await server_of(reading).store.try_write()
        monkeypatch.undo()
        async with await tenure.open_async(f"sqlite:///{path}") as writing:
            await writing.add_network("later")
            await server_of(reading).store.try_write()

            assert [network.name for network in await reading.networks()] == ["later", "net"]
            assert (await reading.add_network("own")).name == "own"
