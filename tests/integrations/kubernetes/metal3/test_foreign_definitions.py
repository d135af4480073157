"""The operator on Metal3's own definitions, which have no room for what is ours (KD3, KD4)."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM, IP_POOL, PAUSED, RESERVING
from tenure.integrations.kubernetes.runtime.resource_types import uid_of, version_of
from tests.infrastructure.kube import KubeServer, fresh_namespace
from tests.integrations.kubernetes.metal3.admission.seed_objects import SEED_OBJECTS
from tests.integrations.kubernetes.metal3.admission.test_admission_by_server import lowered
from tests.integrations.kubernetes.metal3.serving import KINDS, Namespace, RefusedByServer, operator_in, until

pytestmark = pytest.mark.one_worker("private-kube")


@pytest.fixture
def place(foreign_kube: KubeServer) -> Iterator[Namespace]:
    """Give a namespace that an operator serves, on definitions that lack our fields."""
    with fresh_namespace(foreign_kube) as name, operator_in(foreign_kube, name):
        yield Namespace(foreign_kube, name)


def annotations_of(place: Namespace, pool: str = "p") -> dict[str, Any]:
    return ((place.get(IP_POOL, pool) or {})["metadata"]).get("annotations") or {}


def test_kd3_c1_a_claim_is_served_without_our_fields(place: Namespace) -> None:
    place.pool("p", "10.0.0.10-10.0.0.12", prefix=24, gateway="10.0.0.1")
    place.claim("c1")

    assert place.ip("c1") == "10.0.0.10"
    claim = place.get(IP_CLAIM, "c1")
    assert claim is not None
    assert claim["status"] == {"address": {"name": "p-10-0-0-10", "namespace": place.name}}
    until(lambda: place.indexes() == {"c1": "10.0.0.10"})
    status = (place.get(IP_POOL, "p") or {})["status"]
    assert set(status) == {"indexes", "lastUpdated"}


def test_kd4_a_reservation_in_the_annotation_keeps_its_address_until_its_claim_is_gone(place: Namespace) -> None:
    place.pool("p", "10.0.0.1-10.0.0.3")
    waits = place.claim("paused", annotations={PAUSED: "true"})
    entry = f'[{{"address":"10.0.0.1","uid":"{uid_of(waits)}","kind":"IPClaim"}}]'
    place.patch(IP_POOL, "p", {"metadata": {"annotations": {RESERVING: entry}}})
    place.claim("c1")
    assert place.ip("c1") == "10.0.0.2"
    assert "10.0.0.1" in annotations_of(place)[RESERVING]

    place.delete(IP_CLAIM, "paused")
    place.patch(IP_CLAIM, "paused", {"metadata": {"annotations": None}})
    place.gone(IP_CLAIM, "paused")
    until(lambda: RESERVING not in annotations_of(place))
    place.claim("c2")
    assert place.ip("c2") == "10.0.0.1"


def test_kd4_an_annotation_of_rubbish_reserves_nothing_and_is_removed(place: Namespace) -> None:
    place.pool("p", "10.0.0.1-10.0.0.3")
    for rubbish in ("{", '{"address": 1}', '[1, {"address": "x", "uid": "y"}]'):
        place.patch(IP_POOL, "p", {"metadata": {"annotations": {RESERVING: rubbish}}})
    place.claim("c1")

    assert place.ip("c1") == "10.0.0.1"
    until(lambda: RESERVING not in annotations_of(place))


def test_kd3_c16_c17_a_full_pool_serves_as_soon_as_there_is_room(place: Namespace) -> None:
    place.pool("p", "10.0.0.1-10.0.0.1")
    place.claim("c1")
    assert place.ip("c1") == "10.0.0.1"
    place.claim("c2")
    assert place.message("c2", "E") == "Exhausted IP Pools"

    place.delete(IP_CLAIM, "c1")
    assert place.ip("c2") == "10.0.0.1"
    assert "errorMessage" not in (place.get(IP_CLAIM, "c2") or {})["status"]
    until(lambda: place.indexes() == {"c2": "10.0.0.1"})


def test_kd3_d1_d6_a_claim_takes_its_address_along_and_a_pool_goes_after_its_last_one(place: Namespace) -> None:
    place.pool("p", "10.0.0.1-10.0.0.9")
    for name in ("c1", "c2"):
        place.claim(name)
        place.served(name)
    until(lambda: len(place.indexes()) == 2)
    place.delete(IP_CLAIM, "c1")
    place.gone(IP_CLAIM, "c1")
    assert place.get(IP_ADDRESS, "p-10-0-0-1") is None
    until(lambda: list(place.indexes()) == ["c2"])

    place.delete(IP_POOL, "p")
    assert place.get(IP_POOL, "p") is not None
    place.delete(IP_CLAIM, "c2")
    place.gone(IP_CLAIM, "c2")
    place.gone(IP_POOL, "p")


def test_kd3_nothing_is_written_again_and_again_because_the_server_prunes_it(place: Namespace) -> None:
    place.pool("p", "10.0.0.1-10.0.0.9")
    place.claim("c1")
    place.served("c1")
    until(lambda: place.indexes() and RESERVING not in annotations_of(place))
    named = {IP_POOL: "p", IP_CLAIM: "c1", IP_ADDRESS: "p-10-0-0-1"}
    before = {kind: version_of(place.get(kind, name) or {}) for kind, name in named.items()}
    time.sleep(1.0)

    assert before == {kind: version_of(place.get(kind, name) or {}) for kind, name in named.items()}


def test_kd2_the_seeds_spellings_are_refused_by_metal3s_definitions(place: Namespace) -> None:
    """As ``kubectl`` applies: there the server has no such fields, and says which they are."""
    seed = {each["kind"]: lowered(each) for each in SEED_OBJECTS}
    unknown = {
        "IPPool": ["status.allocations"],
        "IPAddress": ["spec.Address", "spec.claim.Name", "spec.pool.Name"],
        "IPClaim": ["spec.owner", "status.ipAddress"],
    }
    for kind, fields in unknown.items():
        with pytest.raises(RefusedByServer) as refused:
            place.ask("POST", KINDS[kind].path(place.name) + "?fieldValidation=Strict", seed[kind])
        assert refused.value.code == 400
        assert [each for each in fields if f'unknown field "{each}"' not in str(refused.value)] == []
