"""The two webhooks as a whole: which requests they judge, and that no object makes them fail."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3.admission.ipam_admission import IpamAdmission
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import OWN_ADDRESS
from tests.integrations.kubernetes.metal3.admission.admission_requests import (
    View,
    a_claim,
    a_pool,
    a_range,
    a_request,
    an_address,
    applied,
    changed,
)

POOL = a_pool(
    {"subnet": "10.0.0.0/24", "gateway": "10.0.0.1", "prefix": 24, "dnsServers": ["192.0.2.53"]},
    a_range("fd00::1", "fd00::9"),
    allocationStrategy="random",
    preAllocations={"a": "10.0.0.5"},
    tenure={"drain": ["10.0.0.9"], "outsidePreAllocations": "allow", "external": False, "ledger": {"network": "n"}},
)
CLAIM = a_claim(
    annotations={OWN_ADDRESS: "10.0.0.5", "ipAddress": "10.0.0.5"}, tenure={"address": "10.0.0.5"}, owner={"name": "o"}
)
ADDRESS = {
    **an_address("a", "10.0.0.5", "c", Address="10.0.0.5"),
    "status": {"ready": True},
}
ODD: list[Any] = [None, False, True, -1, 1.5, 10**30, "", "x", "1/" + "9" * 5000, [], [1, None], {}, {"a": [1]}]


def with_odd_parts(object: Any) -> Iterator[Any]:
    """Yield an object with each of its parts, in turn, replaced by each odd value."""
    yield from ODD
    parts = object.items() if isinstance(object, dict) else enumerate(object) if isinstance(object, list) else ()
    for place, part in parts:
        for odd in with_odd_parts(part):
            crooked = copy.copy(object)
            crooked[place] = odd
            yield crooked


@pytest.mark.parametrize("whole", [POOL, CLAIM, ADDRESS], ids=["IPPool", "IPClaim", "IPAddress"])
async def test_no_object_makes_a_webhook_fail(whole: dict[str, Any]) -> None:
    """Objects may be of any shape: definitions may be Metal3's, and some are older than the webhook."""
    admission = IpamAdmission(View([an_address("b", "10.0.0.5", "d"), an_address("c", "10.0.0.6", "c")]))
    kind, judged = whole["kind"], 0
    for crooked in with_odd_parts(whole):
        for request in (
            a_request(crooked, kind=kind),
            a_request(crooked, whole, kind),
            a_request(whole, crooked, kind),
        ):
            decision = await admission.mutate(request)
            if isinstance(request.object, dict):
                applied(request.object, decision.patch)
            refused = await admission.validate(request)
            assert refused.code == 422
            judged += 1

    assert judged > 500


async def test_nothing_is_decided_before_the_caches_are_whole() -> None:
    """An address that is not in the cache yet could be given twice; the author tries again."""
    admission = IpamAdmission(View(synced=False))

    for request in (a_request(POOL), a_request(changed(POOL, prefix=25), POOL), a_request(CLAIM), a_request(ADDRESS)):
        for decide in (admission.mutate, admission.validate):
            decision = await decide(request)
            assert (decision.code, decision.reason, decision.patch) == (503, "ServiceUnavailable", ())
            assert "try again" in decision.errors[0]


async def test_finalizers_may_go_before_the_caches_are_whole() -> None:
    admission = IpamAdmission(View(synced=False))
    going = {**POOL, "metadata": {**POOL["metadata"], "finalizers": []}}

    assert (await admission.validate(a_request(going, POOL))).errors == ()
    assert (await admission.mutate(a_request(going, POOL))).errors == ()


async def test_other_kinds_and_requests_without_an_object_pass() -> None:
    admission = IpamAdmission(View(synced=False))

    for request in (a_request({"kind": "Cluster", "metadata": {}}), a_request(None, POOL, "IPPool")):
        for decide in admission.admissions.values():
            assert (await decide(request)).errors == ()


async def test_an_object_without_a_name_is_refused_by_the_name_it_begins_with() -> None:
    pool = changed(POOL, allocationStrategy="lifo")
    pool["metadata"] = {"namespace": "m3", "generateName": "pool-"}

    decision = await IpamAdmission(View()).validate(a_request(pool))

    assert decision.errors[0].startswith('IPPool.ipam.metal3.io "pool-" is invalid: ')
