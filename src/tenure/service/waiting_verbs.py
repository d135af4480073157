"""The ledger's verbs on waiting claims, and on what is overdue."""

from collections.abc import Sequence
from functools import partial
from typing import Unpack

from tenure.kernel.asking import asked_entry
from tenure.kernel.deadlines import DEADLINE
from tenure.kernel.entries import waiting_entry
from tenure.kernel.errors import PoolExhausted
from tenure.kernel.layout import Layout
from tenure.kernel.names import Owner, check_name, check_seconds, check_slot, check_wait
from tenure.kernel.values import Holding, Waiter, moment
from tenure.ports import Guard, Transaction
from tenure.service.allocating import allocate
from tenure.service.claims import Granted
from tenure.service.holding_verbs import HoldingVerbs
from tenure.service.operations import Allocate, ClaimKeywords, read_claim
from tenure.service.overdue_pages import sweep_page
from tenure.service.queueing import Seat, part_line, withdraw
from tenure.service.showing import ClaimStatus, WaitingClaim, holding_of, known_holdings
from tenure.service.unreported import Departed, give_back
from tenure.service.verb_signature import only, spelled_out
from tenure.service.waiting import attend


class WaitingVerbs(HoldingVerbs):
    """Claim and poll, withdraw, look at the line, sweep up what is overdue."""

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
        """Ask for an address without an error where none is free: call again to learn whether it has come.

        A claim that meets a full pool is put in line and keeps its place while it is asked for again within
        ``patience_s``, and what it is to get is kept free for it so long; ``withdraw`` takes it out. With ``wait_s``
        the answer waits so long for a grant; whoever is cancelled meanwhile leaves the line. ``pending`` and
        ``lasts_s`` are as in ``hold``.
        """
        patience_us, time_s = check_seconds(patience_s, field="patience_s"), check_wait(wait_s)
        claim = read_claim(network, owner, key=key, **only(ClaimKeywords, wanted)).asked_by(self._asker)
        try:
            return ClaimStatus("granted", holding_of(*await allocate(claim, self._server)))
        except PoolExhausted:
            pass
        if time_s:
            answer = await self._server.rooms.stay(claim, time_s, patience_us)
        else:
            answer = await attend(self._server, Seat(claim, patience_us))
        if isinstance(answer, Granted):
            return ClaimStatus("granted", holding_of(*answer))
        return ClaimStatus("waiting", place=answer.place)

    async def withdraw(self, network: str, *, owner: str, slot: str = "", request_id: str | None = None) -> bool:
        """Take a waiting claim out of the line; returns whether it was in it. What it was granted is not touched.

        With ``request_id``, the id of a waiting request whose answer its caller never saw, what that very request was
        granted is given back, unless another answer has reported the holding meanwhile.
        """
        holder, place = Owner(owner), check_slot(slot)
        asked_as = None if request_id is None else check_name(request_id, field="request_id")
        layout = await self._server.reread(check_name(network, field="network"))
        space = layout.configuration.space

        async def withdrawing(tx: Transaction) -> bool:
            await tx.guard([space], Guard.LANE)
            waiter = await withdraw(tx, layout, network, holder, place)
            entries = [] if waiter is None else [asked_entry(waiting_entry("leave", waiter), self._asker)]
            if asked_as is not None:
                [row] = await tx.rows_for([(layout.configuration.network(network).id, holder, place)])
                entries.extend([] if row is None else await give_back(tx, row, Departed(request_id=asked_as)))
            if entries:
                await tx.log(entries)
            return waiter is not None

        found = await self._server.store.transact(withdrawing)
        self._server.rooms.wake(space)
        return found

    async def waiting(self, network: str | None = None) -> list[WaitingClaim]:
        """Read who waits, space by space in order of arrival; in one network, if one is named."""
        wanted = None if network is None else (await self._server.reread(check_name(network, field="network")))
        found: list[WaitingClaim] = []
        for space, _ in await self._server.store.spaces():
            if wanted is not None and space != wanted.configuration.space:
                continue
            plan = wanted.configuration if wanted is not None else await self._server.store.configuration(space)
            if plan is None or not plan.queued:  # read without a lock; to read a line takes one
                continue
            waiters = await self._server.store.transact(lambda tx, space=space: _living(tx, space))  # type: ignore[misc]
            layout = await self._server.layout_of_space(space) if waiters else None
            found.extend([] if layout is None else _shown(waiters, layout))
        return [claim for claim in found if network in (None, claim.network)]

    async def sweep(self) -> list[Holding]:
        """Remove pending and cooling holdings whose deadline has passed, dead claims in line, and old idempotency keys.

        The log names nobody for what time ended, whoever calls this. Nobody needs to: what is overdue is free to
        every reader, and whoever is granted an address removes it before.
        """
        swept: list[Holding] = []
        for space, _ in await self._server.store.spaces():
            while rows := await self._server.store.transact(partial(sweep_page, space=space)):
                layout = await self._server.layout_of_space(space)
                swept.extend([] if layout is None else known_holdings(rows, layout))
                self._server.rooms.wake(space)
            await self._server.store.transact(lambda tx, space=space: _bury(tx, space))  # type: ignore[misc]
        await self._server.tidier.forget()
        return swept


async def _bury(tx: Transaction, space: int) -> None:
    """Take claims that nobody stands behind any more out of a space's line."""
    await tx.guard([space], Guard.LANE)
    for configuration in await tx.configurations([space]):
        _, dead = await part_line(tx, configuration)
        if dead:
            await tx.log([waiting_entry("leave", waiter, DEADLINE) for waiter in dead])


async def _living(tx: Transaction, space: int) -> list[Waiter]:
    """Read a space's line, without those who are past their time."""
    now_us = await tx.now_us()
    return [waiter for waiter in await tx.waiters(space) if waiter.until_us >= now_us]


def _shown(waiters: Sequence[Waiter], layout: Layout) -> list[WaitingClaim]:
    known = {network.id for network in layout.configuration.networks.values()}
    return [
        WaitingClaim(
            layout.name_of(waiter.network), Owner.trusted(waiter.owner), waiter.slot, place, moment(waiter.since_us),
            moment(waiter.until_us), waiter.document.get("pool"), waiter.document.get("subnet"),
            waiter.document.get("zone"),
        )
        for place, waiter in enumerate(waiters, 1)
        if waiter.network in known
    ]  # fmt: skip
