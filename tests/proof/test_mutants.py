"""A proof that notices nothing proves nothing: every named fault must be caught."""

import pytest

from tests.proof.mutants import SIMULATED
from tests.proof.simulation import first_unexplained

SEEDS = 2000


@pytest.mark.parametrize("name", SIMULATED)
def test_a_named_fault_is_caught_within_two_thousand_seeds(name: str) -> None:
    with SIMULATED[name]():
        caught = first_unexplained(range(SEEDS))

    assert caught is not None
