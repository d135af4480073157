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


def some(*chosen: tuple[str, str]) -> pytest.MarkDecorator:
    """Run a test on these kinds alone."""
    return pytest.mark.parametrize("deployment", [kind for kind in kinds() if kind.values[0] in chosen], indirect=True)


each_once = some(("database", "mariadb"), ("ledger", "postgresql"))
"""For what does not depend on how a mode and a database go together: each mode, and each database, once."""

with_a_ledger = some(("ledger", "postgresql"), ("ledger", "mariadb"))
with_one_ledger = some(("ledger", "mariadb"))
"""For what the ledger decides, whatever database is under Neutron."""
