"""Readiness: whether the store takes writes, found out by a write of no meaning that is committed as any other.

That a store answers readings says little: a full disk, a read-only file or a standby does so, too.
"""

import asyncio

from tenure.doors.http.observe.request_log import Journal
from tenure.kernel.errors import StoreUnavailable
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.service.ledger.space_scan import Survey

WITHIN_S = 2.0
"""How long the store may take for a small write."""

KEPT_S = 1.0
"""How long an answer is good, so that whoever asks often costs at most one small commit a second."""


class Readiness:
    """Tries to write when it is asked, at most once a second; all who ask meanwhile share the answer."""

    def __init__(self, ledger: AsyncLedger, journal: Journal) -> None:
        self._survey = Survey(ledger)
        self._journal = journal
        self._attempt: asyncio.Task[bool] | None = None
        self._good_until = 0.0
        self._was_ready = True

    async def is_ready(self) -> bool:
        """Return whether the store took a write within the last second, or takes one now."""
        attempt, now = self._attempt, asyncio.get_running_loop().time()
        # A cancelled attempt has no answer to share.
        if attempt is None or attempt.cancelled() or (attempt.done() and now >= self._good_until):
            attempt = self._attempt = asyncio.create_task(self._try())
        return await asyncio.shield(attempt)  # whoever asked may go away: the others still want to know

    async def _try(self) -> bool:
        reason = ""
        try:
            async with asyncio.timeout(WITHIN_S):
                await self._survey.try_write()
        except TimeoutError:
            reason = f"a small write took more than {WITHIN_S:g} s"
        except StoreUnavailable as error:
            reason = error.message
        # Counted from the end of the attempt: a slow store is not asked again at once.
        self._good_until = asyncio.get_running_loop().time() + KEPT_S
        self._note(reason)
        return not reason

    def _note(self, reason: str) -> None:
        """Log when the answer becomes another one; the reason is in the log only, for everybody may ask."""
        ready = not reason
        if ready != self._was_ready:
            self._was_ready = ready
            level, event = ("info", "ready again") if ready else ("warning", "not ready: nothing can be written")
            self._journal.note(event, level, **({} if ready else {"reason": reason}))
