"""The ledger's reading verbs: the plan, holdings, changes, explanations."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime

from tenure.kernel.addresses import AddressLike, format_address, parse_address
from tenure.kernel.configuration import Configuration, Network
from tenure.kernel.errors import Invalid, NotFound
from tenure.kernel.layout import Layout
from tenure.kernel.names import check_name, check_text, read_owners, shown
from tenure.kernel.tenures import History
from tenure.kernel.values import Change, Holding, Paper, Row, SpaceId
from tenure.service.current_rows import current_rows
from tenure.service.explaining import Explanation, explain
from tenure.service.history import check_time, read_history
from tenure.service.searching import Found, find, first_of, read_wanted
from tenure.service.showing import holding_of, known_holdings
from tenure.service.telling import Teller
from tenure.service.waiting_verbs import WaitingVerbs

PAGE = 1000
LIMITLESS = 1 << 62


class ReadingVerbs(WaitingVerbs):
    """Look things up. Nothing here changes anything.

    A pending or cooling holding whose time is over by the store's clock is free to every reader, though its row stands
    until a logged transaction removes it; until then its owner may still confirm what was pending.
    """

    async def spaces(self) -> list[Configuration]:
        """Read all spaces, in order of name."""
        found = [await self._server.store.configuration(space) for space, _ in await self._server.store.spaces()]
        return [configuration for configuration in found if configuration is not None]

    async def networks(self) -> list[Network]:
        """Read all networks, in order of name."""
        every = [network for space in await self.spaces() for network in space.networks.values()]
        return sorted(every, key=lambda network: network.name)

    async def network(self, name: str) -> Network:
        """Read one network."""
        layout = await self._server.reread(check_name(name, field="network"))
        return layout.configuration.network(name)

    async def holding(self, network: str, address: AddressLike) -> Holding:
        """Read who holds an address (or the prefix it lies in) in a network."""
        position = parse_address(address)
        layout = await self._server.reread(check_name(network, field="network"))
        number = layout.configuration.network(network).id
        store, space = self._server.store, layout.configuration.space
        rows = await current_rows(store, await store.rows_within(space, position, position, network=number, limit=1))
        if not rows:
            raise NotFound("holding", f"of {format_address(position)} in network {network}", field="address")
        return holding_of(rows[0], layout)

    async def holdings(
        self,
        network: str | None = None,
        *,
        owner: str | None = None,
        after: AddressLike | None = None,
        limit: int | None = None,
    ) -> list[Holding]:
        """Read holdings of a network, in order of address, or of an owner.

        ``after`` is a cursor: the last address of the page before. Memory and time grow with ``limit``, not the ledger.
        """
        if owner is not None:
            if after is not None or limit is not None:
                raise Invalid("after: an owner's holdings come whole, without cursor and limit", field="after")
            named = None if network is None else (await self.network(network)).name
            return [each for each in await self.holdings_of([owner]) if named in (None, each.network)]
        if network is None:
            raise Invalid("network: name a network or an owner", field="network")
        layout = await self._server.reread(check_name(network, field="network"))
        number = layout.configuration.network(network).id
        start = -1 if after is None else parse_address(after, field="after")
        return [holding_of(row, layout) async for row in self._rows(layout, number, start, check_limit(limit))]

    async def _rows(self, layout: Layout, network: int, after: int, limit: int) -> AsyncIterator[Row]:
        store, space = self._server.store, layout.configuration.space
        subnets = sorted(layout.configuration.network(layout.name_of(network)).subnets, key=lambda s: s.cidr.first)
        for subnet in subnets:
            start = max(after + 1, subnet.cidr.first)
            while limit > 0 and start <= subnet.cidr.last:
                # One more than wanted: the first may be a prefix that begins before the start.
                most = min(PAGE, limit + 1)
                page = await store.rows_within(space, start, subnet.cidr.last, network=network, limit=most)
                fresh = [row for row in await current_rows(store, page) if row.first >= start][:limit]
                for row in fresh:
                    yield row
                limit -= len(fresh)
                if len(page) < most:
                    break
                start = page[-1].last + 1

    async def holdings_of(self, owners: Sequence[str]) -> list[Holding]:
        """Read all that owners hold: owner by owner as they are named, each in order of network, slot and address.

        Cost: O(log n) an owner, one question for a thousand of them.
        """
        wanted, store = read_owners(owners), self._server.store
        layouts: dict[SpaceId, Layout | None] = {}
        found: dict[str, list[Holding]] = {owner: [] for owner in wanted}
        for start in range(0, len(wanted), PAGE):
            rows = await current_rows(store, await store.by_owner(wanted[start : start + PAGE]))
            for number, row in enumerate(rows, 1):
                if number % PAGE == 0:
                    await asyncio.sleep(0)  # one owner may hold very many: let others have a turn
                if row.space not in layouts:
                    layouts[row.space] = await self._server.layout_of_space(row.space)
                layout = layouts[row.space]
                found[row.owner].extend([] if layout is None else known_holdings([row], layout))
        ordered = (sorted(each, key=lambda held: (held.network, held.slot, held.row.first)) for each in found.values())
        return [held for each in ordered for held in each]

    async def paper(self, kind: str, name: str) -> Paper:
        """Read a document that a door keeps in the ledger."""
        wanted = check_name(name, field="name")
        found = await self._server.store.papers(check_name(kind, field="kind"), prefix=wanted, limit=1)
        if not found or found[0].name != wanted:
            raise NotFound(kind, name, field="name")
        return found[0]

    async def papers(self, kind: str, *, prefix: str = "", after: str = "", limit: int | None = None) -> list[Paper]:
        """Read papers of a kind whose name begins so, in order of name; ``after`` is a cursor: the last name read."""
        check_name(kind, field="kind")
        begins, cursor, left = check_text(prefix, field="prefix"), check_text(after, field="after"), check_limit(limit)
        found: list[Paper] = []
        while left > 0:
            most = min(PAGE, left)
            page = await self._server.store.papers(kind, prefix=begins, after=cursor, limit=most)
            found.extend(page)
            if len(page) < most:
                break
            cursor, left = page[-1].name, left - len(page)
        return found

    def _teller(self) -> Teller:
        return Teller(self._server.store, self.networks)

    async def changes(self, after: int = 0, *, limit: int | None = None) -> AsyncIterator[Change]:
        """Read the log behind a number, in commit order, up to its end."""
        teller, cursor, left = self._teller(), check_cursor(after), check_limit(limit)
        while left > 0 and (page := await teller.page(cursor, min(PAGE, left))):
            for change in page:
                yield change
            cursor, left = page[-1].seq, left - len(page)

    async def tail(self, after: int = 0) -> AsyncIterator[Change]:
        """Follow the log from a number on, for ever; every change once, in commit order."""
        async for page in self._teller().tail(check_cursor(after), PAGE):
            for change in page:
                yield change

    async def last_change(self) -> int:
        """Return the number of the newest change."""
        return await self._server.store.last_change()

    async def why(self, address: AddressLike, *, network: str | None = None) -> Explanation:
        """Explain an address: who, since when, by which request; or why it is not free; in every network it lies in."""
        position = parse_address(address)
        wanted = None if network is None else (await self.network(network)).name
        return await explain(self._server.store, await self.spaces(), position, wanted)

    async def history(self, address: AddressLike, *, network: str | None = None, at: datetime | None = None) -> History:
        """Tell who held an address (or the prefix it lies in), from when until when, and how it ended.

        ``at`` asks who held it at a time. Pending and draining are parts of a tenure, cooling comes after it.
        Cost: O(log n) and the tenures of the address.
        """
        position, time = parse_address(address), check_time(at)
        number = None if network is None else (await self.network(network)).id
        return await read_history(self._server.store, await self.spaces(), position, number, time)

    async def search(
        self,
        text: str | None = None,
        *,
        labels: Mapping[str, str | None] | None = None,
        kind: str | None = None,
        network: str | None = None,
        limit: int | None = None,
    ) -> list[Found]:
        """Find networks, subnets, pools, reserved ranges, pre-allocations and holdings by text, labels or place.

        An address, a block or a range finds what lies there, in O(log n + answer). Other text is looked for in names,
        owners, addresses and descriptions, whatever its case; a label of None need only be there. Such a search reads
        all holdings, page by page; one of another ``kind`` reads none.
        """
        wanted = read_wanted(text, labels, kind)
        most = check_limit(limit)
        if network is not None:
            await self.network(network)
        found = find(self._server.store, await self.spaces(), wanted, network)
        return [each async for each in first_of(found, most)]


def check_limit(limit: object) -> int:
    """Return how many are wanted at most; all of them unless somebody says so."""
    if limit is None:
        return LIMITLESS
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= LIMITLESS:
        raise Invalid(f"limit: a positive number is needed, not {shown(limit)}", field="limit")
    return limit


def check_cursor(after: object) -> int:
    """Return a number of the log to go on from."""
    if not isinstance(after, int) or isinstance(after, bool) or not 0 <= after <= LIMITLESS:
        raise Invalid(f"after: a number from the log is needed, not {shown(after)}", field="after")
    return after
