"""The verbs that change something, asked of a server."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Sequence
from typing import Any, Self, Unpack

from tenure.kernel.addresses import AddressLike, format_address, parse_address
from tenure.kernel.errors import Invalid, PoolExhausted, TenureError
from tenure.kernel.names import (
    Owner,
    check_generation,
    check_key,
    check_lingering,
    check_name,
    check_request,
    check_seconds,
    check_slot,
    check_wait,
)
from tenure.kernel.values import Holding
from tenure.remote import bodies, reading, shapes
from tenure.remote.transport import Query, Transport, id_for, segment
from tenure.remote.wishes import as_asked, check_said, with_short_key
from tenure.service.claims import Claim, check_patience
from tenure.service.inside import AsyncInside
from tenure.service.ledger import AsyncLedger, check_before, check_days
from tenure.service.operations import (
    Allocate,
    ClaimKeywords,
    Operation,
    Shown,
    check_operations,
    keywords_of,
    read_claim,
)
from tenure.service.reading_verbs import PAGE
from tenure.service.replaying import body_of_operations
from tenure.service.showing import ClaimStatus
from tenure.service.verb_signature import only, spelled_out
from tenure.service.verifying import Breach

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


class RemoteChanges(AsyncLedger):
    """Allocate, release, edit the plan; over HTTP."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @property
    def url(self) -> str:
        """Return where the servers are, as they were named."""
        return str(self._transport.servers)

    def asked_by(self, actor: str, *, request_id: str | None = None) -> Self:
        """Refuse: on whose word a change is made is for the server to say, which knows it by the token."""
        raise Invalid("actor: a server knows by the token who asks; open the ledger with another token", field="actor")

    def inside(self, connection: object) -> AsyncInside:
        """Refuse: a transaction of the caller's is in a database that the server cannot look into."""
        raise Invalid(
            "connection: a ledger over HTTP cannot work inside a transaction of yours; open the store itself",
            field="connection",
        )

    async def _get(self, path: str, kind: Any, query: Query | None = None, *, answer_s: float = LONG_S) -> Any:
        return await self._transport.ask("GET", path, kind, query=query, answer_s=answer_s)

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

    async def _apply(self, operations: Sequence[Operation], key: str | None = None) -> list[Shown]:
        return await self._asked(":apply", operations, key=key)

    async def rehearse(self, operations: Sequence[Operation]) -> list[Shown]:
        """Tell what ``apply`` would answer now, or raise what it would raise; nothing is changed or logged."""
        return await self._asked(":rehearse", operations, changes=False) if check_operations(operations) else []

    async def _asked(
        self, path: str, operations: Sequence[Operation], *, key: str | None = None, changes: bool = True
    ) -> list[Shown]:
        for operation in check_operations(operations):
            check_said(operation)
        if key is not None:
            body_of_operations(operations, check_key(key))
        inner = next((each.key for each in operations if isinstance(each, Allocate) and each.key is not None), None)
        body = {"operations": [bodies.written(with_short_key(operation)) for operation in operations]}
        try:
            answers: shapes.Listing[shapes.Answer] = await self._transport.ask(
                "POST", path, shapes.Listing[shapes.Answer], body=body, key=key, request_id=id_for(key or inner),
                answer_s=MANY_S, changes=changes,
            )  # fmt: skip
        except Invalid as error:
            raise as_asked(error) from None
        return reading.answers(answers.items)

    async def _served(self, claim: Claim, wait_s: float | None) -> Holding:
        patience_s = check_patience(claim, wait_s)
        if patience_s:
            return await self._waited(claim, patience_s)
        return reading.holding(await self._allocated(claim, claim.key, None))

    async def _allocated(
        self, claim: Claim, key: str | None, request_id: str | None, wait_s: float = 0.0
    ) -> shapes.Holding:
        waiting = {"wait_s": wait_s} if wait_s else {}
        answer: shapes.Holding = await self._transport.ask(
            "POST", f"/networks/{segment(claim.network)}:allocate", shapes.Holding, body=keywords_of(claim) | waiting,
            key=key, request_id=request_id, waits_s=wait_s,
        )  # fmt: skip
        return answer

    async def _waited(self, claim: Claim, wait_s: float) -> Holding:
        """Wait for an address in line: by several requests under one key, each of which keeps the place."""
        loop = asyncio.get_running_loop()
        deadline, key, request_id = loop.time() + wait_s, claim.key or secrets.token_hex(16), id_for(claim.key)
        try:
            async with self._or_leave(claim, request_id):
                while deadline - loop.time() > POLL_S:
                    status = await self._claimed(claim, key, request_id, patience_s=KEPT_S, wait_s=POLL_S)
                    if status.holding is not None:
                        return status.holding
                left_s = max(deadline - loop.time(), 0.001)
                return reading.holding(await self._allocated(claim, key, request_id, left_s))
        except PoolExhausted as error:
            raise PoolExhausted(claim.network, error.pool, waited_s=wait_s) from None

    @contextlib.asynccontextmanager
    async def _or_leave(self, claim: Claim, request_id: str) -> AsyncIterator[None]:
        """Leave nothing behind if the caller is cancelled: the server takes only the claim out of the line."""
        try:
            yield
        except asyncio.CancelledError:
            with contextlib.suppress(TenureError, TimeoutError):
                await asyncio.wait_for(self._abandoned(claim, request_id), LEAVE_S)
            raise

    async def _abandoned(self, claim: Claim, request_id: str) -> None:
        """Take a claim out of the line, and give back what this very request was granted while it waited.

        Twice: the server may have been granting it, and notices only a moment later that nobody listens any more.
        What was granted at once stays, and under a key of the caller's own all does, for whoever asks again under it.
        """
        abandoned = None if claim.key is not None else request_id
        for pause_s in (0.0, NOTICED_S):
            await asyncio.sleep(pause_s)
            await self.withdraw(claim.network, owner=claim.owner, slot=claim.slot, request_id=abandoned)

    async def _claimed(
        self, claim: Claim, key: str | None, request_id: str | None, *, patience_s: float, wait_s: float
    ) -> ClaimStatus:
        body = keywords_of(claim) | {"patience_s": patience_s, "wait_s": wait_s}
        status: shapes.ClaimStatus = await self._transport.ask(
            "POST", f"/networks/{segment(claim.network)}:claim", shapes.ClaimStatus, body=body, key=key,
            request_id=request_id, waits_s=wait_s,
        )  # fmt: skip
        return reading.claim_status(status)

    @spelled_out(Allocate)
    async def claim(
        self,
        network: str,
        *,
        owner: str,
        patience_s: float = 60.0,
        key: str | None = None,
        wait_s: float | None = None,
        **wanted: Unpack[ClaimKeywords],
    ) -> ClaimStatus:
        """Ask for an address without an error where none is free: call again to learn whether it has come."""
        check_seconds(patience_s, field="patience_s")
        left_s = check_wait(wait_s)
        claim = read_claim(network, owner, key=key, **only(ClaimKeywords, wanted))
        under, request_id = key or secrets.token_hex(16), id_for(key)
        async with self._or_leave(claim, request_id):
            while True:
                poll_s = min(left_s, POLL_S)
                status = await self._claimed(claim, under, request_id, patience_s=patience_s, wait_s=poll_s)
                left_s -= poll_s
                if status.holding is not None or left_s <= 0:
                    return status

    async def release(
        self,
        network: str,
        address: AddressLike,
        *,
        owner: str,
        generation: int | None = None,
        lingers_s: float | None = None,
        request: str | None = None,
        key: str | None = None,
    ) -> Holding | None:
        """End an owner's holding. Answers what was held, or None if nobody holds the address (any more)."""
        check_lingering(lingers_s)
        body: dict[str, Any] = {
            "address": format_address(parse_address(address)),
            "owner": str(Owner(owner)),
            "generation": check_generation(generation),
            "lingers_s": lingers_s,
            "request": check_request(request),
        }
        path = f"/networks/{segment(check_name(network, field='network'))}:release"
        under = None if key is None else check_key(key)
        answer: shapes.Answer = await self._transport.ask("POST", path, shapes.Answer, body=body, key=under)
        return reading.optional_holding(answer.holding)

    async def withdraw(self, network: str, *, owner: str, slot: str = "", request_id: str | None = None) -> bool:
        """Take a waiting claim out of the line; returns whether it was in it. What it was granted is not touched.

        With ``request_id``, what that waiting request was granted is given back, unless it was reported meanwhile.
        """
        body: dict[str, Any] = {"owner": str(Owner(owner)), "slot": check_slot(slot)}
        if request_id is not None:
            body["request_id"] = check_name(request_id, field="request_id")
        path = f"/networks/{segment(check_name(network, field='network'))}:withdraw"
        answer: shapes.Withdrawn = await self._transport.ask("POST", path, shapes.Withdrawn, body=body)
        return answer.withdrawn

    async def sweep(self) -> list[Holding]:
        """Remove what is overdue; see the ledger's own."""
        swept: shapes.Listing[shapes.Holding] = await self._transport.ask(
            "POST", ":sweep", shapes.Listing[shapes.Holding], body={}, answer_s=LONG_S
        )
        return [reading.holding(each) for each in swept.items]

    async def verify(self) -> list[Breach]:
        """Check every invariant; an empty list is a clean ledger."""
        found: shapes.Listing[shapes.Breach] = await self._transport.ask(
            "POST", ":verify", shapes.Listing[shapes.Breach], body={}, answer_s=LONG_S
        )
        return [reading.breach(each) for each in found.items]

    async def trim_changes(self, before: int) -> None:
        """Drop the log below a number, and what is archived of it; readers who need it will be told (CursorExpired)."""
        end = min(check_before(before), await self.last_change() + 1)
        await self._transport.ask("POST", "/changes:trim", shapes.Newest, body={"before": end}, answer_s=LONG_S)

    async def archive_changes(self, keep_days: float) -> int:
        """Move changes older than so many days from the log into the archive; return how many were moved."""
        check_days(keep_days)
        moved: shapes.Archived = await self._transport.ask(
            "POST", "/changes:archive", shapes.Archived, body={"keep_days": keep_days}, answer_s=LONG_S
        )
        return moved.moved

    async def close(self) -> None:
        """Finish what was asked, then let go of the connections. Closing twice is once."""
        await self._transport.close()
