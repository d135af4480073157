"""Many who wait, in several processes, on a full pool: each address given back serves the oldest who is still there."""

from pathlib import Path

import pytest

from tests.proof.test_fill import a_place
from tests.proof.waiting_rounds import TWO_HUNDRED, Size, waiting_round
from tests.scale import SOAK, in_proof

SIZE = TWO_HUNDRED if SOAK else Size()


@pytest.mark.parametrize("store", [in_proof("sqlite"), "postgres"])
async def test_each_release_serves_the_oldest_living_waiter_and_nothing_is_left_behind(
    store: str, tmp_path: Path
) -> None:
    async with a_place(store, tmp_path) as url:
        played = await waiting_round(url, 1, SIZE)

    assert played.findings == []
    # Many were served; others were killed or went away while they waited.
    assert min(played.figures[name] for name in ("served", "killed", "cancelled")) > 0
