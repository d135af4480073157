"""The end of a ledger that works on a store: what the verbs ask, done by the engine (``Engine``) of this process."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from functools import partial

from tenure.kernel.addressing.addresses import format_address, parse_unit
from tenure.kernel.errors import NotFound, PoolExhausted, nobody_holds
from tenure.kernel.holdings.actor import Asker, asked_entry, check_asker, ended_row
from tenure.kernel.holdings.deadlines import DEADLINE
from tenure.kernel.holdings.holding_model import Change, Holding, Paper, Row, SpaceId, Waiter, moment
from tenure.kernel.holdings.log_entries import trim_entry, waiting_entry
from tenure.kernel.holdings.tenures import History
from tenure.kernel.names import Owner, check_generation, check_key, check_lingering, check_name, check_request
from tenure.kernel.plan.layout import Layout
from tenure.kernel.plan.plan_model import Configuration, Network
from tenure.ports import Guard, Transaction
from tenure.service.allocator.allocation import allocate
from tenure.service.allocator.claim import GIVES_UP, Claim, Granted
from tenure.service.allocator.overdue_pages import sweep_page
from tenure.service.allocator.revocable_grants import Departed, give_back
from tenure.service.allocator.waiting_line import Seat, part_line, withdraw
from tenure.service.apply.operations import Operation, Release, Shown, check_operations
from tenure.service.apply.release_holding import ReleaseRequest, release_holding
from tenure.service.apply.stored_replies import body_of_operations
from tenure.service.engine.engine import Engine
from tenure.service.engine.log_keeper import archive_older
from tenure.service.engine.rehearsal import rehearse
from tenure.service.engine.waiting_rooms import LIFE_US, attend
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.service.ledger.caller_transaction import AsyncInside, with_uuids
from tenure.service.ledger.ledger_api import PAGE, LedgerApi, check_cursor, check_days, check_limit
from tenure.service.read.address_history import read_history
from tenure.service.read.change_log import Teller
from tenure.service.read.current_rows import current_rows
from tenure.service.read.explain import Explanation, explain
from tenure.service.read.presenter import ClaimStatus, WaitingClaim, holding_of, known_holdings
from tenure.service.read.search import Found, find, first_of, read_wanted
from tenure.service.read.verify import Breach, verify


def ledger_on(server: Engine) -> AsyncLedger:
    """Return a ledger on an engine of this process."""
    return AsyncLedger(EngineLedger(server))


def server_of(ledger: AsyncLedger) -> Engine:
    """Return the engine of a ledger on a store, for work that is not done by verbs; one behind HTTP has none here."""
    assert isinstance(ledger._end, EngineLedger)
    return ledger._end.server


class EngineLedger:
    """A ledger on an engine. It reads nothing into what it is asked: names and addresses were checked before."""

    def __init__(self, server: Engine, asker: Asker | None = None) -> None:
        self.server = server
        self._asker = asker

    def asked_by(self, actor: str, request_id: str | None) -> "EngineLedger":
        """Return the same end, whose changes tell on whose word they were made."""
        return EngineLedger(self.server, check_asker(actor, request_id))

    def inside(self, connection: object) -> AsyncInside:
        """Work inside a transaction that the caller has open on the same database."""
        return AsyncInside(self.server.store.inside(connection), self.server.chance, self.server.exact_inside)

    async def apply(self, operations: Sequence[Operation], key: str | None) -> list[Shown]:
        """Make operations one transaction; what they did before under the key is answered again."""
        check_operations(operations)
        body = b"" if key is None else body_of_operations(operations, check_key(key))
        return await self.server.apply(with_uuids(operations), key, body, self._asker)

    async def rehearse(self, operations: Sequence[Operation]) -> list[Shown]:
        """Apply operations in a transaction that is taken back."""
        return await rehearse(self.server, with_uuids(operations), self._asker)

    async def serve(self, claim: Claim, wait_s: float) -> Holding:
        """Give a claim its address; where nothing is free, stand in line so long."""
        asked = claim.asked_by(self._asker)
        # Nearly always empty, so the usual allocation pays for one look.
        if self.server.doubts and (before := await self.server.settled_doubt(asked)) is not None:
            return holding_of(*before)
        try:
            return holding_of(*await allocate(asked, self.server))
        except PoolExhausted:
            if not wait_s:
                raise
        return holding_of(*await self.server.rooms.wait(asked, wait_s))

    async def claim(self, claim: Claim, patience_us: int, wait_s: float) -> ClaimStatus:
        """Give a claim its address, or a place in line."""
        asked = claim.asked_by(self._asker)
        try:
            return ClaimStatus("granted", holding_of(*await allocate(asked, self.server)))
        except PoolExhausted:
            pass
        if wait_s:
            answer = await self.server.rooms.stay(asked, wait_s, patience_us)
        else:
            answer = await attend(self.server, Seat(asked, patience_us))
        if isinstance(answer, Granted):
            return ClaimStatus("granted", holding_of(*answer))
        return ClaimStatus("waiting", place=answer.place)

    async def withdraw(self, network: str, owner: Owner, slot: str, request_id: str | None) -> bool:
        """Take a claim out of the line, and give back what a request was granted whose answer nobody saw."""
        layout = await self.server.reread(network)
        space = layout.configuration.space

        async def withdrawing(tx: Transaction) -> bool:
            await tx.guard([space], Guard.LANE)
            waiter = await withdraw(tx, layout, network, owner, slot)
            entries = [] if waiter is None else [asked_entry(waiting_entry("leave", waiter), self._asker)]
            if request_id is not None:
                [row] = await tx.rows_for([(layout.configuration.network(network).id, owner, slot)])
                entries.extend([] if row is None else await give_back(tx, row, Departed(request_id=request_id)))
            if entries:
                await tx.log(entries)
            return waiter is not None

        found = await self.server.store.transact(withdrawing)
        self.server.rooms.wake(space)
        return found

    async def release(self, operation: Release, key: str | None) -> Holding | None:
        """End a holding: by itself in a batch with others, or under a key in a transaction of its own."""
        if key is not None:
            [answer] = await self.apply([operation], key)
            assert answer is None or isinstance(answer, Holding)
            return answer
        owner, (position, length) = Owner(operation.owner), parse_unit(operation.address)
        wanted = ReleaseRequest(
            generation=check_generation(operation.generation),
            request=check_request(operation.request),
            lingers_us=check_lingering(operation.lingers_s),
            network=check_name(operation.network, field="network"),
            position=position,
            owner=owner,
            asker=self._asker,
            length=length,
        )
        ended = await release_holding(wanted, self.server)
        if ended is None:
            return None
        return holding_of(ended_row(ended.row, wanted.request, wanted.asker), ended.layout)

    async def sweep(self) -> list[Holding]:
        """Remove what is overdue, space by space and page by page; the log names nobody for it."""
        swept: list[Holding] = []
        for space, _ in await self.server.store.spaces():
            while rows := await self.server.store.transact(partial(sweep_page, space=space)):
                layout = await self.server.layout_of_space(space)
                ended = [ended_row(row, None, None) for row in rows]
                swept.extend([] if layout is None else known_holdings(ended, layout))
                self.server.rooms.wake(space)
            await self.server.store.transact(lambda tx, space=space: _bury(tx, space))  # type: ignore[misc]
        await self.server.tidier.forget()
        return swept

    async def waiting(self, network: str | None) -> list[WaitingClaim]:
        """Read the claims in line that live."""
        wanted = None if network is None else await self.server.reread(network)
        found: list[WaitingClaim] = []
        for space, _ in await self.server.store.spaces():
            if wanted is not None and space != wanted.configuration.space:
                continue
            plan = wanted.configuration if wanted is not None else await self.server.store.configuration(space)
            if plan is None or not plan.queued:  # read without a lock; to read a line takes one
                continue
            waiters = await self.server.store.transact(lambda tx, space=space: _living(tx, space))  # type: ignore[misc]
            layout = await self.server.layout_of_space(space) if waiters else None
            found.extend([] if layout is None else _shown(waiters, layout))
        return [claim for claim in found if network in (None, claim.network)]

    async def spaces(self) -> list[Configuration]:
        """Read all spaces, in order of name."""
        found = [await self.server.store.configuration(space) for space, _ in await self.server.store.spaces()]
        return [configuration for configuration in found if configuration is not None]

    async def networks(self) -> list[Network]:
        """Read all networks, in order of name."""
        every = [network for space in await self.spaces() for network in space.networks.values()]
        return sorted(every, key=lambda network: network.name)

    async def network(self, name: str) -> Network:
        """Read one network."""
        layout = await self.server.reread(name)
        return layout.configuration.network(name)

    async def holding(self, network: str, position: int) -> Holding:
        """Read the holding that a position lies in."""
        layout = await self.server.reread(network)
        number = layout.configuration.network(network).id
        store, space = self.server.store, layout.configuration.space
        rows = await current_rows(store, await store.rows_within(space, position, position, network=number, limit=1))
        if not rows:
            raise nobody_holds(format_address(position), network)
        return holding_of(rows[0], layout)

    async def holdings(self, network: str, after: int | None, limit: int) -> list[Holding]:
        """Read holdings of a network behind a position; memory and time grow with the limit."""
        layout = await self.server.reread(network)
        number, start = layout.configuration.network(network).id, -1 if after is None else after
        return [holding_of(row, layout) async for row in self._rows(layout, number, start, limit)]

    async def _rows(self, layout: Layout, network: int, after: int, limit: int) -> AsyncIterator[Row]:
        store, space = self.server.store, layout.configuration.space
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

    async def holdings_of(self, owners: Sequence[Owner], network: str | None) -> list[Holding]:
        """Read all that owners hold, each in order of network, slot and address; a page of owners at a time."""
        named = None if network is None else (await self.network(network)).name
        store = self.server.store
        layouts: dict[SpaceId, Layout | None] = {}
        found: dict[str, list[Holding]] = {owner: [] for owner in owners}
        for start in range(0, len(owners), PAGE):
            rows = await current_rows(store, await store.by_owner(owners[start : start + PAGE]))
            for number, row in enumerate(rows, 1):
                if number % PAGE == 0:
                    await asyncio.sleep(0)  # one owner may hold very many: let others have a turn
                if row.space not in layouts:
                    layouts[row.space] = await self.server.layout_of_space(row.space)
                layout = layouts[row.space]
                found[row.owner].extend([] if layout is None else known_holdings([row], layout))
        ordered = (sorted(each, key=lambda held: (held.network, held.slot, held.row.first)) for each in found.values())
        return [held for each in ordered for held in each if named in (None, held.network)]

    async def paper(self, kind: str, name: str) -> Paper:
        """Read a paper; NotFound if there is none of this very name."""
        # The name itself comes first among all names that begin with it.
        found = await self.server.store.papers(kind, prefix=name, limit=1)
        if not found or found[0].name != name:
            raise NotFound(kind, name, field="name")
        return found[0]

    async def papers(self, kind: str, prefix: str, after: str, limit: int) -> list[Paper]:
        """Read papers page by page."""
        cursor, left = after, limit
        found: list[Paper] = []
        while left > 0:
            most = min(PAGE, left)
            page = await self.server.store.papers(kind, prefix=prefix, after=cursor, limit=most)
            found.extend(page)
            if len(page) < most:
                break
            cursor, left = page[-1].name, left - len(page)
        return found

    def _teller(self) -> Teller:
        return Teller(self.server.store, self.networks)

    async def changes(self, after: int, limit: int | None) -> AsyncIterator[Change]:
        """Read the log behind a number, page by page."""
        teller, cursor, left = self._teller(), check_cursor(after), check_limit(limit)
        while left > 0 and (page := await teller.page(cursor, min(PAGE, left))):
            for change in page:
                yield change
            cursor, left = page[-1].seq, left - len(page)

    async def tail(self, after: int) -> AsyncIterator[Change]:
        """Follow the log."""
        async for page in self._teller().tail(check_cursor(after), PAGE):
            for change in page:
                yield change

    async def last_change(self) -> int:
        """Return the number of the newest change."""
        return await self.server.store.last_change()

    async def why(self, position: int, network: str | None) -> Explanation:
        """Explain an address in every network that it lies in, or in one."""
        wanted = None if network is None else (await self.network(network)).name
        return await explain(self.server.store, await self.spaces(), position, wanted)

    async def history(self, position: int, network: str | None, at: datetime | None) -> History:
        """Read who held an address, from the log and its archive."""
        number = None if network is None else (await self.network(network)).id
        return await read_history(self.server.store, await self.spaces(), position, number, at)

    async def search(
        self,
        text: str | None,
        labels: Mapping[str, str | None] | None,
        kind: str | None,
        network: str | None,
        limit: int | None,
    ) -> list[Found]:
        """Find objects in the plan, and then among all holdings, page by page."""
        wanted = read_wanted(text, labels, kind)
        most = check_limit(limit)
        if network is not None:
            await self.network(check_name(network, field="network"))
        found = find(self.server.store, await self.spaces(), wanted, network)
        return [each async for each in first_of(found, most)]

    async def verify(self) -> list[Breach]:
        """Check every invariant against what the store holds."""
        return await verify(self.server.store)

    async def trim_changes(self, end: int) -> None:
        """Drop the log below a number, in a transaction that the log tells of."""

        async def trimming(tx: Transaction) -> None:
            await tx.trim(end)
            await tx.log([asked_entry(trim_entry(end), self._asker)])

        await self.server.store.transact(trimming)

    async def archive_changes(self, keep_days: float) -> int:
        """Move older changes into the archive."""
        return await archive_older(self.server.store, check_days(keep_days))

    async def close(self) -> None:
        """Finish what was asked, then let go of the store. Closing twice is once."""
        await self.server.close()


# Here mypy compares the class with the protocol.
_: type[LedgerApi] = EngineLedger


async def _bury(tx: Transaction, space: int) -> None:
    """Take claims that nobody stands behind any more out of a space's line."""
    await tx.guard([space], Guard.LANE)
    for configuration in await tx.configurations([space]):
        _, dead = await part_line(tx, configuration)
        if dead:
            await tx.log([waiting_entry("leave", waiter, DEADLINE) for waiter in dead])


def _gives_up(waiter: Waiter) -> datetime | None:
    """Return when a claim leaves the line if nothing becomes free: None if never.

    A server renews the claims of callers that wait there, so until when such a claim is taken for alive says nothing.
    """
    renewed = waiter.lasts_us == LIFE_US and GIVES_UP in waiter.document
    until_us = waiter.document[GIVES_UP] if renewed else waiter.until_us
    return None if until_us is None else moment(until_us)


async def _living(tx: Transaction, space: int) -> list[Waiter]:
    """Read a space's line, without those who are past their time."""
    now_us = await tx.now_us()
    return [waiter for waiter in await tx.waiters(space) if waiter.until_us >= now_us]


def _shown(waiters: Sequence[Waiter], layout: Layout) -> list[WaitingClaim]:
    known = {network.id for network in layout.configuration.networks.values()}
    return [
        WaitingClaim(
            layout.name_of(waiter.network), Owner.trusted(waiter.owner), waiter.slot, place, moment(waiter.since_us),
            _gives_up(waiter), waiter.document.get("pool"), waiter.document.get("subnet"),
            waiter.document.get("zone"), waiter.document.get("family"),
        )
        for place, waiter in enumerate(waiters, 1)
        if waiter.network in known
    ]  # fmt: skip
