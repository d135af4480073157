"""A second API server beside the run's own: the target of moves, and a second cluster on one plan."""

from collections.abc import Iterator

import pytest

from tests.infrastructure.kube import KubeServer, private_kube
from tests.integrations.kubernetes.cluster import install
from tests.integrations.kubernetes.cluster_api import IPAM, install_cluster_api


@pytest.fixture(scope="session")
def other_kube() -> Iterator[KubeServer]:
    """Give a second API server; its tests are of the group ``private-kube``."""
    with private_kube() as server:
        install(server)
        install_cluster_api(server, *IPAM)
        yield server
