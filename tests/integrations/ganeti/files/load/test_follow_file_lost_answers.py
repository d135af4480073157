"""A file followed over a connection that breaks: nobody is told that nothing was written where that is not known."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import tenure
from tenure.integrations.ganeti.files.export_cluster import export_cluster
from tenure.integrations.ganeti.files.load.follow_file import follow_import, try_to_follow
from tenure.integrations.ganeti.files.read.cluster_file import read_cluster
from tests.client.proxy import Fault, Wire, wire_to
from tests.infrastructure.street import street
from tests.integrations.ganeti.files.documents import Json, brought_in, old_document
from tests.integrations.ganeti.files.load.test_follow_file import later, renamed_and_moved


@pytest.fixture
async def direct(tmp_path: Path) -> AsyncIterator[tuple[str, tenure.AsyncLedger]]:
    """Give the URL of a server, and its ledger, into which a file was brought."""
    async with street().house(f"sqlite:///{tmp_path / 'ledger.db'}") as url, await tenure.open_async(url) as ledger:
        await brought_in(ledger, old_document())
        yield url, ledger


@pytest.fixture
async def wire(direct: tuple[str, tenure.AsyncLedger]) -> AsyncIterator[Wire]:
    """Give a wire to the server that can break."""
    async with wire_to(direct[0]) as laid:
        yield laid


@pytest.fixture
async def far(wire: Wire) -> AsyncIterator[tenure.AsyncLedger]:
    """Give the ledger by way of the wire."""
    async with await tenure.open_async(f"{wire.url}?within_s=0.3") as opened:
        yield opened


@pytest.fixture
def document() -> Json:
    made = later(old_document())
    renamed_and_moved(made)
    return made


def break_at_apply(
    ledger: tenure.AsyncLedger, wire: Wire, fault: Fault, monkeypatch: pytest.MonkeyPatch, *, mended: bool
) -> None:
    """Break the wire for as long as ``apply`` asks; then it is mended, or stays broken."""
    apply = ledger.apply

    async def broken(operations: Any) -> Any:
        wire.will(*[fault] * 1000)
        wire.cut()
        await asyncio.sleep(0)
        try:
            return await apply(operations)
        finally:
            if mended:
                wire.faults.clear()

    monkeypatch.setattr(ledger, "apply", broken)


async def test_a_file_that_was_followed_though_the_answer_was_lost_is_reported_as_followed(
    direct: tuple[str, tenure.AsyncLedger],
    far: tenure.AsyncLedger,
    wire: Wire,
    document: Json,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    break_at_apply(far, wire, Fault.LOST, monkeypatch, mended=True)
    plan = await follow_import(far, read_cluster(document))

    assert await export_cluster(direct[1], "today") == document
    assert plan.followed is not None
    assert plan.differences


async def test_an_unknown_outcome_stays_unknown_where_the_ledger_does_not_answer_afterwards(
    direct: tuple[str, tenure.AsyncLedger],
    far: tenure.AsyncLedger,
    wire: Wire,
    document: Json,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    break_at_apply(far, wire, Fault.LOST, monkeypatch, mended=False)
    with pytest.raises(tenure.StoreUnavailable) as unknown:
        await follow_import(far, read_cluster(document))

    assert await export_cluster(direct[1], "today") == document
    assert unknown.value.outcome == "unknown"
    assert "nothing was" not in unknown.value.message


async def test_an_unknown_outcome_stays_unknown_where_the_server_has_not_yet_written(
    direct: tuple[str, tenure.AsyncLedger],
    far: tenure.AsyncLedger,
    document: Json,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late: list[Any] = []

    async def slow(operations: Any) -> Any:
        late.append(operations)
        raise tenure.StoreUnavailable("the connection broke", outcome="unknown")

    monkeypatch.setattr(far, "apply", slow)
    with pytest.raises(tenure.StoreUnavailable) as unknown:
        await follow_import(far, read_cluster(document))
    await direct[1].apply(late[0])

    assert await export_cluster(direct[1], "today") == document
    assert unknown.value.outcome == "unknown"
    assert unknown.value.message == "the connection broke (repeat the same request to learn the outcome)"


async def test_a_store_that_does_not_answer_is_no_conflict_of_a_dry_run(
    far: tenure.AsyncLedger, wire: Wire, document: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    rehearse = far.rehearse

    async def broken(operations: Any) -> Any:
        wire.will(*[Fault.REFUSED] * 1000)
        wire.cut()
        await asyncio.sleep(0)
        try:
            return await rehearse(operations)
        finally:
            wire.faults.clear()

    monkeypatch.setattr(far, "rehearse", broken)
    with pytest.raises(tenure.StoreUnavailable) as none:
        await try_to_follow(far, read_cluster(document))

    assert none.value.outcome == "none"
