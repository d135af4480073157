"""The ledgers that pools are bound to: each is opened once for all pools that name it, and closed with the last."""

import asyncio
import logging
from dataclasses import dataclass, field

from tenure.client.server_urls import names_servers
from tenure.integrations.kubernetes.metal3.ledger.ledger_secret import LedgerPlace
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.kernel.errors import NotFound, TenureError
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.wiring import is_there, open_async, without_secrets

LOG = logging.getLogger(__name__)

ACTOR = "tenure-operator"
"""Who asks, in the log of a ledger that is reached by its store; a server knows it by the token."""
CLOSES_S = 5.0


@dataclass
class _Opened:
    users: set[PoolId] = field(default_factory=set)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    ledger: AsyncLedger | None = None

    @property
    def is_over(self) -> bool:
        """Return whether there is nothing to close, and nobody who opens it."""
        return not self.users and self.ledger is None and not self.lock.locked()


class OpenLedgers:
    """Ledgers by where they are."""

    def __init__(self) -> None:
        self._opened: dict[LedgerPlace, _Opened] = {}

    async def get(self, place: LedgerPlace, user: PoolId) -> AsyncLedger:
        """Return the ledger at a place for a pool; what the pool used before is left."""
        await self.leave(user, but=place)
        opened = self._opened.setdefault(place, _Opened())
        # Before the lock: a ledger that has a user is not closed while this one waits.
        opened.users.add(user)
        async with opened.lock:
            if opened.ledger is None:
                opened.ledger = await _open(place)
            return opened.ledger

    async def leave(self, user: PoolId, *, but: LedgerPlace | None = None) -> None:
        """Let a pool use no ledger, but for one; what nobody uses is closed."""
        # A copy: other pools come and go while a ledger is closed.
        for place, opened in list(self._opened.items()):
            if place == but:
                continue
            opened.users.discard(user)
            if not opened.users:
                await _close(place, opened)
                # A pool may have come meanwhile; and what could not be closed in time is closed with the others.
                if opened.is_over and self._opened.get(place) is opened:
                    del self._opened[place]

    async def close(self) -> None:
        """Close all of them."""
        for place, opened in list(self._opened.items()):
            opened.users.clear()
            await _close(place, opened)
        self._opened.clear()


async def _open(place: LedgerPlace) -> AsyncLedger:
    if names_servers(place.url):
        return await open_async(place.url, token=place.token or None)
    if not await is_there(place.url):
        hint = "an operator makes none; `tenure network add` does"
        raise NotFound("ledger", without_secrets(place.url), hint=hint)
    return (await open_async(place.url)).asked_by(ACTOR)


async def _close(place: LedgerPlace, opened: _Opened) -> None:
    """Close a ledger that no pool uses, also one that is being opened. It lets go of its store if this is cancelled."""
    try:
        # A database that hangs must not keep the process from ending.
        async with asyncio.timeout(CLOSES_S), opened.lock:
            if opened.ledger is not None and not opened.users:
                # Taken out before it is closed: if that is cut short, no pool is given a ledger that is half closed.
                ledger, opened.ledger = opened.ledger, None
                await ledger.close()
    except TimeoutError:
        LOG.warning("the ledger %s was not closed within %d s", without_secrets(place.url), CLOSES_S)
    except (TenureError, OSError) as error:
        LOG.warning("a ledger was not closed in order: %s", error)
