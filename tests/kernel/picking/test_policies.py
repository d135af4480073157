"""Picks: the same input gives the same pick, and every pick is free. Policies: one table, and nobody compares them."""

import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenure
from tenure.kernel.picking.free_set import FreeSet
from tenure.kernel.picking.policies import POLICIES, STRIPE, Stripes, first_free, from_point, hashed_point, notes_former
from tenure.kernel.plan.plan_model import Policy

SOURCES = Path(tenure.__file__).parent
COMPARED = re.compile(r"(?:is|is not|==|!=|in|case) \(?Policy\.[A-Z]")

SIZE = 50
holes = st.lists(st.integers(0, SIZE - 1), max_size=SIZE).map(lambda taken: [(n, n) for n in sorted(set(taken))])


def free_numbers(taken: list[tuple[int, int]]) -> list[int]:
    return [number for number in range(SIZE) if (number, number) not in taken]


@given(holes)
def test_lowest_is_the_first_free_number(taken: list[tuple[int, int]]) -> None:
    assert first_free(FreeSet(SIZE, taken)) == min(free_numbers(taken), default=None)


@given(holes, st.integers(0, SIZE - 1))
def test_a_pick_from_a_point_goes_round_the_end_and_fails_only_when_nothing_is_free(
    taken: list[tuple[int, int]], point: int
) -> None:
    in_order = sorted(free_numbers(taken), key=lambda number: (number < point, number))

    assert from_point(FreeSet(SIZE, taken), point) == (in_order[0] if in_order else None)


@given(st.integers(1, 2**128), st.text(), st.text(), st.integers(0, 5))
def test_an_owners_point_is_always_the_same_and_on_the_line(size: int, owner: str, slot: str, attempt: int) -> None:
    owner, slot = ascii(owner), ascii(slot)
    point = hashed_point(size, owner, slot, attempt)

    assert 0 <= point < size
    assert hashed_point(size, owner, slot, attempt) == point


def test_another_slot_or_attempt_looks_from_another_point() -> None:
    points = {
        hashed_point(2**64, "instance/a", "", 0),
        hashed_point(2**64, "instance/a", "", 1),
        hashed_point(2**64, "instance/a", "nic1", 0),
        hashed_point(2**64, "instance/b", "", 0),
    }

    assert len(points) == 4


def test_hashed_points_spread_evenly() -> None:
    tenths = [hashed_point(10, f"instance/{number}", "") for number in range(2000)]

    assert all(150 < tenths.count(tenth) < 250 for tenth in range(10))


def test_a_server_fills_its_stripe_before_it_goes_elsewhere() -> None:
    free, stripes = FreeSet(64 * STRIPE), Stripes(64 * STRIPE, "server-a")
    picked = []
    for turn in range(STRIPE):
        number = stripes.pick(free, turn * 7 % STRIPE)
        assert number is not None
        free.take(number, number)
        picked.append(number)

    assert {number // STRIPE for number in picked} == {picked[0] // STRIPE}
    assert sorted(picked) == list(range(min(picked), min(picked) + STRIPE))


def test_two_servers_begin_in_stripes_of_their_own() -> None:
    size = 1024 * STRIPE
    starts = [Stripes(size, f"server-{number}").pick(FreeSet(size), 0) for number in range(4)]

    assert len(set(starts)) == 4


def test_a_server_that_meets_another_in_a_stripe_goes_elsewhere() -> None:
    free, stripes = FreeSet(64 * STRIPE), Stripes(64 * STRIPE, "server-a")
    first = stripes.pick(free, 0)

    stripes.leave()

    assert first is not None
    assert (stripes.pick(free, 0) or 0) // STRIPE != first // STRIPE


@given(st.integers(1, 3 * STRIPE), st.integers(0, STRIPE - 1), st.data())
def test_stripes_fill_a_line_to_the_last_number(size: int, offset: int, data: st.DataObject) -> None:
    left = data.draw(st.sets(st.integers(0, size - 1), max_size=5))
    free = FreeSet(size, [(number, number) for number in range(size) if number not in left])
    stripes = Stripes(size, "server-a")

    picked = set()
    while (number := stripes.pick(free, offset)) is not None:
        free.take(number, number)
        picked.add(number)

    assert picked == left


def test_every_policy_is_in_the_table() -> None:
    assert list(POLICIES) == list(Policy)


def test_nothing_but_the_table_compares_policies() -> None:
    texts = {path.relative_to(SOURCES).as_posix(): path.read_text("utf-8") for path in SOURCES.rglob("*.py")}

    assert [name for name, text in texts.items() if COMPARED.search(text)] == ["kernel/picking/policies.py"]


@pytest.mark.parametrize("policy", Policy)
@given(taken=holes, attempt=st.integers(0, 5), seed=st.integers(0, 9))
def test_every_policy_picks_something_free_unless_nothing_is(
    policy: Policy, taken: list[tuple[int, int]], attempt: int, seed: int
) -> None:
    left = free_numbers(taken)
    picked = POLICIES[policy].pick(FreeSet(SIZE, taken), "instance/a", "nic0", attempt, random.Random(seed))

    assert picked in left if left else picked is None


@pytest.mark.parametrize("policy", Policy)
def test_a_line_without_numbers_gives_nothing(policy: Policy) -> None:
    assert POLICIES[policy].pick(FreeSet(0), "instance/a", "", 0, random.Random(1)) is None


@given(holes)
def test_an_ascending_policy_picks_the_first_free_number(taken: list[tuple[int, int]]) -> None:
    ascending = [rules for rules in POLICIES.values() if rules.ascending]

    assert ascending
    for rules in ascending:
        assert rules.exact  # a first free number that may be wrong is no promise
        assert rules.pick(FreeSet(SIZE, taken), "instance/a", "", 0, random.Random(1)) == first_free(
            FreeSet(SIZE, taken)
        )


def test_where_owners_were_is_noted_where_a_policy_asks_for_it() -> None:
    assert {policy for policy in Policy if notes_former([policy])} == {Policy.STICKY}
    assert notes_former(Policy)
    assert not notes_former([])
