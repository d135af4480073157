"""The end of a ledger that is a server's: what the verbs ask, asked over HTTP."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NoReturn

from tenure.client.event_stream import follow
from tenure.client.retry_policy import pause_s
from tenure.client.transport import Query, Transport, id_for, segment, short_key
from tenure.kernel.addressing.addresses import format_address, named_unit_text, parse_unit
from tenure.kernel.errors import Invalid, PoolExhausted, StoreUnavailable, TenureError
from tenure.kernel.holdings.holding_model import Change, Holding, Paper
from tenure.kernel.holdings.tenures import History
from tenure.kernel.names import (
    Owner,
    check_generation,
    check_key,
    check_lingering,
    check_name,
    check_request,
    shown,
)
from tenure.kernel.plan.plan_model import Configuration, Network
from tenure.service.allocator.claim import Claim, exhausted
from tenure.service.apply.operations import (
    Allocate,
    AllocateRun,
    Operation,
    Release,
    Shown,
    WritePaper,
    check_operations,
    keywords_of,
)
from tenure.service.apply.paper_effects import check_document
from tenure.service.apply.stored_replies import body_of_operations
from tenure.service.ledger.ledger_api import LIMITLESS, PAGE, LedgerApi, check_cursor, check_days, check_limit
from tenure.service.read.explain import Explanation
from tenure.service.read.presenter import ClaimStatus, WaitingClaim
from tenure.service.read.search import Found, read_wanted
from tenure.service.read.verify import Breach
from tenure.wire import decode, request_bodies, responses
from tenure.wire.http_errors import FOR_NOW

LONG_S = 600.0
"""How long the server may be busy with the whole ledger."""
MANY_S = 120.0
"""How long it may be busy with many operations."""
POLL_S = 20.0
"""How long one request waits for a grant; who waits longer asks again, and keeps his place."""
KEPT_S = 15.0
"""How long the place of one who waits is kept for him between two requests."""
LEAVE_S = 3.0
"""How long a caller who was cancelled takes to leave the line."""

NOTICED_S = 0.1
"""After this time a server has noticed that a connection was closed."""

MOST_FOUND = 10_000
"""What a server finds at once."""


class RemoteLedger:
    """A ledger behind a server."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    @property
    def url(self) -> str:
        """Return where the servers are, as they were named."""
        return str(self.transport.servers)

    def asked_by(self, actor: str, request_id: str | None) -> NoReturn:
        """Refuse: on whose word a change is made is for the server to say, which knows it by the token."""
        raise Invalid("actor: a server knows by the token who asks; open the ledger with another token", field="actor")

    def inside(self, connection: object) -> NoReturn:
        """Refuse: a transaction of the caller's is in a database that the server cannot look into."""
        raise Invalid(
            "connection: a ledger over HTTP cannot work inside a transaction of yours; open the store itself",
            field="connection",
        )

    async def _get(self, path: str, kind: Any, query: Query | None = None, *, answer_s: float = LONG_S) -> Any:
        return await self.transport.ask("GET", path, kind, query=query, answer_s=answer_s)

    async def _pages(self, path: str, kind: Any, query: Query, after: str | None, left: int) -> AsyncIterator[Any]:
        """Walk a list page by page."""
        while left > 0:
            asked = {**query, "limit": str(min(PAGE, left)), "after": after}
            page = await self._get(path, kind, asked)
            for each in page.items:
                yield each
            left, after = left - len(page.items), page.next
            if after is None:
                return

    async def apply(self, operations: Sequence[Operation], key: str | None) -> list[Shown]:
        """Have the server make operations one transaction."""
        return await self._asked(":apply", operations, key=key)

    async def rehearse(self, operations: Sequence[Operation]) -> list[Shown]:
        """Have the server rehearse operations."""
        return await self._asked(":rehearse", operations, changes=False)

    async def _asked(
        self, path: str, operations: Sequence[Operation], *, key: str | None = None, changes: bool = True
    ) -> list[Shown]:
        for operation in check_operations(operations):
            _check_said(operation)
        if key is not None:
            # Called for its check alone: no operation may have the key of the whole.
            body_of_operations(operations, check_key(key))
        # An operation's own key makes the request id, so that a repeat under that key has the same id.
        inner = next((each.key for each in operations if isinstance(each, Allocate) and each.key is not None), None)
        body = {"operations": [request_bodies.written(_with_short_key(operation)) for operation in operations]}
        try:
            answers: responses.Listing[responses.Answer] = await self.transport.ask(
                "POST", path, responses.Listing[responses.Answer], body=body, key=key, request_id=id_for(key or inner),
                answer_s=MANY_S, changes=changes,
            )  # fmt: skip
        except Invalid as error:
            raise as_asked(error) from None
        return decode.answers(answers.items)

    async def serve(self, claim: Claim, wait_s: float) -> Holding:
        """Have the server give a claim its address; a longer wait is several requests."""
        if wait_s:
            return await self._waited(claim, wait_s)
        return decode.holding(await self._allocated(claim, claim.key, None))

    async def _allocated(
        self, claim: Claim, key: str | None, request_id: str | None, wait_s: float = 0.0
    ) -> responses.Holding:
        waiting = {"wait_s": wait_s} if wait_s else {}
        answer: responses.Holding = await self.transport.ask(
            "POST", f"/networks/{segment(claim.network)}:allocate", responses.Holding,
            body=keywords_of(claim) | waiting, key=key, request_id=request_id, waits_s=wait_s,
        )  # fmt: skip
        return answer

    async def _waited(self, claim: Claim, wait_s: float) -> Holding:
        """Wait for an address in line: by several requests under one key, each of which keeps the place."""
        loop = asyncio.get_running_loop()
        # One key for all requests: a grant whose answer was lost is the answer to the next one.
        deadline, key, request_id = loop.time() + wait_s, claim.key or secrets.token_hex(16), id_for(claim.key)
        try:
            async with self._or_leave(claim, request_id):
                while deadline - loop.time() > POLL_S:
                    status = await self._claimed(claim, key, request_id, patience_s=KEPT_S, wait_s=POLL_S)
                    if status.holding is not None:
                        return status.holding
                # The last stretch is an allocate, which raises PoolExhausted at its end. Never 0, because a request
                # without wait_s does not stand in line.
                left_s = max(deadline - loop.time(), 0.001)
                return decode.holding(await self._allocated(claim, key, request_id, left_s))
        except PoolExhausted as error:
            raise exhausted(claim, error.case, waited_s=wait_s) from None

    @contextlib.asynccontextmanager
    async def _or_leave(self, claim: Claim, request_id: str) -> AsyncIterator[None]:
        """Leave nothing behind if the caller is cancelled: the server takes only the claim out of the line."""
        try:
            yield
        except asyncio.CancelledError:
            # An attempt is enough: a place that no request asks for is lost after KEPT_S anyway.
            with contextlib.suppress(TenureError, TimeoutError):
                await asyncio.wait_for(self._abandoned(claim, request_id), LEAVE_S)
            raise

    async def _abandoned(self, claim: Claim, request_id: str) -> None:
        """Take a claim out of the line, and give back what this very request was granted while it waited.

        Twice: the server may have been granting it, and notices only a moment later that nobody listens any more.
        What was granted at once stays, and under a key of the caller's own all does, for whoever asks again under it.
        """
        abandoned = None if claim.key is not None else request_id
        for before_s in (0.0, NOTICED_S):
            await asyncio.sleep(before_s)
            await self.withdraw(claim.network, claim.owner, claim.slot, abandoned)

    async def _claimed(
        self, claim: Claim, key: str | None, request_id: str | None, *, patience_s: float, wait_s: float
    ) -> ClaimStatus:
        body = keywords_of(claim) | {"patience_s": patience_s, "wait_s": wait_s}
        status: responses.ClaimStatus = await self.transport.ask(
            "POST", f"/networks/{segment(claim.network)}:claim", responses.ClaimStatus, body=body, key=key,
            request_id=request_id, waits_s=wait_s,
        )  # fmt: skip
        return decode.claim_status(status)

    async def claim(self, claim: Claim, patience_us: int, wait_s: float) -> ClaimStatus:
        """Have the server give a claim its address, or a place in line; a longer wait is several requests."""
        key, request_id, left_s = claim.key or secrets.token_hex(16), id_for(claim.key), wait_s
        async with self._or_leave(claim, request_id):
            while True:
                poll_s = min(left_s, POLL_S)
                status = await self._claimed(claim, key, request_id, patience_s=patience_us / 1e6, wait_s=poll_s)
                left_s -= poll_s
                if status.holding is not None or left_s <= 0:
                    return status

    async def withdraw(self, network: str, owner: Owner, slot: str, request_id: str | None) -> bool:
        """Have the server take a claim out of the line, and give back what a request was granted."""
        body: dict[str, Any] = {"owner": str(owner), "slot": slot}
        if request_id is not None:
            body["request_id"] = request_id
        answer: responses.Withdrawn = await self.transport.ask(
            "POST", f"{_network(network)}:withdraw", responses.Withdrawn, body=body
        )
        return answer.withdrawn

    async def release(self, operation: Release, key: str | None) -> Holding | None:
        """Have the server end a holding."""
        check_lingering(operation.lingers_s)
        body: dict[str, Any] = {
            "address": named_unit_text(*parse_unit(operation.address)),
            "owner": str(Owner(operation.owner)),
            "generation": check_generation(operation.generation),
            "lingers_s": operation.lingers_s,
            "request": check_request(operation.request),
        }
        path = f"{_network(check_name(operation.network, field='network'))}:release"
        under = None if key is None else check_key(key)
        answer: responses.Answer = await self.transport.ask("POST", path, responses.Answer, body=body, key=under)
        return decode.optional_holding(answer.holding)

    async def sweep(self) -> list[Holding]:
        """Have the server remove what is overdue."""
        swept: responses.Listing[responses.Holding] = await self.transport.ask(
            "POST", ":sweep", responses.Listing[responses.Holding], body={}, answer_s=LONG_S
        )
        return [decode.holding(each) for each in swept.items]

    async def waiting(self, network: str | None) -> list[WaitingClaim]:
        """Read who waits, space by space in order of arrival; in one network, if one is named."""
        path = "/claims" if network is None else f"{_network(network)}/claims"
        found = await self._get(path, responses.Listing[responses.WaitingClaim])
        return [decode.waiting_claim(each) for each in found.items]

    async def spaces(self) -> list[Configuration]:
        """Read all spaces, in order of name."""
        found = await self._get("/spaces", responses.Listing[responses.Space])
        return [decode.space(each) for each in found.items]

    async def networks(self) -> list[Network]:
        """Read all networks, in order of name."""
        pages = self._pages("/networks", responses.Page[responses.Network], {}, None, LIMITLESS)
        return [decode.network(each) async for each in pages]

    async def network(self, name: str) -> Network:
        """Read one network."""
        return decode.network(await self._get(_network(name), responses.Network))

    async def holding(self, network: str, position: int) -> Holding:
        """Read the holding that a position lies in."""
        place = segment(format_address(position))
        return decode.holding(await self._get(f"{_network(network)}/holdings/{place}", responses.Holding))

    async def holdings(self, network: str, after: int | None, limit: int) -> list[Holding]:
        """Read holdings of a network behind a position, page by page."""
        start = None if after is None else format_address(after)
        pages = self._pages(f"{_network(network)}/holdings", responses.Page[responses.Holding], {}, start, limit)
        return [decode.holding(each) async for each in pages]

    async def holdings_of(self, owners: Sequence[Owner], network: str | None) -> list[Holding]:
        """Read all that owners hold; one request each."""
        found: list[Holding] = []
        for owner in owners:
            path, query = f"/owners/{segment(owner)}", {"network": network}
            held = await self._get(path, responses.Listing[responses.Holding], query)
            found += [decode.holding(each) for each in held.items]
        return found

    async def paper(self, kind: str, name: str) -> Paper:
        """Read a paper."""
        return decode.paper(await self._get(f"/papers/{segment(kind)}/{segment(name)}", responses.Paper))

    async def papers(self, kind: str, prefix: str, after: str, limit: int) -> list[Paper]:
        """Read papers page by page."""
        path, query = f"/papers/{segment(kind)}", {"prefix": prefix or None}
        found = self._pages(path, responses.Page[responses.Paper], query, after or None, limit)
        return [decode.paper(each) async for each in found]

    async def changes(self, after: int, limit: int | None) -> AsyncIterator[Change]:
        """Read the log behind a number, in commit order, up to its end."""
        left, cursor = check_limit(limit), check_cursor(after)
        while left > 0:
            query = {"after": str(cursor), "limit": str(min(PAGE, left))}
            page: responses.ChangePage = await self._get("/changes", responses.ChangePage, query)
            for each in page.items:
                yield decode.change(each)
            # A token that sees few networks gets pages without an entry that are not the last.
            if page.next <= cursor:
                return
            cursor, left = page.next, left - len(page.items)

    async def tail(self, after: int) -> AsyncIterator[Change]:
        """Follow the log from a number on, for ever; every change once, in commit order."""
        cursor, tries = check_cursor(after), 0
        loop = asyncio.get_running_loop()
        lost_at: float | None = None

        def opened() -> None:
            # The opened stream ends an outage, not the first change: a quiet log may have none for hours.
            nonlocal lost_at
            lost_at = None

        while True:
            try:
                async for change in follow(self.transport, cursor, opened):
                    cursor, tries = change.seq, 0
                    yield change
            except (StoreUnavailable, *FOR_NOW):
                lost_at = lost_at or loop.time()
                if loop.time() - lost_at > self.transport.servers.within_s:
                    raise
            # A stream that ended in order is opened again as well: the server that sent it may be stopping.
            tries += 1
            await asyncio.sleep(pause_s(tries))

    async def last_change(self) -> int:
        """Return the number of the newest change."""
        newest: responses.Newest = await self._get("/changes/last", responses.Newest)
        return newest.last

    async def why(self, position: int, network: str | None) -> Explanation:
        """Have the server explain an address."""
        found = await self._get(_about(position, "why"), responses.Explanation, {"network": network})
        return decode.explanation(found)

    async def history(self, position: int, network: str | None, at: datetime | None) -> History:
        """Read who held an address."""
        query = {"network": network, "at": None if at is None else at.isoformat()}
        return decode.history(await self._get(_about(position, "history"), responses.History, query))

    async def search(
        self,
        text: str | None,
        labels: Mapping[str, str | None] | None,
        kind: str | None,
        network: str | None,
        limit: int | None,
    ) -> list[Found]:
        """Find objects, as many as a server finds at once; where there are more, the search must be narrower."""
        read_wanted(text, labels, kind)
        most = min(check_limit(limit), MOST_FOUND)
        named = None if network is None else check_name(network, field="network")
        said = [_label(name, value) for name, value in (labels or {}).items()]
        query = {"network": named, "text": text, "label": said, "kind": kind, "limit": str(most)}
        found = await self._get("/search", responses.Listing[responses.Found], query)
        # As many as a server returns at most: some may be missing, unless the caller asked for just so many.
        if len(found.items) == MOST_FOUND != limit:
            raise Invalid(
                f"limit: a server finds {MOST_FOUND} at once; say a limit or more of what you want", field="limit"
            )
        return [decode.found(each) for each in found.items]

    async def verify(self) -> list[Breach]:
        """Check every invariant; an empty list is a clean ledger."""
        found: responses.Listing[responses.Breach] = await self.transport.ask(
            "POST", ":verify", responses.Listing[responses.Breach], body={}, answer_s=LONG_S
        )
        return [decode.breach(each) for each in found.items]

    async def trim_changes(self, end: int) -> None:
        """Have the server drop the log below a number."""
        await self.transport.ask("POST", "/changes:trim", responses.Newest, body={"before": end}, answer_s=LONG_S)

    async def archive_changes(self, keep_days: float) -> int:
        """Move changes older than so many days from the log into the archive; return how many were moved."""
        check_days(keep_days)
        moved: responses.Archived = await self.transport.ask(
            "POST", "/changes:archive", responses.Archived, body={"keep_days": keep_days}, answer_s=LONG_S
        )
        return moved.moved

    async def close(self) -> None:
        """Finish what was asked, then let go of the connections. Closing twice is once."""
        await self.transport.close()


_: type[LedgerApi] = RemoteLedger


def _network(name: str) -> str:
    return f"/networks/{segment(name)}"


def _about(position: int, what: str) -> str:
    return f"/addresses/{segment(format_address(position))}/{what}"


def _label(name: str, value: str | None) -> str:
    if "=" in name:
        raise Invalid(f"labels: a server cannot be asked for {shown(name)}, which has a = in it", field="labels")
    return name if value is None else f"{name}={value}"


def _check_said(operation: Operation) -> None:
    """Refuse bad input by name before anything is asked: what JSON would make something else of, at least."""
    if isinstance(operation, Allocate):
        operation.claim()
    elif isinstance(operation, AllocateRun):
        operation.claims()
    elif isinstance(operation, WritePaper):
        check_document(operation.document)


def _with_short_key(operation: Operation) -> Operation:
    """Return an operation with a key that servers take, if it has one of its own."""
    if isinstance(operation, Allocate) and operation.key is not None:
        return replace(operation, key=short_key(operation.key))
    return operation


def as_asked(error: TenureError) -> TenureError:
    """Let an error name the field as the caller knows it, not by its place in what was sent."""
    field = error.field or ""
    place, dot, name = field.partition("].")
    if isinstance(error, Invalid) and dot and place.startswith("operations["):
        error.field = name
        error.message = error.message.removeprefix(f"{place}].")
        error.args = (error.message,)
    return error
