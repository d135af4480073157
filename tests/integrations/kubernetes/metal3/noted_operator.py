"""Operators whose requests are noted one by one, and one that follows first and leads later."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tenure.integrations.kubernetes.metal3.objects.claim_kinds import KINDS_OF_IP_POOLS
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_POOL
from tenure.integrations.kubernetes.runtime.api_client import MERGE_PATCH, ApiClient
from tenure.integrations.kubernetes.runtime.credentials import Loader
from tenure.integrations.kubernetes.runtime.resource_types import LEASE, Object, ResourceType
from tenure.integrations.kubernetes.runtime.runtime_meter import RuntimeMeter
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.metal3.operator_replica import TIMES
from tests.integrations.kubernetes.metal3.serving import OperatorThread, settings_for, until

READ = (IP_POOL, *(type for kind in KINDS_OF_IP_POOLS.values() for type in (kind.claim, kind.address)))
"""What a new leader reads before its first pick (KP5)."""
LEASE_S = 600
"""How long a Lease lasts that nobody renews, and that nobody is to win by waiting."""


class NotingClient(ApiClient):
    """A client that notes what it sends; the Lease has a client of its own."""

    def __init__(self, load: Loader, meter: RuntimeMeter, sent: list[str]) -> None:
        super().__init__(load, meter=meter)
        self._noted = sent

    async def _ask(self, method: str, path: str, body: object = None, **words: Any) -> Object:
        self._noted.append(f"{method} {path}{_sort_of_list(words.get('query'))}")
        return await super()._ask(method, path, body, **words)


def _sort_of_list(query: Mapping[str, str] | None) -> str:
    """Return whether a request is a list, and from where: without a version the server answers what is true now."""
    if not query or query.get("limit", "1") == "1":
        return ""
    return " from a cache" if query.get("resourceVersion") else " consistent"


def consistent_lists(sent: Sequence[str], kind: ResourceType) -> list[str]:
    """Return the consistent lists of a kind among requests."""
    return [each for each in sent if each.endswith(f"/{kind.plural} consistent") and f"/{kind.group}/" in each]


def writes(sent: Sequence[str]) -> list[str]:
    """Return the requests that write; what is left only looks, as at the beginning of each watch."""
    return [each for each in sent if not each.startswith("GET ")]


@contextmanager
def noted_operator(server: KubeServer, namespace: str, **words: Any) -> Iterator[tuple[list[str], RuntimeMeter]]:
    """Run an operator without webhooks; give what its client sends, and the meter of all its requests."""
    sent: list[str] = []
    meters: list[RuntimeMeter] = []

    def make(load: Loader, meter: RuntimeMeter) -> ApiClient:
        meters.append(meter)
        return NotingClient(load, meter, sent)

    thread = OperatorThread(server, settings_for(server, namespace, **words), make_client=make)
    thread.start()
    try:
        yield sent, meters[0]
    finally:
        thread.stop()


@dataclass
class NextLeader:
    """An operator that follows until it is let lead."""

    server: KubeServer
    lease: str
    sent: list[str] = field(default_factory=list)

    def let_lead(self) -> None:
        """Give up the Lease that another one held."""
        patch = {"spec": {"holderIdentity": ""}}
        self.server.ask("PATCH", LEASE.path("tenure-system", self.lease), patch, content_type=MERGE_PATCH)


@contextmanager
def next_leader(server: KubeServer, namespace: str) -> Iterator[NextLeader]:
    """Run an operator that has read everything and follows; the block must let it lead."""
    found = NextLeader(server, f"next-{namespace}")
    _hold_lease(server, found.lease)
    thread = OperatorThread(
        server,
        settings_for(server, namespace, lease=found.lease, lease_times=TIMES),
        make_client=lambda load, meter: NotingClient(load, meter, found.sent),
    )
    starting = threading.Thread(target=thread.start, daemon=True)
    starting.start()
    try:
        until(lambda: all(consistent_lists(found.sent, kind) for kind in READ))
        yield found
    finally:
        found.let_lead()  # whatever happened: an operator that never led cannot be stopped here
        starting.join(60)
        thread.stop()


def _hold_lease(server: KubeServer, name: str) -> None:
    """Hold a Lease in the name of a replica that is gone."""
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    spec = {"holderIdentity": "gone", "leaseDurationSeconds": LEASE_S, "acquireTime": now, "renewTime": now}
    body = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": {"name": name}, "spec": spec}
    server.ask("POST", LEASE.path("tenure-system"), body)
