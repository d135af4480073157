"""The pytest plug-in: two fixtures, found by pytest itself once Tenure is installed."""

from collections.abc import Iterator

import pytest

from tenure.service.ledger.blocking.ledger_sync import Ledger
from tenure.testing.fault_injection import Faults
from tenure.testing.faulty_ledger import open_faulty


@pytest.fixture
def tenure_faults() -> Faults:
    """Give the faults of this test's ledger: none, until the test orders some."""
    return Faults()


@pytest.fixture
def tenure_ledger(tenure_faults: Faults) -> Iterator[Ledger]:
    """Give a ledger in memory, empty, closed after the test; ``tenure_faults`` are its faults."""
    with open_faulty(tenure_faults) as ledger:
        yield ledger
