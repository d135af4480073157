"""The numbers of a living operator, as ``/metrics`` shows them (KP14)."""

import re
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tenure.integrations.kubernetes.metal3.ipam_controller import IpamController
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_POOL, WISHED_ADDRESS
from tenure.integrations.kubernetes.runtime.resource_types import LEASE
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.metal3.serving import Namespace, OperatorThread, settings_for, until

LINE = re.compile(r"^tenure_operator_(\w+?)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')
OF_THE_LEADER = {"orphans", "claims_waiting", "oldest_waiting_seconds"}


@dataclass
class Shown:
    """An operator, and what it shows."""

    controller: IpamController
    port: int
    lease: str

    def __call__(self, name: str, *labels: str) -> float | None:
        """Return a number by its name and the values of its labels, without the namespace; nothing if it is missing."""
        return self.all().get((name, *labels))

    def all(self) -> dict[tuple[str, ...], float]:
        """Return all numbers."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as answer:
            found = LINE.findall(answer.read().decode())
        return {
            (name, *(text for label, text in LABEL.findall(labels) if label != "namespace")): float(value)
            for name, labels, value in found
        }


@pytest.fixture
def shown(kube: KubeServer, unserved: Namespace) -> Iterator[Shown]:
    """Give an operator of the namespace."""
    settings = settings_for(kube, unserved.name)
    thread = OperatorThread(kube, settings)
    controller = thread.start()
    try:
        yield Shown(controller, thread.port, settings.lease)
    finally:
        thread.stop()


@contextmanager
def name_taken(controller: IpamController, space: Namespace, name: str) -> Iterator[None]:
    """Let an object of another pool take the name of an address between its pick and its creation."""
    writes = controller.passes.giving.claims
    create = writes.create_address

    async def late(*words: object) -> object:
        space.address(name, "172.16.0.1", "other", "other-pool")
        writes.create_address = create  # type: ignore[method-assign]
        return await create(*words)  # type: ignore[arg-type]

    writes.create_address = late  # type: ignore[assignment, method-assign]
    yield
    until(lambda: writes.create_address == create)


def test_kp14_claims_that_wait_are_shown_by_number_and_age_whatever_they_wait_for(
    unserved: Namespace, shown: Shown
) -> None:
    """For any address of a full pool, for one address, for a pool that is missing, and for one that cannot be read."""
    unserved.pool("full", "10.0.0.1-10.0.0.1")
    unserved.claim("served", "full")
    unserved.served("served")
    unserved.create(IP_POOL, "odd", {"namePrefix": "odd", "pools": [{"end": "10.0.0.9"}]})
    for name, pool in {"one": "full", "lost": "missing", "unread": "odd"}.items():
        unserved.claim(name, pool, annotations={WISHED_ADDRESS: "10.0.0.1"})
    for pool in ("full", "missing", "odd"):
        until(lambda pool=pool: shown("claims_waiting", pool) == 1)  # type: ignore[misc]
    time.sleep(1.1)  # a server writes whole seconds
    unserved.claim("any", "full")
    until(lambda: shown("claims_waiting", "full") == 2)

    for pool in ("full", "missing", "odd"):
        assert 1 <= (shown("oldest_waiting_seconds", pool) or 0) < 60
    assert shown("pool_free", "full", "IPv4") == 0
    assert shown("pool_total", "full", "IPv4") == 1
    assert shown("pool_total", "missing", "IPv4") is None
    assert shown("claims_total", "served") == 1

    unserved.pool("missing", "10.0.0.1-10.0.0.1")
    unserved.served("lost")
    until(lambda: shown("claims_waiting", "missing") == 0)
    assert shown("oldest_waiting_seconds", "missing") == 0


def test_kp14_orphans_conflicts_and_doubled_addresses_are_shown(unserved: Namespace, shown: Shown) -> None:
    unserved.pool("p", "10.0.0.1-10.0.0.9")
    with name_taken(shown.controller, unserved, "p-10-0-0-1"):
        unserved.claim("c")
        assert unserved.ip("c") == "10.0.0.2"
    assert shown("pick_conflicts_total") == 1
    assert shown("doubled_addresses", "p") == 0

    unserved.address("orphan", "10.0.0.7", "nobody")
    until(lambda: shown("orphans") == 2)  # with that of the other pool
    unserved.address("double", "10.0.0.7", "nobody-else")
    until(lambda: shown("doubled_addresses", "p") == 1)


def test_kp14_a_replica_that_does_not_lead_any_more_shows_nothing_of_what_it_last_knew(
    unserved: Namespace, shown: Shown
) -> None:
    unserved.pool("p", "10.0.0.1-10.0.0.2")
    unserved.claim("lost", "missing")
    unserved.address("orphan", "10.0.0.1", "nobody")
    until(lambda: shown("orphans") == 1 and shown("claims_waiting", "missing") == 1)
    assert {name for name, *_ in shown.all()} >= OF_THE_LEADER

    taken = {"spec": {"holderIdentity": "another", "leaseDurationSeconds": 60}}
    unserved.ask("PATCH", LEASE.path("tenure-system", shown.lease), taken)
    until(lambda: shown("leader") == 0)
    assert {name for name, *_ in shown.all()} & OF_THE_LEADER == set()
    assert shown("pool_free", "p", "IPv4") == 1
