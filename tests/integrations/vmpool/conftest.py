"""One API server for all tests, a namespace for each, and a pool in it."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tenure.integrations.vmpool import pod_surroundings
from tests.infrastructure.kube import KubeServer, fresh_namespace, shared_kube
from tests.integrations.vmpool.pool_stage import PoolStage


@pytest.fixture(scope="session")
def kube() -> KubeServer:
    """Give the run's API server."""
    return shared_kube()


@pytest.fixture
def namespace(kube: KubeServer) -> Iterator[str]:
    """Give a new namespace."""
    with fresh_namespace(kube) as name:
        yield name


@pytest.fixture
async def stage(kube: KubeServer, namespace: str) -> AsyncIterator[PoolStage]:
    """Give a place for one ConfigMap, with clients that fail when they are told to."""
    async with PoolStage(kube, namespace) as opened:
        yield opened


@pytest.fixture
def nameless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing name the node on which tests run."""
    monkeypatch.delenv("NODE_NAME", raising=False)
    monkeypatch.setattr(pod_surroundings, "NODE_NAME_FILES", (tmp_path / "nodename",))
