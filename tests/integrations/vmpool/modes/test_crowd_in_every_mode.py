"""Reported is stored, all are distinct and none is lost, in every mode, whatever is killed (done when 2)."""

import asyncio
import dataclasses
from pathlib import Path

import pytest

from tests.integrations.vmpool.modes.mode_stage import ModeStage
from tests.integrations.vmpool.pool_crowd import Cast, differences, play

SOME = Cast(processes=6, allocations=4, killed=2)
ALL = Cast(processes=50, allocations=10, killed=5)


@pytest.mark.parametrize("cast", [SOME, pytest.param(ALL, marks=pytest.mark.proof)], ids=["some", "fifty"])
async def test_done_when_2_whatever_is_killed_reported_is_stored(every: ModeStage, tmp_path: Path, cast: Cast) -> None:
    if every.mode == "configmap" and cast is SOME:
        pytest.skip("test_many_processes has it")
    await check_crowd(every, cast, tmp_path / "chronicle")


async def check_crowd(every: ModeStage, cast: Cast, log: Path) -> None:
    """Let a crowd work, and compare what was answered with what is stored, and again after what is left was healed."""
    words = dataclasses.replace(cast, words=tuple(every.words.items()))
    kubeconfig = str(every.stage.kube.kubeconfig())
    told = await asyncio.to_thread(play, words, kubeconfig, every.stage.namespace, log)
    pool = await every.pool(*cast.pool)

    assert differences(told, await _stored(every, cast), cast.pool, await _free(every, cast)) == []
    assert told.allocations >= (cast.processes - cast.killed) * cast.allocations
    assert len(told.unknown) <= cast.killed
    stored = await _stored(every, cast)
    for id in sorted(told.unknown):
        found = await pool.allocate(id)
        assert found.ip == stored.get(id, found.ip)
    await pool.repair()
    assert await pool.verify() == ()
    assert (await pool.repair()).unfinished == 0


async def _stored(every: ModeStage, cast: Cast) -> dict[str, str]:
    pool = await every.pool(*cast.pool)
    return {each.allocation_id: each.ip for each in await pool.list()}


async def _free(every: ModeStage, cast: Cast) -> list[str]:
    pool = await every.pool(*cast.pool)
    return list((await pool.read()).state.available)
