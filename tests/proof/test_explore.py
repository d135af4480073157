"""Every interleaving of a few servers with a few operations on a tiny pool."""

import pytest

from tests.proof.exploration import CASTS, MODES, explore
from tests.scale import runs

BOUNDED = {"an edit between"}
"""Casts with more interleavings than ``make test`` has time for; the soak goes on longer."""


@pytest.mark.parametrize("name", CASTS)
def test_every_interleaving_of_three_servers_is_explained(name: str) -> None:
    explored = explore(CASTS[name], runs(800, 100_000))

    assert explored.complete or name in BOUNDED


@pytest.mark.sampled
@pytest.mark.parametrize("mode", ["one server dies", "one answer is lost"])
@pytest.mark.parametrize("name", CASTS)
def test_every_interleaving_of_two_servers_with_a_fault_is_explained(name: str, mode: str) -> None:
    crashes, faults = MODES[mode]
    explored = explore(CASTS[name][:2], runs(2000, 100_000), crashes=crashes, faults=faults)

    assert explored.complete or name in BOUNDED


@pytest.mark.sampled
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASTS)
def test_three_servers_with_faults_and_cold_starts_are_explained(name: str, mode: str) -> None:
    crashes, faults = MODES[mode]
    explore(CASTS[name], runs(30, 60_000, proof=60), crashes=crashes, faults=faults, warm=False)
    explore(CASTS[name], runs(30, 60_000, proof=60), crashes=crashes, faults=faults)
