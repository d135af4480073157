"""A server in memory with the in-cluster provider's kinds, for passes over its pools."""

from typing import Any

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLUSTER_API_ADDRESS,
    CLUSTER_API_CLAIM,
    CLUSTER_API_GROUP,
    IN_CLUSTER_CLAIM_FINALIZER,
    IN_CLUSTER_POOL,
    IN_CLUSTER_POOL_FINALIZER,
    PREFIX_POOL,
    field,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kind import Provider
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType
from tests.integrations.kubernetes.metal3.pass_stage import Stage


class InClusterStage(Stage):
    """Pools of one kind in a namespace, with their claims and addresses."""

    def __init__(self, type: ResourceType = IN_CLUSTER_POOL) -> None:
        super().__init__(tuple(Provider))
        self.type = type

    def make_pool(self, *listed: str, name: str = "p", **spec: Any) -> Object:
        """Create a pool of addresses, or of prefixes."""
        words = {"prefixes": list(listed)} if self.type is PREFIX_POOL else {"addresses": list(listed), "prefix": 24}
        return self.put(self.type, name, {**words, **spec}, finalizers=[IN_CLUSTER_POOL_FINALIZER])

    def ask(self, name: str, pool: str = "p", **annotations: str) -> Object:
        """Create a claim."""
        finalizers = [IN_CLUSTER_CLAIM_FINALIZER]
        spec = {"poolRef": self._reference(pool)}
        return self.put(CLUSTER_API_CLAIM, name, spec, finalizers=finalizers, annotations=annotations)

    def by_hand(self, name: str, address: str, claim: str, *, prefix: int = 24, pool: str = "p") -> Object:
        """Create an address by hand, which no webhook is asked about."""
        spec = {"address": address, "prefix": prefix, "poolRef": self._reference(pool), "claimRef": {"name": claim}}
        return self.put(CLUSTER_API_ADDRESS, name, spec)

    def _reference(self, pool: str) -> Object:
        return {"apiGroup": CLUSTER_API_GROUP, "kind": self.type.kind, "name": pool}

    def said(self, claim: str) -> str:
        """Return why a claim has no address; empty if it has one."""
        conditions = field(self.objects["ipaddressclaims", claim], "status", "conditions") or []
        return next((str(each.get("message")) for each in conditions if each["status"] == "False"), "")
