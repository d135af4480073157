"""How long to wait before the next attempt: full jitter until the deadline, or the four attempts of client-go (VD1).

What keeps writers apart is spread, not count: writers that wait for the same time meet again. And the spread has to
grow with the time that an attempt takes: where fifty writers wait a second at most for a server that takes as long,
nearly every attempt is in vain, and costs the others as much as one that succeeds. In a simulation of 50 writers with
15 writes each, on a server with a third of a core left, 254 of 750 got through in ten minutes so; with delays that
follow the attempts all of them did in two.
"""

import random
from dataclasses import dataclass, field
from typing import Literal, get_args

RetryMode = Literal["deadline", "go"]
RETRY_MODES: tuple[RetryMode, ...] = get_args(RetryMode)

LONGEST_S = 1.0
LONGEST_ATTEMPTS = 64
"""The delay grows up to a second, or to so many times what the last attempt took, if that is more."""
GO_DELAYS_S = (0.01, 0.05, 0.25)
"""Between the four attempts of client-go's default; each is up to a tenth longer."""
GO_JITTER = 0.1


@dataclass(frozen=True)
class RetrySchedule:
    """When to try again, and when to give up; the deadline of the operation ends every schedule."""

    mode: RetryMode = "deadline"
    base_s: float = 0.02
    """The longest first delay, unless an attempt takes longer; it doubles with each attempt."""
    longest_s: float = 10.0
    """No delay is longer, however long attempts take."""
    max_retries: int | None = None
    """How often a write is tried again at most, in either mode."""
    chance: random.Random = field(default_factory=random.Random, compare=False, repr=False)

    def delay_s(self, failed: int, took_s: float = 0.0) -> float | None:
        """Return how long to wait after so many failed attempts, the last of which took so long; nothing: give up."""
        if self.max_retries is not None and failed > self.max_retries:
            return None
        if self.mode == "go":
            if failed > len(GO_DELAYS_S):
                return None
            return GO_DELAYS_S[failed - 1] * (1 + self.chance.uniform(0, GO_JITTER))
        most = min(max(LONGEST_S, LONGEST_ATTEMPTS * took_s), self.longest_s)
        # The exponent is bounded: a float has no room for 2 to the power of a thousand attempts.
        return self.chance.uniform(0, min(max(self.base_s, took_s) * 2.0 ** min(failed - 1, 30), most))
