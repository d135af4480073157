"""The log as users see it: pages of entries with the names of networks, and who asked beside the details."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

from tenure.kernel.holdings.actor import BY, asked
from tenure.kernel.holdings.holding_model import Change, NetworkId
from tenure.kernel.holdings.log_entries import shown_details
from tenure.kernel.plan.plan_model import Network
from tenure.ports import LedgerStore

# Grants wake no reader (docs/why/0009), so a tail looks again after a pause.
TAIL_PAUSE_S = 0.05


class Teller:
    """Tells the log page by page. Networks go by their present names; they are read again when an entry says so."""

    def __init__(self, store: LedgerStore, networks: Callable[[], Awaitable[Iterable[Network]]]) -> None:
        self._store = store
        self._networks = networks
        self._names: dict[NetworkId | None, str | None] = {None: None}

    async def page(self, after: int, limit: int) -> list[Change]:
        """Read a page behind a number; an empty one is the end of the log as it is now."""
        page = await self._store.watch(after, limit=limit)
        renamed = any(change.verb == "network.modify" for change in page)
        if renamed or not all(change.network in self._names for change in page):
            await self._read_names(page)
        names = self._names
        return [_told(change, names[change.network]) for change in page]

    async def _read_names(self, page: Sequence[Change]) -> None:
        known: dict[NetworkId | None, str | None] = {each.id: each.name for each in await self._networks()}
        # Networks that are gone have no name any more. They are noted, so that their entries cause no further reading.
        self._names = {None: None, **dict.fromkeys((change.network for change in page), None), **known}

    async def tail(self, after: int, limit: int) -> AsyncIterator[list[Change]]:
        """Follow the log from a number on, for ever, page by page; no page is empty."""
        while True:
            page = await self.page(after, limit)
            if page:
                yield page
                after = page[-1].seq
            else:
                await asyncio.sleep(TAIL_PAUSE_S)


def _told(change: Change, network: str | None) -> Change:
    """Show an entry with its network's name, and with who asked for it beside its details, not among them."""
    seq, at_us, verb, space, number, first, last, owner, slot, generation, request, details, _, _, _ = change
    actor, request_id = details.get(BY) or (None, None)
    return Change(
        seq, at_us, verb, space, number, first, last, owner, slot, generation, request,
        shown_details(details if actor is None else asked(details, None)), network, actor, request_id,
    )  # fmt: skip
