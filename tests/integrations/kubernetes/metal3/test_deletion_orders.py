"""Deletion in every order, in all three ways, with Kubernetes' real garbage collector and controller of namespaces."""

import itertools
import time
import urllib.error
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimKind
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import CLUSTER_API, KINDS_OF_IP_POOLS, METAL3
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_CLAIM, IP_POOL, is_terminating
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError
from tenure.integrations.kubernetes.runtime.resource_types import (
    CUSTOM_RESOURCE_DEFINITION,
    Object,
    ResourceType,
    key_of,
    uid_of,
)
from tests.infrastructure.kube import KubeServer, fresh_namespace, private_kube
from tests.infrastructure.kube_controllers import controller_manager
from tests.integrations.kubernetes.cluster import await_kind, create, install
from tests.integrations.kubernetes.cluster_api import CLUSTERS, IPAM, definitions, install_cluster_api
from tests.integrations.kubernetes.metal3.claim_specs import claim_spec
from tests.integrations.kubernetes.metal3.serving import Namespace, RefusedByServer, let_go, operator_in, until

pytestmark = [pytest.mark.proof, pytest.mark.one_worker("deletion-orders")]

PROPAGATIONS = ("Background", "Foreground", "Orphan")
CLUSTER = ResourceType("cluster.x-k8s.io", "v1beta2", "clusters", "Cluster")
NAMESPACE = ResourceType("", "v1", "namespaces", "Namespace", namespaced=False)
GONE_WITHIN_S = 10.0
"""What KP8 promises of a namespace."""
KINDS = pytest.mark.parametrize("kind", KINDS_OF_IP_POOLS.values(), ids=KINDS_OF_IP_POOLS)


@pytest.fixture(scope="module")
def collected() -> Iterator[KubeServer]:
    """Give a server with Cluster API's kinds, and the controllers that collect garbage and end namespaces."""
    with private_kube() as server:
        install(server)
        install_cluster_api(server, CLUSTERS, *IPAM)
        with controller_manager(server):
            yield server


@pytest.fixture
def place(collected: KubeServer) -> Iterator[Namespace]:
    """Give a served namespace of it."""
    with fresh_namespace(collected) as name, operator_in(collected, name):
        yield Namespace(collected, name)


def claim(space: Namespace, kind: ClaimKind, name: str, pool: str = "p", **metadata: Any) -> Object:
    """Create a claim of a kind."""
    return space.create(kind.claim, name, claim_spec(kind, pool), **metadata)


def served(space: Namespace, kind: ClaimKind, name: str) -> Object:
    """Wait until a claim has its address, and return the address."""

    def look() -> Object | None:
        given = kind.given(space.get(kind.claim, name) or {})
        return space.get(kind.address, given) if given else None

    return until(look)


def delete(space: Namespace, kind: ResourceType, name: str, propagation: str = "Background") -> None:
    """Delete an object in one of the three ways."""
    try:
        space.ask("DELETE", kind.path(space.name, name), {"propagationPolicy": propagation})
    except RefusedByServer as error:
        if error.code != 404:
            raise


def until_empty(space: Namespace, within_s: float = 30.0) -> None:
    """Wait until nothing of any of the kinds is left in the namespace."""

    def left() -> list[str]:
        kinds = [IP_POOL, *(each for kind in KINDS_OF_IP_POOLS.values() for each in (kind.claim, kind.address))]
        return [f"{kind.full_name}/{key_of(each)[1]}" for kind in kinds for each in space.all(kind)]

    deadline = time.monotonic() + within_s
    while found := left():
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


@KINDS
@pytest.mark.parametrize("propagation", PROPAGATIONS)
def test_kd5_a_claim_goes_with_its_address_however_it_is_deleted(
    place: Namespace, kind: ClaimKind, propagation: str
) -> None:
    place.pool("p", "10.0.0.1-10.0.0.9")
    claim(place, kind, "c1")
    address = served(place, kind, "c1")
    delete(place, kind.claim, "c1", propagation)
    place.gone(kind.claim, "c1")
    assert place.get(kind.address, key_of(address)[1]) is None
    claim(place, kind, "c2")
    assert served(place, kind, "c2")["spec"]["address"] == "10.0.0.1"


@KINDS
@pytest.mark.parametrize("propagation", PROPAGATIONS)
def test_kd5_a_pool_waits_for_its_claims_however_it_is_deleted(
    place: Namespace, kind: ClaimKind, propagation: str
) -> None:
    """The garbage collector marks addresses, and none of them goes before its claim (D4, D6)."""
    place.pool("p", "10.0.0.1-10.0.0.9")
    claim(place, kind, "c1")
    address = served(place, kind, "c1")
    delete(place, IP_POOL, "p", propagation)
    time.sleep(1.5)
    kept = place.get(kind.address, key_of(address)[1])
    assert kept is not None
    assert uid_of(kept) == uid_of(address)
    assert is_terminating(place.get(IP_POOL, "p") or {})
    delete(place, kind.claim, "c1")
    until_empty(place)


@pytest.mark.parametrize("order", list(itertools.permutations(("claims", "addresses", "pool"))), ids="-".join)
@pytest.mark.parametrize("propagation", PROPAGATIONS)
def test_everything_goes_in_whatever_order_it_is_deleted(
    place: Namespace, order: tuple[str, ...], propagation: str
) -> None:
    """Both kinds on one pool; a claim waits, too, since the pool is full."""
    place.pool("p", "10.0.0.1-10.0.0.2")
    for kind in KINDS_OF_IP_POOLS.values():
        claim(place, kind, "c1")
        served(place, kind, "c1")
    claim(place, METAL3, "waits")
    place.message("waits", "Exhausted")
    of: dict[str, list[ResourceType]] = {
        "claims": [kind.claim for kind in KINDS_OF_IP_POOLS.values()],
        "addresses": [kind.address for kind in KINDS_OF_IP_POOLS.values()],
        "pool": [IP_POOL],
    }
    for part in order:
        for type in of[part]:
            for each in place.all(type):
                delete(place, type, key_of(each)[1], propagation)
    until_empty(place)


@KINDS
def test_an_owner_that_goes_takes_its_claim_and_the_address_with_it(place: Namespace, kind: ClaimKind) -> None:
    """As a machine does: claims are owned by what they were made for."""
    place.pool("p", "10.0.0.1-10.0.0.9")
    machine = place.ask(
        "POST",
        f"/api/v1/namespaces/{place.name}/configmaps",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "machine"}},
    )
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "machine", "uid": uid_of(machine), "controller": True}
    claim(place, kind, "c1", ownerReferences=[owner])
    served(place, kind, "c1")
    place.ask("DELETE", f"/api/v1/namespaces/{place.name}/configmaps/machine", {"propagationPolicy": "Foreground"})
    place.gone(kind.claim, "c1")
    assert place.all(kind.address) == []


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_a_cluster_that_goes_takes_its_pool_when_the_last_claim_is_gone(place: Namespace, propagation: str) -> None:
    """The pool is owned by its cluster; its claims keep their addresses until they go."""
    spec = {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Any", "name": "any"}}
    place.create(CLUSTER, "blue", spec)
    place.pool("p", "10.0.0.1-10.0.0.9", clusterName="blue")
    for kind in KINDS_OF_IP_POOLS.values():
        claim(place, kind, "c1")
        served(place, kind, "c1")
    until(lambda: (place.get(IP_POOL, "p") or {})["metadata"].get("ownerReferences"))
    delete(place, CLUSTER, "blue", propagation)
    until(lambda: is_terminating(place.get(IP_POOL, "p") or {}))
    time.sleep(1.0)
    assert len(place.all(METAL3.address)) == len(place.all(CLUSTER_API.address)) == 1
    for kind in KINDS_OF_IP_POOLS.values():
        delete(place, kind.claim, "c1")
    until_empty(place)
    place.gone(CLUSTER, "blue")


def test_kp9_forced_removals_leave_nothing_stuck(place: Namespace) -> None:
    """Finalizers are taken away by hand, as desperate people do; what lives is mended, what is deleted goes."""
    place.pool("p", "10.0.0.1-10.0.0.9")
    for kind in KINDS_OF_IP_POOLS.values():
        for name in ("c1", "c2", "c3"):
            claim(place, kind, name)
            served(place, kind, name)
    before = {kind: served(place, kind, "c1") for kind in KINDS_OF_IP_POOLS.values()}
    for kind, address in before.items():
        force(place, kind.address, key_of(address)[1])
        force(place, kind.claim, "c2")
    for kind, address in before.items():
        until(partial(is_another, place, kind, address))
        assert served(place, kind, "c1")["spec"] == address["spec"]
    until(lambda: all(len(place.all(kind.address)) == 2 for kind in KINDS_OF_IP_POOLS.values()))
    force(place, IP_POOL, "p")
    for kind in KINDS_OF_IP_POOLS.values():
        for name in ("c1", "c3"):
            delete(place, kind.claim, name)
    until_empty(place)


def is_another(space: Namespace, kind: ClaimKind, before: Object) -> bool:
    """Return whether the address of the first claim is another object by now."""
    return uid_of(served(space, kind, "c1")) != uid_of(before)


def force(space: Namespace, kind: ResourceType, name: str) -> None:
    """Delete an object, and take its finalizers away."""
    delete(space, kind, name)
    try:
        space.patch(kind, name, {"metadata": {"finalizers": None}})
    except RefusedByServer as error:
        if error.code != 404:
            raise


def test_kp8_a_namespace_is_gone_within_seconds_with_everything_in_it(collected: KubeServer) -> None:
    """Also claims that wait, and a pool that nothing claims; nothing is tried again that the server has refused."""
    with fresh_namespace(collected) as name:
        space = Namespace(collected, name)
        with operator_in(collected, name) as controller:
            refused = refused_creates(controller.passes.giving.claims.client)
            space.pool("p", "10.0.0.1-10.0.0.20")
            space.pool("full", "10.1.0.1-10.1.0.1")
            space.pool("empty", "10.2.0.1-10.2.0.1")
            for kind, number in itertools.product(KINDS_OF_IP_POOLS.values(), range(10)):
                claim(space, kind, f"c{number}")
            for kind in KINDS_OF_IP_POOLS.values():
                claim(space, kind, "w1", "full")
                claim(space, kind, "w2", "full")
                for number in range(10):
                    served(space, kind, f"c{number}")
            collected.ask("DELETE", NAMESPACE.path("", name))
            # The controller of namespaces does nothing for five seconds, so that caches everywhere know of it.
            until(lambda: not all(map(_lives, space.all(METAL3.claim))))
            began = time.monotonic()
            until_empty(space, within_s=3.0)
            while _is_there(space):
                assert time.monotonic() - began < GONE_WITHIN_S, _is_there(space)
                time.sleep(0.05)
            # Of each kind, those that were on their way when the first of them was refused; an address is free for one.
            assert len(refused) <= 3, refused


def refused_creates(client: ApiClient) -> list[str]:
    """Return a list in which each create stands that the operator tries in a namespace that is being deleted."""
    refused: list[str] = []
    create = client.create

    async def counted(kind: ResourceType, object: Object) -> Object:
        try:
            return await create(kind, object)
        except ApiError as error:
            if error.is_namespace_going:
                refused.append(kind.full_name)
            raise

    client.create = counted  # type: ignore[method-assign]
    return refused


def _lives(object: Object) -> bool:
    return not is_terminating(object)


def _is_there(space: Namespace) -> Any:
    try:
        return space.ask("GET", NAMESPACE.path("", space.name))["status"]
    except RefusedByServer as error:
        if error.code == 404:
            return None
        raise


def test_kp6_definitions_that_are_deleted_take_their_objects_and_come_back(collected: KubeServer) -> None:
    """The operator runs on: addresses of the other kind stay, and the kind is served again when it is back."""
    let_go(collected, CLUSTER_API.claim, CLUSTER_API.address)
    with fresh_namespace(collected) as name, operator_in(collected, name):
        space = Namespace(collected, name)
        space.pool("p", "10.0.0.1-10.0.0.9")
        for kind in KINDS_OF_IP_POOLS.values():
            claim(space, kind, "c1")
            served(space, kind, "c1")
        documents = definitions(*IPAM)
        for document in documents:
            collected.ask("DELETE", CUSTOM_RESOURCE_DEFINITION.path("", document["metadata"]["name"]))
        _until_forgotten(space, [document["metadata"]["name"] for document in documents])
        assert served(space, METAL3, "c1")["spec"]["address"] == "10.0.0.1"
        for document in documents:
            create(collected, document)
            await_kind(collected, document)
        claim(space, CLUSTER_API, "c2")
        assert served(space, CLUSTER_API, "c2")["spec"]["address"] == "10.0.0.2"


def _until_forgotten(space: Namespace, names: list[str], within_s: float = 90.0) -> None:
    """Wait until the server has forgotten definitions; it looks now and then whether their objects are gone."""
    deadline = time.monotonic() + within_s
    while left := [each for name in names if (each := _said_of(space, name))]:
        kinds = (CLUSTER_API.claim, CLUSTER_API.address)
        found = [each["metadata"] for kind in kinds for each in _everywhere(space, kind)]
        assert time.monotonic() < deadline, (left, found)
        time.sleep(0.5)


def _said_of(space: Namespace, name: str) -> list[Object]:
    """Return the conditions of a definition; nothing, if the server has forgotten it."""
    try:
        found: list[Object] = space.ask("GET", CUSTOM_RESOURCE_DEFINITION.path("", name))["status"]["conditions"]
    except RefusedByServer as error:
        if error.code != 404:
            raise
        return []
    return found


def _everywhere(space: Namespace, kind: ResourceType) -> list[Object]:
    """Return all objects of a kind that may be gone; then the server answers with a text that is no document."""
    try:
        found: list[Object] = space.server.ask("GET", kind.path())["items"]
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        return []
    return found


def test_6_17_a_pool_that_outlives_its_cluster_keeps_its_claims_when_the_garbage_is_collected(place: Namespace) -> None:
    """Its twin, which does not, goes with the cluster as soon as its claims are gone."""
    place.create(CLUSTER, "c", {"paused": False})
    for name, outlives in (("stays", True), ("goes", False)):
        place.pool(name, "10.0.0.1-10.0.0.9", clusterName="c", tenure={"outlivesCluster": outlives})
        place.claim(f"{name}-a", name)
        place.served(f"{name}-a")
    delete(place, CLUSTER, "c")
    place.gone(CLUSTER, "c")
    until(lambda: (place.get(IP_POOL, "goes") or {})["metadata"].get("deletionTimestamp"))
    place.delete(IP_CLAIM, "goes-a")
    place.gone(IP_POOL, "goes")

    place.claim("stays-b", "stays")
    assert [place.ip("stays-a"), place.ip("stays-b")] == ["10.0.0.1", "10.0.0.2"]
    assert "deletionTimestamp" not in (place.get(IP_POOL, "stays") or {})["metadata"]
