"""What a user of Cluster API does and sees in a namespace: claims for an IPPool, their conditions and addresses."""

from dataclasses import dataclass, replace
from typing import Any

from tenure.integrations.kubernetes.metal3.objects.claim_kinds import CLUSTER_API
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLUSTER_API_ADDRESS,
    CLUSTER_API_CLAIM,
    field,
    text,
)
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tests.integrations.kubernetes.metal3.claim_specs import OUR_POOLS, claim_spec
from tests.integrations.kubernetes.metal3.serving import Namespace, until


@dataclass
class ClusterApiUser:
    """A user of one namespace, in one version of Cluster API's kinds."""

    space: Namespace
    version: str = "v1beta2"

    def __post_init__(self) -> None:
        self.claims = replace(CLUSTER_API_CLAIM, version=self.version)
        self.addresses = replace(CLUSTER_API_ADDRESS, version=self.version)

    def claim(self, name: str, pool: str = "p", cluster: str = "", **metadata: Any) -> Object:
        """Create a claim for an IPPool."""
        of = {"clusterName": cluster} if cluster else {}
        return self.space.create(self.claims, name, {**claim_spec(CLUSTER_API, pool), **of}, **metadata)

    def address(self, name: str, address: str, claim: str, pool: str = "p", **metadata: Any) -> Object:
        """Create an address by hand."""
        spec = {"address": address, "prefix": 24, "poolRef": {**OUR_POOLS, "name": pool}, "claimRef": {"name": claim}}
        return self.space.create(self.addresses, name, spec, **metadata)

    def get(self, name: str) -> Object:
        """Read a claim."""
        return self.space.get(self.claims, name) or {}

    def served(self, name: str) -> Object:
        """Wait until a claim has an address and says that it is ready, and return the address object."""

        def look() -> Object | None:
            claim = self.get(name)
            given = text(claim, "status", "addressRef", "name")
            is_ready = ready(claim).get("status") == "True"
            return self.space.get(self.addresses, given) if given and is_ready else None

        return until(look)

    def ip(self, name: str) -> str:
        """Wait until a claim has an address, and return the text."""
        return text(self.served(name), "spec", "address")

    def unserved(self, name: str, reason: str) -> str:
        """Wait until a claim says for this reason that it is not ready, and return the message."""

        def look() -> Object | None:
            condition = ready(self.get(name))
            return condition if (condition.get("status"), condition.get("reason")) == ("False", reason) else None

        return str(until(look)["message"])

    def delete(self, name: str) -> None:
        """Delete a claim, without waiting until it is gone."""
        self.space.delete(self.claims, name)


def ready(claim: Object) -> Object:
    """Return the condition Ready of a claim; empty if it has none."""
    conditions: list[Object] = field(claim, "status", "conditions") or []
    return next((each for each in conditions if each["type"] == "Ready"), {})
