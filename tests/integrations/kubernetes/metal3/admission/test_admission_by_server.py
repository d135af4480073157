"""Every rule by applying an object to a real API server, which asks the webhooks: cases A1 to A20 and B1 to B6."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLAIM_FINALIZER,
    OWN_ADDRESS,
    PICKED_FOR,
    POOL_FINALIZER,
)
from tests.infrastructure.kube import KubeServer, fresh_namespace
from tests.integrations.kubernetes.metal3.admission.admission_requests import (
    a_claim,
    a_pool,
    a_range,
    an_address,
    changed,
)
from tests.integrations.kubernetes.metal3.admission.hosted_admission import Answer, Applier, LiveView, hosted_admission
from tests.integrations.kubernetes.metal3.admission.seed_objects import SEED_OBJECTS

TEN = a_range("10.0.0.10", "10.0.0.19")
SEED = {each["kind"]: each for each in SEED_OBJECTS}


@pytest.fixture(scope="module")
def view(kube: KubeServer) -> LiveView:
    return LiveView(kube)


@pytest.fixture(scope="module")
def users(kube: KubeServer, view: LiveView) -> Iterator[Applier]:
    """Give a user whose objects the webhooks judge."""
    with fresh_namespace(kube) as namespace, hosted_admission(kube, namespace, view):
        applier = Applier(kube, namespace)
        deadline = time.monotonic() + 20
        # The server hears of the two configurations some time after it has stored them, one by one.
        while "finalizers" not in dry(applier, a_pool(TEN)) or dry(applier, a_pool({"end": "10.0.0.1"}), 422) is None:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield applier


def dry(applier: Applier, pool: dict[str, Any], status: int = 201) -> Any:
    """Return what the server would store as metadata of a pool, or nothing, if it does not answer so."""
    answer = applier.create(named(pool, "dry"), "dryRun=All")
    return answer.object["metadata"] if answer.status == status else None


def named(object: dict[str, Any], name: str) -> dict[str, Any]:
    return {**object, "metadata": {**object["metadata"], "name": name}}


def refused(answer: Answer, *texts: str) -> None:
    """Expect a refusal for these reasons, as Invalid."""
    assert (answer.status, answer.object["reason"]) == (422, "Invalid"), answer
    assert [text for text in texts if text not in answer.message] == [], answer.message


@pytest.mark.parametrize(
    ("pool", "text"),
    [
        pytest.param(changed(a_pool(TEN), namePrefix=None), "spec.namePrefix: Required value", id="A1-missing"),
        pytest.param(a_pool(TEN, namePrefix=""), "spec.namePrefix", id="A1-empty"),
        pytest.param(a_pool(TEN, allocationStrategy="lifo"), "spec.allocationStrategy", id="A3"),
        pytest.param(a_pool(TEN, prefix=129), "spec.prefix", id="A4-pool"),
        pytest.param(a_pool({**TEN, "prefix": 129}), "spec.pools[0].prefix", id="A4-entry"),
        pytest.param(
            a_pool({}),
            'denied the request: IPPool.ipam.metal3.io "p" is invalid: spec.pools[0]: Invalid value: {}: '
            "pool entry must specify at least one of start, end, or subnet",
            id="A5-empty",
        ),
        pytest.param(a_pool({"gateway": "10.0.0.1"}), "must specify at least one of start", id="A5-gateway"),
        pytest.param(
            a_pool(TEN, preAllocations={"a": "10.0.0.12", "b": "10.0.0.12"}),
            'spec.preAllocations.b: Invalid value: "10.0.0.12": IP address is already pre-allocated to claim "a"',
            id="A8",
        ),
        pytest.param(
            a_pool({"subnet": "fd00::/64"}, preAllocations={"a": "fd00::5", "b": "FD00:0::0005"}),
            "already pre-allocated to claim",
            id="A8-spellings",
        ),
        pytest.param(
            a_pool(TEN, preAllocations={"a": "10.0.0.9"}),
            'spec.preAllocations: Invalid value: "10.0.0.9": is out of bonds of the pools given',
            id="A10",
        ),
        pytest.param(
            a_pool({"start": "10.0.0.5"}, allocationStrategy="random"),
            'cannot be used with allocationStrategy "random"',
            id="A11-start",
        ),
        pytest.param(
            a_pool({"subnet": "fd00::/64"}, allocationStrategy="random"), "pool size exceeds int range", id="A11-size"
        ),
        pytest.param(a_pool({"end": "10.0.0.9"}), "either start or subnet is required", id="A19"),
        pytest.param(a_pool(TEN, tenure={"namespaces": ["A"]}), "spec.tenure.namespaces", id="6.4"),
        pytest.param(a_pool(TEN, namePrefix="P"), "spec.namePrefix", id="name"),
    ],
)
def test_a_pool_is_refused(users: Applier, pool: dict[str, Any], text: str) -> None:
    refused(users.create(pool), text)


@pytest.mark.parametrize(
    ("pool", "warning"),
    [
        pytest.param(a_pool(TEN), "", id="A2"),
        pytest.param(a_pool(a_range("10.0.0.5", "10.0.0.5")), "", id="A7"),
        pytest.param(
            a_pool(TEN, preAllocations={"a": "10.0.0.9"}, tenure={"outsidePreAllocations": "allow"}), "", id="A10-allow"
        ),
        pytest.param(a_pool({"start": "10.0.0.5"}), "", id="A12"),
        pytest.param(a_pool(TEN, gateway="10.0.0.11"), "10.0.0.11 is a gateway and is kept back", id="A20"),
        pytest.param(a_pool({**TEN, "subnet": "10.0.0.0/28"}), "10.0.0.19 lies outside subnet 10.0.0.0/28", id="KS5"),
        pytest.param(a_pool(), "the pool has no address to hand out", id="empty"),
    ],
)
def test_a_pool_is_accepted(users: Applier, pool: dict[str, Any], warning: str) -> None:
    answer = users.create(pool, "fieldValidation=Strict&dryRun=All")

    assert answer.status == 201, answer.message
    assert answer.object["spec"] == {**pool["spec"], "allocationStrategy": "sequential"}
    assert answer.object["metadata"]["finalizers"] == [POOL_FINALIZER]
    assert bool(answer.warnings) == bool(warning)
    assert warning in "".join(answer.warnings)


def test_several_errors_come_in_one_answer(users: Applier) -> None:
    """A18."""
    pool = a_pool({}, {"end": "10.0.0.9"}, preAllocations={"a": "10.0.0.9", "b": "10.0.0.9"})

    refused(users.create(pool), "is invalid: [spec.pools[0]:", ", spec.pools[1]: ", "already pre-allocated")


def test_the_operator_may_default_to_random_and_allow_what_lies_outside(users: Applier, view: LiveView) -> None:
    """KS6, A10."""
    view.default_strategy, view.allow_outside = "random", True
    try:
        answer = users.create(a_pool(TEN, preAllocations={"a": "10.0.0.9"}), "dryRun=All")
    finally:
        view.default_strategy, view.allow_outside = "sequential", False

    assert answer.object["spec"]["allocationStrategy"] == "random"


def test_a_pool_is_changed_within_what_is_in_use(users: Applier) -> None:
    """A13, A14, A15, A17."""
    pool = users.create(named(a_pool(TEN), "in-use")).object
    assert users.create(an_address("held", "10.0.0.12", "c1", pool="in-use")).status == 201

    refused(users.patch(pool, spec={"namePrefix": "q"}), "spec.namePrefix", "cannot be modified")
    refused(users.patch(pool, spec={"allocationStrategy": "random"}), "cannot be modified after creation")
    assert users.patch(pool, spec={"allocationStrategy": None}).object["spec"]["allocationStrategy"] == "sequential"
    refused(
        users.patch(pool, spec={"pools": [a_range("10.0.0.13", "10.0.0.19")]}),
        'spec.pools: Invalid value: "10.0.0.12": is in use but out of bounds of the pools given: '
        "IPAddress held is for claim c1",
    )
    more = [a_range("10.0.0.12", "10.0.0.30"), a_range("10.0.1.1", "10.0.1.9")]
    grown = users.patch(pool, spec={"pools": more, "gateway": "10.0.0.1", "dnsServers": ["192.0.2.53"]})
    assert (grown.status, grown.warnings) == (200, [])


def test_a_pool_that_is_older_than_the_webhook_can_be_cleaned_up(
    users: Applier, kube: KubeServer, view: LiveView
) -> None:
    """Its finalizers may go, whatever its ``spec`` says, and though the caches are not whole."""
    with fresh_namespace(kube) as namespace:
        unjudged = Applier(kube, namespace)
        bad = unjudged.create({**a_pool({"end": "10.0.0.9"}), "metadata": {"name": "old", "finalizers": ["x.dev/y"]}})
        assert bad.status == 201
        with hosted_admission(kube, namespace, view):
            deadline = time.monotonic() + 20
            while dry(unjudged, a_pool({"end": "10.0.0.1"}), 422) is None:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            view.synced = False
            try:
                early = unjudged.create(a_pool(TEN))
                labelled = unjudged.patch(bad.object, metadata={"labels": {"a": "b"}, "finalizers": []})
            finally:
                view.synced = True

    assert early.status == 503
    assert "try again" in early.message
    assert labelled.status == 200, labelled.message


def test_a_claim_gets_its_finalizer_and_names_a_pool(users: Applier) -> None:
    """B1, B2, B3, KP3."""
    claim = users.create(named(a_claim(), "claims"))
    assert claim.object["metadata"]["finalizers"] == [CLAIM_FINALIZER]
    assert claim.warnings == []

    refused(users.create(a_claim(pool="")), 'spec.pool.name: Invalid value: "": cannot be empty')
    for reference in ({"name": "q"}, {"namespace": "x"}, {"kind": "IPPool"}):
        refused(users.patch(claim.object, spec={"pool": reference}), "spec.pool: Invalid value", "cannot be modified")
    refused(
        users.create(a_claim(annotations={"ipAddress": "banana"})),
        'metadata.annotations.ipAddress: Invalid value: "banana": is not a valid IP address',
    )
    refused(users.patch(claim.object, metadata={"annotations": {"ipAddress": "x"}}), "metadata.annotations.ipAddress")


def test_a_copied_claim_loses_the_address_of_its_original(users: Applier) -> None:
    assert users.create(an_address("original", "10.9.0.1", "first", pool="copies")).status == 201
    original = users.create(a_claim("first", "copies")).object

    answer = users.create(
        a_claim("second", "copies", {OWN_ADDRESS: "10.9.0.1", PICKED_FOR: original["metadata"]["uid"]})
    )

    assert OWN_ADDRESS not in answer.object["metadata"].get("annotations", {})
    assert "IPAddress original holds 10.9.0.1 for IPClaim first" in "".join(answer.warnings)


def test_an_address_says_whose_it_is_and_keeps_to_it(users: Applier) -> None:
    """B4, B5, B6."""
    address = users.create(an_address("b", "10.8.0.1", "c", pool="b", prefix=24)).object

    nothing = {**an_address("x", "", ""), "spec": {}}
    refused(users.create(nothing), "spec.address", "spec.pool", "spec.claim")
    nameless = changed(an_address("x", "10.8.0.2", ""), pool={}, claim={})
    refused(
        users.create(nameless),
        'spec.pool.name: Invalid value: "": cannot be empty',
        'spec.claim.name: Invalid value: "": cannot be empty',
    )
    for change in ({"address": "10.8.0.2"}, {"pool": {"name": "q"}}, {"claim": {"name": "d"}}):
        refused(users.patch(address, spec=change), f"spec.{next(iter(change))}", "cannot be modified")
    assert (
        users.patch(address, spec={"prefix": 16, "gateway": "10.8.0.254", "dnsServers": ["192.0.2.53"]}).status == 200
    )
    refused(
        users.create(an_address("double", "10.8.0.1", "d", pool="b")),
        'spec.address: Invalid value: "10.8.0.1": is held by IPAddress b for IPClaim c',
    )


def test_the_seeds_objects_are_stored_in_todays_names(users: Applier) -> None:
    """KD1, KD2: names in lower case, no owner references, and the switch for what lies outside."""
    pool, address, claim = (lowered(SEED[kind]) for kind in ("IPPool", "IPAddress", "IPClaim"))
    pool["spec"]["tenure"] = {"outsidePreAllocations": "allow"}

    answers = [users.create(each) for each in (pool, address, claim)]

    assert [answer.status for answer in answers] == [201, 201, 201], answers
    stored = [answer.object["spec"] for answer in answers]
    assert stored[0] == {**pool["spec"], "allocationStrategy": "sequential"}
    assert stored[1] == {
        "address": "192.168.0.11",
        "claim": {"name": "rendereddata-1"},
        "pool": {"name": "pool-1"},
        "prefix": 24,
        "gateway": "192.168.0.1",
    }
    assert stored[2] == {"pool": {"name": "pool-1"}}
    assert [len(answer.warnings) for answer in answers] == [1, 4, 2]
    assert all("status" not in answer.object for answer in answers)


def lowered(object: Any) -> Any:
    """Return one of the seed's objects as KD1 allows to correct it."""
    if isinstance(object, list):
        return [lowered(each) for each in object]
    if isinstance(object, dict):
        kept = {name: value for name, value in object.items() if name not in ("ownerReferences", "namespace")}
        return {name.replace("RenderedData", "rendereddata"): lowered(value) for name, value in kept.items()}
    return object.lower() if str(object).startswith("RenderedData") else object
