"""Every pool that is bound to a ledger, on the leader: addresses are granted, kept and released there first.

The order of one claim's writes: finalizer, ledger, reservation and object, status. Each can be asked for again, so a
leader that takes over goes on wherever the former one died:

==============================  =======================================================================================
found                           then
==============================  =======================================================================================
the ledger has it, no object    the claim gets that address: the row has its uid, or the claim brings the address along
an object, the ledger has not   the ledger is asked to hold it; whoever holds it there keeps it, and the pool says so
a row of this pool, no claim    an orphan: listed, and released after the grace period
a row of another pool's uid     no orphan of ours: the claim was moved, and lives on elsewhere
==============================  =======================================================================================
"""

import asyncio
from collections.abc import Callable
from typing import Any

from tenure.integrations.kubernetes.metal3.caches.ipam_caches import IpamCaches
from tenure.integrations.kubernetes.metal3.ledger.ledger_follower import LedgerFollower
from tenure.integrations.kubernetes.metal3.ledger.open_ledgers import OpenLedgers
from tenure.integrations.kubernetes.metal3.ledger_state import (
    LedgerAway,
    LedgerRefused,
    LedgerRow,
    is_of,
    is_written_on,
    row_of,
)
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import id_of
from tenure.integrations.kubernetes.metal3.objects.claim_reading import is_picked_here, own_address, was_served
from tenure.integrations.kubernetes.metal3.objects.ledger_owner import (
    FORMER_CLAIM,
    MOVED_FROM,
    PICKED_LABEL,
    labels_for,
    ledger_owner,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.resource_types import Object, uid_of
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.holdings.holding_model import Holding, State
from tenure.kernel.names import MAX_NAME
from tenure.service.ledger.async_ledger import AsyncLedger

LOOKS_EVERY_S = 1.0
"""How often it is looked which pools are bound, besides after their changes."""


class PoolLedgers:
    """The ledgers of all pools, as long as this process leads."""

    def __init__(self, client: ApiClient, caches: IpamCaches, check: Callable[[], None]) -> None:
        self._client = client
        self._caches = caches
        self._check = check
        self._opened = OpenLedgers()
        self.followers: dict[PoolId, LedgerFollower] = {}
        self._tasks: dict[PoolId, asyncio.Task[None]] = {}
        self._seen = asyncio.Event()
        caches.objects.pools.on_change(lambda delta: self._seen.set())

    async def run(self) -> None:
        """Follow the ledgers of all pools that are bound to one, until cancelled."""
        try:
            while True:
                self._seen.clear()
                await self._follow_bound()
                for task in self._tasks.values():
                    if task.done():
                        task.result()  # none ends by itself
                try:
                    async with asyncio.timeout(LOOKS_EVERY_S):
                        await self._seen.wait()
                except TimeoutError:
                    continue
        finally:
            for key in list(self._tasks):
                await self._end(key)
            await self._opened.close()

    async def _follow_bound(self) -> None:
        bound = {key: binding for key, record in self._caches.records if (binding := record.book.spec.ledger)}
        for key, follower in list(self.followers.items()):
            if bound.get(key) != follower.binding:
                await self._end(key)
        for key, binding in bound.items():
            if key not in self.followers:
                follower = LedgerFollower(self._client, self._caches, self._opened, key, binding)
                self.followers[key] = follower
                self._tasks[key] = asyncio.create_task(follower.run(), name=f"ledger of {key}")

    async def _end(self, key: PoolId) -> None:
        # Taken out before it ends: meanwhile no claim is granted an address by a follower that is going.
        task = self._tasks.pop(key)
        self.followers.pop(key, None)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def grant(self, pool: PoolId, claim: Object, position: int) -> None:
        """Have the ledger give a claim an address; raise ``LedgerRefused`` or ``LedgerAway`` if it does not."""
        # A claim that had no finalizer names what was picked for it before it is given; that is a wish still.
        is_told = was_served(claim) or not is_picked_here(claim)
        await self._hold(pool, claim, position, is_fact=is_told and own_address(claim) == position)

    async def keep(self, pool: PoolId, claim: Object, position: int) -> None:
        """Have the ledger hold what a claim has by an object; whoever else has it in the ledger keeps it."""
        owner = self._owner(pool, claim)
        refused = self._caches.records.of(pool).ledger.refused
        try:
            await self._hold(pool, claim, position, is_fact=True)
        except LedgerRefused as error:
            # The same refusal again is no news: the status would be written with every look at the claim.
            if refused.get(owner) != str(error):
                refused[owner] = str(error)
                self._caches.records.status_due(pool)
            raise
        if refused.pop(owner, None) is not None:
            self._caches.records.status_due(pool)

    async def release(self, pool: PoolId, claim: Object, request: str = "claim deleted") -> None:
        """Release what the ledger holds for a claim that is going, for that very claim; nothing to release is no error.

        The holding is named by its generation: whatever another leader made of it meanwhile is left alone.
        """
        follower, owner = self._follower(pool), self._owner(pool, claim)
        network = follower.binding.network
        # The ledger itself is asked: a holding that the mirror has not read yet would be left behind.
        for holding in await follower.ask(lambda ledger: ledger.holdings(network, owner=owner)):
            is_going = not holding.slot and holding.state is not State.COOLING
            if is_going and is_of(row_of(holding), claim):
                await self._release(follower, row_of(holding), request)
        self._caches.records.of(pool).ledger.refused.pop(owner, None)

    async def release_orphan(self, pool: PoolId, row: LedgerRow) -> None:
        """Release a holding whose claim is gone; a holding of another generation is left alone."""
        await self._release(self._follower(pool), row, "claim gone")

    async def note_moved(self, pool: PoolId, row: LedgerRow) -> None:
        """Write on a holding that its claim is deleted for a move, for leaders that do not see it go (E9)."""
        await self._label(pool, row, add_labels={MOVED_FROM: row.pool_uid})

    async def note_stays(self, pool: PoolId, row: LedgerRow) -> None:
        """Write on a holding that its claim is not moved after all."""
        await self._label(pool, row, remove_labels=[MOVED_FROM])

    async def _label(self, pool: PoolId, row: LedgerRow, **labels: Any) -> None:
        self._check()
        follower = self._follower(pool)
        network, address = follower.binding.network, format_address(row.position)
        labelled = await follower.ask(
            lambda ledger: ledger.modify_holding(network, address, owner=row.owner, generation=row.generation, **labels)
        )
        follower.enter(labelled)

    async def _release(self, follower: LedgerFollower, row: LedgerRow, request: str) -> None:
        self._check()
        network, address = follower.binding.network, format_address(row.position)
        await follower.ask(
            lambda ledger: ledger.release(network, address, owner=row.owner, generation=row.generation, request=request)
        )
        follower.remove(row)

    async def _hold(self, pool: PoolId, claim: Object, position: int, *, is_fact: bool) -> None:
        """Have the ledger hold an address for a claim; ``is_fact``: the claim has it, wherever it lies in the plan."""
        follower, owner = self._follower(pool), self._owner(pool, claim)
        pool_uid = self._pool_uid(pool)
        labels = labels_for(claim, pool_uid)
        known = self._caches.records.of(pool).ledger.rows.get(owner)
        is_known = known is not None and known.position == position and (is_fact or is_of(known, claim))
        if known is not None and is_known and is_written_on(known, claim, pool_uid):
            return

        async def hold(ledger: AsyncLedger) -> Holding:
            network, address = follower.binding.network, format_address(position)
            # What is held already, by whomever, does not get these labels.
            held = await ledger.allocate(
                network, owner=owner, address=address, labels=labels if is_fact else {**labels, **PICKED_LABEL},
                reserved="force" if is_fact else "refuse", request=str(id_of(claim))[:MAX_NAME],
            )  # fmt: skip
            row = row_of(held)
            # An object says whose the address is as well as what a claim brings along, which a killed move may lose.
            if not is_fact and not is_of(row, claim):
                raise LedgerRefused(f"{address} is held by {owner} for another claim of this name")
            if is_written_on(row, claim, pool_uid):
                return held
            former = {FORMER_CLAIM: row.claim_uid} if row.claim_uid not in ("", uid_of(claim)) else {}
            # Asked again: the allocation took its time, and the leadership may have ended.
            self._check()
            return await ledger.modify_holding(
                network, address, owner=owner, generation=held.generation, add_labels=labels | former
            )

        self._check()
        try:
            follower.enter(await follower.ask(hold))
        except LedgerRefused as error:
            # Only for a pick another address is sought; what a claim has, it goes on having.
            if not is_fact:
                follower.refused(position, str(error))
            raise

    def _follower(self, pool: PoolId) -> LedgerFollower:
        found = self.followers.get(pool)
        if found is None:
            raise LedgerAway(f"The ledger of {pool.title} was not read yet")
        return found

    def _owner(self, pool: PoolId, claim: Object) -> str:
        return ledger_owner(self._follower(pool).binding.realm, id_of(claim))

    def _pool_uid(self, pool: PoolId) -> str:
        found = self._caches.objects.pools.get(pool)
        if found is None:
            raise LedgerAway(f"{pool.title} is gone")
        return uid_of(found)
