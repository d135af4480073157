"""How much is run: every promise once (``make test``), on every store (``make proof``), or full counts (``make soak``).

A test runs in ``make proof`` only if it has the mark ``proof``, or if its store has the mark ``second_store`` and
the test has not the mark ``every_store``. Of one with the mark ``sampled``, ``make test`` runs every fifth set of
parameters, and of a module with the mark ``halved`` every second test, besides those that are ``kept``. Such tests are
deselected, never skipped: a skip says that a part is missing.
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


SAMPLE = 5
"""Of so many sets of parameters one is run. It divides no number of stores, so that each store comes up."""


def left_for_proof(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """Return the tests that only ``make proof`` runs."""
    asked = [item for item in items if not _is_for_proof(item)]
    left = {item for item in items if _is_for_proof(item)}
    by_test, by_module = _numbered(asked, "["), _numbered(asked, "::")
    for item in asked:
        is_second = item.get_closest_marker("halved") and by_module[item] % 2
        is_past_sample = item.get_closest_marker("sampled") and by_test[item] % SAMPLE
        if (is_second or is_past_sample) and not item.get_closest_marker("kept"):
            left.add(item)
    return left


def _numbered(items: Iterable[pytest.Item], end: str) -> dict[pytest.Item, int]:
    """Number the sets of parameters of each test (up to ``[``), or the tests of each module (up to ``::``)."""
    known: dict[str, dict[object, int]] = {}
    numbers = {}
    for item in items:
        group = known.setdefault(item.nodeid.partition(end)[0], {})
        # By the item: all items that schemathesis makes of one test have one name.
        name = item.nodeid.partition("[")[0] if end == "::" else item
        numbers[item] = group.setdefault(name, len(group))
    return numbers


def _is_for_proof(item: pytest.Item) -> bool:
    on_second_store = item.get_closest_marker("second_store") and not item.get_closest_marker("every_store")
    return bool(item.get_closest_marker("proof") or on_second_store)


def _name_of(values: tuple[Any, ...]) -> str:
    return "-".join(str(getattr(value, "name", value)) for value in values)
