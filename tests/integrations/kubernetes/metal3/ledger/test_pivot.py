"""A pivot keeps every address: between two real API servers, in both orders, killed and repeated (KD6, E9, E10)."""

import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

import tenure
from tenure.integrations.kubernetes.metal3.ledger import ledger_follower
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import CLUSTER_API, KINDS_OF_IP_POOLS, kind_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    DELETE_FOR_MOVE,
    IP_CLAIM,
    IP_POOL,
    OWN_ADDRESS,
    annotations_of,
)
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of, uid_of
from tests.infrastructure.kube import KubeServer, fresh_namespace
from tests.integrations.kubernetes.metal3.claim_specs import claim_spec
from tests.integrations.kubernetes.metal3.ledger.ledger_stage import NETWORK, bound_pool, planned_ledger, say_where
from tests.integrations.kubernetes.metal3.ledger.pivot_steps import KINDS, Move, MoveKilled, Order
from tests.integrations.kubernetes.metal3.serving import Namespace, operator_in, until
from tests.scale import in_proof

pytestmark = pytest.mark.one_worker("private-kube")

GRACE_S = 1.0
"""What is taken for an orphan by mistake is released within the test."""
CREATES = 11
"""Writes in the target: a pool, five claims, five addresses; the deletes follow, three writes each."""


class Pivot(NamedTuple):
    """A namespace that moves, and where it moves to; both are served."""

    source: Namespace
    target: Namespace


@pytest.fixture
def pivot(kube: KubeServer, other_kube: KubeServer) -> Iterator[Pivot]:
    """Give a namespace of the same name on both servers."""
    with fresh_namespace(kube) as name:
        metadata = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        other_kube.ask("POST", "/api/v1/namespaces", metadata)
        with (
            operator_in(kube, name, webhooks=False, orphan_grace_s=GRACE_S),
            operator_in(other_kube, name, webhooks=False, orphan_grace_s=GRACE_S),
        ):
            yield Pivot(Namespace(kube, name), Namespace(other_kube, name))


def claim_all(place: Namespace) -> dict[str, str]:
    """Claim five addresses by both kinds, one of them an address that is asked for; return them by claim."""
    for name in ("c1", "c2", "asks"):
        place.claim(name, annotations={"ipAddress": "10.9.0.17"} if name == "asks" else {})
    for name in ("k1", "k2"):
        place.create(CLUSTER_API.claim, name, claim_spec(CLUSTER_API, "p"))
    until(lambda: len(given(place)) == 5)
    until(lambda: all(OWN_ADDRESS in annotations_of(each) for each in claims(place)))
    return given(place)


def claims(place: Namespace) -> list[Object]:
    """Return the claims of both kinds."""
    return [
        {"apiVersion": kind.claim.api_version, "kind": kind.claim.kind, **each}
        for kind in KINDS_OF_IP_POOLS.values()
        for each in place.all(kind.claim)
    ]


def given(place: Namespace) -> dict[str, str]:
    """Return the addresses of the claims whose status names one that is there and is theirs."""
    found = {}
    for claim in claims(place):
        name = kind_of(claim).given(claim)
        address = place.get(kind_of(claim).address, name) if name else None
        if address is not None and any(uid_of(claim) == each["uid"] for each in address["metadata"]["ownerReferences"]):
            found[key_of(claim)[1]] = address["spec"]["address"]
    return found


def empty(place: Namespace) -> bool:
    """Return whether nothing is left."""
    return not any(place.all(kind) for kind in KINDS)


def is_kept(pivot: Pivot, before: dict[str, str]) -> None:
    """Wait until every claim has its address in the target and nothing is left in the source; then look again."""
    until(lambda: given(pivot.target) == before and empty(pivot.source))
    pool = pivot.target.get(IP_POOL, "p") or {}
    for claim in claims(pivot.target):
        address = pivot.target.get(kind_of(claim).address, kind_of(claim).given(claim)) or {}
        owners = [(each["kind"], each["uid"]) for each in address["metadata"]["ownerReferences"]]
        # Mended, not doubled (E10); in the order in which they came (KD6).
        assert sorted(owners) == sorted([("IPPool", uid_of(pool)), (claim["kind"], uid_of(claim))])
    pivot.target.claim("new")
    assert pivot.target.ip("new") not in before.values()


@pytest.mark.parametrize("order", Order)
def test_kd6_every_claim_keeps_its_address(pivot: Pivot, order: Order) -> None:
    """Claims that people made, of both kinds, and a pool without a cluster; nothing is paused."""
    pivot.source.pool("p", "10.9.0.10-10.9.0.19")
    before = claim_all(pivot.source)
    Move(pivot.source, pivot.target, order).run()

    is_kept(pivot, before)


@pytest.mark.parametrize("order", [Order.BEFORE, in_proof(Order.AFTER)])
@pytest.mark.parametrize("killed_after", [CREATES + 8, in_proof(CREATES)])
def test_e9_a_move_is_killed_and_repeated(pivot: Pivot, order: Order, killed_after: int) -> None:
    """For longer than the grace period both servers have a part of it; whatever is held stays held."""
    pivot.source.pool("p", "10.9.0.10-10.9.0.19")
    before = claim_all(pivot.source)
    with pytest.raises(MoveKilled):
        Move(pivot.source, pivot.target, order, killed_after).run()
    time.sleep(2 * GRACE_S)
    until(lambda: given(pivot.target) == before)
    Move(pivot.source, pivot.target, order).run()

    is_kept(pivot, before)


@pytest.fixture
def url() -> Iterator[str]:
    """Give the URL of a ledger with ten addresses."""
    with planned_ledger() as found:
        yield found


def rows(ledger: tenure.Ledger) -> dict[str, tuple[str, int]]:
    """Return what is held, with the number of each holding: one that was released and taken again has another."""
    return {str(each.owner): (each.address, each.generation) for each in ledger.holdings(NETWORK)}


@pytest.mark.parametrize("order", [Order.AFTER, in_proof(Order.BEFORE)])
@pytest.mark.parametrize("killed_after", [CREATES, in_proof(None), in_proof(CREATES + 8)])
def test_e9_a_pool_that_is_bound_to_a_ledger_moves_and_nothing_is_released(
    pivot: Pivot, url: str, order: Order, killed_after: int | None
) -> None:
    """Source and target are one owner to the ledger (KP18); a claim that is deleted in the target is released there."""
    for place in pivot:
        say_where(place, url)
    bound_pool(pivot.source, "east")
    before = claim_all(pivot.source)
    with tenure.open(url) as ledger:
        held = rows(ledger)
        if killed_after is not None:
            with pytest.raises(MoveKilled):
                Move(pivot.source, pivot.target, order, killed_after).run()
            time.sleep(3 * GRACE_S)
            until(lambda: given(pivot.target) == before)
        Move(pivot.source, pivot.target, order).run()
        until(lambda: given(pivot.target) == before and empty(pivot.source))
        time.sleep(2 * GRACE_S)
        assert rows(ledger) == held
        is_kept(pivot, before)
        pivot.target.delete(IP_CLAIM, "c1")
        pivot.target.gone(IP_CLAIM, "c1")

        assert f"east:ipclaim/{pivot.source.name}/c1" not in rows(ledger)
        labels = ledger.holding(NETWORK, before["c2"]).labels
        assert labels["pool-uid"] == uid_of(pivot.target.get(IP_POOL, "p") or {})


def test_kp18_two_clusters_of_one_realm_say_so_and_share_no_address(
    pivot: Pivot, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A realm that two clusters have by mistake: the second claim of a name waits; others are served, each once."""
    monkeypatch.setattr(ledger_follower, "COMPARED_EVERY_S", 1.0)
    for place in pivot:
        say_where(place, url)
        bound_pool(place, "east")
    pivot.source.claim("same")
    first = pivot.source.ip("same")
    for place, name in ((pivot.target, "same"), (pivot.source, "one"), (pivot.target, "other")):
        place.claim(name)
    given = {first, pivot.source.ip("one"), pivot.target.ip("other")}

    assert "another cluster of this realm" in pivot.target.message("same", f"Address {first} is held")
    assert len(given) == 3
    for place in pivot:
        until(lambda place=place: "RealmShared" in conditions(place))  # type: ignore[misc]
        assert "another cluster has this realm" in conditions(place)["RealmShared"]
        until(lambda place=place: any(each["reason"] == "RealmShared" for each in pool_events(place)))  # type: ignore[misc]
    pivot.source.delete(IP_CLAIM, "same")
    assert pivot.target.ip("same") == first


def conditions(place: Namespace) -> dict[str, str]:
    """Return the messages of the pool's conditions by their types."""
    return {each["type"]: each["message"] for each in place.status().get("conditions") or ()}


def pool_events(place: Namespace) -> list[Object]:
    """Return the events of the pool."""
    return place.events(place.get(IP_POOL, "p") or {})


def test_a_mark_that_a_killed_move_left_is_taken_off_in_the_target(
    kube: KubeServer, unserved: Namespace, url: str
) -> None:
    """clusterctl, run again, copies a marked claim over the one in the target: the mark replaced all annotations."""
    say_where(unserved, url)
    bound_pool(unserved, "east")
    with operator_in(kube, unserved.name, webhooks=False, stale_mark_s=1.0), tenure.open(url) as ledger:
        before = claim_all(unserved)
        held = rows(ledger)
        mark = [{"op": "add", "path": "/metadata/annotations", "value": {DELETE_FOR_MOVE: ""}}]
        unserved.patch(IP_CLAIM, "c1", mark, patch="json")
        until(lambda: DELETE_FOR_MOVE not in annotations_of(unserved.get(IP_CLAIM, "c1") or {}))
        assert (given(unserved), rows(ledger)) == (before, held)
        unserved.delete(IP_CLAIM, "c1")
        unserved.gone(IP_CLAIM, "c1")

        assert len(rows(ledger)) == len(held) - 1


def test_a_cluster_moves_there_and_back(pivot: Pivot, url: str) -> None:
    """The way to give a move up: what was created in the target is moved back, not deleted."""
    for place in pivot:
        say_where(place, url)
    bound_pool(pivot.source, "east")
    before = claim_all(pivot.source)
    with tenure.open(url) as ledger:
        held = rows(ledger)
        Move(pivot.source, pivot.target).run()
        until(lambda: given(pivot.target) == before and empty(pivot.source))
        Move(pivot.target, pivot.source).run()
        until(lambda: given(pivot.source) == before and empty(pivot.target))

        assert rows(ledger) == held
