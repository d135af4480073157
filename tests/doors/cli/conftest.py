"""The site every test of the command line starts from: built once, copied for each."""

import shutil
from pathlib import Path

import pytest

from tests.doors.cli.site import Site, build


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site once a run."""
    folder = tmp_path_factory.mktemp("site")
    build(folder)
    return folder


@pytest.fixture
def site(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Give a copy of the site, and stand in its folder."""
    folder = tmp_path / "site"
    shutil.copytree(built, folder)
    monkeypatch.chdir(folder)
    return Site(folder)
