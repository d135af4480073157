"""How a crowd in a mode is judged, once and in the rounds of the soak: 50 processes, 5 of them killed."""

import asyncio
import dataclasses
import tempfile
from collections import Counter
from pathlib import Path

from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.vm_pool_settings import PoolMode
from tests.infrastructure.kube import fresh_namespace, private_kube
from tests.integrations.vmpool.modes.mode_stage import ModeStage, mode_stage
from tests.integrations.vmpool.pool_crowd import Cast, Chronicle, differences, play
from tests.integrations.vmpool.pool_stage import PoolStage

FIFTY = Cast(processes=50, allocations=10, killed=5)


def crowd_rounds(mode: PoolMode, seed: int, rounds: int) -> Counter[str]:
    """Let the crowd work in a mode, each round in a namespace of its own; print what must not be."""
    total: Counter[str] = Counter()
    with private_kube() as kube:
        for number in range(1, rounds + 1):
            with fresh_namespace(kube) as namespace, tempfile.TemporaryDirectory(prefix="tenure-crowd-") as name:
                stage = PoolStage(kube, namespace)
                cast = dataclasses.replace(FIFTY, seed=seed + number)
                found, allocations = asyncio.run(_round(stage, mode, cast, Path(name)))
            total.update(allocations=allocations, failures=len(found))
            print(f"  round {number}/{rounds} ({mode}): {allocations} allocations", flush=True)
            for each in found:
                print(f"    {each}", flush=True)
    return total


async def _round(stage: PoolStage, mode: PoolMode, cast: Cast, folder: Path) -> tuple[list[str], int]:
    async with stage, mode_stage(stage, mode, folder) as opened:
        return await judged_crowd(opened, cast, folder / "chronicle")


async def judged_crowd(every: ModeStage, cast: Cast, log: Path) -> tuple[list[str], int]:
    """Let a crowd work; return what must not be, also after what is left was healed, and how many allocations it made.

    What was answered is stored; only processes that were killed leave anything unknown, and their ids get their VMs.
    """
    words = dataclasses.replace(cast, words=tuple(every.words.items()))
    told = await asyncio.to_thread(play, words, str(every.stage.kube.kubeconfig()), every.stage.namespace, log)
    pool = await every.pool(*cast.pool)
    stored = {each.allocation_id: each.ip for each in await pool.list()}
    found = differences(told, stored, cast.pool, (await pool.read()).state.available)
    if told.allocations < (least := (cast.processes - cast.killed) * cast.allocations):
        found.append(f"few: {told.allocations} allocations, and {least} were asked for by those that were not killed")
    if len(told.unknown) > cast.killed:
        found.append(f"unknown: {len(told.unknown)} ids, and {cast.killed} processes were killed")
    return [*found, *await _left_unhealed(pool, told, stored)], told.allocations


async def _left_unhealed(pool: AsyncVMPool, told: Chronicle, stored: dict[str, str]) -> list[str]:
    """Ask again for what has no answer, repair twice, and return what is still wrong."""
    asked = {id: (await pool.allocate(id)).ip for id in sorted(told.unknown)}
    found = [f"changed: {id} had {stored[id]}, has {ip}" for id, ip in asked.items() if stored.get(id, ip) != ip]
    await pool.repair()
    found += [f"unrepaired: {each.message}" for each in await pool.verify()]
    if left := (await pool.repair()).unfinished:
        found.append(f"unfinished: {left} writes are left after a repair")
    return found
