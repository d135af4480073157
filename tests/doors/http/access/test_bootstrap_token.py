"""The first token: made if nobody could make another, once however many servers start."""

import asyncio
import errno
import multiprocessing
import os
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import tenure
from tenure.doors.http.access.bootstrap_token import first_token
from tenure.doors.http.access.token_store import TokenRequest, add_token, all_tokens, good_token, revoke_token
from tenure.doors.http.process import run_server
from tenure.doors.http.server_state import Site
from tenure.doors.http.settings import Settings
from tests.infrastructure.postgres import fresh_schema

SERVERS = 6


async def test_an_empty_ledger_gets_an_admin_once(ledger: tenure.AsyncLedger) -> None:
    text = await first_token(ledger)
    again = await first_token(ledger)

    assert again is None
    assert text is not None
    token = await good_token(ledger, text)
    assert token is not None
    assert (token.name, token.scopes, token.created_by) == ("admin", ("admin",), "first start")


async def test_where_no_admin_is_left_another_is_made(ledger: tenure.AsyncLedger) -> None:
    await first_token(ledger)
    await revoke_token(ledger, "admin", by="tests")
    second = await first_token(ledger)
    await revoke_token(ledger, "admin", by="tests")
    soon = datetime.now(UTC) + timedelta(seconds=0.2)
    await add_token(ledger, TokenRequest("brief", ["admin"], soon), by="tests")
    while_there_is_one = await first_token(ledger)
    await asyncio.sleep(0.25)
    third = await first_token(ledger)

    assert while_there_is_one is None
    assert len({second, third} - {None}) == 2


async def test_tokens_that_are_no_admins_do_not_count_and_keep_their_names(ledger: tenure.AsyncLedger) -> None:
    await add_token(ledger, TokenRequest("admin", ["read", "allocate:*"]), by="tests")

    await first_token(ledger)

    assert [token.name for token in await all_tokens(ledger)] == ["admin", "admin-2"]


def start_one(store: str, gate: "multiprocessing.synchronize.Barrier", folder: str, number: int) -> None:
    """Do what a server does at its start, at the same time as others."""

    async def start() -> str | None:
        async with await tenure.open_async(store) as ledger:
            await asyncio.to_thread(gate.wait)
            return await first_token(ledger)

    Path(folder, str(number)).write_text(asyncio.run(start()) or "", "utf-8")


async def test_of_several_servers_that_start_at_once_one_makes_it(tmp_path: Path) -> None:
    spawning = multiprocessing.get_context("spawn")
    async with fresh_schema() as store:
        async with await tenure.open_async(store):
            pass
        gate = spawning.Barrier(SERVERS)
        servers = [
            spawning.Process(target=start_one, args=(store, gate, str(tmp_path), number)) for number in range(SERVERS)
        ]
        for server in servers:
            server.start()
        for server in servers:
            await asyncio.to_thread(server.join)
        async with await tenure.open_async(store) as ledger:
            made = await all_tokens(ledger)

    told = [(tmp_path / str(number)).read_text("utf-8") for number in range(SERVERS)]
    assert len([text for text in told if text]) == 1
    assert [token.name for token in made] == ["admin"]


@pytest.mark.parametrize("before", [None, "", "kept"], ids=["no file", "an empty file", "a file"])
async def test_where_no_token_could_be_made_no_empty_file_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    async def fail(_: tenure.AsyncLedger) -> None:
        raise tenure.StoreUnavailable("away", outcome="none")

    monkeypatch.setattr(run_server, "first_token", fail)
    file, site = tmp_path / "first", Site(Settings(store="memory:"))
    if before is not None:
        file.write_text(before)
    await site.open()
    with pytest.raises(tenure.StoreUnavailable):
        await run_server._first_token(site, Settings(first_token_file=str(file)))
    await site.close()

    assert (file.read_text() if file.exists() else None) == (before or None)


def test_a_file_that_cannot_be_made_private_is_told_of_and_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []

    def refuse(descriptor: int, _: int) -> None:
        taken.append(descriptor)
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "fchmod", refuse)
    with pytest.raises(tenure.Invalid, match="first_token_file"), run_server._private_file(str(tmp_path / "first")):
        pass

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(taken[0])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("writes", [True, False], ids=["with a token", "without one"])
def test_a_server_that_makes_no_token_does_not_take_away_the_file_of_another(tmp_path: Path, writes: bool) -> None:
    """Both have opened the file before the first has written: the second must not find it empty, and remove it."""
    name = str(tmp_path / "first")
    second = threading.Thread(target=_open_and_write_nothing, args=(name,))
    with run_server._private_file(name) as file:
        second.start()
        time.sleep(0.2)
        if writes:
            file.write("the token")
    second.join(10)

    assert not second.is_alive()
    assert [path.read_text() for path in tmp_path.iterdir()] == (["the token"] if writes else [])


def _open_and_write_nothing(name: str) -> None:
    with run_server._private_file(name):
        pass
