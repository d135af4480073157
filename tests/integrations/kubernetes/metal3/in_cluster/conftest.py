"""A server of its own, since pools of the whole cluster are served by an operator of the whole cluster."""

from collections.abc import Iterator

import pytest

from tenure.integrations.kubernetes.metal3.ipam_controller import IpamController
from tests.infrastructure.kube import KubeServer, fresh_namespace, private_kube
from tests.integrations.kubernetes.metal3.in_cluster.in_cluster_stage import (
    PoolUser,
    install_in_cluster,
    our_definitions,
)
from tests.integrations.kubernetes.metal3.serving import Namespace, operator_in


@pytest.fixture(scope="package")
def with_definitions() -> Iterator[KubeServer]:
    """Give a server that has all kinds."""
    with private_kube() as server:
        install_in_cluster(server, our_definitions())
        yield server


@pytest.fixture(scope="package")
def controller(with_definitions: KubeServer) -> Iterator[IpamController]:
    """Give the controller of an operator that serves all kinds in every namespace."""
    with operator_in(with_definitions, controllers=("metal3", "capi", "in-cluster")) as controller:
        yield controller


@pytest.fixture(scope="package")
def all_kinds(with_definitions: KubeServer, controller: IpamController) -> KubeServer:
    """Give a server with all kinds, which are served."""
    return with_definitions


@pytest.fixture
def user(all_kinds: KubeServer) -> Iterator[PoolUser]:
    """Give a user of a new namespace."""
    with fresh_namespace(all_kinds) as name:
        yield PoolUser(Namespace(all_kinds, name))


@pytest.fixture
def neighbour(all_kinds: KubeServer) -> Iterator[PoolUser]:
    """Give a user of another new namespace."""
    with fresh_namespace(all_kinds) as name:
        yield PoolUser(Namespace(all_kinds, name))
