"""Whole spaces as stores keep them, page by page: for whoever counts them or draws them."""

from collections.abc import Callable, Sequence

from tenure.kernel.errors import TenureError
from tenure.kernel.holdings.holding_model import Change, Row, SpaceId
from tenure.kernel.plan.plan_model import Configuration
from tenure.service.engine.log_keeper import DAY_US, LogKeeper
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.service.ledger.engine_ledger import server_of
from tenure.service.read.change_log import Teller
from tenure.service.read.current_rows import current_rows
from tenure.service.read.ledger_size import SizeGauge


class Survey:
    """Reads rows of all networks of a space alike. A page costs what it has, and neither a plan nor a layout."""

    def __init__(self, ledger: AsyncLedger) -> None:
        server = server_of(ledger)
        self._store = server.store
        self._networks = ledger.networks
        self._size = server.size

    async def spaces(self) -> list[SpaceId]:
        """Read the numbers of all spaces."""
        return [number for number, _ in await self._store.spaces()]

    async def plan(self, space: SpaceId) -> Configuration | None:
        """Read one space's plan; None if the space is gone."""
        return await self._store.configuration(space)

    async def rows(self, space: SpaceId, first: int, last: int, *, limit: int) -> Sequence[Row]:
        """Read holdings of whichever network that lie over a range, lowest first; also those whose time is over."""
        return await self._store.rows_within(space, first, last, limit=limit)

    async def current_rows(self, space: SpaceId, first: int, last: int, *, limit: int) -> Sequence[Row]:
        """Read the same without those whose time is over."""
        return await current_rows(self._store, await self.rows(space, first, last, limit=limit))

    async def now_us(self) -> int:
        """Read the store's clock."""
        return await self._store.now_us()

    async def changes(self, after: int, *, limit: int) -> Sequence[Change]:
        """Read the log behind a number; CursorExpired if it no longer reaches back that far."""
        return await self._store.watch(after, limit=limit)

    async def last_change(self) -> int:
        """Return the number of the newest change."""
        return await self._store.last_change()

    @property
    def size(self) -> SizeGauge:
        """Return what reads the ledger's size."""
        return self._size

    def keeper(self, keep_days: float, failed: Callable[[TenureError], None]) -> LogKeeper:
        """Return what moves changes older than so many days into the archive, once it is opened."""
        return LogKeeper(self._store, round(keep_days * DAY_US), failed)

    async def try_write(self) -> None:
        """Commit a write of no meaning; StoreUnavailable if the store takes none."""
        await self._store.try_write()

    def teller(self) -> Teller:
        """Return who tells the log in pages, as users see it."""
        return Teller(self._store, self._networks)
