"""The ledger every door holds, for asyncio. ``blocking`` has its twin for everybody else."""

from types import TracebackType

from tenure.kernel.asking import asked_entry
from tenure.kernel.entries import trim_entry
from tenure.kernel.errors import Invalid
from tenure.kernel.names import shown
from tenure.ports import Transaction
from tenure.service.log_keeper import DAY_US, archive_older
from tenure.service.reading_verbs import ReadingVerbs
from tenure.service.verifying import Breach, verify

MOST_DAYS = 36_525
"""A century."""


class AsyncLedger(ReadingVerbs):
    """One ledger of addresses: who holds which, since when, on whose word."""

    async def verify(self) -> list[Breach]:
        """Check every invariant; an empty list is a clean ledger."""
        return await verify(self._server.store)

    async def trim_changes(self, before: int) -> None:
        """Drop the log below a number, and what is archived of it; readers who need it will be told (CursorExpired).

        The log tells of it. To keep what ``history`` tells, archive it instead.
        """
        end = min(check_before(before), await self.last_change() + 1)

        async def trimming(tx: Transaction) -> None:
            await tx.trim(end)
            await tx.log([asked_entry(trim_entry(end), self._asker)])

        await self._server.store.transact(trimming)

    async def archive_changes(self, keep_days: float) -> int:
        """Move changes older than so many days from the log into the archive; return how many were moved.

        ``history`` still tells of them, and ``verify`` checks them; whoever reads the log from before them is told
        (CursorExpired). If others do so at the same time, some of it may be theirs.
        """
        return await archive_older(self._server.store, check_days(keep_days))

    async def close(self) -> None:
        """Finish what was asked, then let go of the store. Closing twice is once."""
        await self._server.close()

    async def __aenter__(self) -> "AsyncLedger":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def check_days(value: object) -> int:
    """Return how long changes stay in the log, in microseconds: from nothing to a century."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= MOST_DAYS:
        text = f"keep_days: a number of days from 0 to {MOST_DAYS} is needed, not {shown(value)}"
        raise Invalid(text, field="keep_days")
    return round(value * DAY_US)


def check_before(value: object) -> int:
    """Return a number of the log below which it may be dropped."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise Invalid(f"before: a number from the log is needed, not {shown(value)}", field="before")
    return value
