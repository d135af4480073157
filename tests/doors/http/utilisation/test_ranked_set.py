"""The small parts the census is made of, against models."""

import random
from bisect import bisect_left

import pytest

from tenure.doors.http.utilisation.map_cells_of import Cut, cut
from tenure.doors.http.utilisation.ranked_set import CHUNK, Numbers


@pytest.mark.parametrize("most", [1 << 20, 1 << 80])
def test_numbers_count_what_lies_below(most: int) -> None:
    chance, numbers, model = random.Random(1), Numbers(most), set[int]()
    for _ in range(4 * CHUNK):
        number = chance.randrange(1 << 14)
        if number in model and chance.random() < 0.7:
            model.remove(number)
            numbers.discard(number)
        elif number not in model:
            model.add(number)
            numbers.add(number)
    numbers.discard(1 << 15)
    ordered = sorted(model)

    assert len(numbers) == len(model)
    assert [numbers.below(n) for n in range(0, 1 << 14, 37)] == [bisect_left(ordered, n) for n in range(0, 1 << 14, 37)]


@pytest.mark.parametrize(
    ("low", "high", "most", "wanted"),
    [
        (0, 15, 256, Cut(0, 1, 16)),
        (0, 65535, 256, Cut(0, 256, 256)),
        (3, 18, 4, Cut(0, 8, 3)),
        (7, 8, 1, Cut(0, 16, 1)),
        (0, (1 << 64) - 1, 256, Cut(0, 1 << 56, 256)),
        (255, 256, 256, Cut(255, 1, 2)),
    ],
)
def test_a_stretch_is_cut_into_aligned_cells_of_a_power_of_two(low: int, high: int, most: int, wanted: Cut) -> None:
    assert cut(low, high, most) == wanted
