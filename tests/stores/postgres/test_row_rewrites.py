"""How often PostgreSQL is asked for a confirmation."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest
from asyncpg.prepared_stmt import PreparedStatement

import tenure
from tests.contract.ledger.plan import small_plan
from tests.infrastructure.postgres import emptied_schema


@pytest.fixture
async def ledger() -> AsyncIterator[tenure.AsyncLedger]:
    """Give a ledger on PostgreSQL that has confirmed something before: its statements are prepared."""
    async with emptied_schema() as url, await tenure.open_async(url) as opened:
        await small_plan(opened)
        first = await opened.hold("net", owner="vm/first")
        await opened.confirm("net", first.address, owner="vm/first")
        yield opened


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give a list of the round trips from now on: which verb of the driver made them."""
    made: list[str] = []
    for of in (asyncpg.Connection, PreparedStatement):
        for name in ("execute", "executemany", "fetch", "fetchrow", "fetchval", "prepare"):
            if (ask := getattr(of, name, None)) is not None:

                def watched(self: Any, *words: Any, ask: Any = ask, name: str = name, **more: Any) -> Any:
                    made.append(name)
                    return ask(self, *words, **more)

                monkeypatch.setattr(of, name, watched)
    return made


async def test_a_plain_confirmation_is_two_round_trips(ledger: tenure.AsyncLedger, asked: list[str]) -> None:
    pending = await ledger.hold("net", owner="vm/a")
    del asked[:]

    held = await ledger.confirm("net", pending.address, owner="vm/a", generation=pending.generation)

    assert held.state == "held"
    assert asked == ["fetch", "fetch"]


async def test_confirmations_of_one_apply_are_two_round_trips(ledger: tenure.AsyncLedger, asked: list[str]) -> None:
    pending = [await ledger.hold("net", owner=f"vm/{number}") for number in range(5)]
    del asked[:]

    await ledger.apply([tenure.Confirm(network="net", address=each.address, owner=each.owner) for each in pending])

    assert asked == ["fetch", "fetch"]
