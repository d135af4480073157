"""The ledger every door holds, for callers who block."""

from types import TracebackType
from typing import Self

from tenure.service.ledger.blocking.verbs_sync import BlockingVerbs
from tenure.service.ledger.caller_transaction import Inside


class Ledger(BlockingVerbs):
    """One ledger of addresses: who holds which, since when, on whose word. Safe to use from many threads."""

    def asked_by(self, actor: str, *, request_id: str | None = None) -> Self:
        """Return the same ledger, of which every change tells on whose word it was made, and by which request."""
        return type(self)(self._ledger.asked_by(actor, request_id=request_id), self._portal)

    def inside(self, connection: object) -> Inside:
        """Work inside a transaction that the caller has open on the same database, and will end.

        Nothing is committed here. The lane of each space that is touched is held until the transaction ends.
        """
        return Inside(self._ledger.inside(connection))

    def close(self) -> None:
        """Finish what was asked, then let go of the store. Closing twice is once."""
        self._portal.close(self._ledger.close())

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
