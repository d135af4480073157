"""Processes that open a store, write and close it again, beside one that keeps it open: nobody's word is lost."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

import tenure
from tests.contract.providers import ledger_providers

SHARED = [provider for provider in ledger_providers() if provider.abilities.shared_by_processes]

PASSER_BY = """
import sys, tenure
with tenure.open(sys.argv[1]) as ledger:
    print(ledger.allocate("net", owner=sys.argv[2]).address)
"""


@pytest.fixture(params=SHARED, ids=lambda provider: provider.name)
async def url(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """Give a ledger with one pool, on every store that several processes can share."""
    async with request.param.place() as place:
        async with await tenure.open_async(place) as ledger:
            await ledger.add_network("net")
            await ledger.add_subnet("net", "10.0.0.0/24")
            await ledger.add_pool("net", "10.0.0.10-10.0.0.20")
        yield place


async def pass_by(url: str, owner: str) -> str:
    """Take an address in a process that comes and goes."""
    command = [sys.executable, "-c", PASSER_BY, url, owner]
    done = await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True, encoding="utf-8")
    return str(done.stdout.strip())


async def test_one_who_stays_and_those_who_pass_by_see_what_the_others_did(url: str) -> None:
    async with await tenure.open_async(url) as ledger:
        taken = [await pass_by(url, "vm/1"), (await ledger.allocate("net", owner="vm/2")).address]
        taken += [await pass_by(url, "vm/3"), (await ledger.allocate("net", owner="vm/4")).address]

    async with await tenure.open_async(url) as ledger:
        held = await ledger.holdings("net")
    assert taken == ["10.0.0.10", "10.0.0.11", "10.0.0.12", "10.0.0.13"]
    assert [str(holding.owner) for holding in held] == ["vm/1", "vm/2", "vm/3", "vm/4"]
