"""An import killed in the middle is run again: nothing is doubled, nothing is lost."""

import os
import signal
from collections import Counter

import pytest

import tenure
from tenure.interchange.importer.import_run import plan_import
from tenure.ports import LedgerStore
from tests.contract.providers import Provider, ledger_providers
from tests.infrastructure.async_module import AsyncModule, start_module
from tests.interchange.importer.planted import planted_table, prepare
from tests.scale import by_store

ROWS, BATCH = 6000, 200
LASTING = [provider for provider in ledger_providers() if provider.abilities.survives_restart]


async def begun(url: str) -> AsyncModule:
    """Begin the import in a process of its own."""
    return await start_module("tests.interchange.importer.import_process", url, str(ROWS), str(BATCH))


async def import_and_kill(url: str, *, after: int) -> int:
    """Run the import, kill it hard once it says that so many are done, and return how many it had told."""
    process = await begun(url)
    done = 0
    async for line in process.stdout:
        done = int(line.split()[0])
        if done >= after:
            os.kill(process.pid, signal.SIGKILL)
            break
    assert await process.wait() == -signal.SIGKILL
    return done


async def import_to_the_end(url: str) -> list[str]:
    """Run the same command again, undisturbed, and return what it told."""
    process = await begun(url)
    told, _ = await process.communicate()
    assert process.returncode == 0
    return told.decode().splitlines()


@pytest.mark.parametrize("provider", by_store(LASTING))
async def test_an_import_killed_twice_ends_as_if_it_had_run_once(provider: Provider[LedgerStore]) -> None:
    source, _ = planted_table(ROWS, faults=False)
    async with provider.place() as url:
        async with await tenure.open_async(url) as ledger:
            await prepare(ledger)

        first = await import_and_kill(url, after=BATCH * 3)
        second = await import_and_kill(url, after=ROWS // 2)
        last = await import_to_the_end(url)

        async with await tenure.open_async(url) as ledger:
            holdings = await ledger.holdings("site")
            grants = Counter([change.address async for change in ledger.changes() if change.verb == "grant"])
            report = await plan_import(ledger, source)
            assert await ledger.verify() == []
    assert BATCH * 3 <= first < second < ROWS
    # What was told is there: the one that goes on begins where the killed one had come to, or a batch beyond.
    assert second <= int(last[0].split()[0]) <= second + BATCH
    assert last[-1] == f"{ROWS} {ROWS}"
    assert len(holdings) == ROWS + 2
    assert set(grants.values()) == {1}
    assert (report.ok, report.already["holdings"], report.new["holdings"]) == (True, ROWS, 0)
