"""Where a run fits, against trying every place; and how far units of a line follow each other."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.kernel.picking.contiguous import run_at_or_after
from tenure.kernel.picking.free_set import FreeSet
from tenure.kernel.plan.plan_model import Policy
from tenure.kernel.plan.pool_line import Line

gaps = st.integers(0, 2)
counts = st.integers(1, 6)
sizes = st.sampled_from([1, 4])


@st.composite
def lines(draw: st.DrawFn) -> Line:
    """Draw a line of a few pieces, near each other or adjacent, in any order."""
    pieces: list[tuple[int, int, int]] = []
    first = 0
    for gap, size, count in draw(st.lists(st.tuples(gaps, sizes, counts), min_size=1, max_size=5)):
        first += gap * size
        pieces.append((first, size, count))
        first += size * count
    return Line(draw(st.permutations(pieces)), Policy.LOWEST)


@st.composite
def lines_in_use(draw: st.DrawFn) -> tuple[Line, FreeSet]:
    """Draw a line, some of it taken."""
    line = draw(lines())
    free = FreeSet(line.size)
    for number in draw(st.sets(st.integers(0, line.size - 1))):
        free.take(number, number)
    return line, free


def fits(line: Line, free: FreeSet, start: int, length: int) -> bool:
    """Tell whether a run fits at a number, by looking at each of its units."""
    if start + length > line.size or not all(number in free for number in range(start, start + length)):
        return False
    units = [line.unit(number) for number in range(start, start + length)]
    same_size = len({last - first for first, last in units}) == 1
    return same_size and all(after[0] == before[1] + 1 for before, after in pairwise(units))


@given(lines_in_use(), st.integers(0, 30), st.integers(1, 8))
def test_the_lowest_place_from_a_point_on_is_found(drawn: tuple[Line, FreeSet], point: int, length: int) -> None:
    line, free = drawn
    expected = next((number for number in range(point, line.size) if fits(line, free, number, length)), None)

    assert run_at_or_after(line, free, point, length) == expected


@given(lines(), st.data())
def test_units_follow_each_other_up_to_the_end_of_their_run_and_no_further(line: Line, data: st.DataObject) -> None:
    number = data.draw(st.integers(0, line.size - 1))
    whole = FreeSet(line.size)
    end = line.end_of_run(number)

    assert fits(line, whole, number, end - number + 1)
    assert not fits(line, whole, number, end - number + 2)


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([(100, 1, 5), (105, 1, 5)], 0),
        ([(100, 1, 5), (106, 1, 5)], None),
        ([(105, 1, 5), (100, 1, 5)], None),
        ([(100, 4, 5), (120, 1, 5)], None),
        ([(100, 4, 3), (112, 4, 3)], 0),
    ],
    ids=["adjacent", "apart", "written the other way round", "of other units", "adjacent prefixes"],
)
def test_a_run_lies_across_pools_where_they_follow_each_other(
    pieces: list[tuple[int, int, int]], expected: int | None
) -> None:
    line = Line(pieces, Policy.LOWEST)

    assert run_at_or_after(line, FreeSet(line.size), 0, 6) == expected


def test_a_long_line_costs_what_its_gaps_cost() -> None:
    line = Line([(0, 1, 1 << 64)], Policy.LOWEST)
    free = FreeSet(line.size, [(100, 200), (300, 1 << 60)])

    assert run_at_or_after(line, free, 0, 101) == (1 << 60) + 1
    assert run_at_or_after(line, free, 150, 99) == 201
    assert run_at_or_after(line, free, 150, 1 << 64) is None
