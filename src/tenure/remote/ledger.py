"""The ledger over HTTP: the same verbs, asked of a server."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime

from tenure.kernel.addresses import AddressLike, format_address, parse_address
from tenure.kernel.configuration import Configuration, Network
from tenure.kernel.errors import Invalid, StoreUnavailable
from tenure.kernel.names import Owner, check_name, check_text, read_owners, shown
from tenure.kernel.tenures import History
from tenure.kernel.values import Change, Holding, Paper
from tenure.remote import reading, shapes
from tenure.remote.changing import RemoteChanges
from tenure.remote.following import follow
from tenure.remote.refusals import FOR_NOW
from tenure.remote.transport import segment
from tenure.remote.trying import pause_s
from tenure.service.explaining import Explanation
from tenure.service.history import check_time
from tenure.service.reading_verbs import LIMITLESS, PAGE, check_cursor, check_limit
from tenure.service.searching import Found, read_wanted
from tenure.service.showing import WaitingClaim

MOST_FOUND = 10_000
"""What a server finds at once."""


class RemoteLedger(RemoteChanges):
    """One ledger of addresses behind a server: who holds which, since when, on whose word."""

    async def spaces(self) -> list[Configuration]:
        """Read all spaces, in order of name."""
        found = await self._get("/spaces", shapes.Listing[shapes.Space])
        return [reading.space(each) for each in found.items]

    async def networks(self) -> list[Network]:
        """Read all networks, in order of name."""
        pages = self._pages("/networks", shapes.Page[shapes.Network], {}, None, LIMITLESS)
        return [reading.network(each) async for each in pages]

    async def network(self, name: str) -> Network:
        """Read one network."""
        return reading.network(await self._get(_network(name), shapes.Network))

    async def holding(self, network: str, address: AddressLike) -> Holding:
        """Read who holds an address (or the prefix it lies in) in a network."""
        place = segment(format_address(parse_address(address)))
        return reading.holding(await self._get(f"{_network(network)}/holdings/{place}", shapes.Holding))

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
            return await self._owned(Owner(owner), network)
        if network is None:
            raise Invalid("network: name a network or an owner", field="network")
        start = None if after is None else format_address(parse_address(after, field="after"))
        path, kind = f"{_network(network)}/holdings", shapes.Page[shapes.Holding]
        return [reading.holding(each) async for each in self._pages(path, kind, {}, start, check_limit(limit))]

    async def holdings_of(self, owners: Sequence[str]) -> list[Holding]:
        """Read all that owners hold, owner by owner as they are named; one request each."""
        return [held for owner in read_owners(owners) for held in await self._owned(owner, None)]

    async def _owned(self, owner: Owner, network: str | None) -> list[Holding]:
        query = {"network": None if network is None else check_name(network, field="network")}
        found = await self._get(f"/owners/{segment(owner)}", shapes.Listing[shapes.Holding], query)
        return [reading.holding(each) for each in found.items]

    async def waiting(self, network: str | None = None) -> list[WaitingClaim]:
        """Read who waits, space by space in order of arrival; in one network, if one is named."""
        path = "/claims" if network is None else f"{_network(network)}/claims"
        found = await self._get(path, shapes.Listing[shapes.WaitingClaim])
        return [reading.waiting_claim(each) for each in found.items]

    async def paper(self, kind: str, name: str) -> Paper:
        """Read a document that a door keeps in the ledger."""
        wanted, path = check_name(name, field="name"), f"/papers/{segment(check_name(kind, field='kind'))}"
        return reading.paper(await self._get(f"{path}/{segment(wanted)}", shapes.Paper))

    async def papers(self, kind: str, *, prefix: str = "", after: str = "", limit: int | None = None) -> list[Paper]:
        """Read papers of a kind whose name begins so, in order of name; ``after`` is a cursor: the last name read."""
        path = f"/papers/{segment(check_name(kind, field='kind'))}"
        query = {"prefix": check_text(prefix, field="prefix") or None}
        start = check_text(after, field="after") or None
        found = self._pages(path, shapes.Page[shapes.Paper], query, start, check_limit(limit))
        return [reading.paper(each) async for each in found]

    async def changes(self, after: int = 0, *, limit: int | None = None) -> AsyncIterator[Change]:
        """Read the log behind a number, in commit order, up to its end."""
        left, cursor = check_limit(limit), check_cursor(after)
        while left > 0:
            query = {"after": str(cursor), "limit": str(min(PAGE, left))}
            page: shapes.ChangePage = await self._get("/changes", shapes.ChangePage, query)
            for each in page.items:
                yield reading.change(each)
            if not page.items:
                return
            cursor, left = page.next, left - len(page.items)

    async def tail(self, after: int = 0) -> AsyncIterator[Change]:
        """Follow the log from a number on, for ever; every change once, in commit order."""
        cursor, tries = check_cursor(after), 0
        loop = asyncio.get_running_loop()
        lost_at: float | None = None

        def opened() -> None:
            nonlocal lost_at
            lost_at = None

        while True:
            try:
                async for change in follow(self._transport, cursor, opened):
                    cursor, tries = change.seq, 0
                    yield change
            except (StoreUnavailable, *FOR_NOW):
                lost_at = lost_at or loop.time()
                if loop.time() - lost_at > self._transport.servers.within_s:
                    raise
            tries += 1
            await asyncio.sleep(pause_s(tries))

    async def last_change(self) -> int:
        """Return the number of the newest change."""
        newest: shapes.Newest = await self._get("/changes/last", shapes.Newest)
        return newest.last

    async def why(self, address: AddressLike, *, network: str | None = None) -> Explanation:
        """Explain an address: who, since when, by which request; or why it is not free; in every network it lies in."""
        return reading.explanation(await self._get(_about(address, "why"), shapes.Explanation, _in(network)))

    async def history(self, address: AddressLike, *, network: str | None = None, at: datetime | None = None) -> History:
        """Tell who held an address (or the prefix it lies in), from when until when, and how it ended."""
        path, time = _about(address, "history"), check_time(at)
        query = {**_in(network), "at": None if time is None else time.isoformat()}
        return reading.history(await self._get(path, shapes.History, query))

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

        A server finds 10,000 at once; where there are more, the search must say a limit or be narrower.
        """
        read_wanted(text, labels, kind)
        most = min(check_limit(limit), MOST_FOUND)
        said = [_label(name, value) for name, value in (labels or {}).items()]
        query = {**_in(network), "text": text, "label": said, "kind": kind, "limit": str(most)}
        found = await self._get("/search", shapes.Listing[shapes.Found], query)
        if len(found.items) == MOST_FOUND != limit:
            raise Invalid(
                f"limit: a server finds {MOST_FOUND} at once; say a limit or more of what you want", field="limit"
            )
        return [reading.found(each) for each in found.items]


def _network(name: object) -> str:
    return f"/networks/{segment(check_name(name, field='network'))}"


def _about(address: AddressLike, what: str) -> str:
    return f"/addresses/{segment(format_address(parse_address(address)))}/{what}"


def _in(network: str | None) -> dict[str, str | None]:
    return {"network": None if network is None else check_name(network, field="network")}


def _label(name: str, value: str | None) -> str:
    if "=" in name:
        raise Invalid(f"labels: a server cannot be asked for {shown(name)}, which has a = in it", field="labels")
    return name if value is None else f"{name}={value}"
