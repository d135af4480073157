"""The kinds of deployments: each mode on each database; all tests of one kind share one, so one process runs them.

``make test`` runs a test on one of two pairs, by its name, so that half of the tests try each mode and each database;
what is marked ``each_kind`` runs on both. ``make proof`` runs all four pairs.
"""

import zlib
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
        pytest.param(kind, id="-".join(kind), marks=[pytest.mark.one_worker(f"neutron-{kind[1]}"), *_scope(kind, once)])
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
    """Return all kinds as two parameters each, for tests that deploy by themselves, of which ``make test`` has one."""
    return [
        pytest.param(*kind, id="-".join(kind), marks=_scope(kind, LEDGER_ONCE)) for kind in product(MODES, DATABASES)
    ]


def _scope(kind: tuple[str, str], once: Sequence[tuple[str, str]] = EACH_ONCE) -> list[pytest.MarkDecorator]:
    return [] if kind in once else [pytest.mark.proof]


def is_left_to_another(item: pytest.Item) -> bool:
    """Say whether ``make test`` leaves a test of this pair to the other pair."""
    pair = getattr(item, "callspec", None) and item.callspec.params.get("deployment")  # type: ignore[attr-defined]
    chosen = [mark.args[1] for mark in item.iter_markers("parametrize") if mark.args[0] == "deployment"]
    if pair not in EACH_ONCE or chosen not in ([], [EACH_ONCE_KINDS]) or item.get_closest_marker("each_kind"):
        return False
    # Not hash(): it is another number in each process.
    number = zlib.crc32(item.nodeid.partition("[")[0].encode())
    return bool(pair != EACH_ONCE[number % len(EACH_ONCE)])


def some(*chosen: tuple[str, str]) -> pytest.MarkDecorator:
    """Run a test on these kinds alone."""
    return pytest.mark.parametrize("deployment", kinds(*chosen), indirect=True)


EACH_ONCE_KINDS = kinds(*EACH_ONCE)
each_once = pytest.mark.parametrize("deployment", EACH_ONCE_KINDS, indirect=True)
"""For what does not depend on how a mode and a database go together: each mode, and each database, once in a proof."""

ledger_first = pytest.mark.parametrize("deployment", kinds(once=LEDGER_ONCE), indirect=True)
"""For what is taken back: in mode ``database`` Neutron's own transaction does it; ``make test`` has mode ``ledger``."""

with_a_ledger = some(("ledger", "postgresql"), ("ledger", "mariadb"))
with_one_ledger = some(("ledger", "postgresql"))
"""For what the ledger decides, whatever database is under Neutron."""
