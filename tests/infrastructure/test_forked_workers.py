"""Tests in several processes: those of a group in one, each run once, and none lost with a worker that dies."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.infrastructure.forked_workers import WORKER
from tests.infrastructure.postgres import RUN_FOLDER

CONFTEST = """
import os
from pathlib import Path

import pytest

from tests.infrastructure.forked_workers import ForkedWorkers

def pytest_configure(config):
    config.pluginmanager.register(ForkedWorkers(2))

@pytest.fixture(scope="session", autouse=True)
def _shared():
    yield
    (Path(__file__).parent / f"torn-down-{os.getpid()}").touch()
"""
TESTS = """
import os, warnings

import pytest

@pytest.mark.parametrize("number", range(20))
def test_plain(number, tmp_path):
    print("said by", number)
    (tmp_path / "file").touch()
    assert number != 7, "seven is wrong"

def test_dying():
    os._exit(3)

@pytest.mark.one_worker("together")
@pytest.mark.parametrize("number", range(5))
def test_together(number):
    os.environ["SEEN"] = os.environ.get("SEEN", "") + str(number)
    assert os.environ["SEEN"] == "01234"[:number + 1]
"""


MANY = """
import pytest

@pytest.mark.one_worker("together")
@pytest.mark.parametrize("number", range(1500))
def test_together(number):
    pass

def test_apart():
    pass
"""


def run_in_workers(folder: Path, *words: str, tests: str = TESTS) -> str:
    """Run tests in two workers; return what was printed."""
    (folder / "conftest.py").write_text(CONFTEST, "utf-8")
    (folder / "test_sample.py").write_text(tests, "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = one_worker\n", "utf-8")
    settings = {"PYTHONPATH": str(Path(__file__).parents[2]), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-rf", "--basetemp", str(folder / "base"), *words]
    ended = subprocess.run(
        command, cwd=folder, env=os.environ | settings, capture_output=True, text=True, check=False, timeout=60
    )
    return ended.stdout + ended.stderr


@pytest.mark.one_worker("forked-workers")
@pytest.mark.parametrize("number", range(8))
def test_tests_of_a_group_run_in_one_worker(number: int) -> None:
    seen = Path(os.environ[RUN_FOLDER]) / "workers-of-a-group"
    seen.mkdir(exist_ok=True)
    worker = os.environ.get(WORKER, "alone")

    (seen / worker).touch()

    assert [each.name for each in seen.iterdir()] == [worker], f"test {number} runs apart from others"


def test_every_test_runs_once_and_a_worker_that_dies_fails_one_test(tmp_path: Path) -> None:
    printed = run_in_workers(tmp_path)

    assert "2 failed, 24 passed" in printed, printed
    assert "seven is wrong" in printed
    assert "said by 7" in printed
    assert "said by 8" not in printed
    assert "its worker died with exit code 3" in printed
    assert len(list((tmp_path / "base").glob("worker*/test_plain_*_0"))) == 20
    assert list(tmp_path.glob("torn-down-*"))


def test_a_group_may_have_more_tests_than_a_line_to_a_worker_has_room_for(tmp_path: Path) -> None:
    printed = run_in_workers(tmp_path, tests=MANY)

    assert "1501 passed" in printed, printed


def test_a_run_ends_at_its_first_failure_when_asked_to(tmp_path: Path) -> None:
    printed = run_in_workers(tmp_path, "-x", "-k", "plain")

    assert "1 failed" in printed, printed
    assert "stopping after 1 failures" in printed
