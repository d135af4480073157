"""What a move leaves on the holdings of a ledger: that a claim is on its way, and that it has arrived.

clusterctl marks a claim, deletes it and takes its finalizers away, within moments, and may be killed after that; and so
may the operator. Nobody else knows then that the address lives on elsewhere. So it is written on the holding as soon as
the mark is seen; and where the claim arrives, its cluster is paused until the move is over, and this is written all the
same: a pause keeps objects as they are, not the word to the ledger that somebody has the address.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from tenure.integrations.kubernetes.metal3.address_rights import owner_of
from tenure.integrations.kubernetes.metal3.caches.ipam_caches import IpamCaches
from tenure.integrations.kubernetes.metal3.ledger.pool_ledgers import PoolLedgers
from tenure.integrations.kubernetes.metal3.ledger_state import LedgerAway, LedgerRow, LedgerTrouble, is_written_on
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import id_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import is_terminating
from tenure.integrations.kubernetes.metal3.objects.ledger_owner import claim_of_owner, ledger_owner
from tenure.integrations.kubernetes.metal3.objects.move_marks import is_marked
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.runtime.object_cache import Delta
from tenure.integrations.kubernetes.runtime.resource_types import Object, uid_of

LOG = logging.getLogger(__name__)

RETRY_S = 1.0


@dataclass
class MoveNotes:
    """Writes in ledgers what is known of moves, as long as this process leads."""

    caches: IpamCaches
    ledgers: PoolLedgers
    serves: Callable[[Object], bool] = lambda pool: True
    """Return whether a pool is one that this operator looks after (E7)."""
    _marked: dict[str, tuple[PoolId, str]] = field(default_factory=dict)
    """Claims whose mark was seen and is not written yet, by uid: their pool, and their owner in its ledger."""
    _seen: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        for each in self.caches.objects.kinds:
            each.claims.on_change(self._changed)

    async def run(self) -> None:
        """Write what is seen, at once, until cancelled."""
        self._marked.clear()
        for claim in list(self.caches.objects.all_claims()):
            self._note(claim)
        while True:
            # Before the writes: a mark that is seen while they go on is written next.
            self._seen.clear()
            away: set[PoolId] = set()
            # A copy: marks are noted while a write is on its way.
            for uid, (pool, owner) in list(self._marked.items()):
                if pool not in away and await self._is_done(pool, owner, uid):
                    self._marked.pop(uid, None)
                else:
                    away.add(pool)  # each of its claims would wait as long for a ledger that does not answer
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RETRY_S if self._marked else None):
                    await self._seen.wait()

    async def look(self, pool: PoolId) -> None:
        """Write what was missed, such as under another leader, and take back what is not so any more. O(n)."""
        found, state = self.caches.objects.pools.get(pool), self.caches.records.of(pool).ledger
        if found is None or state.away or not self.serves(found):
            return
        # A copy: each write enters its answer into these rows.
        for row in [each for each in state.rows.values() if each.pool_uid == uid_of(found)]:
            is_done = True
            if self.is_going(row) and not row.is_moved:
                is_done = await self._try(f"{row.owner} is being moved", pool, self.ledgers.note_moved(pool, row))
            elif row.is_moved and self._stays(row):
                is_done = await self._try(f"{row.owner} stays", pool, self.ledgers.note_stays(pool, row))
            if not is_done:
                return  # each of the others would wait as long for a ledger that does not answer
        if not is_marked(found):
            await self._note_arrived(pool, found)

    def is_going(self, row: LedgerRow) -> bool:
        """Return whether the claim of a holding is being moved, or was, as far as this process saw it. O(1)."""
        return self.caches.objects.is_claim_marked(row.claim_uid) or self.caches.departed.was_moved(row.claim_uid)

    def is_move_near(self, pool: PoolId, rows: Iterable[LedgerRow]) -> bool:
        """Return whether a move may be under way where holdings have their claims, or have been killed there.

        It pauses the clusters of a namespace before all else, and marks what it deletes. O(n) of the rows.
        """
        objects, follower = self.caches.objects, self.ledgers.followers.get(pool)
        owners = (claim_of_owner(follower.binding.realm, row.owner) for row in rows if follower is not None)
        places = {pool.namespace, *(each.namespace for each in owners if each is not None)}
        return any(objects.has_paused_cluster(place) or objects.has_marks(place) for place in places)

    def _changed(self, delta: Delta) -> None:
        # A replica that does not lead follows no ledger, and looks at all claims when it does.
        is_new = delta.before is None or not is_marked(delta.before)
        if delta.after is not None and is_new and self.ledgers.followers:
            self._note(delta.after)

    def _note(self, claim: Object) -> None:
        reference = self.caches.objects.followed_reference(claim)
        binding = self.caches.records.of(reference.pool).book.spec.ledger if reference is not None else None
        if reference is not None and binding is not None and is_marked(claim):
            self._marked[uid_of(claim)] = reference.pool, ledger_owner(binding.realm, id_of(claim))
            self._seen.set()

    async def _is_done(self, pool: PoolId, owner: str, uid: str) -> bool:
        """Write that a claim is being moved; return whether that is done, or has become needless."""
        found, state = self.caches.objects.pools.get(pool), self.caches.records.of(pool).ledger
        if found is None or not self.serves(found) or self.caches.records.of(pool).book.spec.ledger is None:
            return True
        if state.away:
            return False
        row = state.rows.get(owner)
        if row is None or row.is_moved or (row.claim_uid, row.pool_uid) != (uid, uid_of(found)):
            return True
        return await self._try(f"{owner} is being moved", pool, self.ledgers.note_moved(pool, row))

    def _stays(self, row: LedgerRow) -> bool:
        """Return whether a claim is there after all, without a mark: a move was killed between mark and deletion."""
        claim = self.caches.objects.claim_of_uid(row.claim_uid)
        return claim is not None and not is_terminating(claim) and not is_marked(claim)

    async def _note_arrived(self, pool: PoolId, found: Object) -> None:
        """Write on holdings that their claims are here, also while they are paused, as until the end of a move.

        O(n) of the holdings that another pool has written, or that went for a move.
        """
        rows = self.caches.records.of(pool).ledger.rows.values()
        # A copy: each write enters its answer into these rows.
        for row in [each for each in rows if each.pool_uid != uid_of(found) or each.is_moved]:
            claim = self._claim_at(pool, row)
            if claim is None or is_written_on(row, claim, uid_of(found)):
                continue
            if not await self._try(f"{row.owner} has arrived", pool, self.ledgers.keep(pool, claim, row.position)):
                return

    def _claim_at(self, pool: PoolId, row: LedgerRow) -> Object | None:
        """Return the claim that has the address of a holding of its name, and stays; or nothing."""
        objects, follower = self.caches.objects, self.ledgers.followers.get(pool)
        for address in self.caches.records.addresses_at(pool, row.position):
            claim = owner_of(address, objects)
            is_named = claim is not None and follower is not None and follower.row_of_claim(id_of(claim)) == row
            is_leaving = claim is None or is_terminating(claim) or is_marked(claim) or is_marked(address)
            if is_named and not is_leaving:
                return claim
        return None

    async def _try(self, note: str, pool: PoolId, write: Awaitable[None]) -> bool:
        """Write a note in the ledger; return whether it need not be tried again."""
        try:
            await write
        except LedgerTrouble as error:
            LOG.warning("%s: the ledger does not know yet that %s: %s", pool, note, error)
            # A refusal is an answer: another leader was quicker, or the holding is another one. Silence is asked again.
            return not isinstance(error, LedgerAway)
        return True
