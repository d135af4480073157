"""Random simulation over many seeds; ``TENURE_SEED=n`` replays one."""

import os

import pytest

from tests.proof.simulation import first_unexplained
from tests.scale import runs

SLICES = 8


@pytest.mark.parametrize("part", range(SLICES))
def test_no_seed_shows_what_cannot_be_explained(part: int) -> None:
    one = os.environ.get("TENURE_SEED")
    seeds = [int(one)] if one else range(part, runs(1600, 40_000), SLICES)

    assert first_unexplained(seeds) is None
