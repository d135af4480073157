"""The kinds of deployments: each mode on each database; all tests of one kind share one, so one process runs them.

``make test`` runs each mode once and each database once; ``make proof`` runs all pairs.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

from tests.integrations.neutron.stage.deployment import DATABASES, MODES

EACH_ONCE = (("database", "mariadb"), ("ledger", "postgresql"))


LEDGER_ONCE = (("ledger", "postgresql"),)


def kinds(*chosen: tuple[str, str], once: Sequence[tuple[str, str]] = EACH_ONCE) -> list[Any]:
    """Return kinds, these or all, as parameters of ``deployment``; ``make test`` runs those of ``once``."""
    every = list(product(MODES, DATABASES))
    return [
        pytest.param(
            kind, id="-".join(kind), marks=[pytest.mark.xdist_group(f"neutron-{kind[1]}"), *_scope(kind, once)]
        )
        for kind in every
        if kind in (chosen or every)
    ]


def site_kinds(*chosen: tuple[str, str], once: Sequence[tuple[str, str]] = EACH_ONCE) -> list[Any]:
    """Return kinds, as ``kinds`` does, for sites, which name the database first."""
    every = list(product(DATABASES, MODES))
    return [
        pytest.param(kind, id="-".join(kind), marks=_scope((kind[1], kind[0]), once))
        for kind in every
        if kind in (chosen or every)
    ]


def mode_and_database() -> list[Any]:
    """Return all kinds as two parameters each, for tests that deploy by themselves."""
    return [pytest.param(*kind, id="-".join(kind), marks=_scope(kind)) for kind in product(MODES, DATABASES)]


def _scope(kind: tuple[str, str], once: Sequence[tuple[str, str]] = EACH_ONCE) -> list[pytest.MarkDecorator]:
    return [] if kind in once else [pytest.mark.proof]


def some(*chosen: tuple[str, str]) -> pytest.MarkDecorator:
    """Run a test on these kinds alone."""
    return pytest.mark.parametrize("deployment", kinds(*chosen), indirect=True)


each_once = some(*EACH_ONCE)
"""For what does not depend on how a mode and a database go together: each mode, and each database, once."""

ledger_first = pytest.mark.parametrize("deployment", kinds(once=LEDGER_ONCE), indirect=True)
"""For what is taken back: in mode ``database`` Neutron's own transaction does it; ``make test`` has mode ``ledger``."""

with_a_ledger = some(("ledger", "postgresql"), ("ledger", "mariadb"))
with_one_ledger = some(("ledger", "postgresql"))
"""For what the ledger decides, whatever database is under Neutron."""
