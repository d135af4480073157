"""A namespace in which CAPM3's manager makes machines: what people and Cluster API's own controllers create there.

Nobody inspects hosts or writes disks here, and Cluster API's controllers do not run: what they would note is noted by
hand. All that is CAPM3's own its manager does: it chooses hosts, makes claims of data, and renders.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_POOL
from tenure.integrations.kubernetes.metal3_data.data_kinds import GROUP, HOST, TEMPLATE
from tenure.integrations.kubernetes.runtime.resource_types import SECRET, Object, ResourceType
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.metal3_data.machine_park import (
    CLUSTER_LABEL,
    IMAGE,
    MachinePark,
    content_of,
    in_version,
    owner_of,
)

METAL3_CLUSTER = ResourceType(GROUP, "v1beta2", "metal3clusters", "Metal3Cluster")
WITHIN_S = 90.0
"""CAPM3 tries some things again after 30 seconds only."""
MACHINE_LABELS = {CLUSTER_LABEL: "blue", "pool-of": "workers"}


class Capm3Park(MachinePark):
    """A namespace with a cluster and hosts that CAPM3 looks after; objects are read in v1beta2."""

    def __init__(self, server: KubeServer, name: str) -> None:
        super().__init__(server, name, "v1beta2")

    def cluster(self, name: str = "blue", **spec: Any) -> Object:
        """Create a cluster and its Metal3Cluster, which is ready."""
        reference = {"apiGroup": GROUP, "kind": METAL3_CLUSTER.kind, "name": name}
        made = super().cluster(name, infrastructureRef=reference, **spec)
        endpoint = {"host": "127.0.0.1", "port": 6443}
        owner = owner_of(self.clusters, made)
        self.create(METAL3_CLUSTER, name, {"controlPlaneEndpoint": endpoint}, ownerReferences=[owner])
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        ready = {"type": "InfrastructureReady", "status": "True", "lastTransitionTime": now}
        status = {
            "initialization": {"infrastructureProvisioned": True},
            "deprecated": {"v1beta1": {"conditions": [ready]}},
        }
        return self.patch(self.clusters, name, {"status": status}, "status")

    def template_in(self, version: str, name: str, **spec: Any) -> Object:
        """Create a template in one of CAPM3's versions, with the label that templates of clusters have."""
        labels = {CLUSTER_LABEL: "blue"}
        return self.create(in_version(TEMPLATE, version), name, {"clusterName": "blue", **spec}, labels=labels)

    def host(self, name: str, *, cards: dict[str, str] | None = None, boots_by: str = "", **metadata: Any) -> Object:
        """Create a host that can be had."""
        labels = {"host": name, **metadata.pop("labels", {})}
        super().host(name, boots_by=boots_by, labels=labels, **metadata)
        return self.inspect(name, cards or {})

    def machine(
        self, name: str, host: str | None = "", template: str = "", *, notes: dict[str, str] | None = None
    ) -> Object:
        """Create a machine as Cluster API does; CAPM3 takes the host that the label names, and does all else."""
        host = host or f"{name}-host"
        if self.get(HOST, host) is None:
            self.host(host)
        selector = {"matchLabels": {"host": host}}
        spec = {"image": {**IMAGE, "diskFormat": "raw"}, "dataTemplate": {"name": template}, "hostSelector": selector}
        return self.metal3_machine(name, spec, labels=MACHINE_LABELS, annotations=notes or {})

    def remove_machine(self, name: str) -> None:
        """Delete a machine; CAPM3 lets go what it has made for it."""
        self.delete(self.metal3_machines, name)
        self.gone(self.metal3_machines, name)
        self.delete(self.machines, name)

    def rendered(self, machine: str, within_s: float = WITHIN_S) -> tuple[Any, Any]:
        """Wait until a machine is ready, and return its metadata and network data."""
        return super().rendered(machine, within_s)

    def told(self) -> set[str]:
        """Return the names of all secrets that hosts are told of, which is what their machines are started with."""
        found = [each["spec"].get(key) for each in self.all(HOST) for key in ("metaData", "networkData")]
        return {each["name"] for each in found if each}

    def secrets(self) -> dict[str, Object]:
        """Return all secrets of machines: who owns them, how they are marked, and what they hold, as parsed values."""
        found = [each for each in self.all(SECRET) if each["type"].startswith(GROUP)]
        return {
            each["metadata"]["name"]: {
                "type": each["type"],
                "labels": each["metadata"].get("labels"),
                "owners": each["metadata"]["ownerReferences"],
                "keys": list(each["data"]),
                "content": content_of(each),
            }
            for each in found
        }

    def write_objects(self, path: Path) -> Path:
        """Write what machines are rendered from into a file, as ``kubectl get -o json`` does."""
        kinds = (self.templates, self.datas, self.metal3_machines, self.machines, HOST, IP_POOL, IP_ADDRESS)
        items = [
            {"apiVersion": kind.api_version, "kind": kind.kind, **each} for kind in kinds for each in self.all(kind)
        ]
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), "utf-8")
        return path
