"""The chronicle of claims has teeth: what must never be is found by the checker of the stores."""

import itertools
from typing import cast

from tenure.integrations.kubernetes.metal3.objects.address_objects import new_address
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import CLUSTER_API, METAL3
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_CLAIM, IP_POOL
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolSpec
from tenure.integrations.kubernetes.runtime.object_cache import Delta
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.kernel.addressing.addresses import parse_address
from tests.integrations.kubernetes.metal3.claim_chronicle import POOL, ClaimChronicle, ClaimLife
from tests.integrations.kubernetes.metal3.fire_rounds import PLAN
from tests.integrations.kubernetes.metal3.ipam_user import IpamUser

VERSIONS = itertools.count(1)


def a_claim(name: str, kind: str = IP_CLAIM.kind, given: str = "") -> Object:
    type = (METAL3 if kind == IP_CLAIM.kind else CLUSTER_API).claim
    status = {"address": {"name": given}} if kind == IP_CLAIM.kind else {"addressRef": {"name": given}}
    metadata = {"namespace": "m3", "name": name, "uid": f"uid-{name}", "resourceVersion": str(next(VERSIONS))}
    return {"apiVersion": type.api_version, "kind": type.kind, "metadata": metadata, "status": status if given else {}}


def an_address(claim: Object, address: str) -> Object:
    pool = {"kind": IP_POOL.kind, "metadata": {"namespace": "m3", "name": POOL, "uid": "uid-pool"}}
    made = new_address(PoolSpec(name_prefix=POOL), pool, claim, parse_address(address))
    made["metadata"] |= {"uid": f"of-{claim['metadata']['name']}", "resourceVersion": str(next(VERSIONS))}
    return made


def a_chronicle() -> ClaimChronicle:
    return ClaimChronicle(cast(IpamUser, None), PLAN)


def serve(chronicle: ClaimChronicle, name: str, address: str, kind: str = IP_CLAIM.kind) -> Object:
    """Let a claim come and be served, and return its address object."""
    claim = a_claim(name, kind)
    chronicle.lives[claim["metadata"]["uid"]] = ClaimLife(METAL3, name, asked=0.0, uid=claim["metadata"]["uid"])
    made = an_address(claim, address)
    see(chronicle, made)
    chronicle.claim_changed(Delta(claim, a_claim(name, kind, given=f"{POOL}-{address}".replace(".", "-"))))
    return made


def see(chronicle: ClaimChronicle, address: Object, *, goes: bool = False) -> None:
    """Let the watch bring an address object, or its end."""
    delta = Delta(address, None) if goes else Delta(None, address)
    chronicle.address_changed(delta)
    chronicle.witness.address_changed(delta)


def kinds(chronicle: ClaimChronicle, *left: Object) -> set[str]:
    return {finding.kind for finding in chronicle.findings(list(left))}


def test_claims_that_have_their_own_addresses_are_explained() -> None:
    chronicle = a_chronicle()
    left = [serve(chronicle, "a", "10.0.0.1"), serve(chronicle, "b", "10.0.0.2", "IPAddressClaim")]

    assert kinds(chronicle, *left) == set()


def test_one_address_for_two_kinds_is_found() -> None:
    chronicle = a_chronicle()
    left = [serve(chronicle, "a", "10.0.0.1"), serve(chronicle, "b", "10.0.0.1", "IPAddressClaim")]

    assert "doubled" in kinds(chronicle, *left)


def test_an_address_that_is_lost_is_found() -> None:
    chronicle = a_chronicle()
    serve(chronicle, "a", "10.0.0.1")

    assert kinds(chronicle) == {"lost"}


def test_an_address_that_outlives_its_claim_is_found() -> None:
    chronicle = a_chronicle()
    left = serve(chronicle, "a", "10.0.0.1")
    chronicle.lives["uid-a"].dismissed = chronicle.lives["uid-a"].served + 1
    chronicle.claim_changed(Delta(a_claim("a", given="any"), None))
    chronicle.lives["uid-a"].gone = chronicle.lives["uid-a"].dismissed + 1

    assert kinds(chronicle, left) == {"release lost"}


def test_an_address_that_nobody_asked_for_is_found() -> None:
    chronicle = a_chronicle()
    made = an_address(a_claim("stranger"), "10.0.0.1")
    see(chronicle, made)

    assert "unasked" in kinds(chronicle, made)


def test_one_address_in_two_objects_is_seen_although_neither_claim_was_served() -> None:
    """The checker of calls knows only what users were told."""
    chronicle = a_chronicle()
    for name in ("a", "b"):
        chronicle.lives[f"uid-{name}"] = ClaimLife(METAL3, name, asked=0.0, uid=f"uid-{name}")
    first = an_address(a_claim("a"), "10.0.0.1")
    see(chronicle, first)
    second = an_address(a_claim("b"), "10.0.0.1")
    see(chronicle, second)
    for each in (first, second):
        see(chronicle, each, goes=True)

    assert kinds(chronicle) == {"witnessed"}


def test_an_address_that_is_given_while_the_object_of_a_dismissed_claim_is_there_is_seen() -> None:
    """Also of the other kind, whose watch is another one."""
    chronicle = a_chronicle()
    former = serve(chronicle, "a", "10.0.0.1")
    life = chronicle.lives["uid-a"]
    life.dismissed, life.gone = life.served + 1, life.served + 2
    left = serve(chronicle, "b", "10.0.0.1", "IPAddressClaim")
    chronicle.lives["uid-b"].asked = chronicle.lives["uid-b"].served = life.gone + 1
    former["metadata"]["resourceVersion"] = str(next(VERSIONS))
    see(chronicle, former)
    see(chronicle, former, goes=True)

    assert kinds(chronicle, left) == {"witnessed"}


def test_a_claim_that_changes_its_address_is_seen() -> None:
    chronicle = a_chronicle()
    left = serve(chronicle, "a", "10.0.0.1")
    chronicle.witness.claim_changed(Delta(a_claim("a", given="any"), a_claim("a", given="other")))

    assert kinds(chronicle, left) == {"witnessed"}


def test_an_address_that_came_and_went_unseen_is_what_its_claim_said() -> None:
    """Watches of two kinds break at different times when a server is killed."""
    chronicle = a_chronicle()
    claim = a_claim("a")
    life = chronicle.lives[claim["metadata"]["uid"]] = ClaimLife(METAL3, "a", asked=0.0, uid=claim["metadata"]["uid"])
    chronicle.claim_changed(Delta(claim, a_claim("a", given=f"{POOL}-10-0-0-1")))
    assert kinds(chronicle) == {"wrong answer"}, "a claim that lives has its address"
    life.dismissed = 1.0
    chronicle.claim_changed(Delta(claim, None))

    assert kinds(chronicle) == set()
