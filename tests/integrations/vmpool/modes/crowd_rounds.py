"""Rounds of the crowd for the soak: 50 processes in a mode, 5 of them killed, again and again."""

import asyncio
import dataclasses
import tempfile
from collections import Counter
from pathlib import Path

from tenure.integrations.vmpool.vm_pool_settings import PoolMode
from tests.infrastructure.kube import fresh_namespace, private_kube
from tests.integrations.vmpool.modes.mode_stage import mode_stage
from tests.integrations.vmpool.pool_crowd import Cast, differences, play
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
        words = dataclasses.replace(cast, words=tuple(opened.words.items()))
        told = await asyncio.to_thread(
            play, words, str(stage.kube.kubeconfig()), stage.namespace, folder / "chronicle"
        )  # fmt: skip
        pool = await opened.pool(*cast.pool)
        stored = {each.allocation_id: each.ip for each in await pool.list()}
        available = (await pool.read()).state.available
        return differences(told, stored, cast.pool, available), told.allocations
