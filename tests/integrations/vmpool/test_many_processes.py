"""Reported is stored, all are distinct and none is lost: many processes on one pool, some killed with -9."""

import asyncio
import time
from pathlib import Path

import pytest

from tests.integrations.vmpool.pool_crowd import FIFTY_PROCESSES, Cast, differences, play
from tests.integrations.vmpool.pool_stage import PoolStage

SOME = Cast(processes=8, allocations=4, killed=2)
ALL = Cast(processes=50, allocations=10, killed=5)


@pytest.mark.parametrize("cast", [SOME, pytest.param(ALL, marks=FIFTY_PROCESSES)], ids=["some", "fifty"])
async def test_whatever_is_killed_reported_is_stored(stage: PoolStage, tmp_path: Path, cast: Cast) -> None:
    kubeconfig, log = str(stage.kube.kubeconfig()), tmp_path / "chronicle"
    began = time.monotonic()
    told = await asyncio.to_thread(play, cast, kubeconfig, stage.namespace, log)
    print(f"{told.allocations} allocations by {cast.processes} processes in {time.monotonic() - began:.1f} s")
    stored = {id: each["ip"] for id, each in stage.state()["allocatedIPs"].items()}

    assert differences(told, stored, cast.pool, stage.state()["availableIPs"]) == []
    assert told.allocations >= (cast.processes - cast.killed) * cast.allocations
    assert len(told.unknown) <= cast.killed
    # What a killed process left is what the same id gets again.
    pool = await stage.pool(*cast.pool)
    for id in sorted(told.unknown):
        found = await pool.allocate(id)
        assert found.ip == stored.get(id, found.ip)
    assert await pool.verify() == ()
