"""One API server for all tests, a namespace for each, and clients that have the operator's rights alone (KP7)."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.credentials import from_kubeconfig
from tests.infrastructure.kube import OPERATOR, KubeServer, fresh_namespace, shared_kube
from tests.infrastructure.postgres import once_a_run
from tests.integrations.kubernetes.cluster import install
from tests.integrations.kubernetes.cluster_api import IPAM, install_cluster_api


@pytest.fixture(scope="session")
def kube() -> KubeServer:
    """Give the run's API server, with the operator's kinds and roles, and Cluster API's claims and addresses."""
    server = shared_kube()
    with once_a_run("kube-roles") as first:
        if first:
            install(server)
            install_cluster_api(server, *IPAM)
    return server


@pytest.fixture
def namespace(kube: KubeServer) -> Iterator[str]:
    """Give a new namespace."""
    with fresh_namespace(kube) as name:
        yield name


@pytest.fixture
async def client(kube: KubeServer) -> AsyncIterator[ApiClient]:
    """Give a client with the operator's rights."""
    async with ApiClient(from_kubeconfig(str(kube.kubeconfig(OPERATOR)))) as opened:
        yield opened
