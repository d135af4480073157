"""One request, tried until it is answered: what a failed try leaves open, and when the next one comes."""

import random
from dataclasses import dataclass
from typing import Literal

import aiohttp

from tenure.kernel.errors import StoreUnavailable, TenureError
from tenure.wire.http_errors import FOR_NOW

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0
GATEWAY = (502, 503, 504)
"""What somebody between us and the server answers: whether he passed the request on is not known."""

Outcome = Literal["none", "unknown"]


@dataclass(frozen=True, slots=True)
class FailedTry:
    """A try that was not answered by the ledger, and whether it may have taken effect."""

    error: TenureError
    outcome: Outcome
    after_s: float | None = None
    """When the server wants to be asked again, if it said so."""
    hopeless: bool = False
    """Trying again can only fail again."""

    def told(self, doubtful: bool) -> TenureError:
        """Return the error for the caller; an earlier try may have had an effect though this one had none."""
        if not doubtful or getattr(self.error, "outcome", None) == "unknown":
            return self.error
        return StoreUnavailable(self.error.message, outcome="unknown")


def never_sent(error: BaseException, base: str) -> FailedTry:
    """Tell of a connection that could not be made: nothing can have happened."""
    hopeless = isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.InvalidURL)
    return FailedTry(
        StoreUnavailable(f"{base} cannot be reached: {_reason(error)}", outcome="none"), "none", None, hopeless
    )


def never_answered(error: BaseException, base: str, *, changes: bool) -> FailedTry:
    """Tell of a request that was sent, or may have been; one that only reads changes nothing."""
    outcome: Outcome = "unknown" if changes else "none"
    return FailedTry(StoreUnavailable(f"{base} did not answer: {_reason(error)}", outcome=outcome), outcome)


def gateway_answered(status: int, base: str, *, changes: bool) -> FailedTry:
    """Tell of an answer that somebody in between gave."""
    outcome: Outcome = "unknown" if changes else "none"
    error = StoreUnavailable(f"{base} did not answer: status {status}", outcome=outcome)
    return FailedTry(error, outcome, hopeless=status not in GATEWAY)


def refused_for_now(error: TenureError, after: str | None) -> FailedTry | None:
    """Tell whether an error of the server is one that passes; None if it is an answer."""
    # A Retry-After that is a date is not read; Tenure's servers send seconds.
    after_s = float(after) if after is not None and after.isdecimal() else None
    if isinstance(error, StoreUnavailable):
        return FailedTry(error, error.outcome, after_s)
    if isinstance(error, FOR_NOW):
        return FailedTry(error, "none", after_s)
    return None


def pause_s(tries: int) -> float:
    """Return how long to wait before the next try: longer each time, and never all callers at once."""
    # The exponent is bounded, because a float overflows after a thousand tries.
    return min(FIRST_PAUSE_S * 2.0 ** min(tries, 10), LONGEST_PAUSE_S) * random.uniform(0.5, 1.0)


def _reason(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted ({error.certificate_error})"
    if isinstance(error, aiohttp.ClientConnectorError):
        return str(error.os_error.strerror or error.os_error)
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return str(error) or type(error).__name__
