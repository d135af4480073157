"""The cases run on SQLite and on PostgreSQL, each on a cluster of its own."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.infrastructure.postgres import schema_in_thread
from tests.integrations.ganeti.conformance.door import CLUSTER, Door
from tests.scale import second_store


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the cluster once a run, in a SQLite file."""
    file = tmp_path_factory.mktemp("cluster") / "tenure.db"
    Door(f"sqlite:///{file}").do(*CLUSTER)
    return file


@pytest.fixture(params=["sqlite", second_store("postgres")])
def empty_door(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Door]:
    """Give an empty ledger of every kind that commands can share."""
    if request.param == "sqlite":
        yield Door(f"sqlite:///{tmp_path / 'tenure.db'}")
    else:
        with schema_in_thread(emptied=True) as url:
            yield Door(url)


@pytest.fixture(params=["sqlite", second_store("postgres")])
def door(request: pytest.FixtureRequest, tmp_path: Path, built: Path) -> Iterator[Door]:
    """Give the fixture of the conformance file."""
    if request.param == "sqlite":
        shutil.copy(built, tmp_path / "tenure.db")
        yield Door(f"sqlite:///{tmp_path / 'tenure.db'}")
    else:
        with schema_in_thread(emptied=True) as url:
            door = Door(url)
            door.do(*CLUSTER)
            yield door
