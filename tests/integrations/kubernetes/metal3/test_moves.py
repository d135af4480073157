"""What a claim carries along when it is moved to another cluster (KD6), on a real server."""

import time
from typing import Any

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    BLOCK_MOVE,
    IP_ADDRESS,
    IP_CLAIM,
    IP_POOL,
    OWN_ADDRESS,
    PAUSED,
    PICKED_FOR,
    annotations_of,
)
from tenure.integrations.kubernetes.runtime.api_client import MERGE_PATCH, ApiClient
from tenure.integrations.kubernetes.runtime.credentials import Loader
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType, key_of, version_of
from tenure.integrations.kubernetes.runtime.runtime_meter import RuntimeMeter
from tests.infrastructure.kube import KubeServer, fresh_namespace
from tests.integrations.kubernetes.metal3.old_clusters import V1BETA1, cluster
from tests.integrations.kubernetes.metal3.serving import Namespace, OperatorThread, operator_in, settings_for, until


class PausingClient(ApiClient):
    """A client of an operator whose pool ``p`` is paused just before a claim ``moves`` says that it is served."""

    async def patch(self, kind: ResourceType, object: Object, patch: Any, **words: Any) -> Object:
        """Pause the pool where it is time, and patch."""
        if key_of(object)[1] == "moves" and words.get("subresource") == "status":
            pool = await self.get(IP_POOL.path(key_of(object)[0], "p"))
            mark = {"metadata": {"annotations": {PAUSED: ""}}}
            await super().patch(IP_POOL, pool, mark, content_type=MERGE_PATCH)
        return await super().patch(kind, object, patch, **words)


def pausing_client(load: Loader, meter: RuntimeMeter) -> ApiClient:
    return PausingClient(load, meter=meter)


def move(claim: Object, space: Namespace) -> None:
    """Create a claim in the target as clusterctl does: with its metadata, a new uid and no status."""
    kept = {name: value for name, value in claim["metadata"].items() if name in ("annotations", "labels", "finalizers")}
    space.create(IP_CLAIM, key_of(claim)[1], claim["spec"], **kept)


def test_kd6_a_claim_served_just_before_the_pause_keeps_its_address_in_the_target(
    kube: KubeServer, unserved: Namespace
) -> None:
    """In the target nothing is paused, and the claim arrives before its address."""
    thread = OperatorThread(kube, settings_for(kube, unserved.name), True, pausing_client)
    thread.start()
    try:
        unserved.pool("p", "10.0.0.1-10.0.0.9")
        unserved.claim("stays")
        assert unserved.ip("stays") == "10.0.0.1"
        unserved.claim("moves")
        assert unserved.ip("moves") == "10.0.0.2"
        assert PAUSED in annotations_of(unserved.get(IP_POOL, "p") or {})
        until(lambda: OWN_ADDRESS in annotations_of(unserved.get(IP_CLAIM, "moves") or {}), within_s=3)
        named = {IP_POOL: "p", IP_CLAIM: "moves", IP_ADDRESS: "p-10-0-0-2"}
        before = {kind: version_of(unserved.get(kind, name) or {}) for kind, name in named.items()}
        time.sleep(0.5)
        assert before == {kind: version_of(unserved.get(kind, name) or {}) for kind, name in named.items()}
    finally:
        thread.stop()

    with fresh_namespace(kube) as name, operator_in(kube, name):
        target = Namespace(kube, name)
        target.pool("p", "10.0.0.1-10.0.0.9")
        move(unserved.get(IP_CLAIM, "moves") or {}, target)
        assert target.ip("moves") == "10.0.0.2"


def test_kd6_a_new_claim_holds_up_a_move_until_it_names_its_address_or_a_cluster_is_paused(
    clustered: Namespace,
) -> None:
    """Clusterctl looks for the mark before it pauses clusters, and waits then until it is gone."""
    cluster(clustered, "blue")
    clustered.pool("p", "10.0.0.1-10.0.0.1")
    assert BLOCK_MOVE in annotations_of(clustered.claim("c1"))
    until(lambda: blocks_or_names(clustered, "c1") == (False, True))
    clustered.claim("waits")
    clustered.message("waits", "Exhausted IP Pools")
    assert blocks_or_names(clustered, "waits") == (True, False)
    clustered.patch(V1BETA1, "blue", {"spec": {"paused": True}})
    until(lambda: blocks_or_names(clustered, "waits") == (False, False))
    clustered.claim("younger")
    until(lambda: blocks_or_names(clustered, "younger") == (False, False))
    clustered.delete(IP_CLAIM, "c1")

    assert clustered.ip("waits") == "10.0.0.1"
    assert blocks_or_names(clustered, "waits") == (False, True)  # it named the address before it got it


def blocks_or_names(place: Namespace, claim: str) -> tuple[bool, bool]:
    """Return whether a move waits for a claim, and whether the claim names an address."""
    annotations = annotations_of(place.get(IP_CLAIM, claim) or {})
    return BLOCK_MOVE in annotations, OWN_ADDRESS in annotations


def test_kd6_a_claim_that_brings_an_address_which_another_has_waits_for_it(served: Namespace) -> None:
    """The webhook does not take it for a copy of that other claim: the machine of each runs with its address."""
    served.pool("p", "10.0.0.1-10.0.0.9")
    served.claim("here")
    assert served.ip("here") == "10.0.0.1"
    brought = {OWN_ADDRESS: "10.0.0.1", PICKED_FOR: "a-uid-of-another-cluster"}
    move({"metadata": {"name": "moved", "annotations": brought}, "spec": {"pool": {"name": "p"}}}, served)
    assert "10.0.0.1" in served.message("moved")
    served.delete(IP_CLAIM, "here")
    assert served.ip("moved") == "10.0.0.1"
