"""A proof that notices nothing proves nothing: every named fault must be caught."""

import pytest

from tests.proof.mutants import SIMULATED

SEEDS = 2000


@pytest.mark.parametrize("name", SIMULATED)
def test_a_named_fault_is_caught_within_two_thousand_seeds(name: str) -> None:
    mutant, search = SIMULATED[name]
    with mutant():
        caught = search(range(SEEDS))

    assert caught is not None
