"""Random simulation over many seeds; ``TENURE_SEED=n`` replays one."""

import os
from collections.abc import Iterable

import pytest

from tests.proof.simulation import first_unexplained
from tests.proof.timely import first_unexplained_in_time
from tests.scale import runs

SLICES = 8


def seeds(part: int, usual: int, soak: int) -> Iterable[int]:
    """Return a slice of the seeds, or the one that was named."""
    one = os.environ.get("TENURE_SEED")
    return [int(one)] if one else range(part, runs(usual // 8, soak, proof=usual), SLICES)


@pytest.mark.parametrize("part", range(SLICES))
def test_no_seed_shows_what_cannot_be_explained(part: int) -> None:
    assert first_unexplained(seeds(part, 1600, 40_000)) is None


@pytest.mark.parametrize("part", range(SLICES))
def test_no_seed_shows_what_time_and_waiting_cannot_explain(part: int) -> None:
    assert first_unexplained_in_time(seeds(part, 1200, 40_000)) is None
