"""A namespace that an operator serves, with its webhooks."""

import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.infrastructure.kube import KubeServer, private_kube
from tests.integrations.kubernetes.metal3.metal3_manager import cut_definitions, install_beside, own_definitions
from tests.integrations.kubernetes.metal3.old_clusters import install_clusters
from tests.integrations.kubernetes.metal3.pass_stage import Stage
from tests.integrations.kubernetes.metal3.serving import Namespace, operator_in
from tests.scale import in_proof


class _SkippedTime:
    """The module ``time`` with a clock that runs ahead."""

    def monotonic(self) -> float:
        return time.monotonic() + Stage.skipped_s

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)  # at each call: a test may have a clock of its own for the time of day


@pytest.fixture
def skipped_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let time have passed that passes in memory are to wait for: each of them would sleep for a tenth of a second.

    It passes for the operator alone. Event loops of other threads, those of servers that tests share, would set timers
    by it, and wait for minutes once it is put back.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith("tenure.integrations.kubernetes.") and vars(module).get("time") is time:
            monkeypatch.setattr(module, "time", _SkippedTime())


@pytest.fixture
def unserved(kube: KubeServer, namespace: str) -> Namespace:
    """Give a namespace that no operator serves yet."""
    return Namespace(kube, namespace)


@pytest.fixture
def served(kube: KubeServer, unserved: Namespace) -> Iterator[Namespace]:
    """Give a namespace that an operator serves."""
    with operator_in(kube, unserved.name):
        yield unserved


@pytest.fixture
def clustered(kube: KubeServer, unserved: Namespace) -> Iterator[Namespace]:
    """Give a served namespace of a server that has clusters."""
    install_clusters(kube)
    with operator_in(kube, unserved.name):
        yield unserved


@pytest.fixture(scope="session")
def metal3_like_kube() -> Iterator[KubeServer]:
    """Give a private server with definitions such as Metal3's; its tests are of the group ``private-kube``."""
    with private_kube() as server:
        install_beside(server, cut_definitions())
        yield server


@pytest.fixture(scope="module", params=["cut", in_proof("metal3")])
def foreign_kube(request: pytest.FixtureRequest) -> Iterator[KubeServer]:
    """Give a server whose definitions lack our fields: ours without them, and in ``make proof`` Metal3's own."""
    if request.param == "cut":
        yield request.getfixturevalue("metal3_like_kube")
        return
    with private_kube() as server:
        install_beside(server, own_definitions())
        yield server
