"""The site every test of the command line starts from: built once, copied for each."""

import shutil
from pathlib import Path

import pytest

from tests.doors.cli.deployment_site import build_deployments
from tests.doors.cli.neutron_site import build_neutron
from tests.doors.cli.site import Site, build, build_machines


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site once a run."""
    folder = tmp_path_factory.mktemp("site")
    build(folder)
    build_neutron(folder)
    return folder


@pytest.fixture
def site(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Give a copy of the site, and stand in its folder."""
    folder = tmp_path / "site"
    shutil.copytree(built, folder)
    monkeypatch.chdir(folder)
    return Site(folder)


@pytest.fixture(scope="session")
def built_machines(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site with machines once a run."""
    folder = tmp_path_factory.mktemp("machines") / "site"
    shutil.copytree(built, folder)
    build_machines(Site(folder))
    return folder


@pytest.fixture
def machines(built_machines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Give a copy of the site with machines, and stand in its folder."""
    folder = tmp_path / "machines"
    shutil.copytree(built_machines, folder)
    monkeypatch.chdir(folder)
    return Site(folder)


@pytest.fixture(scope="session")
def built_deployments(built_machines: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site with machines and deployments once a run."""
    folder = tmp_path_factory.mktemp("deployments") / "site"
    shutil.copytree(built_machines, folder)
    build_deployments(Site(folder))
    return folder


@pytest.fixture
def deployed(built_deployments: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Give a copy of the site with machines and deployments, and stand in its folder."""
    folder = tmp_path / "deployed"
    shutil.copytree(built_deployments, folder)
    monkeypatch.chdir(folder)
    return Site(folder)
