"""KP9: what is removed by force comes back, also before its claim names the address, and when the leader changes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimKind
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import KINDS_OF_IP_POOLS
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    OWN_ADDRESS,
    PAUSED,
    annotations_of,
    finalizers_of,
)
from tenure.integrations.kubernetes.runtime.api_client import JSON_PATCH, ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiUnreachable
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType, key_of, uid_of
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.metal3.claim_specs import claim_spec
from tests.integrations.kubernetes.metal3.noted_operator import next_leader
from tests.integrations.kubernetes.metal3.serving import (
    Namespace,
    OperatorThread,
    RefusedByServer,
    settings_for,
    until,
)

KINDS = pytest.mark.parametrize("kind", KINDS_OF_IP_POOLS.values(), ids=KINDS_OF_IP_POOLS)


class UnnamingClient(ApiClient):
    """A client of an operator that never gets to the last write about a claim, in which the claim names its address."""

    async def patch(
        self, kind: ResourceType, object: Object, patch: Any, *, content_type: str = JSON_PATCH, subresource: str = ""
    ) -> Object:
        """Patch an object, or fail."""
        if not subresource and "claim" in kind.plural and not is_terminating_patch(patch):
            raise ApiUnreachable("claims do not name their addresses here")
        return await super().patch(kind, object, patch, content_type=content_type, subresource=subresource)


def is_terminating_patch(patch: Any) -> bool:
    """Return whether a patch takes a finalizer away."""
    return any(step["op"] == "remove" for step in patch)


@contextmanager
def unnaming_operator(server: KubeServer, namespace: str) -> Iterator[None]:
    """Run an operator without webhooks that serves claims, and does not let them name their addresses."""
    thread = OperatorThread(
        server, settings_for(server, namespace), make_client=lambda load, meter: UnnamingClient(load, meter=meter)
    )
    thread.start()
    try:
        yield
    finally:
        thread.stop()


def claim(space: Namespace, kind: ClaimKind, name: str, **annotations: str) -> Object:
    """Create a claim that has its finalizer, as the webhook gives it, so that it names its address later."""
    metadata = {"finalizers": [kind.claim_finalizer], "annotations": annotations}
    return space.create(kind.claim, name, claim_spec(kind, "p"), **metadata)


def served(space: Namespace, kind: ClaimKind, name: str) -> Object:
    """Wait until a claim is served, and return its address."""

    def look() -> Object | None:
        given = kind.given(space.get(kind.claim, name) or {})
        return space.get(kind.address, given) if given else None

    return until(look)


def is_told(space: Namespace) -> bool:
    """Return whether the pool counts the address as used, and has no reservation left that would keep it."""
    status = space.status()
    return not status.get("reserving") and (status.get("addresses") or {}).get("used") == 1


def remove_by_force(space: Namespace, kind: ClaimKind, address: Object) -> None:
    """Delete an address, and take its finalizers away, as often as the operator puts them back."""

    def is_gone() -> bool:
        found = space.get(kind.address, key_of(address)[1])
        if found is None or uid_of(found) != uid_of(address):
            return True
        try:
            space.delete(kind.address, key_of(address)[1])
            space.patch(kind.address, key_of(address)[1], {"metadata": {"finalizers": None}})
        except RefusedByServer as error:
            if error.code != 404:
                raise
        return False

    until(is_gone)


def made_again(space: Namespace, kind: ClaimKind, before: Object) -> Object:
    """Wait until the address of the first claim is another object, whole, and return it."""

    def look() -> Object | None:
        found = space.get(kind.address, key_of(before)[1])
        is_new = found is not None and uid_of(found) != uid_of(before)
        return found if is_new and kind.address_finalizer in finalizers_of(found or {}) else None

    return until(look)


@KINDS
def test_kp9_an_address_comes_back_before_its_claim_names_it(
    kube: KubeServer, unserved: Namespace, kind: ClaimKind
) -> None:
    """The pool is full, and another claim waits: it does not get what was removed."""
    with unnaming_operator(kube, unserved.name):
        unserved.pool("p", "10.0.0.1-10.0.0.1")
        first = claim(unserved, kind, "first")
        before = served(unserved, kind, "first")
        until(lambda: is_told(unserved))
        claim(unserved, kind, "waits")
        assert OWN_ADDRESS not in annotations_of(unserved.get(kind.claim, "first") or {})
        remove_by_force(unserved, kind, before)
        again = made_again(unserved, kind, before)

    assert again["spec"] == before["spec"]
    assert again["metadata"]["ownerReferences"][-1]["uid"] == uid_of(first)
    assert kind.given(unserved.get(kind.claim, "waits") or {}) == ""


@KINDS
def test_kp9_an_address_comes_back_when_it_goes_between_two_leaders(
    kube: KubeServer, unserved: Namespace, kind: ClaimKind
) -> None:
    """The first leader died before the claim named it. A claim that came earlier, and was paused, does not get it."""
    unserved.pool("p", "10.0.0.1-10.0.0.1")
    claim(unserved, kind, "earlier", **{PAUSED: ""})
    with unnaming_operator(kube, unserved.name):
        first = claim(unserved, kind, "first")
        before = served(unserved, kind, "first")
        until(lambda: is_told(unserved))
    assert OWN_ADDRESS not in annotations_of(unserved.get(kind.claim, "first") or {})
    with next_leader(kube, unserved.name) as follower:
        unserved.patch(kind.claim, "earlier", {"metadata": {"annotations": {PAUSED: None}}})
        remove_by_force(unserved, kind, before)
        follower.let_lead()
        again = made_again(unserved, kind, before)

    assert again["spec"] == before["spec"]
    assert again["metadata"]["ownerReferences"][-1]["uid"] == uid_of(first)
    assert kind.given(unserved.get(kind.claim, "earlier") or {}) == ""
