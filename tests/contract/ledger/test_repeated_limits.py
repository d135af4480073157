"""Asking again for something else: what an owner's slot holds is an answer only where it satisfies what is asked."""

from collections.abc import Mapping
from typing import Any

import pytest

import tenure

Ledger = tenure.AsyncLedger

FOUR, SIX = "192.0.2.10", "2001:db8::10"

SATISFIED: list[Mapping[str, Any]] = [
    {},
    {"pool": "v4"},
    {"subnet": "four"},
    {"subnet": "192.0.2.0/24"},
    {"zone": "z1"},
    {"family": "ipv4"},
    {"address": FOUR},
    {"policy": "random"},
    {"pool": "v4", "subnet": "four", "zone": "z1", "family": "ipv4"},
]
"""What the holding of 192.0.2.10 is an answer to."""

REFUSED: list[tuple[Mapping[str, Any], str]] = [
    ({"pool": "v6"}, "pool"),
    ({"pool": "late"}, "pool"),
    ({"subnet": "six"}, "subnet"),
    ({"zone": "z2"}, "zone"),
    ({"family": "ipv6"}, "family"),
    ({"pool": "v4", "zone": "z2"}, "zone"),
    ({"address": "192.0.2.11"}, "address"),
    ({"address": SIX}, "address"),
]
"""What it is no answer to, and the field at fault."""

POLICIES = ["lowest", "random", "hashed", "sticky"]


@pytest.fixture(autouse=True)
async def plan(ledger: Ledger) -> None:
    """Lay out a network of both families: IPv4 in z1, IPv6 in z2, and IPv4 addresses apart from both."""
    await ledger.add_network("net")
    await ledger.add_subnet("net", "192.0.2.0/24", name="four", zones=["z1"])
    await ledger.add_subnet("net", "2001:db8::/64", name="six", zones=["z2"])
    for pool, span in (
        ("v4", "192.0.2.10-192.0.2.12"), ("late", "192.0.2.40-192.0.2.49"), ("v6", "2001:db8::10-2001:db8::19"),
    ):  # fmt: skip
        await ledger.add_pool("net", span, name=pool)


def refused_by(error: BaseException, field: str, held: str = FOUR) -> None:
    """Make sure that an error names what is held and what is asked for."""
    assert isinstance(error, tenure.AlreadyExists)
    assert error.field == field
    assert held in str(error)


@pytest.mark.parametrize("wanted", SATISFIED, ids=str)
async def test_what_is_held_is_the_answer_where_it_is_what_is_asked_for(
    ledger: Ledger, wanted: Mapping[str, Any]
) -> None:
    first = await ledger.allocate("net", owner="vm/a", pool="v4")
    before = await ledger.last_change()

    assert await ledger.allocate("net", owner="vm/a", **wanted) == first
    assert await ledger.last_change() == before


@pytest.mark.sampled
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("wanted", "field"), REFUSED, ids=str)
async def test_what_is_held_is_no_answer_where_something_else_is_asked_for(
    ledger: Ledger, wanted: Mapping[str, Any], field: str, policy: str
) -> None:
    await ledger.allocate("net", owner="vm/a", pool="v4")
    before = await ledger.last_change()
    how: dict[str, Any] = {} if "address" in wanted else {"policy": policy}

    with pytest.raises(tenure.AlreadyExists) as refusal:
        await ledger.allocate("net", owner="vm/a", **wanted, **how)

    refused_by(refusal.value, field)
    assert str(wanted[field]) in str(refusal.value)
    assert await ledger.last_change() == before


@pytest.mark.parametrize(("wanted", "field"), REFUSED, ids=str)
async def test_every_way_of_asking_decides_alike(ledger: Ledger, wanted: Mapping[str, Any], field: str) -> None:
    await ledger.hold("net", owner="vm/a", pool="v4")
    tried: list[Any] = [
        ledger.hold("net", owner="vm/a", **wanted),
        ledger.hold("net", owner="vm/a", key="k", **wanted),
        ledger.apply([tenure.Allocate(network="net", owner="vm/a", pending=True, **wanted)]),
        ledger.rehearse([tenure.Allocate(network="net", owner="vm/a", pending=True, **wanted)]),
    ]
    if "address" not in wanted:
        tried += [
            ledger.claim("net", owner="vm/a", pending=True, **wanted),
            ledger.hold("net", owner="vm/a", wait_s=5, **wanted),
        ]

    for each in tried:
        with pytest.raises(tenure.AlreadyExists) as refusal:
            await each
        refused_by(refusal.value, field)


@pytest.mark.parametrize(("wanted", "field"), [case for case in REFUSED if "address" not in case[0]], ids=str)
async def test_groups_and_runs_decide_alike(ledger: Ledger, wanted: Mapping[str, Any], field: str) -> None:
    first = await ledger.allocate_many("net", owner="vm/a", count=2, contiguous=True, pool="v4")

    for contiguous in (False, True):
        with pytest.raises(tenure.AlreadyExists) as refusal:
            await ledger.allocate_many("net", owner="vm/a", count=2, contiguous=contiguous, **wanted)
        refused_by(refusal.value, field)
        assert await ledger.allocate_many("net", owner="vm/a", count=2, contiguous=contiguous, pool="v4") == first


@pytest.mark.parametrize("policy", POLICIES)
async def test_in_a_full_network_what_is_held_is_still_no_answer_to_something_else(ledger: Ledger, policy: str) -> None:
    await ledger.allocate("net", owner="vm/a", pool="v6")
    await ledger.allocate_many("net", owner="vm/full", count=3, pool="v4")

    with pytest.raises(tenure.AlreadyExists) as refusal:
        await ledger.allocate("net", owner="vm/a", pool="v4", policy=policy)

    refused_by(refusal.value, "pool", SIX)


async def test_two_claims_of_one_slot_for_different_things_in_one_apply_are_one_and_a_conflict(ledger: Ledger) -> None:
    wishes = [tenure.Allocate(network="net", owner="vm/a", pool=pool) for pool in ("v4", "v6")]

    with pytest.raises(tenure.AlreadyExists) as refusal:
        await ledger.apply(wishes)

    refused_by(refusal.value, "pool")
    assert await ledger.holdings("net") == []


async def test_a_pool_or_subnet_that_is_not_there_is_named_whatever_is_held(ledger: Ledger) -> None:
    await ledger.allocate("net", owner="vm/a", pool="v4")

    for wanted in ({"pool": "v5"}, {"subnet": "five"}):
        for policy in POLICIES:
            with pytest.raises(tenure.NotFound):
                await ledger.allocate("net", owner="vm/a", policy=policy, **wanted)  # type: ignore[arg-type]


async def test_what_is_held_counts_by_the_plan_as_it_is_now(ledger: Ledger) -> None:
    first = await ledger.allocate("net", owner="vm/a", address="192.0.2.77")

    with pytest.raises(tenure.AlreadyExists):
        await ledger.allocate("net", owner="vm/a", pool="v4")
    await ledger.add_pool("net", "192.0.2.77", name="v4")
    assert await ledger.allocate("net", owner="vm/a", pool="v4") == first
    await ledger.retire_pool("net", "v4")
    assert await ledger.allocate("net", owner="vm/a", pool="v4") == first


async def test_under_its_key_a_request_is_answered_as_before_whatever_was_planned_since(ledger: Ledger) -> None:
    first = await ledger.allocate("net", owner="vm/a", pool="v4", key="k")
    await ledger.remove_pool("net", "v4")

    assert await ledger.allocate("net", owner="vm/a", pool="v4", key="k") == first


@pytest.mark.sampled
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("wanted", "field"), [case for case in REFUSED if "address" not in case[0]], ids=str)
async def test_an_address_that_waits_for_an_owner_is_no_answer_to_something_else(
    ledger: Ledger, wanted: Mapping[str, Any], field: str, policy: str
) -> None:
    await ledger.preallocate("net", "vm/a", FOUR)

    with pytest.raises(tenure.AlreadyExists) as refusal:
        await ledger.allocate("net", owner="vm/a", policy=policy, **wanted)
    given = await ledger.allocate("net", owner="vm/a", pool="v4", policy=policy)

    refused_by(refusal.value, field)
    assert given.address == FOUR


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_family_is_served_from_its_pools_alone(ledger: Ledger, policy: str) -> None:
    given = [
        (await ledger.allocate("net", owner=f"vm/{n}", family=family, policy=policy)).address
        for n, family in enumerate(["ipv6", "ipv4"] * 2)
    ]

    assert [":" in address for address in given] == [True, False] * 2


async def test_a_full_family_is_full_whatever_the_other_has_free(ledger: Ledger) -> None:
    await ledger.allocate_many("net", owner="vm/full", count=13, family="ipv4")

    with pytest.raises(tenure.PoolExhausted) as refusal:
        await ledger.allocate("net", owner="vm/a", family="ipv4")
    anything = await ledger.allocate("net", owner="vm/a")

    assert "IPv4" in str(refusal.value)
    assert (anything.address, anything.family) == (SIX, "ipv6")


async def test_a_family_of_which_there_is_no_pool_is_named(ledger: Ledger) -> None:
    await ledger.remove_pool("net", "v6")

    with pytest.raises(tenure.NotFound, match="IPv6"):
        await ledger.allocate("net", owner="vm/a", family="ipv6")


@pytest.mark.parametrize("wrong", ["ipv5", "4", "", 4])
async def test_a_family_that_is_none_is_refused_by_name(ledger: Ledger, wrong: Any) -> None:
    with pytest.raises(tenure.Invalid) as refusal:
        await ledger.allocate("net", owner="vm/a", family=wrong)

    assert refusal.value.field == "family"


async def test_a_named_address_has_no_family_beside_it(ledger: Ledger) -> None:
    with pytest.raises(tenure.Invalid) as refusal:
        await ledger.allocate("net", owner="vm/a", address=FOUR, family="ipv4")

    assert refusal.value.field == "address"


async def test_who_waits_for_a_family_is_shown_with_it(ledger: Ledger) -> None:
    await ledger.allocate_many("net", owner="vm/full", count=13, family="ipv4")

    assert (await ledger.claim("net", owner="vm/a", family="ipv4")).state == "waiting"
    [shown] = await ledger.waiting()
    await ledger.release("net", "192.0.2.41", owner="vm/full")
    granted = await ledger.claim("net", owner="vm/a", family="ipv4")

    assert shown.family == "ipv4"
    assert granted.holding is not None
    assert granted.holding.address == "192.0.2.41"
