"""Neutron's own suites with our driver: what of them is quick enough for every run; the soak runs all of them."""

import pytest

from tests.doors.neutron.suites.catalogue import BLACK_BOX, PLUGGABLE
from tests.doors.neutron.suites.running import MODES, run_piece

PIECES = 4


@pytest.mark.parametrize("number", range(PIECES))
def test_neutrons_suite_of_pluggable_backends_passes_with_the_driver(number: int) -> None:
    outcome = run_piece(PLUGGABLE, "database", number, PIECES)

    assert outcome.failures == ()
    assert outcome.tests >= PLUGGABLE.least // PIECES


@pytest.mark.parametrize("mode", MODES)
def test_the_stock_drivers_own_tests_pass_with_the_driver(mode: str) -> None:
    outcome = run_piece(BLACK_BOX, mode)

    assert outcome.failures == ()
    assert (outcome.tests, outcome.tied) >= (BLACK_BOX.least, len(BLACK_BOX.tied))
