"""What goes with what: cases D of the conformance list, adoption (KD8), orphans (KD7), forced removal (KP9)."""

import time

import pytest

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    ADDRESS_FINALIZER,
    CLAIM_FINALIZER,
    IP_ADDRESS,
    IP_CLAIM,
    IP_POOL,
    MADE_FOR,
    OWN_ADDRESS,
)
from tenure.integrations.kubernetes.runtime.resource_types import Object, uid_of
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.metal3.serving import Namespace, operator_in, until

GRACE_S = 4.0
"""After this time an address without a claim is released, in tests."""
METAL3_DATA = "metal3data.infrastructure.cluster.x-k8s.io"


def is_terminating(object: Object | None) -> bool:
    return object is not None and "deletionTimestamp" in object["metadata"]


def test_d1_the_address_goes_then_the_claim_then_the_index(served: Namespace) -> None:
    served.pool("p", "10.0.0.1-10.0.0.9")
    served.claim("c1")
    served.served("c1")
    until(served.indexes)
    before = (served.get(IP_POOL, "p") or {})["status"]["lastUpdated"]
    time.sleep(1.1)  # the time of the last update counts seconds
    served.delete(IP_CLAIM, "c1")
    served.gone(IP_CLAIM, "c1")
    assert served.all(IP_ADDRESS) == []
    until(lambda: served.indexes() == {})
    assert (served.get(IP_POOL, "p") or {})["status"]["lastUpdated"] > before


def test_d2_nothing_is_released_while_another_finalizer_is_there(served: Namespace) -> None:
    served.pool("p", "10.0.0.1-10.0.0.9")
    served.claim("c1", finalizers=[METAL3_DATA])
    served.served("c1")
    served.delete(IP_CLAIM, "c1")
    time.sleep(0.5)
    assert not is_terminating(served.get(IP_ADDRESS, "p-10-0-0-1"))
    served.patch(IP_CLAIM, "c1", {"metadata": {"finalizers": [CLAIM_FINALIZER]}})
    served.gone(IP_CLAIM, "c1")
    assert served.all(IP_ADDRESS) == []


def test_d4_a_deleted_address_stays_until_its_claim_goes(served: Namespace) -> None:
    served.pool("p", "10.0.0.1-10.0.0.2")
    served.claim("c1")
    served.served("c1")
    served.delete(IP_ADDRESS, "p-10-0-0-1")
    served.claim("c2")
    assert served.ip("c2") == "10.0.0.2"
    assert is_terminating(served.get(IP_ADDRESS, "p-10-0-0-1"))
    served.delete(IP_CLAIM, "c1")
    served.gone(IP_ADDRESS, "p-10-0-0-1")
    served.gone(IP_CLAIM, "c1")


def test_d6_d8_a_pool_stays_until_its_last_claim_goes_and_serves_no_new_one(served: Namespace) -> None:
    """A claim that comes too late is served by the next pool of that name (KD9)."""
    served.pool("p", "10.0.0.1-10.0.0.9")
    served.claim("c1")
    served.served("c1")
    served.delete(IP_POOL, "p")
    served.claim("late")
    assert served.message("late", "I") == "IPPool p is being deleted"
    assert is_terminating(served.get(IP_POOL, "p"))
    served.delete(IP_CLAIM, "c1")
    served.gone(IP_POOL, "p")
    served.pool("p", "10.0.0.5-10.0.0.9")
    assert served.ip("late") == "10.0.0.5"


def test_d7_a_pool_with_pre_allocations_alone_goes(served: Namespace) -> None:
    served.pool("p", "10.0.0.1-10.0.0.9", preAllocations={"c9": "10.0.0.9"})
    served.delete(IP_POOL, "p")
    served.gone(IP_POOL, "p")


def test_d11_a_claim_without_an_address_goes(served: Namespace) -> None:
    """Also one whose pool was never there."""
    served.pool("p", "10.0.0.1-10.0.0.1")
    served.claim("c1")
    served.served("c1")
    served.claim("c2")
    served.message("c2", "E")
    served.claim("lost", "nowhere")
    for name in ("c2", "lost"):
        served.delete(IP_CLAIM, name)
        served.gone(IP_CLAIM, name)


def test_d10_kd7_an_address_without_a_claim_is_reported_and_released_only_if_made_here(
    kube: KubeServer, unserved: Namespace
) -> None:
    ours = {MADE_FOR: f"{unserved.name}/gone"}
    with operator_in(kube, unserved.name, orphan_grace_s=GRACE_S) as controller:
        unserved.pool("p", "10.0.0.1-10.0.0.9")
        began = time.monotonic()
        made = unserved.address("ours", "10.0.0.1", "gone", annotations=ours, finalizers=[ADDRESS_FINALIZER])
        leaked = unserved.address("metal3s", "10.0.0.2", "gone-too", finalizers=[ADDRESS_FINALIZER])
        unserved.address("by-hand", "10.0.0.3", "nobody")
        until(lambda: len(unserved.status().get("orphans") or ()) == 3)
        unserved.claim("c1")
        assert unserved.ip("c1") == "10.0.0.4"
        unserved.gone(IP_ADDRESS, "ours")
        assert time.monotonic() - began >= GRACE_S
        until(lambda: len(unserved.status().get("orphans") or ()) == 2)
        time.sleep(1)
        assert unserved.get(IP_ADDRESS, "metal3s")
        assert unserved.get(IP_ADDRESS, "by-hand")
        assert controller.meter.orphans_released == 1
        unserved.delete(IP_ADDRESS, "metal3s")
        unserved.gone(IP_ADDRESS, "metal3s")
        for each in (made, leaked):
            assert until(lambda each=each: unserved.events(each))[0]["reason"] == "Orphaned"  # type: ignore[misc]
        unserved.delete(IP_CLAIM, "c1")
        unserved.gone(IP_CLAIM, "c1")


def test_kp9_an_address_removed_by_force_is_made_again_before_anybody_gets_it(served: Namespace) -> None:
    served.pool("p", "10.0.0.1-10.0.0.2")
    served.claim("c1")
    before = served.served("c1")
    served.claim("c2")
    served.served("c2")
    served.claim("waits")
    served.message("waits", "E")
    served.delete(IP_ADDRESS, "p-10-0-0-1")
    served.patch(IP_ADDRESS, "p-10-0-0-1", {"metadata": {"finalizers": None}})
    again = until(lambda: _other(served.get(IP_ADDRESS, "p-10-0-0-1"), before))
    assert again["spec"] == before["spec"]
    assert served.message("waits") == "Exhausted IP Pools"


def _other(found: Object | None, before: Object) -> Object | None:
    return found if found is not None and uid_of(found) != uid_of(before) else None


def test_kp9_finalizers_and_owners_that_were_removed_are_put_back(served: Namespace) -> None:
    served.pool("p", "10.0.0.1-10.0.0.2")
    served.claim("c1")
    before = served.served("c1")["metadata"]
    served.patch(IP_ADDRESS, "p-10-0-0-1", {"metadata": {"finalizers": None, "ownerReferences": None}})
    served.patch(IP_CLAIM, "c1", {"metadata": {"finalizers": None}})

    def whole() -> bool:
        address, claim = served.get(IP_ADDRESS, "p-10-0-0-1"), served.get(IP_CLAIM, "c1")
        assert address is not None
        assert claim is not None
        same = all(address["metadata"].get(name) == before[name] for name in ("finalizers", "ownerReferences"))
        return same and claim["metadata"].get("finalizers") == [CLAIM_FINALIZER]

    until(whole)


def test_a_forged_status_is_not_believed(served: Namespace) -> None:
    """KP13: neither of a claim nor of a pool; both are mended."""
    served.pool("p", "10.0.0.1-10.0.0.9")
    served.claim("c1")
    served.served("c1")
    forged = {"address": {"name": "p-10-0-0-9", "namespace": served.name}}
    served.patch(IP_CLAIM, "c1", {"status": forged}, "status")
    until(lambda: served.ip("c1") == "10.0.0.1")
    status = {"indexes": {"c1": "10.0.0.7", "x": "10.0.0.8"}, "tenure": {"addresses": {"free": 99}}}
    served.patch(IP_POOL, "p", {"status": status}, "status")
    until(lambda: served.indexes() == {"c1": "10.0.0.1"})
    until(lambda: served.status()["addresses"]["free"] == 8)
    served.claim("c2")
    assert served.ip("c2") == "10.0.0.2"


def test_kd8_a_claim_made_again_waits_for_the_old_address_to_go(served: Namespace) -> None:
    served.pool("p", "10.0.0.1-10.0.0.9")
    served.claim("c1")
    address = served.served("c1")
    # Somebody else keeps the address for a while, after its claim was removed by force.
    keep = {"metadata": {"finalizers": [ADDRESS_FINALIZER, "example.org/keep"]}}
    served.patch(IP_ADDRESS, "p-10-0-0-1", keep)
    served.delete(IP_CLAIM, "c1")
    until(lambda: is_terminating(served.get(IP_ADDRESS, "p-10-0-0-1")))
    served.patch(IP_CLAIM, "c1", {"metadata": {"finalizers": None}})
    served.gone(IP_CLAIM, "c1")
    served.claim("c1")
    time.sleep(0.5)
    assert "address" not in ((served.get(IP_CLAIM, "c1") or {}).get("status") or {})
    served.patch(IP_ADDRESS, "p-10-0-0-1", {"metadata": {"finalizers": None}})
    assert uid_of(served.served("c1")) != uid_of(address)


def test_kd8_a_claim_made_again_while_nobody_served_it_adopts_its_address(
    kube: KubeServer, unserved: Namespace
) -> None:
    """By name, since the uid of the claim that owned it is of no living claim."""
    with operator_in(kube, unserved.name):
        unserved.pool("p", "10.0.0.1-10.0.0.9")
        for name in ("c0", "c1"):
            unserved.claim(name)
            unserved.served(name)
    unserved.patch(IP_CLAIM, "c1", {"metadata": {"finalizers": None}})
    unserved.delete(IP_CLAIM, "c1")
    with operator_in(kube, unserved.name):
        again = unserved.claim("c1")
        address = unserved.served("c1")
        assert address["spec"]["address"] == "10.0.0.2"
        assert address["metadata"]["ownerReferences"][1]["uid"] == uid_of(again)
        assert len(unserved.all(IP_ADDRESS)) == 2


def test_kd8_what_a_former_claim_left_is_nobodys_whatever_has_its_name_by_now(
    kube: KubeServer, unserved: Namespace
) -> None:
    """The claims went by force while nobody served them, as in a restored backup, whose objects have other uids.

    One address was deleted by then, and is not adopted; the claim of the other one is for another pool.
    """
    with operator_in(kube, unserved.name):
        unserved.pool("p", "10.0.0.1-10.0.0.9")
        unserved.pool("q", "10.1.0.1-10.1.0.9")
        former = {}
        for name in ("c1", "c2"):
            unserved.claim(name)
            former[name] = unserved.served(name)
    unserved.delete(IP_ADDRESS, former["c1"]["metadata"]["name"])
    for name in ("c1", "c2"):
        unserved.patch(IP_CLAIM, name, {"metadata": {"finalizers": None}})
        unserved.delete(IP_CLAIM, name)
    with operator_in(kube, unserved.name, orphan_grace_s=1.0):
        unserved.claim("c1")
        unserved.claim("c2", "q")
        assert unserved.ip("c2") == "10.1.0.1"
        again = unserved.served("c1")
        assert uid_of(again) != uid_of(former["c1"])
        assert not is_terminating(again)
        until(lambda: uid_of(former["c2"]) not in {uid_of(each) for each in unserved.all(IP_ADDRESS)})
    assert len(unserved.all(IP_ADDRESS)) == 2


def test_ks2_an_address_made_by_others_for_a_claim_is_adopted(served: Namespace) -> None:
    """Before or after the claim, in or out of the ranges, under any name."""
    served.pool("p", "10.0.0.1-10.0.0.1")
    served.address("mine", "172.16.0.9", "before")
    served.claim("before")
    assert served.served("before")["metadata"]["name"] == "mine"
    served.claim("c1")
    assert served.ip("c1") == "10.0.0.1"
    served.claim("after")
    served.message("after", "E")
    served.address("yours", "10.99.0.1", "after")
    adopted = served.served("after")
    assert adopted["metadata"]["name"] == "yours"
    until(lambda: (served.get(IP_ADDRESS, "yours") or {})["metadata"].get("finalizers") == [ADDRESS_FINALIZER])
    assert [each["kind"] for each in served.served("after")["metadata"]["ownerReferences"]] == ["IPPool", "IPClaim"]
    assert "errorMessage" not in (served.get(IP_CLAIM, "after") or {})["status"]
    until(lambda: served.indexes() == {"before": "172.16.0.9", "c1": "10.0.0.1", "after": "10.99.0.1"})
    served.delete(IP_CLAIM, "after")
    served.gone(IP_ADDRESS, "yours")


def test_ks2_an_external_pool_never_picks(served: Namespace) -> None:
    served.pool("p", "10.0.0.1-10.0.0.9", tenure={"external": True})
    served.claim("c1")
    time.sleep(0.5)
    assert served.all(IP_ADDRESS) == []
    served.address("any", "10.0.0.5", "c1")
    assert served.ip("c1") == "10.0.0.5"


def test_kd6_a_claim_that_arrives_with_its_address_gets_that_one_or_waits(served: Namespace) -> None:
    served.pool("p", "10.0.0.1-10.0.0.9")
    served.claim("c1")
    assert served.ip("c1") == "10.0.0.1"
    served.claim("moved", annotations={OWN_ADDRESS: "10.0.0.7"})
    assert served.ip("moved") == "10.0.0.7"
    served.claim("far", annotations={OWN_ADDRESS: "8.8.8.8"})
    assert served.message("far", "A") == "Address 8.8.8.8 is not one that IPPool p gives"
    served.address("its", "8.8.8.8", "far")
    assert served.ip("far") == "8.8.8.8"


@pytest.mark.parametrize("strips_first", [True, False])
def test_kd6_what_is_deleted_for_a_move_is_not_touched(served: Namespace, strips_first: bool) -> None:
    """An address goes before its claim is marked; some versions of clusterctl strip finalizers first, others last."""
    served.pool("p", "10.0.0.1-10.0.0.9")
    served.claim("c1")
    served.served("c1")
    until(served.indexes)
    for kind, name in ((IP_ADDRESS, "p-10-0-0-1"), (IP_CLAIM, "c1"), (IP_POOL, "p")):
        metadata = {"annotations": {"clusterctl.cluster.x-k8s.io/delete-for-move": ""}}
        if strips_first:
            served.patch(kind, name, {"metadata": {**metadata, "finalizers": None}})
            time.sleep(0.3)
            served.delete(kind, name)
        else:
            served.patch(kind, name, {"metadata": metadata})
            served.delete(kind, name)
            time.sleep(0.3)
            assert is_terminating(served.get(kind, name))
            assert (served.get(kind, name) or {})["metadata"]["finalizers"]
            served.patch(kind, name, {"metadata": {"finalizers": None}})
        served.gone(kind, name)
    assert served.all(IP_ADDRESS) == []
