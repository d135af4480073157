"""How many examples Hypothesis tries: few and always the same ones in a check, more in a proof, new ones in a soak."""

import os

from hypothesis import HealthCheck, settings

from tests.scale import PROOF

EXAMPLES = int(os.environ.get("TENURE_EXAMPLES", "0"))


def load_profile() -> None:
    """Register and load the profile of this run; ``TENURE_EXAMPLES`` asks for a soak of that many examples."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    settings.register_profile(
        "ci", max_examples=60 if PROOF else 20, derandomize=True, deadline=None, suppress_health_check=slow
    )
    settings.register_profile(
        "soak", max_examples=max(EXAMPLES, 1), deadline=None, suppress_health_check=slow, print_blob=True
    )
    settings.load_profile("soak" if EXAMPLES else "ci")


def examples(share: float) -> int:
    """Return a share of the run's number of examples, for tests whose examples are dear (or cheap)."""
    return max(int(settings().max_examples * share), 1)
