"""The free set against a plain set, with chunks so small that every boundary is met."""

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tenure.kernel.picking import free_set
from tenure.kernel.picking.contiguous import run_at_or_after
from tenure.kernel.picking.free_set import FreeSet
from tenure.kernel.plan.plan_model import Policy
from tenure.kernel.plan.pool_line import Line
from tests.profiles import examples

SIZE = 60

spans = st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)).map(lambda pair: (min(pair), max(pair)))


def numbers(intervals: Iterable[tuple[int, int]]) -> set[int]:
    return {number for first, last in intervals for number in range(first, last + 1)}


def runs(free: set[int]) -> list[tuple[int, int]]:
    """Write a set as its maximal intervals, in order."""
    firsts = sorted(number for number in free if number - 1 not in free)
    lasts = sorted(number for number in free if number + 1 not in free)
    return list(zip(firsts, lasts, strict=True))


@pytest.fixture(autouse=True, scope="module", params=[1, 2, 512], ids=lambda chunk: f"chunk {chunk}")
def chunk(request: pytest.FixtureRequest) -> Iterable[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(free_set, "CHUNK", request.param)
        yield


class FreeSetMachine(RuleBasedStateMachine):
    """Take and give back at will; the set model says what must be free."""

    @initialize(taken=st.lists(spans, max_size=6).map(sorted))
    def begin(self, taken: list[tuple[int, int]]) -> None:
        self.real = FreeSet(SIZE, taken)
        self.model = set(range(SIZE)) - numbers(taken)

    @rule(span=spans)
    def take(self, span: tuple[int, int]) -> None:
        changed = self.real.take(*span)

        assert changed == runs(self.model & numbers([span]))
        self.model -= numbers([span])

    @rule(span=spans)
    def give_back(self, span: tuple[int, int]) -> None:
        changed = self.real.give_back(*span)

        assert changed == runs(numbers([span]) - self.model)
        self.model |= numbers([span])

    @rule(number=st.integers(0, SIZE))
    def look_from(self, number: int) -> None:
        expected = min((free for free in self.model if free >= number), default=None)

        assert self.real.at_or_after(number) == expected
        assert (number in self.real) == (number in self.model)

    @rule(number=st.integers(0, SIZE), length=st.integers(1, 8))
    def look_for_a_run(self, number: int, length: int) -> None:
        starts = (s for s in range(number, SIZE) if numbers([(s, s + length - 1)]) <= self.model)
        line = Line([(1000, 1, SIZE)], Policy.LOWEST)

        assert run_at_or_after(line, self.real, number, length) == min(starts, default=None)

    @invariant()
    def the_intervals_are_those_of_the_model(self) -> None:
        assert list(self.real) == runs(self.model)
        assert self.real.free == len(self.model)


def test_the_free_set_is_a_set_of_numbers_whatever_the_chunks() -> None:
    few = settings(max_examples=examples(0.6), stateful_step_count=30)

    run_state_machine_as_test(FreeSetMachine, settings=few)


@given(st.lists(spans, max_size=8))
def test_what_a_take_took_is_what_giving_it_back_restores(taken: list[tuple[int, int]]) -> None:
    free = FreeSet(SIZE, sorted(taken))
    before = list(free)

    for span in reversed(free.take(10, 50)):
        free.give_back(*span)

    assert list(free) == before


def test_an_empty_line_has_nothing_free() -> None:
    free = FreeSet(0)

    assert list(free) == []
    assert free.at_or_after(0) is None
    assert free.take(0, 5) == []


def test_the_last_number_can_be_taken_and_given_back() -> None:
    free = FreeSet(3, [(0, 2)])

    assert free.give_back(2, 2) == [(2, 2)]
    assert free.at_or_after(0) == 2
    assert free.take(2, 2) == [(2, 2)]
    assert free.at_or_after(0) is None


def test_a_line_of_two_to_the_64_costs_what_its_holes_cost() -> None:
    free = FreeSet(2**64, [(5, 5)])

    free.take(2**63, 2**63 + 9)

    assert list(free) == [(0, 4), (6, 2**63 - 1), (2**63 + 10, 2**64 - 1)]
    assert free.free == 2**64 - 11


def test_many_holes_fill_many_chunks_and_stay_in_order() -> None:
    free = FreeSet(10_000, ((number, number) for number in range(1, 10_000, 2)))

    assert free.free == 5_000
    assert free.at_or_after(5_001) == 5_002
    assert free.give_back(1, 9_999)[:2] == [(1, 1), (3, 3)]
    assert list(free) == [(0, 9_999)]
