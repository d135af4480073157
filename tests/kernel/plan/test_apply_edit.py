"""Edits of pools, reserved ranges and pre-allocations."""

from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.errors import AddressOutsideSubnet, AlreadyExists, Invalid, NotFound, Overlap, TenureError
from tenure.kernel.plan import edits
from tenure.kernel.plan.apply_edit import edited
from tenure.kernel.plan.plan_model import Policy
from tests.kernel.plans import net1, network, planned, pools, reserved

BLOCK = parse_address("192.0.2.0")
spans = st.tuples(st.integers(0, 63), st.integers(0, 63)).map(sorted)


def text_of(span: list[int]) -> str:
    return f"{format_address(BLOCK + span[0])}-{format_address(BLOCK + span[1])}"


def add(range: str, **more: object) -> edits.AddPool:
    return edits.AddPool(network="net1", range=range, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("range", "subnet", "kept"),
    [
        ("192.0.2.110-192.0.2.120", "subnet1", "192.0.2.110-192.0.2.120"),
        ("10.0.0.100", "subnet2", "10.0.0.100"),
        ("10.0.0.64/27", "subnet2", "10.0.0.64-10.0.0.95"),
        ("10.0.0.8+8", "subnet2", "10.0.0.8-10.0.0.15"),
        ("10.0.0.0/24", "subnet2", "10.0.0.0-10.0.0.255"),
    ],
)
def test_a_pool_lands_in_the_subnet_around_it(range: str, subnet: str, kept: str) -> None:
    plan = net1(add(range))

    assert str(network(plan).subnet(subnet).pools[-1].range) == kept


@pytest.mark.parametrize("range", ["172.16.0.1-172.16.0.9", "192.0.2.200-192.0.3.5", "10.0.0.0/23", "2001:db8::1"])
def test_a_pool_without_one_subnet_around_it_is_refused(range: str) -> None:
    with pytest.raises(NotFound) as refusal:
        net1(add(range))

    assert (refusal.value.kind, refusal.value.field) == ("subnet", "range")


@pytest.mark.parametrize("range", ["192.0.2.90-192.0.2.130", "192.0.2.10", "192.0.2.0/24"])
def test_pools_of_a_network_are_disjoint(range: str) -> None:
    with pytest.raises(Overlap) as refusal:
        net1(add(range))

    assert refusal.value.field == "range"


def test_a_touching_pool_stays_a_pool_of_its_own() -> None:
    assert pools(net1(add("192.0.2.101-192.0.2.105")))[1] == (None, "192.0.2.101-192.0.2.105")


def test_a_pool_may_lie_over_reserved_addresses() -> None:
    plan = net1(edits.Reserve(network="net1", range="10.0.0.20-10.0.0.50"), add("10.0.0.10-10.0.0.60", name="p"))

    assert pools(plan)[-1] == ("p", "10.0.0.10-10.0.0.60")


def test_pools_of_one_name_are_one_pool_with_one_policy() -> None:
    plan = net1(edits.ModifyPool(network="net1", pool="pool1", policy="random"), add("10.0.0.1-10.0.0.9", name="pool1"))

    assert {pool.policy for _, pool in network(plan).pools_named("pool1")} == {Policy.RANDOM}
    with pytest.raises(Invalid) as refusal:
        edited(plan, add("10.0.0.20", name="pool1", policy="lowest"))
    assert refusal.value.field == "policy"


def test_a_renamed_pool_is_renamed_in_every_part_and_must_fit_its_new_namesakes() -> None:
    plan = net1(add("10.0.0.1-10.0.0.9", name="pool1"), add("10.0.0.20", name="other", policy="random"))
    rename = edits.ModifyPool(network="net1", pool="pool1", name="web")

    assert [name for name, _ in pools(edited(plan, rename))] == ["web", "web", "other"]
    with pytest.raises(AlreadyExists):
        planned(edits.ModifyPool(network="net1", pool="pool1", name="other"), on=plan)


def test_a_pool_is_found_by_its_exact_range_too() -> None:
    retired = net1(edits.ModifyPool(network="net1", pool="192.0.2.10 - 192.0.2.100", retired=True))

    assert [pool.retired for _, pool in network(retired).pools()] == [True]
    with pytest.raises(NotFound):
        edited(retired, edits.ModifyPool(network="net1", pool="192.0.2.10-192.0.2.99", retired=False))


def test_a_partly_removed_pool_splits_and_keeps_name_place_and_policy() -> None:
    plan = net1(
        edits.ModifyPool(network="net1", pool="pool1", policy="hashed", cooling_s=9),
        add("192.0.2.110-192.0.2.120", name="b"),
        edits.RemovePool(network="net1", pool="192.0.2.20-192.0.2.50"),
    )

    assert pools(plan) == [
        ("pool1", "192.0.2.10-192.0.2.19"),
        ("pool1", "192.0.2.51-192.0.2.100"),
        ("b", "192.0.2.110-192.0.2.120"),
    ]
    assert {(pool.policy, pool.cooling_s) for _, pool in network(plan).pools_named("pool1")} == {(Policy.HASHED, 9)}


def test_a_range_is_removed_from_every_pool_it_touches() -> None:
    plan = net1(add("192.0.2.110-192.0.2.120", name="b"), edits.RemovePool(network="net1", pool="192.0.2.64/26"))

    assert pools(plan) == [("pool1", "192.0.2.10-192.0.2.63")]


@pytest.mark.parametrize("pool", ["pool1", "192.0.2.10-192.0.2.100", "192.0.2.0/24"])
def test_a_wholly_removed_pool_is_gone(pool: str) -> None:
    assert pools(net1(edits.RemovePool(network="net1", pool=pool))) == []


@pytest.mark.parametrize("pool", ["192.0.2.101", "nope", "192.0.2.1-", "10.0.0.0/24"])
def test_removing_what_touches_no_pool_is_refused(pool: str) -> None:
    with pytest.raises(NotFound) as refusal:
        net1(edits.RemovePool(network="net1", pool=pool))

    assert refusal.value.field == "pool"


@given(st.lists(st.tuples(st.booleans(), spans, st.sampled_from(["", "dhcp"])), max_size=10))
def test_reserved_ranges_are_a_set_in_order_and_keep_their_reasons(steps: list[tuple[bool, list[int], str]]) -> None:
    plan, model = net1(), dict[int, str]()
    for reserve, span, reason in steps:
        touched = [number for number in range(span[0], span[1] + 1) if reserve or number in model]
        if reserve:
            model.update((number, model.get(number, reason)) for number in touched)
            plan = planned(edits.Reserve(network="net1", range=text_of(span), reason=reason), on=plan)
        elif touched:
            for number in touched:
                del model[number]
            plan = planned(edits.Unreserve(network="net1", range=text_of(span)), on=plan)

    kept = network(plan).subnet("subnet1").reserved
    assert {p - BLOCK: k.reason for k in kept for p in range(k.range.first, k.range.last + 1)} == model
    assert all(a.range.last < b.range.first for a, b in pairwise(kept))
    assert all(a.range.last + 1 < b.range.first or a.reason != b.reason for a, b in pairwise(kept))


def test_reserving_again_joins_and_lifting_a_part_splits() -> None:
    plan = net1(
        edits.Reserve(network="net1", range="192.0.2.20-192.0.2.30", reason="x"),
        edits.Reserve(network="net1", range="192.0.2.31-192.0.2.50", reason="x"),
        edits.Unreserve(network="net1", range="192.0.2.40"),
    )

    assert reserved(plan) == [("192.0.2.20-192.0.2.39", "x"), ("192.0.2.41-192.0.2.50", "x")]


def test_a_range_that_sticks_out_of_the_subnet_lifts_nothing() -> None:
    with pytest.raises(NotFound):
        net1(
            edits.Reserve(network="net1", range="192.0.2.250", reason="x"),
            edits.Unreserve(network="net1", range="192.0.2.250-192.0.3.1"),
        )


def test_a_reservation_of_another_reason_leaves_what_the_first_one_had() -> None:
    plan = net1(
        edits.Reserve(network="net1", range="192.0.2.20-192.0.2.29", reason="a"),
        edits.Reserve(network="net1", range="192.0.2.15-192.0.2.35", reason="b"),
    )

    assert [reason for _, reason in reserved(plan)] == ["b", "a", "b"]


@pytest.mark.parametrize("order", list(permutations(["192.0.2.20-192.0.2.29", "192.0.2.30", "192.0.2.31-192.0.2.40"])))
def test_reserved_ranges_of_one_word_become_one_on_whichever_side_they_touch(order: tuple[str, ...]) -> None:
    plan = net1(*(edits.Reserve(network="net1", range=range, reason="x") for range in order))

    assert reserved(plan) == [("192.0.2.20-192.0.2.40", "x")]


def test_a_reserved_range_carries_labels_a_description_and_a_request() -> None:
    plan = net1(
        edits.Reserve(
            network="net1",
            range="192.0.2.20-192.0.2.29",
            reason="printers",
            labels={"team": "office"},
            description="second floor",
            request="T-7",
        ),
        edits.Unreserve(network="net1", range="192.0.2.25"),
    )

    kept = network(plan).subnet("subnet1").reserved
    assert [str(each.range) for each in kept] == ["192.0.2.20-192.0.2.24", "192.0.2.26-192.0.2.29"]
    assert {(each.reason, each.request, each.notes.description) for each in kept} == {
        ("printers", "T-7", "second floor")
    }
    assert all(each.notes.labels == {"team": "office"} for each in kept)


def test_what_is_said_anew_of_a_reserved_range_counts_and_saying_nothing_leaves_it() -> None:
    plan = net1(
        edits.Reserve(network="net1", range="192.0.2.20-192.0.2.29", reason="x", labels={"a": "1"}),
        edits.Reserve(network="net1", range="192.0.2.25-192.0.2.27", reason="x", labels={"a": "2"}),
        edits.Reserve(network="net1", range="192.0.2.18-192.0.2.31", reason="x"),
        edits.Reserve(network="net1", range="192.0.2.28-192.0.2.29", reason="x", labels={"a": "2"}),
    )

    kept = network(plan).subnet("subnet1").reserved
    assert [(str(each.range), dict(each.notes.labels)) for each in kept] == [
        ("192.0.2.18-192.0.2.19", {}),
        ("192.0.2.20-192.0.2.24", {"a": "1"}),
        ("192.0.2.25-192.0.2.29", {"a": "2"}),
        ("192.0.2.30-192.0.2.31", {}),
    ]


def test_a_preallocation_carries_labels_and_a_description_and_a_later_one_replaces_them() -> None:
    waits = edits.Preallocate(
        network="net1", owner="vm/a", address="192.0.2.9", labels={"a": "1"}, description="old", request="T-8"
    )
    plan = net1(waits)
    changed = planned(edits.Preallocate(network="net1", owner="vm/a", address="192.0.2.9", description="new"), on=plan)

    [before], [after] = network(plan).preallocations, network(changed).preallocations
    assert (before.notes.labels, before.notes.description, before.request) == ({"a": "1"}, "old", "T-8")
    assert (after.notes.labels, after.notes.description, after.request) == ({}, "new", None)


def test_of_a_thousand_reserved_ranges_those_that_were_not_lifted_stay_in_order() -> None:
    plan = net1(edits.AddSubnet(network="net1", cidr="10.8.0.0/16", uuid="u3"))
    places = [f"10.8.{number // 100}.{2 * (number % 100) + 1}" for number in range(1000)]
    for place in places:
        plan = edited(plan, edits.Reserve(network="net1", range=place))
    for place in places[::2]:
        plan = edited(plan, edits.Unreserve(network="net1", range=place))

    assert [str(kept.range) for kept in network(plan).subnet("10.8.0.0/16").reserved] == places[1::2]


def test_what_is_not_reserved_cannot_be_lifted() -> None:
    with pytest.raises(NotFound) as refusal:
        net1(edits.Unreserve(network="net1", range="192.0.2.20"))

    assert refusal.value.field == "range"


def test_a_second_preallocation_of_an_owners_slot_replaces_the_first() -> None:
    plan = net1(
        edits.Preallocate(network="net1", owner="instance/a", address="192.0.2.20"),
        edits.Preallocate(network="net1", owner="local:instance/a", address="192.0.2.21"),
        edits.Preallocate(network="net1", owner="instance/a", address="192.0.2.22", slot="nic1"),
    )

    waiting = [(wish.owner, wish.slot, format_address(wish.position)) for wish in network(plan).preallocations]
    assert waiting == [("instance/a", "", "192.0.2.21"), ("instance/a", "nic1", "192.0.2.22")]


def test_a_forgotten_preallocation_is_gone_and_an_unknown_one_is_told() -> None:
    plan = net1(edits.Preallocate(network="net1", owner="instance/a", address="192.0.2.20"))
    forget = edits.RemovePreallocation(network="net1", owner="instance/a")

    assert network(edited(plan, forget)).preallocations == ()
    with pytest.raises(NotFound):
        edited(edited(plan, forget), forget)


@pytest.mark.parametrize(("owner", "slot"), [("instance/b", ""), ("instance/a", "nic1")])
def test_one_address_waits_for_one_slot_of_one_owner(owner: str, slot: str) -> None:
    with pytest.raises(AlreadyExists) as refusal:
        net1(
            edits.Preallocate(network="net1", owner="instance/a", address="192.0.2.20"),
            edits.Preallocate(network="net1", owner=owner, slot=slot, address="192.0.2.20"),
        )

    assert refusal.value.field == "address"


def test_a_preallocation_lies_in_a_subnet_and_begins_a_unit() -> None:
    units = edits.AddSubnet(network="net1", cidr="10.8.0.0/16", unit=24, uuid="u3")

    with pytest.raises(AddressOutsideSubnet):
        net1(edits.Preallocate(network="net1", owner="instance/a", address="172.16.0.1"))
    with pytest.raises(Invalid, match="/24"):
        net1(units, edits.Preallocate(network="net1", owner="instance/a", address="10.8.1.1"))
    assert net1(units, edits.Preallocate(network="net1", owner="instance/a", address="10.8.1.0"))


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        (add("10.0.0.9-10.0.0.1"), "range"),
        (add("10.0.0.1-2001:db8::1"), "range"),
        (add("garbage"), "range"),
        (add("10.0.0.1", name=""), "name"),
        (add("10.0.0.1", policy="best"), "policy"),
        (add("10.0.0.1", policy=["lowest"]), "policy"),
        (add("10.0.0.1", cooling_s=-1), "cooling_s"),
        (add("10.0.0.1", cooling_s=True), "cooling_s"),
        (add("10.0.0.1", cooling_s=10**5000), "cooling_s"),
        (edits.ModifyPool(network="net1", pool="pool1", cooling_s=1.5), "cooling_s"),  # type: ignore[arg-type]
        (edits.ModifyPool(network="net1", pool=None), "pool"),  # type: ignore[arg-type]
        (edits.Reserve(network="net1", range="192.0.2.1", reason="\0"), "reason"),
        (edits.Reserve(network="net1", range="192.0.2.1", labels={"": "x"}), "labels"),
        (edits.Reserve(network="net1", range="192.0.2.1", description="\0"), "description"),
        (edits.Reserve(network="net1", range="192.0.2.1", request=""), "request"),
        (edits.Preallocate(network="net1", owner="vm/a", address="192.0.2.9", labels="x"), "labels"),  # type: ignore[arg-type]
        (edits.Preallocate(network="net1", owner="vm/a", address="192.0.2.9", description=1), "description"),  # type: ignore[arg-type]
        (edits.Preallocate(network="net1", owner="vm/a", address="192.0.2.9", request=" "), "request"),
        (edits.Preallocate(network="net1", owner="x", address="192.0.2.20"), "owner"),
        (edits.Preallocate(network="net1", owner="instance/a", address="x"), "address"),
        (edits.Preallocate(network="net1", owner="instance/a", address="192.0.2.20", slot=" "), "slot"),
        (edits.Edit(network="net1"), "edits"),
        (edits.Reserve(network="", range="192.0.2.1"), "network"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_wrong_field_is_named(edit: edits.Edit, field: str) -> None:
    with pytest.raises(TenureError) as refusal:
        edited(net1(), edit)

    assert refusal.value.field == field
