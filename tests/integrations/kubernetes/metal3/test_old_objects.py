"""Objects from before the webhooks: whatever they say, nothing crashes, others go on, and an event says why."""

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM, IP_POOL, OWN_ADDRESS
from tenure.integrations.kubernetes.runtime import packed_objects
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.metal3.cluster_api_user import ClusterApiUser
from tests.integrations.kubernetes.metal3.serving import Namespace, operator_in, until


def test_a_pool_that_cannot_be_read_gives_nothing_and_says_why(kube: KubeServer, unserved: Namespace) -> None:
    entries: dict[str, dict[str, Any]] = {
        "end only": {"end": "10.0.0.9"},
        "backwards": {"start": "10.0.0.9", "end": "10.0.0.1"},
    }
    entries |= {"two families": {"start": "10.0.0.1", "end": "fd00::1"}, "nothing": {"prefix": 24}}
    for number, entry in enumerate(entries.values()):
        spec = {"namePrefix": f"p{number}", "pools": [{"start": "10.1.0.1", "end": "10.1.0.9"}, entry]}
        unserved.create(IP_POOL, f"p{number}", spec)
        unserved.claim(f"c{number}", f"p{number}")
    with operator_in(kube, unserved.name, webhooks=False):
        unserved.pool("p", "10.0.0.1-10.0.0.9")
        unserved.claim("fine")
        assert unserved.ip("fine") == "10.0.0.1"
        for number in range(len(entries)):
            assert unserved.message(f"c{number}", f"IPPool p{number} cannot be read: spec.pools[1]")
            pool = unserved.get(IP_POOL, f"p{number}")
            assert pool is not None
            until(lambda pool=pool: "SpecInvalid" in {each["reason"] for each in unserved.events(pool)})  # type: ignore[misc]
        unserved.patch(IP_POOL, "p0", {"spec": {"pools": [{"start": "10.2.0.1", "end": "10.2.0.9"}]}})
        assert unserved.ip("c0") == "10.2.0.1"


@pytest.mark.parametrize("wish", ["banana", "10.0.0.0/24", "fd00::1%eth0", "10.0.0.1, 10.0.0.2", "\u0661\u0660.0.0.1"])
def test_an_annotation_with_rubbish_is_answered_and_holds_up_nobody(
    kube: KubeServer, unserved: Namespace, wish: str
) -> None:
    unserved.pool("p", "10.0.0.1-10.0.0.9")
    unserved.claim("c1", annotations={"ipAddress": wish})
    unserved.claim("c2", annotations={OWN_ADDRESS: wish})
    with operator_in(kube, unserved.name, webhooks=False):
        assert unserved.message("c1", "Invalid") == f'Invalid ipAddress annotation "{wish}": not a valid IP address'
        assert unserved.ip("c2") == "10.0.0.1"
        unserved.patch(IP_CLAIM, "c1", {"metadata": {"annotations": {"ipAddress": "10.0.0.7"}}})
        assert unserved.ip("c1") == "10.0.0.7"
        assert "errorMessage" not in (unserved.get(IP_CLAIM, "c1") or {})["status"]


def nested(levels: int) -> Object:
    """Return an object of so many levels."""
    found: Object = {}
    for _ in range(levels):
        found = {"below": found}
    return found


@contextlib.contextmanager
def reading_deeply() -> Iterator[None]:
    """Let the JSON of the standard library, by which tests ask the server, go as deep as the server does."""
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(usual)


def test_objects_that_are_nested_deeply_hide_and_hold_up_no_others(
    kube: KubeServer, unserved: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the definition keeps unknown fields, the server takes 10,000 levels; orjson reads 1,024 and writes 254."""
    monkeypatch.setattr(packed_objects, "RECENT", 2)
    unserved.pool("p", "10.0.0.1-10.0.0.9")
    bombs = {f"deep-{levels}": levels for levels in (300, 900, 3_000)}
    with reading_deeply():
        for name, levels in bombs.items():
            unserved.create(IP_CLAIM, name, {"pool": {"name": "p"}, "owner": nested(levels)})
    with operator_in(kube, unserved.name, webhooks=False):
        for number in range(4):
            unserved.claim(f"c{number}")
        given = {unserved.ip(f"c{number}") for number in range(4)}
        with reading_deeply():
            given |= {unserved.ip(name) for name in bombs}
        assert given == {f"10.0.0.{number}" for number in range(1, 8)}
        unserved.patch(IP_POOL, "p", {"status": {"allocations": nested(300)}}, "status")
    with operator_in(kube, unserved.name, webhooks=False):
        unserved.claim("c4")
        assert unserved.ip("c4") not in given
        with reading_deeply():
            for name in ("c0", *bombs):
                unserved.delete(IP_CLAIM, name)
                unserved.gone(IP_CLAIM, name)


def test_addresses_and_claims_that_name_nothing_are_left_alone(kube: KubeServer, unserved: Namespace) -> None:
    """An event says what is missing; a claim for the pools of another program is none of ours, and has none."""
    unserved.pool("p", "10.0.0.1-10.0.0.9")
    silent = [
        unserved.create(IP_CLAIM, "no-pool", {"pool": {}}),
        unserved.create(IP_ADDRESS, "no-names", {"address": "10.0.0.1", "pool": {}, "claim": {}}),
        unserved.create(IP_ADDRESS, "no-claim", {"address": "10.0.0.5", "pool": {"name": "p"}, "claim": {}}),
        ClusterApiUser(unserved).address("no-address", "banana", "c2"),
    ]
    other = unserved.create(IP_CLAIM, "other-kind", {"pool": {"name": "p", "kind": "InClusterIPPool"}})
    with operator_in(kube, unserved.name, webhooks=False):
        unserved.claim("c1")
        assert unserved.ip("c1") == "10.0.0.1"
        silent.append(unserved.create(IP_CLAIM, "no-pool-later", {"pool": {}}))
        for each in silent:
            until(lambda each=each: "Unreadable" in reasons(unserved, each))  # type: ignore[misc]
        assert reasons(unserved, other) == []
        for name in ("no-pool", "other-kind"):
            claim = unserved.get(IP_CLAIM, name)
            assert claim is not None
            assert "finalizers" not in claim["metadata"]
            unserved.delete(IP_CLAIM, name)
            unserved.gone(IP_CLAIM, name)


def reasons(space: Namespace, object: Object) -> list[str]:
    """Return why an object has events."""
    return [each["reason"] for each in space.events(object)]


def test_two_addresses_for_one_position_or_one_claim_are_respected(kube: KubeServer, unserved: Namespace) -> None:
    unserved.pool("p", "10.0.0.1-10.0.0.3")
    unserved.address("one", "10.0.0.1", "c1")
    unserved.address("two", "10.0.0.1", "c2")
    unserved.address("three", "10.0.0.2", "c1")
    with operator_in(kube, unserved.name, webhooks=False):
        for name in ("c1", "c2", "c3"):
            unserved.claim(name)
        assert unserved.ip("c3") == "10.0.0.3"
        assert unserved.ip("c2") == "10.0.0.1"
        assert unserved.ip("c1") in ("10.0.0.1", "10.0.0.2")
        unserved.delete(IP_CLAIM, "c2")
        unserved.gone(IP_ADDRESS, "two")
        unserved.claim("c4")
        assert unserved.message("c4", "E") == "Exhausted IP Pools"
        unserved.delete(IP_CLAIM, "c1")
        unserved.gone(IP_CLAIM, "c1")
        assert unserved.ip("c4") in ("10.0.0.1", "10.0.0.2")


def test_a_pool_of_thousands_of_ranges_is_served(kube: KubeServer, unserved: Namespace) -> None:
    entries = [
        {"start": f"10.{a}.{b}.{c}", "end": f"10.{a}.{b}.{c}"}
        for a in range(2)
        for b in range(10)
        for c in range(0, 250, 2)
    ]
    unserved.create(IP_POOL, "p", {"namePrefix": "p", "pools": entries})
    with operator_in(kube, unserved.name):
        began = time.monotonic()
        for number in range(5):
            unserved.claim(f"c{number}")
        assert unserved.ip("c4") == "10.0.0.8"
        assert time.monotonic() - began < 5
        until(lambda: unserved.status().get("addresses"))
        assert unserved.status()["addresses"]["total"] == 2500


def test_ipv6_in_odd_spellings_is_one_address(kube: KubeServer, unserved: Namespace) -> None:
    unserved.pool("p", "FD00:0:0::1-fd00::0003", preAllocations={"kept": "fd00:0000::2"}, gateway="fd00:0::3")
    with operator_in(kube, unserved.name, webhooks=False):
        unserved.claim("c1")
        assert unserved.ip("c1") == "fd00::1"
        unserved.claim("c2")
        assert unserved.message("c2", "E") == "Exhausted IP Pools"
        unserved.claim("kept")
        assert unserved.served("kept")["metadata"]["name"] == "p-fd00--2"
