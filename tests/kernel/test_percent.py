"""Percentages: 0 is none, 100 is all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.kernel.percent import percent


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 0, "0.00%"),
        (0, 7, "0.00%"),
        (7, 7, "100.00%"),
        (1, 8, "12.50%"),
        (103, 105, "98.10%"),
        (1, 1 << 64, "<0.01%"),
        ((1 << 64) - 1, 1 << 64, ">99.99%"),
        (99_996, 100_000, ">99.99%"),
        (4, 100_000, "<0.01%"),
    ],
)
def test_a_share_is_written_in_per_cent(part: int, whole: int, text: str) -> None:
    assert percent(part, whole) == text


@given(st.integers(1, 1 << 130), st.data(), st.integers(0, 3))
def test_0_is_written_for_none_and_100_for_all_and_for_nothing_else(
    whole: int, data: st.DataObject, digits: int
) -> None:
    part = data.draw(st.integers(0, whole))

    text = percent(part, whole, digits=digits)

    none, every = percent(0, whole, digits=digits), percent(whole, whole, digits=digits)
    assert (text == none, text == every) == (part == 0, part == whole)
