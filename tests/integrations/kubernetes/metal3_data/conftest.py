"""Namespaces in which machines are rendered: with Metal3's kinds in v1beta1, and in ``make proof`` in v1beta2, too.

Those of v1beta2 are the definitions that CAPM3, the Bare Metal Operator and Cluster API publish.
"""

from collections.abc import Iterator

import pytest

from tests.infrastructure.kube import KubeServer, fresh_namespace, private_kube
from tests.infrastructure.postgres import once_a_run
from tests.integrations.kubernetes.cluster import install
from tests.integrations.kubernetes.cluster_api import IPAM, install_cluster_api
from tests.integrations.kubernetes.metal3.old_clusters import install_clusters
from tests.integrations.kubernetes.metal3_data.capm3_definitions import install_definitions, published_definitions
from tests.integrations.kubernetes.metal3_data.machine_definitions import (
    install_machines,
    install_pools_of_others,
    let_render,
)
from tests.integrations.kubernetes.metal3_data.machine_park import MachinePark, rendering_in
from tests.scale import in_proof


@pytest.fixture(scope="session")
def machine_kube(kube: KubeServer) -> KubeServer:
    """Give the run's API server with the kinds of machines."""
    install_clusters(kube)
    with once_a_run("kube-machines") as first:
        if first:
            install_machines(kube)
            install_pools_of_others(kube)
    return kube


@pytest.fixture(scope="session")
def newer_kube() -> Iterator[KubeServer]:
    """Give a private server that has the published kinds in v1beta2 alone."""
    with private_kube() as server:
        install(server)
        install_cluster_api(server, *IPAM)
        install_definitions(server, published_definitions("v1beta2"))
        install_pools_of_others(server)
        let_render(server)
        yield server


@pytest.fixture(params=["v1beta1", in_proof("v1beta2")])
def bare_park(request: pytest.FixtureRequest) -> Iterator[MachinePark]:
    """Give a namespace that nobody serves yet."""
    server: KubeServer = request.getfixturevalue("machine_kube" if request.param == "v1beta1" else "newer_kube")
    with fresh_namespace(server) as name:
        if request.param == "v1beta1":
            let_render(server, name)  # other tests look at what the operator may not do elsewhere
        yield MachinePark(server, name, request.param)


@pytest.fixture
def park(bare_park: MachinePark) -> Iterator[MachinePark]:
    """Give a namespace with a cluster, in which machines are rendered."""
    bare_park.cluster()
    with rendering_in(bare_park.server, bare_park.name):
        yield bare_park
