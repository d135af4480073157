"""Claims as owners in a ledger, there and back."""

import pytest

from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId
from tenure.integrations.kubernetes.metal3.objects.ledger_owner import claim_of_owner, ledger_owner
from tenure.kernel.names import Owner


@pytest.mark.parametrize("kind", ["IPClaim", "IPAddressClaim"])
@pytest.mark.parametrize("realm", ["east", "local", "a.b-c_d"])
def test_an_owner_names_cluster_namespace_and_claim(kind: str, realm: str) -> None:
    claim = ClaimId(kind, "metal", "web-0.example")
    owner = Owner(ledger_owner(realm, claim))

    assert (owner.realm, owner.kind, owner.id) == (realm, kind.lower(), "metal/web-0.example")
    assert claim_of_owner(realm, owner) == claim


@pytest.mark.parametrize(
    "owner", ["west:ipclaim/metal/web-0", "east:pod/metal/web-0", "east:ipclaim/web-0", "ipclaim/a/b"]
)
def test_other_owners_are_no_claims_of_the_realm(owner: str) -> None:
    assert claim_of_owner("east", owner) is None
