"""How much of a test is run: once in ``make test``, the full counts in ``make soak``."""

import os

SOAK = os.environ.get("TENURE_SOAK") == "1"


def runs(usual: int, soak: int) -> int:
    """Return how many runs to make."""
    return soak if SOAK else usual
