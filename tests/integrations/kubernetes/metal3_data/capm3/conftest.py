"""An API server with all that CAPM3's manager needs; each test starts the manager itself, since some stop it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.infrastructure.kube import KubeServer, fresh_namespace, private_kube
from tests.integrations.kubernetes.cluster import install
from tests.integrations.kubernetes.cluster_api import IPAM, install_cluster_api
from tests.integrations.kubernetes.go_manager import WebhookPlace, webhook_place
from tests.integrations.kubernetes.metal3_data.capm3.capm3_manager import translated_definitions
from tests.integrations.kubernetes.metal3_data.capm3.capm3_park import Capm3Park
from tests.integrations.kubernetes.metal3_data.capm3_definitions import install_definitions
from tests.integrations.kubernetes.metal3_data.machine_definitions import let_render


@dataclass(frozen=True)
class Capm3Cluster:
    """A server with CAPM3's kinds, and where its manager answers it."""

    server: KubeServer
    place: WebhookPlace


@pytest.fixture(scope="package")
def capm3_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Capm3Cluster]:
    """Give a private server with the published kinds in both versions."""
    folder: Path = tmp_path_factory.mktemp("capm3")
    place = webhook_place(folder)
    with private_kube() as server:
        install(server)
        install_cluster_api(server, *IPAM)
        install_definitions(server, translated_definitions(place))
        let_render(server)
        yield Capm3Cluster(server, place)


@pytest.fixture
def capm3_park(capm3_cluster: Capm3Cluster) -> Iterator[Capm3Park]:
    """Give a namespace that nobody serves yet."""
    with fresh_namespace(capm3_cluster.server) as name:
        yield Capm3Park(capm3_cluster.server, name)
