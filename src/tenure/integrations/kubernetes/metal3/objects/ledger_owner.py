"""Claims as owners in a ledger: ``realm:ipclaim/namespace/name``, with labels that say which claim and pool it is."""

from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import CLAIM_KINDS
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import text
from tenure.integrations.kubernetes.runtime.resource_types import Object, uid_of
from tenure.kernel.names import Owner

CLAIM_UID, CLAIM_CREATED, POOL_UID = "claim-uid", "claim-created", "pool-uid"
"""Labels of a holding: which claim has the address and when it was created, and which pool serves it. A claim that is
made again under its name has another uid; after a move all three are others."""
MOVED_FROM = "moved-from"
"""And of one whose claim was deleted for a move: the uid of the pool that it left. When another pool has written itself
on the holding, that says nothing any more."""
FORMER_CLAIM = "former-claim-uid"
"""And of one that a claim of the same name was written on after another: the uid of that other one."""
PICKED_LABEL = {"picked": "true"}
"""And of a holding that an operator made because it picked the address; what others hold for a claim lacks it."""

KINDS = {kind.claim.kind.lower(): kind.claim.kind for kind in CLAIM_KINDS.values()}


def ledger_owner(realm: str, claim: ClaimId) -> str:
    """Return a claim as the ledger names it: cluster, namespace and claim."""
    return str(Owner(f"{realm}:{claim.kind.lower()}/{claim.namespace}/{claim.name}"))


def labels_for(claim: Object, pool_uid: str) -> dict[str, str]:
    """Return what is written on the holding of a claim."""
    created = text(claim, "metadata", "creationTimestamp")
    return {CLAIM_UID: uid_of(claim), CLAIM_CREATED: created, POOL_UID: pool_uid}


def claim_of_owner(realm: str, owner: str) -> ClaimId | None:
    """Return the claim that an owner is; nothing for an owner of another realm, or one that is no claim."""
    found = Owner.trusted(owner)
    namespace, slash, name = found.id.partition("/")
    if found.realm != realm or found.kind not in KINDS or not slash:
        return None
    return ClaimId(KINDS[found.kind], namespace, name)
