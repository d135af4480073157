"""How long to wait before the next attempt: full jitter until the deadline, or the four attempts of client-go (VD1).

What keeps writers apart is spread, not count: writers that wait for the same time meet again.
"""

import random
from dataclasses import dataclass, field
from typing import Literal

RetryMode = Literal["deadline", "go"]

LONGEST_S = 1.0
GO_DELAYS_S = (0.01, 0.05, 0.25)
"""Between the four attempts of client-go's default; each is up to a tenth longer."""
GO_JITTER = 0.1


@dataclass(frozen=True)
class RetrySchedule:
    """When to try again, and when to give up; the deadline of the operation ends every schedule."""

    mode: RetryMode = "deadline"
    base_s: float = 0.02
    """The longest first delay; it doubles with each attempt, up to a second."""
    max_retries: int | None = None
    """How often a write is tried again at most, in either mode."""
    chance: random.Random = field(default_factory=random.Random, compare=False, repr=False)

    def delay_s(self, failed: int) -> float | None:
        """Return how long to wait after so many failed attempts; nothing if there is no other attempt."""
        if self.max_retries is not None and failed > self.max_retries:
            return None
        if self.mode == "go":
            if failed > len(GO_DELAYS_S):
                return None
            return GO_DELAYS_S[failed - 1] * (1 + self.chance.uniform(0, GO_JITTER))
        longest = max(LONGEST_S, self.base_s)
        return self.chance.uniform(0, min(self.base_s * 2.0 ** min(failed - 1, 30), longest))
