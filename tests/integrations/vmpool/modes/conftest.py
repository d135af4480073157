"""A stage for each mode."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integrations.vmpool.modes.mode_stage import ALL_MODES, ModeStage, mode_stage
from tests.integrations.vmpool.pool_stage import PoolStage


@pytest.fixture(params=ALL_MODES)
async def every(request: pytest.FixtureRequest, stage: PoolStage, tmp_path: Path) -> AsyncIterator[ModeStage]:
    """Give a stage of every mode in turn."""
    async with mode_stage(stage, request.param, tmp_path) as opened:
        yield opened
