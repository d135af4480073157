"""One API server for all tests, a namespace for each, and a pool in it."""

from collections.abc import AsyncIterator, Iterator

import pytest

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
