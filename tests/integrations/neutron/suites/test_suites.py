"""Neutron's own suites with our driver: a sample in ``make test``, this in ``make proof``, all of them in a soak."""

import pytest

from tenure.integrations.neutron.options import DATABASE, LEDGER
from tests.integrations.neutron.suites.catalogue import BLACK_BOX, PLUGGABLE
from tests.integrations.neutron.suites.running import run_piece
from tests.scale import in_proof

PIECES, SAMPLE = 4, 60
"""The whole in so many pieces; ``make test`` runs one of so many."""


@pytest.mark.parametrize(("number", "pieces"), [(0, SAMPLE), *(in_proof(each, PIECES) for each in range(PIECES))])
def test_neutrons_suite_of_pluggable_backends_passes_with_the_driver(number: int, pieces: int) -> None:
    outcome = run_piece(PLUGGABLE, "database", number, pieces)

    assert outcome.failures == ()
    assert outcome.tests >= PLUGGABLE.least // pieces


@pytest.mark.proof
@pytest.mark.parametrize("mode", [LEDGER, DATABASE])
def test_the_stock_drivers_own_tests_pass_with_the_driver(mode: str) -> None:
    outcome = run_piece(BLACK_BOX, mode)

    assert outcome.failures == ()
    assert (outcome.tests, outcome.tied) >= (BLACK_BOX.least, len(BLACK_BOX.tied))
