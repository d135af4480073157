"""Cluster API's claims and addresses: IPAddressClaim and IPAddress of ``ipam.cluster.x-k8s.io``.

The contract of its providers: owners that block each other's deletion (F5), the condition Ready with a reason (F2), and
nothing about a claim whose cluster is not there (F6).
"""

from tenure.integrations.kubernetes.metal3.objects.claim_kind import (
    ClaimId,
    ClaimKind,
    Reference,
    Unserved,
    owner_reference,
)
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLUSTER_API_ADDRESS,
    CLUSTER_API_ADDRESS_FINALIZER,
    CLUSTER_API_CLAIM,
    CLUSTER_API_CLAIM_FINALIZER,
    MOVE,
    field,
    now_text,
    text,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_kinds import POOL_KINDS, pool_kind_of
from tenure.integrations.kubernetes.metal3.objects.pool_spec import AddressOptions
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of

READY = "Ready"
NO_PREFIX = "its pool has no prefix for this address, so that 0 is written"


class ClusterApiClaims(ClaimKind):
    """Claims that say what became of them in a condition."""

    claim, address = CLUSTER_API_CLAIM, CLUSTER_API_ADDRESS
    claim_finalizer, address_finalizer = CLUSTER_API_CLAIM_FINALIZER, CLUSTER_API_ADDRESS_FINALIZER
    holder_prefix = "cluster-api/"
    needs_cluster = True
    move_label = MOVE

    def cluster_of(self, claim: Object) -> str:
        """Return ``spec.clusterName``, else the label that older claims have."""
        return text(claim, "spec", "clusterName") or super().cluster_of(claim)

    def reference_of(self, claim: Object) -> Reference | None:
        """Return the pool of ``spec.poolRef``, which has no namespace."""
        pool = self.pool_of(claim)
        return Reference(pool, is_elsewhere=False) if pool is not None else None

    def pool_of(self, address: Object) -> PoolId | None:
        """Return the pool of ``spec.poolRef``, of a claim as well; nothing for pools of other providers (F4)."""
        group, kind, name = (text(address, "spec", "poolRef", part) for part in ("apiGroup", "kind", "name"))
        found = POOL_KINDS.get(kind)
        if not name or found is None or found.type.group != group:
            return None
        return found.named(text(address, "metadata", "namespace"), name)

    def claim_of(self, address: Object) -> str:
        """Return the claim of ``spec.claimRef``."""
        return text(address, "spec", "claimRef", "name")

    def address_fields(self, pool: PoolId, claim: ClaimId, address: str, options: AddressOptions) -> Object:
        """Return the fields of a new address; a prefix is asked for, and there is no place for DNS servers."""
        gateway = {"gateway": options.gateway} if options.gateway else {}
        return {
            "address": address,
            "prefix": options.prefix,
            "poolRef": {"apiGroup": POOL_KINDS[pool.kind].type.group, "kind": pool.kind, "name": pool.name},
            "claimRef": {"name": claim.name},
            **gateway,
        }

    def given(self, claim: Object) -> str:
        """Return the name in ``status.addressRef``."""
        return text(claim, "status", "addressRef", "name")

    def served(self, claim: Object, address: Object, *, has_room: bool) -> Object | None:
        """Name the address object, and say that the claim is ready."""
        message = "" if field(address, "spec", "prefix") else NO_PREFIX
        conditions = _with_ready(claim, "True", READY, message)
        name = key_of(address)[1]
        return None if self.given(claim) == name and not conditions else {**conditions, "addressRef": {"name": name}}

    def refused(self, claim: Object, message: str, why: Unserved, *, keeps: bool) -> Object | None:
        """Say that the claim is not ready, and why."""
        conditions = _with_ready(claim, "False", why, message)
        if keeps or not self.given(claim):
            return conditions or None
        return {**conditions, "addressRef": None}

    def waiting(self, claim: Object, message: str) -> Object | None:
        """Say that the pool is not ready; the contract has a reason for that."""
        return self.refused(claim, message, Unserved.POOL_NOT_READY, keeps=False)

    def _pool_owner(self, pool: Object) -> Object:
        return owner_reference(pool_kind_of(pool).type, pool, controller=False, blockOwnerDeletion=True)

    def _claim_owner(self, claim: Object) -> Object:
        return owner_reference(self.claim_type(claim), claim, controller=True, blockOwnerDeletion=True)


def _with_ready(claim: Object, status: str, reason: str, message: str) -> Object:
    """Return the conditions with another Ready among them, if it says something else than the present one."""
    known: list[Object] = field(claim, "status", "conditions") or []
    others = [each for each in known if text(each, "type") != READY]
    present: Object = next((each for each in known if text(each, "type") == READY), {})
    wanted = _ready(claim, status, reason, message)
    if all(present.get(name) == value for name, value in wanted.items()):
        return {}
    changed = text(present, "lastTransitionTime") if present.get("status") == status else ""
    # A merge patch replaces a list whole, so conditions of others are written along.
    return {"conditions": [*others, {**wanted, "lastTransitionTime": changed or now_text()}]}


def _ready(claim: Object, status: str, reason: str, message: str) -> Object:
    """Return the condition Ready without its time; before v1beta2 it had a severity, and no empty texts."""
    if text(claim, "apiVersion") == CLUSTER_API_CLAIM.api_version:
        generation = int(claim["metadata"].get("generation") or 0)
        said = {"reason": reason, "message": message, "observedGeneration": generation}
    elif status == "True":
        said = {}
    else:
        said = {"reason": reason, "message": message, "severity": "Warning"}
    return {"type": READY, "status": status, **said}
