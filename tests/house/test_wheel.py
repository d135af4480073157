"""The wheel: everything that the package needs is in it, and nothing of the workshop."""

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

STORY = """
import tenure, tenure.doors.http.non_api.web_files
print(tenure.__file__)
with tenure.open("sqlite:///ledger.db") as ledger:
    ledger.add_network("net")
    ledger.add_subnet("net", "192.0.2.0/24")
    ledger.add_pool("net", "192.0.2.10-192.0.2.20")
    print(ledger.allocate("net", owner="vm/a").address)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=ROOT, check=True)
    [built] = folder.glob("*.whl")
    return built


def test_the_wheel_carries_the_version_of_the_project(wheel: Path) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]

    assert wheel.name == f"tenure-{version}-py3-none-any.whl"


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    source = ROOT / "src"
    wanted = {
        str(path.relative_to(source))
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}

    assert held == wanted


def test_a_ledger_can_be_kept_with_what_is_in_the_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")  # a wheel is installed by being unpacked

    told = subprocess.run(
        [sys.executable, "-c", STORY],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "installed")},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()

    assert told == [str(tmp_path / "installed" / "tenure" / "__init__.py"), "192.0.2.10"]
