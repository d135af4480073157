"""Reported is stored, all are distinct and none is lost, in every mode, whatever is killed (done when 2)."""

from pathlib import Path

import pytest

from tests.integrations.vmpool.modes.crowd_rounds import FIFTY, judged_crowd
from tests.integrations.vmpool.modes.mode_stage import ModeStage
from tests.integrations.vmpool.pool_crowd import FIFTY_PROCESSES, Cast

SOME = Cast(processes=6, allocations=4, killed=2)


@pytest.mark.parametrize("cast", [SOME, pytest.param(FIFTY, marks=FIFTY_PROCESSES)], ids=["some", "fifty"])
async def test_done_when_2_whatever_is_killed_reported_is_stored(every: ModeStage, tmp_path: Path, cast: Cast) -> None:
    if every.mode == "configmap" and cast is SOME:
        pytest.skip("test_many_processes has it")

    found, _ = await judged_crowd(every, cast, tmp_path / "chronicle")

    assert found == []
