"""What the driver raises, sorted by what it means for a caller: lost, stuck, or refused."""

import asyncio
from typing import Literal

import asyncpg

from tenure.kernel.errors import StoreUnavailable

LOST = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.exceptions.OperatorInterventionError,
    asyncpg.exceptions.TooManyConnectionsError,
    asyncio.TimeoutError,
)
"""The answer did not come: a statement that was sent may have taken effect."""

STUCK = (
    asyncpg.DeadlockDetectedError,
    asyncpg.exceptions.LockNotAvailableError,
    asyncpg.SerializationError,
    asyncpg.UniqueViolationError,
)
"""What a call that is repeated, alone or from its start, gets over; the last: an idempotency key came twice at once."""

TROUBLE = (*LOST, asyncpg.PostgresError)
"""Everything that can go wrong."""


def unavailable(error: BaseException, *, sent: bool) -> StoreUnavailable:
    """Return what is said of an error; of a statement that was sent and lost nobody knows whether it took effect.

    One that was cancelled, by its time-out or by hand, is undone, and so is one that PostgreSQL refused.
    """
    outcome: Literal["none", "unknown"] = "none"
    # To asyncpg a cancelled query is an operator's intervention, and so one of LOST; but it is undone for certain.
    if isinstance(error, LOST) and not isinstance(error, asyncpg.QueryCanceledError) and sent:
        outcome = "unknown"
    what = "was lost" if isinstance(error, LOST) else "refused"
    return StoreUnavailable(f"PostgreSQL {what}: {error or type(error).__name__}", outcome=outcome)


def locked_for(seconds: float) -> StoreUnavailable:
    """Return what is said where a lock was not to be had."""
    return StoreUnavailable(
        f"somebody else has held a lock in PostgreSQL for {seconds:g} s; look at pg_stat_activity", outcome="none"
    )
