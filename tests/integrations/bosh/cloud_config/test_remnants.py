"""Whatever is held and wanted: blocks lie beside each other, and whoever holds a unit has a block for it."""

from hypothesis import given
from hypothesis import strategies as st

from tenure.integrations.bosh.cloud_config.ledger_networks import Block
from tenure.integrations.bosh.cloud_config.remnants import is_within, leave, uncovered
from tenure.kernel.addressing.ranges import Cidr, merge, parse_cidr

WHOLE = parse_cidr("10.10.0.0/24")


def cidr(prefix: int, number: int) -> Cidr:
    """Return a block of the whole."""
    return Cidr(WHOLE.first + number * (1 << (32 - prefix)), prefix)


@st.composite
def disjoint(draw: st.DrawFn, longest: int) -> list[Cidr]:
    """Choose blocks of the whole that lie beside each other, in any order."""
    found: list[Cidr] = []
    for prefix in draw(st.lists(st.integers(24, longest), max_size=4)):
        block = cidr(prefix, draw(st.integers(0, (1 << (prefix - 24)) - 1)))
        if not any(block.range.overlaps(each.range) for each in found):
            found.append(block)
    return found


@st.composite
def scenes(draw: st.DrawFn) -> tuple[list[Block], list[Block], list[Cidr]]:
    """Choose what is wanted, what is there, and which units of it are held."""
    unit, new_unit = draw(st.integers(26, 32)), draw(st.integers(26, 32))
    present = [Block(each, unit=unit) for each in draw(disjoint(unit))]
    wanted = [Block(each, unit=new_unit, pools=(each.range,)) for each in draw(disjoint(new_unit))]
    numbers = draw(st.sets(st.integers(0, (1 << (unit - 24)) - 1), max_size=12))
    units = [cidr(unit, number) for number in sorted(numbers)]
    return wanted, present, [each for each in units if any(block.cidr.range.covers(each.range) for block in present)]


@given(scenes())
def test_nobody_loses_his_unit_and_no_block_lies_over_another(
    scene: tuple[list[Block], list[Block], list[Cidr]],
) -> None:
    wanted, present, held = scene
    pieces = uncovered(wanted, present)
    left = leave(wanted, present, [each for each in held if is_within(each.first, pieces)])
    blocks = [*left.wanted, *left.remnants]

    assert all(block.cidr.prefix <= block.unit for block in blocks)
    assert all(
        not one.cidr.range.overlaps(other.cidr.range) for number, one in enumerate(blocks) for other in blocks[:number]
    )
    for unit in held:
        assert any(block.unit == unit.prefix and block.cidr.range.covers(unit.range) for block in blocks)
    assert all(block.cidr.range.covers(pool) for block in left.wanted for pool in block.pools)


@given(scenes())
def test_what_is_laid_once_is_laid_the_same_the_next_time(scene: tuple[list[Block], list[Block], list[Cidr]]) -> None:
    wanted, present, held = scene
    for _ in range(2):
        pieces = uncovered(wanted, present)
        left = leave(wanted, present, [each for each in held if is_within(each.first, pieces)])
        before, present = present, [*left.wanted, *left.remnants]

    assert before == present


@given(scenes())
def test_where_nothing_is_held_all_that_is_wanted_is_there_and_nothing_else(
    scene: tuple[list[Block], list[Block], list[Cidr]],
) -> None:
    wanted, present, _ = scene
    left = leave(wanted, present, [])

    assert (left.wanted, left.remnants) == (wanted, [])
    assert merge(block.cidr.range for block in left.wanted) == merge(block.cidr.range for block in wanted)
