"""An import that is killed hard, again and again: it ends as if it had run once, and nobody was given what is its."""

import asyncio
import json
import os
import random
import signal
from typing import Any

import pytest

import tenure
from tenure.integrations.ganeti.files.export_cluster import export_cluster
from tenure.integrations.ganeti.files.load.import_cluster import plan_import
from tenure.integrations.ganeti.files.read.cluster_file import read_file
from tenure.ports import LedgerStore
from tests.contract.providers import Provider, ledger_providers
from tests.infrastructure.async_module import AsyncModule, start_module
from tests.integrations.ganeti.files.crowds import addresses_of, crowd_document
from tests.integrations.ganeti.files.documents import breaches
from tests.integrations.ganeti.files.test_round_trips import contents
from tests.scale import by_store, in_proof, runs

INSTANCES = 300
KILLS = runs(3, 5, proof=5)
LONGEST_PAUSE_S = 0.03
LASTING = [provider for provider in ledger_providers() if provider.abilities.survives_restart]


async def begun(url: str) -> AsyncModule:
    """Begin the import in a process of its own."""
    return await start_module("tests.integrations.ganeti.files.load.import_process", url, str(INSTANCES))


async def import_and_kill(url: str, chance: random.Random) -> bool:
    """Run the import and kill it hard, a few steps on and somewhere in the next; tell whether it was killed."""
    process = await begun(url)
    for _ in range(chance.randint(1, 8)):
        await process.stdout.readline()
    await asyncio.sleep(chance.random() * LONGEST_PAUSE_S)
    if process.returncode is None:
        os.kill(process.pid, signal.SIGKILL)
    return await process.wait() == -signal.SIGKILL


async def import_to_the_end(url: str) -> None:
    """Run the same import undisturbed."""
    process = await begun(url)
    await process.communicate()
    assert process.returncode == 0


async def steal(url: str) -> set[tuple[str, str]]:
    """Ask for every address of the file, by name and by picking; give back and return what was had."""
    had: set[tuple[str, str]] = set()
    async with await tenure.open_async(url) as ledger:
        networks = {network.name for network in await ledger.networks()}
        for name, addresses in addresses_of(crowd_document(INSTANCES)).items():
            for wish in [*sorted(addresses), None] if name in networks else []:
                try:
                    holding = await ledger.allocate(name, owner="instance/thief", slot=f"{wish}", address=wish)
                except (tenure.Conflict, tenure.NotFound):
                    continue
                had.add((name, holding.address))
                await ledger.release(name, holding.address, owner="instance/thief")
    return had


async def all_of(ledger: tenure.AsyncLedger) -> list[Any]:
    """Read all that an import makes; the cluster's paper counts the steps and is left out."""
    plan, papers, holdings = await contents(ledger)
    return [plan, [paper for paper in papers if paper.kind != "cluster"], holdings]


@pytest.mark.parametrize("seed", [1, in_proof(2)])
@pytest.mark.parametrize("provider", by_store(LASTING))
async def test_an_import_killed_anywhere_is_run_again_and_nobody_was_given_an_address_of_its(
    provider: Provider[LedgerStore], seed: int
) -> None:
    chance = random.Random(seed)
    document = crowd_document(INSTANCES)
    its = {(name, address) for name, addresses in addresses_of(document).items() for address in addresses}
    stolen: set[tuple[str, str]] = set()
    async with provider.place() as url, provider.place() as undisturbed:
        killed = 0
        for _ in range(KILLS):
            killed += await import_and_kill(url, chance)
            stolen |= await steal(url) & its
            async with await tenure.open_async(url) as ledger:
                assert (await plan_import(read_file(json.dumps(document).encode()), ledger)).conflicts == []
        await import_to_the_end(url)
        await import_to_the_end(undisturbed)

        async with await tenure.open_async(url) as ledger, await tenure.open_async(undisturbed) as whole:
            assert killed >= 2
            assert stolen == set()
            assert await all_of(ledger) == await all_of(whole)
            assert await export_cluster(ledger, "today") == document
            assert await breaches(ledger) == []
