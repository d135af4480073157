"""The kinds of deployments: each mode on each database; all tests of one kind share one, so one process runs them."""

from typing import Any

import pytest

from tests.doors.neutron.stage.deployment import DATABASES, MODES


def kinds(*modes: str) -> list[Any]:
    """Return the kinds of deployments, of these modes or all, as parameters of the fixture ``deployment``."""
    return [
        pytest.param((mode, database), id=f"{mode}-{database}", marks=pytest.mark.xdist_group(f"neutron-{database}"))
        for database in DATABASES
        for mode in modes or MODES
    ]


with_a_ledger = pytest.mark.parametrize("deployment", kinds("ledger"), indirect=True)
