"""Tests of one group run in one worker, so that what they share is made once."""

import os
from pathlib import Path

import pytest

from tests.infrastructure.postgres import RUN_FOLDER


@pytest.mark.xdist_group("group-scheduling")
@pytest.mark.parametrize("number", range(8))
def test_tests_of_a_group_run_in_one_worker(worker_id: str, number: int) -> None:
    seen = Path(os.environ[RUN_FOLDER]) / "workers-of-a-group"
    seen.mkdir(exist_ok=True)

    (seen / worker_id).touch()

    assert [worker.name for worker in seen.iterdir()] == [worker_id], f"test {number} runs apart from others"
