"""Every rule for pools, claims and addresses: objects are applied to a real API server, which asks a running operator.

The tables are those of the tests without a server. One operator serves all, so what is applied is a dry run where it
need not stay.
"""

import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pytest

from tenure.integrations.kubernetes.metal3.ipam_controller import IpamController
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import CLUSTER_API
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLAIM_FINALIZER,
    CLUSTER_API_CLAIM,
    IP_POOL,
    OWN_ADDRESS,
    PAUSED,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.kernel.addressing.addresses import parse_address
from tests.infrastructure.kube import KubeServer, fresh_namespace
from tests.integrations.kubernetes.metal3.admission.admission_requests import (
    a_claim,
    a_cluster_api_address,
    a_pool,
    a_range,
    an_address,
    an_object,
    changed,
)
from tests.integrations.kubernetes.metal3.admission.hosted_admission import Answer, Applier
from tests.integrations.kubernetes.metal3.admission.test_address_admission import CHANGES
from tests.integrations.kubernetes.metal3.admission.test_claim_admission import OTHER_REFERENCES, RUBBISH
from tests.integrations.kubernetes.metal3.admission.test_pool_admission import (
    LONGEST_PREFIXES,
    MAPPED_POOLS,
    NO_PREFIXES,
    TEN,
)
from tests.integrations.kubernetes.metal3.admission.test_pool_warnings import ODD_POOLS, USUAL_POOLS
from tests.integrations.kubernetes.metal3.claim_specs import claim_spec
from tests.integrations.kubernetes.metal3.objects.test_pool_spec import ENTRIES
from tests.integrations.kubernetes.metal3.serving import operator_in, until

DRY = "fieldValidation=Strict&dryRun=All"


class Court(NamedTuple):
    """A user whose objects a running operator judges."""

    user: Applier
    controller: IpamController

    def judge(self, object: Object) -> Answer:
        """Apply a new object, which is not stored."""
        return self.user.create(object, DRY)

    def change(self, object: Object, **parts: Any) -> Answer:
        """Apply a change, which is not stored."""
        return self.user.patch(object, DRY, **parts)

    def store(self, object: Object) -> Object:
        """Apply an object that stays."""
        answer = self.user.create(object)
        assert answer.status == 201, answer.message
        stored: Object = answer.object
        return stored

    def hold(self, address: Object) -> Object:
        """Apply an address, and wait until the operator has seen it."""
        stored = self.store(address)
        addresses = self.controller.caches.objects.all_addresses
        until(lambda: any(each["metadata"]["uid"] == stored["metadata"]["uid"] for each in addresses()))
        return stored


@pytest.fixture(scope="module")
def court(kube: KubeServer) -> Iterator[Court]:
    """Give a namespace whose objects the operator's own webhooks judge."""
    with fresh_namespace(kube) as namespace, operator_in(kube, namespace) as controller:
        court = Court(Applier(kube, namespace), controller)
        deadline = time.monotonic() + 20
        # The server hears of the two configurations some time after it has stored them, one by one.
        while not _is_heard(court):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield court


def _is_heard(court: Court) -> bool:
    filled, judged = court.judge(a_claim(pool="heard")), court.judge(a_pool({"end": "10.0.0.1"}))
    return (filled.object["metadata"].get("finalizers"), judged.status) == ([CLAIM_FINALIZER], 422)


def mistaken(answers: Iterable[tuple[str, Answer]]) -> list[str]:
    """Return the answers that are no refusal as Invalid for the reason given."""
    return [
        f"{reason}: {answer.status} {answer.object.get('message')}"
        for reason, answer in answers
        if (answer.status, answer.object.get("reason")) != (422, "Invalid") or reason not in answer.message
    ]


REFUSED_POOLS: list[tuple[str, Object]] = [
    ("end IP 10.0.0.5 is before start IP 10.0.0.9", a_pool(a_range("10.0.0.9", "10.0.0.5"))),
    ("spec.pools[0]: Invalid value: ", a_pool(a_range("10.0.0.1", "fd00::1"))),
    ("start, end and subnet must be of one address family", a_pool(a_range("10.0.0.1", "fd00::1"))),
    ("must be of one address family", a_pool({"start": "fd00::1", "subnet": "10.0.0.0/24"})),
    ("spec.gateway", a_pool(TEN, gateway="10.0.0")),
    ("spec.dnsServers[0]", a_pool(TEN, dnsServers=["banana"])),
    ("spec.pools[0].gateway", a_pool({**TEN, "gateway": "10.0.0.256"})),
    ("spec.pools[0].dnsServers[1]", a_pool({**TEN, "dnsServers": ["10.0.0.1", "x"]})),
    ("spec.pools[0].subnet", a_pool({"subnet": "10.0.0.0/33"})),
    ("spec.preAllocations.a", a_pool(TEN, preAllocations={"a": "10.0.0"})),
    ("spec.tenure.drain[0]: Invalid value: ", a_pool(TEN, tenure={"drain": ["10.0.0.9-10.0.0.1"]})),
    (
        "spec.tenure.coolingSeconds: Invalid value: 5: cannot be used with spec.tenure.ledger",
        a_pool(TEN, tenure={"coolingSeconds": 5, "ledger": {"network": "n", "realm": "r", "secretName": "s"}}),
    ),
    *(("spec.namePrefix: Invalid value: ", a_pool(TEN, namePrefix=prefix)) for prefix in NO_PREFIXES),
    *(
        (f"at most {longest} characters fit", a_pool(entry, namePrefix="p" * (longest + 1)))
        for entry, longest in LONGEST_PREFIXES
    ),
    *(("Invalid value: ", pool) for pool in MAPPED_POOLS),
]


def test_pools_are_refused(court: Court) -> None:
    assert mistaken((reason, court.judge(pool)) for reason, pool in REFUSED_POOLS) == []


def test_odd_pools_are_accepted_with_a_warning_and_usual_ones_without(court: Court) -> None:
    """KS5, A7, A12, A20."""
    drained = {"drain": ["10.0.0.11", "10.0.0.12-10.0.0.13", "10.0.0.16/31"], "external": True, "outlivesCluster": True}
    longest = [a_pool(entry, namePrefix="p" * length) for entry, length in LONGEST_PREFIXES]
    odd = [(court.judge(pool), warning) for pool, warning in ODD_POOLS]
    usual = [court.judge(pool) for pool in (*USUAL_POOLS, *longest, a_pool(TEN, tenure=drained))]

    assert [answer.message for answer in (*usual, *(each for each, _ in odd)) if answer.status != 201] == []
    assert [(warning, answer.warnings) for answer, warning in odd if warning not in "".join(answer.warnings)] == []
    assert [answer.warnings for answer in usual if answer.warnings] == []
    many = court.judge(a_pool(*[TEN] * 50))
    assert "and 40 more warnings" in "".join(many.warnings)


def test_every_shape_of_an_entry_that_can_be_read_is_accepted(court: Court) -> None:
    """C7, C8, KD9."""
    answers = [court.judge(a_pool(entry)) for entry, _, _ in ENTRIES]

    assert [answer.message for answer in answers if answer.status != 201] == []


def test_changes_of_a_pool_are_refused(court: Court) -> None:
    """A10, A13, A14: on an update the text says bounds."""
    pool = court.store({**a_pool(TEN), "metadata": {"name": "changes"}})
    changes: list[tuple[str, Object]] = [
        ('"q": cannot be modified', {"namePrefix": "q"}),
        ('"random": cannot be modified after creation', {"allocationStrategy": "random"}),
        ('"10.0.0.9": is out of bounds of the pools given', {"preAllocations": {"a": "10.0.0.9"}}),
        ("end IP 10.0.0.5 is before start IP 10.0.0.9", {"pools": [a_range("10.0.0.9", "10.0.0.5")]}),
        ("at most 213 characters fit", {"pools": [TEN], "namePrefix": "p" * 214, "preAllocations": {"a": "fd00::1"}}),
    ]

    assert mistaken((reason, court.change(pool, spec=spec)) for reason, spec in changes) == []
    allowed = {"preAllocations": {"a": "10.0.0.9"}, "tenure": {"outsidePreAllocations": "allow"}}
    assert court.change(pool, spec=allowed).status == 200


def test_claims_are_refused(court: Court) -> None:
    """B1, B3, and what is ours: an address and ranges in the ``spec``."""
    both = a_claim(annotations={"ipAddress": "10.0.0.6"}, tenure={"address": "10.0.0.5"})
    claims = [
        ('spec.pool.name: Invalid value: "": cannot be empty', changed(a_claim(), pool={})),
        ("spec.tenure.address", a_claim(tenure={"address": "banana"})),
        ("spec.tenure.ranges[0]", a_claim(tenure={"ranges": ["banana"]})),
        ("differs from annotation ipAddress, 10.0.0.6; write only one of them", both),
        *(
            (f'metadata.annotations.{name}: Invalid value: "{value}": is', a_claim(annotations={name: value}))
            for name in ("ipAddress", OWN_ADDRESS)
            for value in RUBBISH
        ),
    ]

    assert mistaken((reason, court.judge(claim)) for reason, claim in claims) == []
    accepted = [
        a_claim(annotations={"ipAddress": ""}),
        changed(a_claim(), pool={"name": "p", "namespace": "other"}),
        a_claim(annotations={"ipAddress": "FD00:0::5"}, tenure={"address": "fd00::5"}),
    ]
    assert [court.judge(claim).status for claim in accepted] == [201] * 3


def test_changes_of_a_claim_are_refused(court: Court) -> None:
    """B2, B3: an address was picked by what the claim asked for then."""
    plain = court.store(a_claim("plain"))
    asking = court.store(a_claim("asking", tenure={"address": "10.0.0.5"}))
    rubbish = [{"annotations": {name: "x"}} for name in ("ipAddress", OWN_ADDRESS)]
    answers = [
        *(("spec.pool: Invalid value: ", court.change(plain, spec={"pool": each})) for each in OTHER_REFERENCES),
        *(("metadata.annotations.ip", court.change(plain, metadata=each)) for each in rubbish),
        ("cannot be modified", court.change(asking, spec={"tenure": {"address": "10.0.0.6"}})),
        ("cannot be modified", court.change(asking, spec={"tenure": None})),
        ("write only one of them", court.change(asking, metadata={"annotations": {"ipAddress": "10.0.0.6"}})),
    ]

    assert mistaken(answers) == []
    assert court.change(plain, spec={"tenure": {"address": "10.0.0.5"}}).status == 200
    assert court.change(plain, spec={"pool": {"apiVersion": "ipam.metal3.io/v1alpha1"}}).status == 200


def test_claims_of_cluster_api_are_judged_where_they_are_for_our_pools(court: Court) -> None:
    claims = [an_object(CLUSTER_API_CLAIM, "c", claim_spec(CLUSTER_API, "p"), annotations={"ipAddress": "x"})]
    others = {"poolRef": {"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "p"}}
    theirs = court.judge(an_object(CLUSTER_API_CLAIM, "c", others, annotations={"ipAddress": "x"}))

    assert mistaken(("metadata.annotations.ipAddress", court.judge(claim)) for claim in claims) == []
    assert (theirs.status, "finalizers" in theirs.object["metadata"]) == (201, False)


def test_addresses_and_their_changes_are_refused(court: Court) -> None:
    """B4, B5, and the early spellings of KD2."""
    stored = court.hold(an_address("stored", "10.0.0.5", "c", pool="p"))
    both = changed(an_address("a", "10.0.0.7", "c"), Address="10.0.0.6", pool={"name": "p", "Name": "q"})
    addresses = [
        ('spec.pool.name: Invalid value: "": cannot be empty', changed(an_address("a", "10.0.0.7", "c"), pool={})),
        ('spec.claim.name: Invalid value: "": cannot be empty', changed(an_address("a", "10.0.0.7", "c"), claim={})),
        *(("spec.address: Invalid value: ", an_address("a", text, "c")) for text in ("banana", "::ffff:10.0.0.5")),
        ("write spec.address alone", both),
        ("write spec.pool.name alone", both),
    ]

    assert mistaken((reason, court.judge(address)) for reason, address in addresses) == []
    answers = [
        (f"spec.{field}: Invalid value: ", court.change(stored, spec={field: value})) for field, value in CHANGES
    ]
    assert mistaken(answers) == []
    assert [answer.message.count("cannot be modified") > 0 for _, answer in answers] == [True] * len(CHANGES)
    allowed = court.change(stored, spec={"prefix": 16, "gateway": "10.0.0.1", "dnsServers": ["192.0.2.53"]})
    assert allowed.status == 200


def test_an_address_is_not_held_by_two_objects_of_either_kind(court: Court) -> None:
    """A second object for one claim is accepted with a warning."""
    court.hold(an_address("one", "fd00::5", "d", pool="held"))
    court.hold(a_cluster_api_address("two", "10.9.0.6", "e", pool="held"))
    by_metal3s, by_cluster_apis = (
        "is held by IPAddress one for IPClaim d",
        "is held by IPAddress two for IPAddressClaim e",
    )
    answers = [
        (by_metal3s, court.judge(an_address("a", "FD00:0::0005", "c", pool="held"))),
        (by_metal3s, court.judge(an_address("a", "fd00::5", "d", pool="held"))),
        (by_cluster_apis, court.judge(an_address("two", "10.9.0.6", "c", pool="held"))),
        (by_cluster_apis, court.judge(a_cluster_api_address("third", "10.9.0.6", "f", pool="held"))),
    ]

    assert mistaken(answers) == []
    other = court.judge(an_address("a", "fd00::5", "nobody", pool="another"))
    more = court.judge(an_address("a", "fd00::6", "d", pool="held"))
    assert (other.status, other.warnings, more.status) == (201, [], 201)
    assert "IPClaim d has IPAddress one already" in "".join(more.warnings)


def test_an_address_that_a_claim_is_about_to_get_is_refused_to_others(court: Court) -> None:
    """Its object may be on its way; one for the claim itself is welcome (KS2)."""
    court.store({**a_pool(TEN), "metadata": {"name": "promised", "annotations": {PAUSED: ""}}})
    court.store(a_claim("waits", "promised", {OWN_ADDRESS: "10.0.0.15"}))
    place = PoolId(court.user.namespace, "promised"), parse_address("10.0.0.15")
    until(lambda: court.controller.caches.records.claims_at(*place))
    refused = court.judge(an_address("a", "10.0.0.15", "vip", pool="promised"))

    assert mistaken([("spec.address: Invalid value: ", refused), ("is the address of IPClaim waits", refused)]) == []
    assert court.judge(an_address("a", "10.0.0.15", "waits", pool="promised")).status == 201


def test_a_pool_that_shares_addresses_with_another_of_its_namespace_is_stored_with_a_warning(court: Court) -> None:
    first = an_object(IP_POOL, "left", {"namePrefix": "left", "pools": [a_range("10.77.0.1", "10.77.0.9")]})
    court.store(first)
    until(lambda: court.controller.caches.objects.pools.get(PoolId(court.user.namespace, "left")))
    second = an_object(IP_POOL, "right", {"namePrefix": "right", "pools": [a_range("10.77.0.5", "10.77.0.20")]})
    stored = court.user.create(second)

    assert stored.status == 201
    (warning,) = stored.warnings
    assert "spec.pools: it shares 10.77.0.5-10.77.0.9 with IPPool left: each may give an address that " in warning

    def shared(name: str) -> list[str]:
        pool = court.controller.caches.objects.pools.get(PoolId(court.user.namespace, name)) or {}
        conditions = ((pool.get("status") or {}).get("tenure") or {}).get("conditions") or []
        return [each["message"] for each in conditions if each["type"] == "Overlapping"]

    until(lambda: shared("left") and shared("right"))
    assert "10.77.0.5-10.77.0.9 with IPPool right" in shared("left")[0]
    metrics = {(each.name, each.labels.get("pool")): each.value for each in court.controller.samples()}
    assert metrics["tenure_operator_pool_overlaps", "left"] == 1
