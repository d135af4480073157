"""What pools give at their edges, and when they change: one operator serves all of these pools."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tenure.integrations.kubernetes.metal3 import pool_status
from tenure.integrations.kubernetes.metal3.ipam_controller import IpamController
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_CLAIM, IP_POOL, STORED_INDEXES, WHOLE_AGAIN
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.runtime.resource_types import Object, uid_of
from tests.infrastructure.kube import KubeServer, fresh_namespace
from tests.integrations.kubernetes.metal3.serving import Namespace, operator_in, until
from tests.scale import in_proof


class Place(NamedTuple):
    """A namespace, and the operator that serves it."""

    space: Namespace
    controller: IpamController

    def take(self, pool: str, *claims: str) -> list[Object]:
        """Create claims, and return their addresses."""
        for name in claims:
            self.space.claim(name, pool)
        return [self.space.served(name) for name in claims]


@pytest.fixture(scope="module")
def place(kube: KubeServer) -> Iterator[Place]:
    with fresh_namespace(kube) as name, operator_in(kube, name) as controller:
        yield Place(Namespace(kube, name), controller)


def pool(place: Place, name: str, *entries: Object, **spec: Any) -> Object:
    return place.space.create(IP_POOL, name, {"namePrefix": name, "pools": list(entries), **spec})


def one(address: str, **more: Any) -> Object:
    """Return an entry of one address."""
    return {"start": address, "end": address, **more}


def options(address: Object) -> tuple[object, ...]:
    return tuple(address["spec"].get(name) for name in ("prefix", "gateway", "dnsServers"))


def reasons(place: Place, claim: Object, count: int) -> dict[str, str]:
    """Wait until a claim has so many events, and return their notes by their reasons."""
    found = until(lambda: each if len(each := place.space.events(claim)) >= count else None)
    return {each["reason"]: each["note"] for each in found}


def test_ks4_an_entry_overrides_the_pool_one_by_one_and_what_was_given_is_not_refreshed(place: Place) -> None:
    usual = {"prefix": 24, "gateway": "10.4.0.1", "dnsServers": ["10.4.0.53"]}
    entries = [
        one("10.4.1.1", gateway="10.4.1.254"),
        one("10.4.2.1", prefix=26, dnsServers=["10.4.2.53", "10.4.2.54"]),
        one("10.4.3.1", subnet="10.4.3.0/27"),
    ]
    pool(place, "ks4", *entries, **usual)
    pool(place, "ks4-bare", one("10.4.3.5", subnet="10.4.3.0/27"), one("10.4.4.1"))
    given = [*place.take("ks4", "ks4-a", "ks4-b", "ks4-c"), *place.take("ks4-bare", "ks4-d", "ks4-e")]

    assert [options(each) for each in given] == [
        (24, "10.4.1.254", ["10.4.0.53"]),
        (26, "10.4.0.1", ["10.4.2.53", "10.4.2.54"]),
        (24, "10.4.0.1", ["10.4.0.53"]),
        (27, None, None),
        (None, None, None),
    ]
    changed = [{**entry, "gateway": "10.4.9.9", "prefix": 22, "dnsServers": ["10.4.9.53"]} for entry in entries]
    place.space.patch(IP_POOL, "ks4", {"spec": {"pools": [*changed, one("10.4.5.1", prefix=21)], "prefix": 23}})
    (late,) = place.take("ks4", "ks4-late")
    assert options(late) == (21, "10.4.0.1", ["10.4.0.53"])
    assert [place.space.served(f"ks4-{letter}") for letter in "abc"] == given[:3]


def test_ks5_a_range_that_sticks_out_of_its_subnet_gives_only_what_lies_inside(place: Place) -> None:
    """And events say on a claim what became of it: Served, or NotServed with the message."""
    entries = [
        {"start": "10.5.0.254", "end": "10.5.1.5", "subnet": "10.5.0.0/24"},
        {"start": "10.5.9.1", "end": "10.6.0.1", "subnet": "10.6.0.0/24"},
        {"start": "10.7.1.1", "end": "10.7.1.9", "subnet": "10.7.0.0/24"},
    ]
    pool(place, "ks5", *entries)
    given = place.take("ks5", "ks5-a", "ks5-b", "ks5-c", "ks5-d")
    late = place.space.claim("ks5-late", "ks5")

    assert [each["spec"]["address"] for each in given] == ["10.5.0.254", "10.5.0.255", "10.6.0.0", "10.6.0.1"]
    assert place.space.message("ks5-late", "E") == "Exhausted IP Pools"
    assert place.space.status("ks5")["addresses"]["total"] == 4
    assert reasons(place, late, 1) == {"NotServed": "Exhausted IP Pools"}
    first = place.space.get(IP_CLAIM, "ks5-a")
    assert first is not None
    assert reasons(place, first, 1) == {"Served": "IPAddress ks5-10-5-0-254 has 10.5.0.254"}


def test_kd9_a_gateway_that_is_held_already_stays_and_is_not_given_again(place: Place) -> None:
    pool(place, "kd9", {"start": "10.9.0.1", "end": "10.9.0.3"})
    (before,) = place.take("kd9", "kd9-a")
    place.space.patch(IP_POOL, "kd9", {"spec": {"gateway": "10.9.0.1", "pools": [{"subnet": "10.9.0.0/30"}]}})
    (second,) = place.take("kd9", "kd9-b")

    assert second["spec"]["address"] == "10.9.0.2"
    assert uid_of(place.space.served("kd9-a")) == uid_of(before)
    place.space.delete(IP_CLAIM, "kd9-a")
    place.space.gone(IP_CLAIM, "kd9-a")
    place.space.claim("kd9-c", "kd9")
    assert place.space.message("kd9-c", "E") == "Exhausted IP Pools"


def test_a17_changed_options_and_an_added_entry_count_for_new_claims_only(place: Place) -> None:
    pool(place, "a17", one("10.17.0.1"), one("10.17.0.2"), gateway="10.17.0.254", dnsServers=["10.17.0.53"])
    (before,) = place.take("a17", "a17-a")
    entries = [one("10.17.0.1"), one("10.17.0.2"), one("10.17.1.1", gateway="10.17.1.254")]
    change = {"pools": entries, "gateway": "10.17.0.253", "dnsServers": ["10.17.0.54"], "prefix": 24}
    place.space.patch(IP_POOL, "a17", {"spec": change})
    second, third = place.take("a17", "a17-b", "a17-c")

    assert (second["spec"]["address"], *options(second)) == ("10.17.0.2", 24, "10.17.0.253", ["10.17.0.54"])
    assert (third["spec"]["address"], *options(third)) == ("10.17.1.1", 24, "10.17.1.254", ["10.17.0.54"])
    assert place.space.served("a17-a") == before


def test_c23_a_pre_allocation_of_an_address_that_another_claim_holds_names_the_holder(place: Place) -> None:
    """No hot loop: while it waits, nothing is looked at again and again."""
    pool(place, "c23", {"start": "10.23.0.1", "end": "10.23.0.9"})
    place.take("c23", "c23-a")
    place.space.patch(IP_POOL, "c23", {"spec": {"preAllocations": {"late": "10.23.0.1"}}})
    place.space.claim("late", "c23")

    assert place.space.message("late", "P") == "Pre-allocated IP 10.23.0.1 is held by IPClaim c23-a"
    until(lambda: place.space.status("c23")["addresses"]["waiting"] == 1)
    with passes_over(place, "c23") as passes:
        until(lambda: is_quiet(passes))  # the last looks at the status may still be under way
    place.space.delete(IP_CLAIM, "c23-a")
    assert place.space.ip("late") == "10.23.0.1"


def is_quiet(passes: list[PoolId]) -> bool:
    """Return whether a second goes by without a pass."""
    before = len(passes)
    time.sleep(1.0)
    return len(passes) == before


@contextlib.contextmanager
def passes_over(place: Place, pool: str) -> Iterator[list[PoolId]]:
    """Note the passes over a pool, each of which tidies up at its end."""
    records, passes = place.controller.caches.records, list[PoolId]()
    tidy = records.tidy

    def noted(key: PoolId) -> None:
        passes.extend([key] if key[1] == pool else [])
        tidy(key)

    records.tidy = noted  # type: ignore[assignment, method-assign]
    try:
        yield passes
    finally:
        del records.__dict__["tidy"]


def test_c25_an_address_far_into_a_wide_pool_is_found_as_soon_as_a_near_one(place: Place) -> None:
    pool(place, "c25", {"subnet": "fd25::/64"})
    took = {}
    for name, wish in {"warm": "fd25::1", "near": "fd25::2", "far": "fd25::1000:0:0:1"}.items():
        began = time.monotonic()
        place.space.claim(f"c25-{name}", "c25", annotations={"ipAddress": wish})
        assert place.space.ip(f"c25-{name}") == wish
        took[name] = time.monotonic() - began

    assert took["far"] < 3 * took["near"] + 0.5
    place.space.claim("c25-again", "c25", annotations={"ipAddress": "fd25:0:0:0:1000:0000:0:1"})
    assert place.space.message("c25-again", "R") == "Requested IP not available"


def test_names_of_253_letters_are_served(place: Place) -> None:
    """Of the pool, of the claim, and of the address: the longest prefix and the longest address fit."""
    name, claim, prefix = "p" * 253, "c" * 253, "x" * 237
    place.space.create(IP_POOL, name, {"namePrefix": prefix, "pools": [one("100.100.100.100")]})
    place.space.claim(claim, name)
    address = place.space.served(claim)["metadata"]["name"]

    assert (address, len(address)) == (f"{prefix}-100-100-100-100", 253)
    until(lambda: place.space.indexes(name) == {claim: "100.100.100.100"})
    place.space.delete(IP_CLAIM, claim)
    place.space.gone(IP_CLAIM, claim)


@pytest.mark.parametrize(("stored", "whole_again"), [(4, 2), in_proof(STORED_INDEXES, WHOLE_AGAIN)])
def test_kd4_a_full_list_of_claims_is_emptied_and_comes_back(
    place: Place, monkeypatch: pytest.MonkeyPatch, stored: int, whole_again: int
) -> None:
    """In ``make test`` with a limit that a few claims reach."""
    monkeypatch.setattr(pool_status, "STORED_INDEXES", stored)
    monkeypatch.setattr(pool_status, "WHOLE_AGAIN", whole_again)
    name, space = f"kd4-{stored}", place.space
    pool(place, name, {"start": "10.40.0.1", "end": "10.40.99.254"})
    names = [f"{name}-{number}" for number in range(stored + 1)]

    def counted(used: int, shown: int) -> None:
        until(lambda: space.status(name)["addresses"]["used"] == used and len(space.indexes(name)) == shown, 300)

    for each in names[:-1]:
        space.claim(each, name)
    counted(stored, stored)
    space.claim(names[-1], name)
    counted(stored + 1, 0)
    for each in names[: stored - whole_again]:
        space.delete(IP_CLAIM, each)
    counted(whole_again + 1, 0)
    space.delete(IP_CLAIM, names[-1])
    counted(whole_again, whole_again)
    assert set(space.indexes(name)) == set(names[stored - whole_again : -1])
