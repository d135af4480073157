"""One API server for all tests, a namespace and a pool for each."""

from collections.abc import Iterator

import pytest

from tests.infrastructure.kube import fresh_namespace, shared_kube
from tests.integrations.vmpool.recovery.recovery_stage import RecoveryStage


@pytest.fixture
def stage() -> Iterator[RecoveryStage]:
    """Give a pool's ConfigMap that is not there yet."""
    server = shared_kube()
    with fresh_namespace(server) as namespace:
        yield RecoveryStage(server, namespace)
