"""A server with the in-cluster provider's kinds, and what its users do there."""

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from tools.build_kube import TARGETS, module_folder

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLUSTER_API_ADDRESS,
    CLUSTER_API_CLAIM,
    CLUSTER_API_GROUP,
    IN_CLUSTER_POOL,
    field,
    text,
)
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType
from tenure.integrations.kubernetes.shipped_manifests import documents_of
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.cluster import await_kind, create
from tests.integrations.kubernetes.cluster_api import CLUSTERS, IPAM, definitions
from tests.integrations.kubernetes.go_manager import go_manager, webhook_place
from tests.integrations.kubernetes.metal3.serving import Namespace, until

PROGRAM = "in-cluster-ipam"


def module() -> Path:
    """Return the folder of the provider's sources."""
    return module_folder(TARGETS[PROGRAM].module, TARGETS[PROGRAM].version)


def their_definitions() -> list[dict[str, Any]]:
    """Return the provider's own definitions, without the version that it reads by a webhook of its own."""
    found = [yaml.safe_load(path.read_text("utf-8")) for path in sorted((module() / "config/crd/bases").glob("*.yaml"))]
    for document in found:
        versions = document["spec"]["versions"]
        document["spec"]["versions"] = [each for each in versions if each["name"] == "v1alpha2"]
    return found


def our_definitions() -> list[dict[str, Any]]:
    """Return the definitions that are shipped."""
    return documents_of(["in-cluster-crds"])


def install_in_cluster(server: KubeServer, kinds: Sequence[dict[str, Any]]) -> None:
    """Apply what an operator needs that serves these kinds, Cluster API's own included."""
    rights = [each for each in documents_of(["in-cluster"]) if "webhooks" not in each]
    found = [*definitions(CLUSTERS, *IPAM), *kinds]
    for document in [*documents_of(["namespace", "crds", "rbac", "user-roles"]), *rights, *found]:
        create(server, document)
    for document in [*documents_of(["crds"]), *found]:
        await_kind(server, document)


@contextlib.contextmanager
def in_cluster_manager(server: KubeServer, *words: str) -> Iterator[None]:
    """Run the provider's real manager as the administrator for as long as the block."""
    with TemporaryDirectory(prefix="in-cluster-") as folder:
        place = webhook_place(Path(folder))
        with go_manager(PROGRAM, server, place, *words, health_flag="--health-probe-bind-address"):
            yield


@dataclass
class PoolUser:
    """A user of one namespace, and of pools of the whole cluster."""

    space: Namespace

    def pool(self, name: str, *addresses: str, type: ResourceType = IN_CLUSTER_POOL, **spec: Any) -> Object:
        """Create a pool of addresses."""
        return self.create(type, name, {"addresses": list(addresses), "prefix": 24, **spec})

    def create(self, type: ResourceType, name: str, spec: Object, **metadata: Any) -> Object:
        """Create an object, in the namespace where its kind has one."""
        place = {"namespace": self.space.name} if type.namespaced else {}
        body = {
            "apiVersion": type.api_version, "kind": type.kind, "spec": spec,
            "metadata": {"name": name, **place, **metadata},
        }  # fmt: skip
        made: Object = self.space.ask("POST", type.path(self.space.name) + "?fieldValidation=Strict", body)
        return made

    def claim(self, name: str, pool: str, type: ResourceType = IN_CLUSTER_POOL) -> Object:
        """Create a claim."""
        reference = {"apiGroup": CLUSTER_API_GROUP, "kind": type.kind, "name": pool}
        return self.space.create(CLUSTER_API_CLAIM, name, {"poolRef": reference})

    def read(self, type: ResourceType, name: str) -> Object:
        """Read an object; empty if it is not there."""
        return self.space.get(type, name) or {}

    def served(self, name: str) -> Object:
        """Wait until a claim is ready, and return its address object."""

        def look() -> Object | None:
            claim = self.read(CLUSTER_API_CLAIM, name)
            given = text(claim, "status", "addressRef", "name")
            return self.read(CLUSTER_API_ADDRESS, given) if given and ready(claim).get("status") == "True" else None

        return until(look)

    def ip(self, name: str) -> str:
        """Wait until a claim is ready, and return its address."""
        return text(self.served(name), "spec", "address")

    def unserved(self, name: str, reason: str) -> str:
        """Wait until a claim says for this reason that it is not ready, and return the message."""

        def look() -> Object | None:
            condition = ready(self.read(CLUSTER_API_CLAIM, name))
            return condition if (condition.get("status"), condition.get("reason")) == ("False", reason) else None

        return str(until(look)["message"])

    def release(self, *names: str) -> None:
        """Delete claims, and wait until they are gone."""
        for name in names:
            self.space.delete(CLUSTER_API_CLAIM, name)
        for name in names:
            self.space.gone(CLUSTER_API_CLAIM, name)

    def counts(self, pool: str, type: ResourceType = IN_CLUSTER_POOL) -> dict[str, int]:
        """Return what the status of a pool counts."""
        return field(self.read(type, pool), "status", "ipAddresses") or {}


def ready(object: Object) -> Object:
    """Return the condition Ready of an object; empty if it has none."""
    conditions: list[Object] = field(object, "status", "conditions") or []
    return next((each for each in conditions if each["type"] == "Ready"), {})


def fresh_name() -> str:
    """Return a name for a pool of the whole cluster that no other test has."""
    return f"global-{secrets.token_hex(4)}"
