"""A ledger whose writes fail for some claims: before they are done, after that, or done long after they were given up.

It stands between an operator and a real ledger. Each fault is met once; what is asked again is done.
"""

import asyncio
import enum
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tenure.integrations.kubernetes.metal3.ledger import open_ledgers
from tenure.integrations.kubernetes.metal3.ledger.ledger_secret import LedgerPlace
from tenure.integrations.kubernetes.metal3.objects.ledger_owner import MOVED_FROM
from tenure.kernel.errors import StoreUnavailable, TenureError
from tenure.service.ledger.async_ledger import AsyncLedger

T = TypeVar("T")
LATE_S = 3.0
"""So long a write is on its way whose sender was told that it failed."""


class Moment(enum.Enum):
    """When a write fails."""

    BEFORE = "before"
    AFTER = "after"
    LATE = "late"


@dataclass
class LedgerFaults:
    """The faults of an operator's ledger, by verb and claim; what it notes of moves has verbs of its own."""

    wanted: dict[tuple[str, str], Moment]
    meanwhile: Callable[[str, str, str], None] = lambda verb, claim, address: None
    """Called when a write is done, or fails: what others do just then."""
    arrived: list[str] = field(default_factory=list)
    """What came late: the claim, and the error that it met, if it met one."""
    _tasks: list["asyncio.Task[None]"] = field(default_factory=list)

    async def open(self, place: LedgerPlace) -> AsyncLedger:
        """Open a ledger whose writes pass by here."""
        return FaultyLedger(await OPEN(place), self)  # type: ignore[return-value]

    async def send(self, verb: str, owner: str, address: str, write: Callable[[], Awaitable[T]]) -> T:
        """Do a write, or let it fail."""
        claim = owner.rpartition("/")[2]
        moment = self.wanted.pop((verb, claim), None)
        done = await write() if moment in (None, Moment.AFTER) else None
        if moment is Moment.LATE:
            self._tasks.append(asyncio.create_task(self._arrive(claim, write)))
        await asyncio.to_thread(self.meanwhile, verb, claim, address)
        if moment is not None:
            raise StoreUnavailable(f"{verb} of {claim} fails {moment.value}", outcome="unknown")
        return done  # type: ignore[return-value]

    async def _arrive(self, claim: str, write: Callable[[], Awaitable[Any]]) -> None:
        await asyncio.sleep(LATE_S)
        try:
            await write()
            self.arrived.append(claim)
        except TenureError as error:
            self.arrived.append(f"{claim}: {error.code}")


OPEN = open_ledgers._open


def _note_of_move(add_labels: Collection[str] = (), remove_labels: Collection[str] = (), **said: Any) -> str:
    """Return what a write notes of a move: that a claim is on its way, or that it stays; else nothing."""
    noted = {"note_moved": add_labels, "note_stays": remove_labels}
    return next((note for note, labels in noted.items() if MOVED_FROM in labels), "")


class FaultyLedger:
    """A ledger whose writes about claims pass by ``LedgerFaults``; all else is the ledger's own."""

    def __init__(self, ledger: AsyncLedger, faults: LedgerFaults) -> None:
        self._ledger = ledger
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        asked = getattr(self._ledger, name)
        if name not in ("allocate", "modify_holding", "release"):
            return asked

        def write(network: str, *place: str, owner: str, **said: Any) -> Awaitable[Any]:
            address = place[0] if place else str(said.get("address"))
            verb = _note_of_move(**said) or name
            return self._faults.send(verb, owner, address, lambda: asked(network, *place, owner=owner, **said))

        return write
