"""Copies between stores, backups and restores: the same by content, refused where they would do harm."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest

import tenure
from tenure.interchange.content_digest import Digest, digest_of
from tenure.interchange.copy_ledger import backup, copy, restore
from tenure.kernel.snapshot import Kind, Section
from tenure.ports import LedgerStore
from tenure.wiring import open_store
from tests.contract.providers import Provider, ledger_providers
from tests.infrastructure.postgres import fresh_schema
from tests.interchange.million import made_contents, make_ledger
from tests.scale import runs

LASTING = [provider for provider in ledger_providers() if provider.abilities.survives_restart]
MANY = runs(5_000, 50_000, proof=50_000)


@pytest.fixture(params=LASTING, ids=lambda provider: provider.name)
async def place(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """Give the URL of an empty ledger of every kind that outlives its process."""
    provider: Provider[LedgerStore] = request.param
    async with provider.place() as url:
        yield url


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[LedgerStore]:
    """Open a store for a moment."""
    store = await open_store(url)
    try:
        yield store
    finally:
        await store.close()


async def digest(url: str) -> str:
    """Read a ledger's digest."""
    async with opened(url) as store:
        return (await digest_of(store.contents(), lambda section: None)).whole


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_thousands_of_holdings_are_the_same_from_sqlite_to_postgres_and_back(tmp_path: Path) -> None:
    first, last = url_of(tmp_path / "first.db"), url_of(tmp_path / "last.db")
    made = await make_ledger(first, MANY)

    async with fresh_schema() as server:
        there = await copy(first, server)
        back = await copy(server, last)

    assert made == there.digest == back.digest == await digest(last)
    assert there == back
    assert (there.counts["holdings"], there.counts["changes"], there.breaches) == (MANY, there.seq, ())


async def test_a_backup_is_restored_as_it_was(place: str, tmp_path: Path) -> None:
    made = await make_ledger(place, 300)

    kept = await backup(place, tmp_path / "kept.db")
    again = await restore(tmp_path / "kept.db", url_of(tmp_path / "again.db"))

    assert kept == again
    assert made == kept.digest == await digest(place)
    assert kept.counts == {
        "spaces": 2, "networks": 2, "holdings": 300, "formers": 3, "replies": 3, "papers": 3, "archive_pages": 0,
        "changes": kept.seq,
    }  # fmt: skip


async def test_archived_changes_go_into_a_backup_and_out_of_it(place: str, tmp_path: Path) -> None:
    await make_ledger(place, 300)
    async with await tenure.open_async(place) as ledger:
        [gone, *_] = [change.address async for change in ledger.changes() if change.verb == "release"]
        assert gone is not None
        before = await ledger.history(gone)
        moved = await ledger.archive_changes(0)

    kept = await backup(place, tmp_path / "kept.db")
    again = await restore(tmp_path / "kept.db", url_of(tmp_path / "again.db"))

    assert kept == again
    assert (kept.counts["changes"], kept.counts["archive_pages"], kept.seq, kept.breaches) == (0, 1, moved, ())
    async with await tenure.open_async(url_of(tmp_path / "again.db")) as ledger:
        assert len(before) > 0
        assert await ledger.history(gone) == before


async def test_a_backup_is_one_file_and_a_ledger_itself(place: str, tmp_path: Path) -> None:
    async with await tenure.open_async(place) as ledger:
        await ledger.add_network("net")
        await ledger.add_subnet("net", "192.0.2.0/24")
        await ledger.add_pool("net", "192.0.2.10-192.0.2.19")
        held = await ledger.allocate("net", owner="vm/a")

        await backup(place, str(tmp_path / "kept.db"))

    assert names(tmp_path) == ["kept.db"]
    async with await tenure.open_async(url_of(tmp_path / "kept.db")) as copied:
        assert (await copied.holding("net", held.address)).row == held.row
        following = await copied.allocate("net", owner="vm/b")
        assert following.generation > held.generation


async def test_papers_and_connections_are_copied_with_the_rest(place: str, tmp_path: Path) -> None:
    papers = [("instance", "web-0", {"nics": [{"ip": None}], "ü": "“”"}), ("mark", "net/web-0", {})]
    async with await tenure.open_async(place) as ledger:
        await ledger.add_network("net")
        await ledger.apply(
            [
                tenure.Connect(network="net", group="rack1", link="br0", vlan="7"),
                *(tenure.WritePaper(kind=kind, name=name, document=document) for kind, name, document in papers),
            ]
        )
        network = await ledger.network("net")

    report = await backup(place, tmp_path / "kept.db")
    await restore(tmp_path / "kept.db", url_of(tmp_path / "again.db"))

    assert report.counts["papers"] == 2
    async with await tenure.open_async(url_of(tmp_path / "again.db")) as copied:
        assert await copied.network("net") == network
        found = [*await copied.papers("instance"), *await copied.papers("mark")]
        assert found == [tenure.Paper(kind, name, 1, document) for kind, name, document in papers]


async def test_progress_is_told_by_stages_up_to_the_end(tmp_path: Path) -> None:
    await make_ledger(url_of(tmp_path / "first.db"), 5000)
    told: list[tuple[str, int, int]] = []

    report = await backup(
        url_of(tmp_path / "first.db"), tmp_path / "kept.db", progress=lambda *words: told.append(words)
    )

    total = report.counts["holdings"] + report.counts["changes"]
    assert list(dict.fromkeys(stage for stage, _, _ in told)) == ["copying", "comparing", "verifying"]
    for stage in ("copying", "comparing", "verifying"):
        steps = [done for found, done, _ in told if found == stage]
        assert steps == sorted(steps)
        assert (steps[0], steps[-1]) == (0, total)
    assert {of for _, _, of in told} == {total}


async def test_an_existing_backup_is_never_written_over(place: str, tmp_path: Path) -> None:
    await make_ledger(place, 10)
    (tmp_path / "kept.db").write_text("precious", "utf-8")

    with pytest.raises(tenure.AlreadyExists, match="name a new file"):
        await backup(place, tmp_path / "kept.db")

    assert (tmp_path / "kept.db").read_text("utf-8") == "precious"
    assert names(tmp_path) == ["kept.db"]


async def test_a_backup_that_somebody_else_made_meanwhile_is_not_written_over(place: str, tmp_path: Path) -> None:
    await make_ledger(place, 10)

    def interfere(stage: str, done: int, total: int) -> None:
        (tmp_path / "kept.db").write_text("quicker", "utf-8")

    with pytest.raises(tenure.AlreadyExists, match="meanwhile"):
        await backup(place, tmp_path / "kept.db", progress=interfere)

    assert (tmp_path / "kept.db").read_text("utf-8") == "quicker"
    assert names(tmp_path) == ["kept.db"]


async def test_a_target_that_is_not_empty_is_left_alone(place: str, tmp_path: Path) -> None:
    await make_ledger(url_of(tmp_path / "kept.db"), 10)
    await make_ledger(place, 20)
    before = await digest(place)

    with pytest.raises(tenure.Conflict, match=r"not empty.*new file or another schema"):
        await restore(tmp_path / "kept.db", place)

    assert await digest(place) == before


async def test_a_source_that_is_not_there_is_not_made(place: str, tmp_path: Path) -> None:
    with pytest.raises(tenure.NotFound, match=r"typo\.db.*is the name right"):
        await copy(url_of(tmp_path / "typo.db"), place)
    with pytest.raises(tenure.NotFound, match=r"typo\.db.*is the name right"):
        await restore(tmp_path / "typo.db", place)
    with pytest.raises(tenure.NotFound, match="make it first"):
        await backup(await _made(place), tmp_path / "nowhere" / "kept.db")

    assert names(tmp_path) == []


async def _made(url: str) -> str:
    await make_ledger(url, 10)
    return url


async def test_an_empty_ledger_is_taken_for_a_wrong_url(place: str, tmp_path: Path) -> None:
    async with opened(place):
        pass

    with pytest.raises(tenure.NotFound, match="empty; are URL and schema right") as told:
        await backup(place, tmp_path / "kept.db")

    assert "postgres:@" not in str(told.value)
    assert "host=" not in str(told.value)
    assert names(tmp_path) == []


@pytest.mark.parametrize("path", ["", None, 7])
async def test_a_path_that_is_no_name_of_a_file_is_refused(path: Any, tmp_path: Path) -> None:
    with pytest.raises(tenure.Invalid, match="path: the name of a file"):
        await backup(url_of(tmp_path / "first.db"), path)
    with pytest.raises(tenure.Invalid, match="path: the name of a file"):
        await restore(path, url_of(tmp_path / "first.db"))

    assert names(tmp_path) == []


async def test_a_copy_into_memory_is_refused(place: str) -> None:
    with pytest.raises(tenure.Invalid, match="gone when the copy is done"):
        await copy(await _made(place), "memory:")


async def test_a_file_that_is_no_ledger_is_not_restored(place: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no ledger at all " * 100, "utf-8")

    with pytest.raises(tenure.StoreUnavailable, match="not a"):
        await restore(tmp_path / "notes.txt", place)

    async with opened(place) as store:
        assert await store.spaces() == []


async def test_breaches_of_the_source_are_told_and_its_backup_is_kept(tmp_path: Path) -> None:
    await make_ledger(url_of(tmp_path / "first.db"), 10)
    with closing(sqlite3.connect(tmp_path / "first.db")) as connection:
        connection.executescript("UPDATE holding SET owner = 'vm/thief' WHERE generation = 3")

    report = await backup(url_of(tmp_path / "first.db"), tmp_path / "kept.db")

    assert {breach.invariant for breach in report.breaches} == {"I7"}
    assert await digest(url_of(tmp_path / "kept.db")) == report.digest


async def test_a_copy_that_differs_from_what_was_sent_is_told(tmp_path: Path) -> None:
    await make_ledger(url_of(tmp_path / "first.db"), 10)
    async with opened(url_of(tmp_path / "second.db")):
        pass
    with closing(sqlite3.connect(tmp_path / "second.db")) as connection:
        connection.executescript(
            "CREATE TRIGGER slip AFTER INSERT ON holding WHEN new.generation = 7"
            " BEGIN UPDATE holding SET since_us = 1 WHERE generation = 7; END"
        )

    with pytest.raises(tenure.Conflict, match="differs from what was sent, in: holdings; do not use it"):
        await copy(url_of(tmp_path / "first.db"), url_of(tmp_path / "second.db"))


async def test_a_digest_does_not_depend_on_pages_and_tells_which_kind_differs() -> None:
    whole, single, other = Digest(), Digest(), Digest()
    async for section in made_contents(300):
        whole.add(section)
        for item in section.items:
            single.add(Section(section.kind, [item]))
        if section.kind is Kind.CHANGES:
            section = Section(section.kind, [*section.items[:-1], section.items[-1]._replace(request="other")])
        other.add(section)

    assert whole.whole == single.whole
    assert whole.differences(single) == []
    assert whole.differences(other) == [Kind.CHANGES]
    assert whole.whole != other.whole


STAYS = {
    "waiting": {"*"},
    "ledger": {"id", "schema_version"},
    "space": {"queued", "frees"},
    "archive": {"places"},
    "archive_place": {"*"},
}
"""What a copy leaves behind on purpose: claims in line, and what a store keeps for itself or makes anew."""

COPIED = {
    "ledger": "seq oldest generation next_network",
    "space": "id name version",
    "network": "id name space document",
    "holding": "space network first last owner slot state generation since_us until_us request details",
    "former": "network owner slot first",
    "reply": "key body at_us space network first last generation until_us answer",
    "paper": "kind name revision document",
    "archive": "first_seq last_seq first_us last_us body",
    "change": "seq at_us verb space network first last owner slot generation request details",
}


async def test_every_column_is_copied_or_stays_behind_on_purpose(place: str) -> None:
    async with opened(place):
        columns = await _columns(place)

    left = {
        f"{table}.{column}"
        for table, column in columns
        if column not in COPIED.get(table, "").split() and not {"*", column} & STAYS.get(table, set())
    }
    assert len(columns) > 40
    assert left == set()


async def _columns(url: str) -> list[tuple[str, str]]:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            return connection.execute(
                "SELECT m.name, c.name FROM sqlite_schema AS m, pragma_table_info(m.name) AS c"
                " WHERE m.type = 'table' AND m.name <> 'sqlite_sequence'"
            ).fetchall()
    server, _, schema = url.partition("&schema=")
    asked = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = $1"
    server_connection = await asyncpg.connect(server)
    try:
        return [(record[0], record[1]) for record in await server_connection.fetch(asked, schema)]
    finally:
        await server_connection.close()
