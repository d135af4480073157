"""A pool's ConfigMap as a test sets it up and looks at it, without any of our own code in between."""

import contextlib
import json
import urllib.error
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.credentials import from_kubeconfig
from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.pool_metrics import PoolMeter
from tenure.integrations.vmpool.vm_pool_settings import VMPoolSettings
from tests.infrastructure.kube import KubeServer

NAME = "byom-ip-pool-state"
IPS = ("10.0.0.1", "10.0.0.2", "10.0.0.3")
LONG_AGO = "2025-09-04T12:00:00Z"


def entry(id: str, ip: str, node: str = "node-1", at: str | None = LONG_AGO) -> dict[str, Any]:
    """Write an entry of the state."""
    return {
        "allocationID": id, "ip": ip, "nodeName": node, "podName": f"pod-of-{id}", "podNamespace": "ns",
        "allocatedAt": at,
    }  # fmt: skip


@dataclass(frozen=True)
class RecoveryStage:
    """One ConfigMap in a namespace of its own."""

    kube: KubeServer
    namespace: str

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/configmaps"

    def put(self, allocated: Iterable[Mapping[str, Any]] = (), available: Iterable[str] = (), version: int = 7) -> None:
        """Create the ConfigMap with a state, as another manager would."""
        entries = {each["allocationID"]: each for each in allocated}
        state = {"allocatedIPs": entries, "availableIPs": list(available), "lastUpdated": LONG_AGO, "version": version}
        self.put_text(json.dumps(state, indent=2))

    def put_text(self, text: str, notes: str | None = None) -> None:
        """Create the ConfigMap with any text."""
        data = {"allocation-state": text} | ({"tenure-notes": notes} if notes is not None else {})
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": data}
        self.kube.ask("POST", self.path, document)

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Overwrite the state, whatever it is."""
        patch = {"data": {"allocation-state": json.dumps(state)}}
        self.kube.ask("PATCH", f"{self.path}/{NAME}", patch, content_type="application/merge-patch+json")

    def object(self) -> dict[str, Any] | None:
        """Read the ConfigMap; none if there is none."""
        try:
            found: dict[str, Any] = self.kube.ask("GET", f"{self.path}/{NAME}")
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return None
        return found

    def state(self) -> dict[str, Any]:
        """Read the state."""
        found = self.object()
        assert found is not None
        state: dict[str, Any] = json.loads(found["data"]["allocation-state"])
        return state

    def notes(self) -> dict[str, Any]:
        """Read the notes."""
        found = self.object()
        assert found is not None
        notes: dict[str, Any] = json.loads(found["data"].get("tenure-notes", "{}"))
        return notes

    def version(self) -> str:
        """Return the resource version, which every write changes."""
        found = self.object()
        return "" if found is None else str(found["metadata"]["resourceVersion"])

    def fill(self) -> tuple[int, int]:
        """Return how many IPs are available and allocated."""
        state = self.state()
        return len(state["availableIPs"]), len(state["allocatedIPs"])

    def settings(self, node: str = "node-1", **given: Any) -> VMPoolSettings:
        """Return the settings of a node."""
        return VMPoolSettings(**{"pool_ips": IPS, "namespace": self.namespace, "node_name": node, **given})

    @contextlib.asynccontextmanager
    async def pool(
        self, node: str = "node-1", client: type[ApiClient] = ApiClient, **given: Any
    ) -> AsyncIterator[AsyncVMPool]:
        """Open the pool as a node does."""
        load = from_kubeconfig(str(self.kube.kubeconfig()))
        async with client(load) as opened:
            settings = self.settings(node, **given)
            meter = PoolMeter(settings.config_map_name, settings.line)
            pool = AsyncVMPool(opened, settings, observer=meter)
            try:
                yield pool
            finally:
                await pool.close()
