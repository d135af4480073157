"""A namespace that an operator serves, with its webhooks."""

from collections.abc import Iterator

import pytest

from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.metal3.serving import Namespace, operator_in


@pytest.fixture
def unserved(kube: KubeServer, namespace: str) -> Namespace:
    """Give a namespace that no operator serves yet."""
    return Namespace(kube, namespace)


@pytest.fixture
def served(kube: KubeServer, unserved: Namespace) -> Iterator[Namespace]:
    """Give a namespace that an operator serves."""
    with operator_in(kube, unserved.name):
        yield unserved
