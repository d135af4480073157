"""A proof that notices nothing proves nothing: every named fault must be caught."""

import pytest

from tests.proof.mutants import SIMULATED
from tests.scale import in_proof

SEEDS = 2000
RARE = {"release_by_address_only"}
"""Faults that take hundreds of seeds to show."""


@pytest.mark.sampled
@pytest.mark.parametrize("name", [in_proof(name) if name in RARE else name for name in SIMULATED])
def test_a_named_fault_is_caught_within_two_thousand_seeds(name: str) -> None:
    mutant, search = SIMULATED[name]
    with mutant():
        caught = search(range(SEEDS))

    assert caught is not None
