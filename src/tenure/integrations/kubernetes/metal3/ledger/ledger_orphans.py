"""Addresses that a ledger holds for claims that are gone: listed in the pool's status, and released after a while.

A claim that is deleted is released in order, and leaves nothing. Here is what else becomes of claims: finalizers taken
away by force, objects deleted with their definition, a grant of a leader that was frozen meanwhile. What was moved to
another cluster is no orphan: that cluster has written its own pool on the holding, or is about to (``MoveNotes``).
Where nobody saw a claim go, nothing is released as long as a move may be under way.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from tenure.integrations.kubernetes.metal3.caches.ipam_caches import IpamCaches
from tenure.integrations.kubernetes.metal3.claim_writes import ClaimWrites
from tenure.integrations.kubernetes.metal3.ipam_meter import IpamMeter
from tenure.integrations.kubernetes.metal3.ledger.move_notes import MoveNotes
from tenure.integrations.kubernetes.metal3.ledger.pool_ledgers import PoolLedgers
from tenure.integrations.kubernetes.metal3.ledger_state import LedgerRow, LedgerTrouble
from tenure.integrations.kubernetes.metal3.objects.address_objects import address_name
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    now_text,
)
from tenure.integrations.kubernetes.metal3.objects.ledger_owner import claim_of_owner
from tenure.integrations.kubernetes.metal3.objects.move_marks import is_marked
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_kinds import pool_kind_of
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable
from tenure.integrations.kubernetes.runtime.event_recorder import EventRecorder
from tenure.integrations.kubernetes.runtime.resource_types import Object, uid_of
from tenure.kernel.addressing.addresses import format_address

LOG = logging.getLogger(__name__)

LOOKS_EVERY_S, LEAST_PAUSE_S = 30.0, 1.0


@dataclass
class OrphanedRow:
    """A holding whose claim is gone."""

    row: LedgerRow
    since: float
    """When its grace has begun: when it was found, or could be released first."""
    since_text: str = field(default_factory=now_text)


@dataclass
class LedgerOrphans:
    """Finds holdings of this cluster's claims that are gone, and releases them after a grace period."""

    caches: IpamCaches
    ledgers: PoolLedgers
    claims: ClaimWrites
    events: EventRecorder
    meter: IpamMeter
    moves: MoveNotes
    grace_s: float
    may_release: Callable[[PoolId], bool] = lambda pool: True
    """Return whether a pool is ours, and not paused."""
    found: dict[PoolId, dict[int, OrphanedRow]] = field(default_factory=dict)
    """By pool and address."""

    def of_pool(self, pool: PoolId) -> list[Object]:
        """Return the orphans of a pool as its status lists them: by the object that the claim had."""
        prefix = self.caches.records.of(pool).book.spec.name_prefix
        return [
            {"address": format_address(position), "name": address_name(prefix, position), "since": each.since_text}
            for position, each in sorted(self.found.get(pool, {}).items())
        ]

    async def run(self) -> None:
        """Look regularly until cancelled; the grace of an orphan begins with the leadership that finds it."""
        self.found.clear()
        while True:
            for pool in list(self.ledgers.followers):
                await self.look(pool)
            await asyncio.sleep(min(LOOKS_EVERY_S, max(self.grace_s / 4, LEAST_PAUSE_S)))

    async def look(self, pool: PoolId) -> None:
        """Find the orphans of a pool, report new ones, and release those whose time has come. O(n) of its holdings."""
        # Before the orphans: a mark that was missed is written on its holding, which is none then.
        await self.moves.look(pool)
        before = self.found.get(pool, {})
        rows = {row.position: row for row in self._orphans(pool)}
        # Another generation is another grant, whose grace begins again.
        same = {at: each for at, each in before.items() if at in rows and rows[at].generation == each.row.generation}
        new = {at: OrphanedRow(row, time.monotonic()) for at, row in rows.items() if at not in same}
        self.found[pool] = same | new
        if new or len(same) < len(before):
            self.caches.records.status_due(pool)
        for each in new.values():
            self._report(pool, each.row)
        # Not the new ones: what is released was found at two looks.
        await self._release_due(pool, same.values())

    async def _release_due(self, pool: PoolId, orphans: Collection[OrphanedRow]) -> None:
        """Release those whose time has come; it begins when a pause is over, or what may be a move.

        A move that was killed is repeated after its cluster was set going again: nothing may go in between.
        """
        if not orphans:
            return
        is_held = not self.may_release(pool) or self.moves.is_move_near(pool, [each.row for each in orphans])
        for each in orphans:
            if is_held:
                each.since = time.monotonic()
            elif time.monotonic() - each.since >= self.grace_s:
                await self._release(pool, each.row)

    def _orphans(self, pool: PoolId) -> Iterator[LedgerRow]:
        """Yield the holdings that this very pool has made for claims that are gone without a release."""
        found, state = self.caches.objects.pools.get(pool), self.caches.records.of(pool).ledger
        if found is None or state.away or is_marked(found):
            return
        for row in state.rows.values():
            is_ours = row.pool_uid == uid_of(found) and not row.is_moved and not self.moves.is_going(row)
            if (
                is_ours
                and not self.caches.objects.lives(row.claim_uid)
                and not self.caches.records.addresses_at(pool, row.position)
            ):
                yield row

    def _report(self, pool: PoolId, row: LedgerRow) -> None:
        found = self.caches.objects.pools.get(pool)
        if found is not None:
            shown = format_address(row.position)
            note = f"{row.owner} holds {shown} in the ledger, and is gone; it is released after a while"
            self.events.record(pool_kind_of(found).type, found, "Orphaned", note, "Warning")

    async def _release(self, pool: PoolId, row: LedgerRow) -> None:
        """Look a second time, at the server itself, and release."""
        try:
            if not await self._is_there(pool, row):
                await self.ledgers.release_orphan(pool, row)
                self.meter.orphans_released += 1
                LOG.warning("%s was gone, and %s is released", row.owner, format_address(row.position))
        except (ApiError, ApiUnreachable, LedgerTrouble) as error:
            LOG.warning("%s is gone: %s", row.owner, error)

    async def _is_there(self, pool: PoolId, row: LedgerRow) -> bool:
        follower = self.ledgers.followers.get(pool)
        id = claim_of_owner(follower.binding.realm, row.owner) if follower is not None else None
        if id is None:
            return True  # no longer bound so; the next look decides
        claim = await self.claims.read_claim_of_id(id)
        return claim is not None and uid_of(claim) == row.claim_uid
