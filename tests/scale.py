"""How much is run: every promise once (``make test``), on every store (``make proof``), or full counts (``make soak``).

A test runs in ``make proof`` only if it has the mark ``proof``, or if its store has the mark ``second_store`` and
the test has not the mark ``every_store``. Such tests are deselected, never skipped: a skip says that a part is missing.
"""

import os
from collections.abc import Iterable
from typing import Any

import pytest

SOAK = os.environ.get("TENURE_SOAK") == "1"
PROOF = SOAK or os.environ.get("TENURE_PROOF") == "1"

FIRST_STORE = "sqlite"
"""The store on which ``make test`` proves what does not depend on the store; ``make quick`` has the one in memory."""


def runs(usual: int, soak: int, proof: int | None = None) -> int:
    """Return how many runs to make."""
    return soak if SOAK else proof if PROOF and proof is not None else usual


def second_store(*values: Any) -> Any:
    """Return a parameter that runs in ``make proof``, and in ``make test`` only for tests marked ``every_store``."""
    return pytest.param(*values, id=_name_of(values), marks=pytest.mark.second_store)


def in_proof(*values: Any) -> Any:
    """Return a parameter that runs in ``make proof`` only."""
    return pytest.param(*values, id=_name_of(values), marks=pytest.mark.proof)


def by_store(providers: Iterable[Any]) -> list[Any]:
    """Return stores as parameters; all but the first one are second stores."""
    found = sorted(providers, key=lambda each: each.name != FIRST_STORE)
    return [second_store(each) if number else pytest.param(each, id=each.name) for number, each in enumerate(found)]


def is_for_proof(item: pytest.Item) -> bool:
    """Say whether only ``make proof`` runs a test."""
    on_second_store = item.get_closest_marker("second_store") and not item.get_closest_marker("every_store")
    return bool(item.get_closest_marker("proof") or on_second_store)


def _name_of(values: tuple[Any, ...]) -> str:
    return "-".join(str(getattr(value, "name", value)) for value in values)
