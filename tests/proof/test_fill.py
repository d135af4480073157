"""Pools filled to the last address by many processes at once: each address once, in order, and nothing missed."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product, starmap
from pathlib import Path
from typing import Any

import pytest

import tenure
from tests.infrastructure.postgres import fresh_schema
from tests.proof.crew import Client, Crew, begin
from tests.proof.faces import lay_plan
from tests.proof.history import Logged, Tenancy
from tests.proof.plan import wide_plan
from tests.scale import in_proof

PROCESSES, CALLERS = 4, 16


@asynccontextmanager
async def a_place(store: str, folder: Path) -> AsyncIterator[str]:
    """Give an empty ledger."""
    if store == "sqlite":
        yield f"sqlite:///{folder / 'ledger.db'}"
    else:
        async with fresh_schema() as url:
            yield url


async def say_last_word(url: str) -> None:
    """Make the change that ends the tail."""
    async with await tenure.open_async(url) as ledger:
        await ledger.modify_network("blue", description="full")


def seen_by(reader: Client, folder: Path) -> list[tuple[int, Logged]]:
    """Read what a tailing process saw, and when."""
    lines = (folder / f"tail-{reader.name}.jsonl").read_text("utf-8").splitlines()
    notes: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return [(note["at"], _logged(json.loads(note["note"]))) for note in notes[1:-1]]


def _logged(said: list[Any]) -> Logged:
    seq, verb, tenancy, *rest = said
    return Logged(seq, verb, None if tenancy is None else Tenancy(*tenancy), *rest)


@pytest.mark.parametrize(
    ("store", "policy"),
    [
        ("postgres", "random"),
        ("sqlite", "lowest"),
        *starmap(in_proof, product(["postgres"], ["lowest", "hashed", "sticky"])),
        *starmap(in_proof, product(["sqlite"], ["random", "hashed", "sticky"])),
    ],
)
async def test_four_processes_fill_a_pool_to_the_last_address(store: str, policy: str, tmp_path: Path) -> None:
    plan = wide_plan(policy)
    addresses = plan.order("blue", None)
    async with a_place(store, tmp_path) as url, Crew(url, plan, tmp_path) as crew:
        await lay_plan(url, plan)
        clients = await crew.hire_many("fill", PROCESSES, callers=CALLERS)
        reader = await crew.hire("tail")

        await begin([reader, *clients])
        for client in clients:
            await client.finish()
        await say_last_word(url)
        await reader.finish()
        history, breaches = await crew.history()

        granted = [call for call in history.calls if call.error is None]
        refused = [call for call in history.calls if call.error is not None]
        assert sorted(call.rows[0].address for call in granted) == sorted(addresses)
        assert [call.error for call in refused] == ["pool_exhausted"] * PROCESSES * CALLERS
        assert breaches == []
        assert crew.explain(history, exact=True) == []
        seen = seen_by(reader, tmp_path)
        assert [entry for _, entry in seen] == history.log
        full = max(call.returned for call in granted)
        assert any(at < full for at, entry in seen if entry.verb == "grant"), (
            "the reader came too late to prove anything"
        )
