"""One pass over a pool: decide about the claims that changed, write what is decided, then say so in the pool.

Decisions are ``claim_decision``'s and the writes for new addresses ``address_giving``'s; here is the order of it all.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from tenure.integrations.kubernetes.metal3.address_giving import BATCH, AddressGiving, Work, all_of
from tenure.integrations.kubernetes.metal3.address_rights import owner_of, was_told
from tenure.integrations.kubernetes.metal3.caches.ipam_caches import IpamCaches
from tenure.integrations.kubernetes.metal3.claim_decision import (
    EXHAUSTED,
    Action,
    Adopt,
    EndRelease,
    GiveBack,
    Leave,
    LetMove,
    NameAddress,
    PickAny,
    PickWithin,
    PoolView,
    Refuse,
    ReleaseAddresses,
    TakeAddress,
    WithdrawAddresses,
    decide,
)
from tenure.integrations.kubernetes.metal3.ledger.pool_ledgers import PoolLedgers
from tenure.integrations.kubernetes.metal3.ledger_state import LedgerTrouble
from tenure.integrations.kubernetes.metal3.objects.address_objects import (
    is_made_here,
    object_name,
    owner_uids,
    pool_of,
    position_of,
)
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId, ClaimKind, Unserved
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import CLAIM_KINDS, id_of, kind_of
from tenure.integrations.kubernetes.metal3.objects.claim_reading import (
    RangeWish,
    arrival_of,
    is_fit_to_move,
    own_address,
    reference_of,
    was_served,
)
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    is_terminating,
    text,
)
from tenure.integrations.kubernetes.metal3.objects.move_marks import is_marked
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_kinds import POOL_KINDS
from tenure.integrations.kubernetes.metal3.pool_book import PICKED, RESERVED
from tenure.integrations.kubernetes.metal3.pool_record import PoolRecord
from tenure.integrations.kubernetes.metal3.pool_writes import STRANGE_S
from tenure.integrations.kubernetes.runtime.api_errors import (
    ApiError,
    ApiUnreachable,
)
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of, uid_of

LOG = logging.getLogger(__name__)

STATUS_EVERY_S = 0.25
"""A status that only counts is written so often; what others made shows within a second."""
RETRY_S = 5.0
"""After how long a pool is looked at again that could not be written."""
TURN = 200
"""So many claims are decided about before other work has its turn."""


@dataclass
class Agenda:
    """What is to be done in a pass."""

    work: list[Work] = field(default_factory=list)
    takes: list[tuple[Object, int]] = field(default_factory=list)
    newly: list[ClaimId] = field(default_factory=list)
    """Claims that joined the line for any address."""
    behind: list[ClaimId] = field(default_factory=list)
    """Claims that want one address, and came later than a claim in the line."""
    releases: list[tuple[Object, Sequence[Object]]] = field(default_factory=list)
    """Claims that are going, each with its addresses."""


@dataclass
class PoolPasses:
    """Serves pools, as long as this process leads. One pass over a pool at a time; passes of many pools at once."""

    caches: IpamCaches
    giving: AddressGiving
    serves: Callable[[Object], bool]
    """Return whether an object is one that this operator looks after (E7)."""
    allows_outside: bool = False
    kinds: Collection[ClaimKind] = tuple(CLAIM_KINDS.values())
    """The kinds of claims that are served (KD12)."""

    async def settle(self, key: PoolId) -> None:
        """Look at the claims of a pool that changed, and at the pool."""
        record = self.caches.records.of(key)
        record.is_in_pass = True
        try:
            await self._settle(key, record)
        finally:
            record.is_in_pass = False
        # While the pass is under way its record is not forgotten; now it may be, if nothing is left of the pool.
        self.caches.records.tidy(key)

    async def _settle(self, key: PoolId, record: PoolRecord) -> None:
        is_ours = self._is_writable(key)
        if is_ours:
            await self._prepare(key, record)
        # Not in a pool that is paused, moved or another operator's; a pool that is gone can be none of these.
        if is_ours or self.caches.objects.pools.get(key) is None:
            await self._release_left_by_force(key, record)
        # Behind that release: claims that wait for what it has freed are looked at in this pass.
        taken = record.take_dirty()
        try:
            await self._settle_all(key, record, taken)
        except BaseException:
            # Whatever went wrong, and also where the leadership ended: none of them may be forgotten, nor those that
            # were taken out of the line.
            record.dirty |= set(taken)
            record.look_again()
            raise
        finally:
            # A pick that was never written, because something failed, would keep its address from all claims.
            self.caches.records.end_picks(record)
        await self.giving.name_served(record, partial(self._is_settled, key, record))
        if record.dirty:
            self.giving.again(key, 0.0)  # what became free in this pass may concern claims that no event is about
        if (retry_in_s := record.retry_in_s) is not None:
            # This pass may have come before the one that a failed claim asked for, and in its place.
            self.giving.again(key, retry_in_s)
        if is_ours:
            await self._finish(key, record)

    async def _prepare(self, key: PoolId, record: PoolRecord) -> None:
        """Give the pool what it lacks; a pool that cannot be written releases addresses all the same."""
        pool = self.caches.objects.pools.get(key)
        assert pool is not None
        try:
            await self.giving.pools.prepare(pool, record.book.spec)
        except (ApiError, ApiUnreachable) as error:
            LOG.warning("%s: %s", key, error)
            self.giving.again(key, RETRY_S)

    async def _release_left_by_force(self, key: PoolId, record: PoolRecord) -> None:
        """Release the addresses of claims that went although they had their finalizer.

        No grace is needed: this process saw the claim go. What is another claim's by now is adopted, or goes with that
        one, in another pass. One that is released is noted until its object is gone.
        """
        # A copy: the answer to each release takes its address out of the set.
        for holder in list(record.left_by_force):
            address = self.caches.objects.address_of_holder(holder)
            if address is None or not self._is_left(key, address):
                # Not earlier: while a claim may still adopt the address, that claim can go, too, and the address would
                # be left as an orphan.
                record.left_by_force.discard(holder)
            elif owner_of(address, self.caches.objects) is None and not is_marked(address):
                await self._release_left(key, address)

    def _is_left(self, key: PoolId, address: Object) -> bool:
        """Return whether an address of this operator's is owned by no claim; one may be about to adopt it."""
        is_ours = pool_of(address) == key and is_made_here(address) and kind_of(address) in self.kinds
        return is_ours and not any(map(self.caches.objects.lives, owner_uids(address)))

    async def _release_left(self, key: PoolId, address: Object) -> None:
        try:
            self.giving.meter.released += await self.giving.claims.release_orphan(address)
        except (ApiError, ApiUnreachable) as error:
            LOG.warning("%s/%s: %s", *key_of(address), error)
            self.giving.again(key, RETRY_S)

    async def _settle_all(self, key: PoolId, record: PoolRecord, taken: Iterable[ClaimId]) -> None:
        """Serve claims that changed and claims that wait; what is freed goes to the first that came (KD10)."""
        newly, behind = await self._settle_claims(self._view(key), record, taken)
        # What was released just now may be what a claim waits for that came before those in the line.
        if woken := record.take_woken():
            more, late = await self._settle_claims(self._view(key), record, woken)
            newly, behind = newly + more, behind + late
        await self._serve_line(self._view(key), record, newly)
        if behind:
            # After the line: these claims came later, and are decided about again.
            late, _ = await self._settle_claims(self._view(key), record, behind, waits=False)
            await self._serve_line(self._view(key), record, late)

    async def _settle_claims(
        self, view: PoolView, record: PoolRecord, ids: Iterable[ClaimId], *, waits: bool = True
    ) -> tuple[list[ClaimId], list[ClaimId]]:
        """Do what is decided about each claim; return those that joined the line for any address.

        Returned, too, are those that want one address and came later than a claim in the line: they are looked at
        again when the line is served.
        """
        agenda = Agenda()
        for number, id in enumerate(self._in_order(view, record, ids), 1):
            claim = self._claim_of(view.key, record, id)
            action = self._decide(view, record, claim) if claim is not None else None
            if claim is not None and action is not None:
                self._enter(agenda, view, record, claim, action, waits=waits)
            # A new leader decides about all claims of a pool, which may be thousands: its Lease is renewed meanwhile.
            if number % TURN == 0:
                await asyncio.sleep(0)
        # The releases are one piece of work: what cools off is noted for all of them in one write.
        await all_of([*agenda.work, partial(self._release_all, view, record, agenda.releases)])
        await self.giving.take(view, record, agenda.takes)
        return agenda.newly, agenda.behind

    def _enter(
        self, agenda: Agenda, view: PoolView, record: PoolRecord, claim: Object, action: Action, *, waits: bool
    ) -> None:
        """Enter what is to be done about a claim; a pick is held at once, so that the next claim does not get it."""
        id = id_of(claim)
        # What the claim waited for until now must neither wake nor count it; the decision says what it waits for.
        record.leave_line(id)
        record.stop_wanting(id)
        record.idle.discard(id)
        record.unsettled.add(id)
        match action:
            case PickAny():
                # A claim in the line holds nothing, also not an address that it once named.
                self.caches.records.free(record, claim)
                record.join_line(id, arrival_of(claim))
                agenda.newly.append(id)
            case TakeAddress() | PickWithin() if waits and record.has_earlier(arrival_of(claim)):
                agenda.behind.append(id)
            case PickWithin(wish):
                self.caches.records.free(record, claim)
                self._enter_within(agenda, view, record, claim, wish)
            case TakeAddress(position):
                record.book.hold((PICKED, uid_of(claim)), position)
                agenda.takes.append((claim, position))
            case Leave():
                self._enter_leave(agenda, record, claim, action)
            case ReleaseAddresses(addresses):
                agenda.releases.append((claim, addresses))
            case _:
                if isinstance(action, Refuse) and action.position is not None:
                    record.want(id, action.position)
                elif isinstance(action, Refuse) and action.counts:
                    record.wait_idly(id)
                # Else its address would be nobody's, and other claims would read that the pool is full.
                if isinstance(action, Refuse) and not action.holds:
                    self.caches.records.free(record, claim)
                doing = partial(self._do, view, record, claim, action)
                agenda.work.append(partial(self.giving.guarded, record, claim, doing))

    def _enter_leave(self, agenda: Agenda, record: PoolRecord, claim: Object, action: Leave) -> None:
        """Enter a claim about which nothing is done; where it waits, it says for what."""
        LOG.debug("%s: %s", id_of(claim), action.reason)
        if not action.says:
            return
        record.wait_idly(id_of(claim))
        self.giving.record(claim, "Waiting", action.reason)
        if action.touches:
            doing = partial(self.giving.claims.say_waiting, claim, action.reason)
            agenda.work.append(partial(self.giving.guarded, record, claim, doing))

    def _enter_within(self, agenda: Agenda, view: PoolView, record: PoolRecord, claim: Object, wish: RangeWish) -> None:
        """Enter a claim that gets any address of some ranges, or waits until one of these is free."""
        position = self.giving.pick(view, record, claim, wish.ranges)
        if position is not None:
            record.book.hold((PICKED, uid_of(claim)), position)
            agenda.takes.append((claim, position))
            return
        record.want_within(id_of(claim), wish.ranges)
        message = f"No address of {wish} is free in {view.key.title}"
        doing = partial(self.giving.refuse, claim, message, Unserved.POOL_EXHAUSTED)
        agenda.work.append(partial(self.giving.guarded, record, claim, doing))

    def _in_order(self, view: PoolView, record: PoolRecord, ids: Iterable[ClaimId]) -> list[ClaimId]:
        """Return the claims of this pool among some, in the order of their arrival; forget all that are not ours.

        Names, and not the claims: thousands that are parsed at the same time take more memory than all that is kept.
        """
        found = ((self._claim_of(view.key, record, id), id) for id in ids)
        return [id for _, id in sorted((arrival_of(claim), id) for claim, id in found if claim is not None)]

    def _claim_of(self, pool: PoolId, record: PoolRecord, id: ClaimId) -> Object | None:
        """Return a claim of a pool; forget it, if it is gone, of another pool, or not looked after here."""
        claim = self.caches.objects.claim(id)
        if claim is not None and self._is_ours_of(pool, claim):
            return claim
        record.forget(id)
        return None

    def _is_ours_of(self, pool: PoolId, claim: Object) -> bool:
        """Return whether a claim is of a pool, and one that this operator looks after by now."""
        reference = reference_of(claim)
        return reference is not None and reference.pool == pool and self._is_ours(claim)

    def _is_settled(self, key: PoolId, record: PoolRecord, claim: Object) -> bool:
        """Return whether a claim has its address, and may name it: neither is going or being moved."""
        return self._is_ours(claim) and isinstance(self._decide(self._view(key), record, claim), Adopt | NameAddress)

    def _is_ours(self, claim: Object) -> bool:
        """Return whether a claim is of a kind that is served here, and one that this operator looks after."""
        return kind_of(claim) in self.kinds and self.serves(claim)

    def _decide(self, view: PoolView, record: PoolRecord, claim: Object) -> Action | None:
        """Decide about a claim; nothing, if that fails: a claim that cannot be read must not stop the others."""
        try:
            return decide(claim, view)
        except Exception as error:
            LOG.exception("%s", id_of(claim))
            self.giving.record(claim, "Undecided", f"it is tried again, after an error: {error!r}", "Warning")
            # Until it is tried again, the claim has no address, and the status counts it.
            if not was_served(claim):
                record.wait_idly(id_of(claim))
            self.giving.again(view.key, record.failed(id_of(claim)))
            return None

    async def _do(self, view: PoolView, record: PoolRecord, claim: Object, action: Action) -> None:
        """Write what is decided about one claim."""
        match action:
            case Adopt(address, surplus):
                await self._adopt(view, record, claim, address, surplus)
            case NameAddress():
                await self.giving.claims.name_given(claim)
            case LetMove():
                await self.giving.claims.let_move(claim)
            case WithdrawAddresses(addresses):
                await self._withdraw(claim, addresses)
            case EndRelease(addresses):
                await self._end_release(addresses)
            case GiveBack():
                await self._give_back(view, record, claim)
            case Refuse(message, _, why):
                await self.giving.refuse(claim, message, why)

    async def _release_all(
        self, view: PoolView, record: PoolRecord, releases: Sequence[tuple[Object, Sequence[Object]]]
    ) -> None:
        """Release the addresses of claims that are going, and let them go; what cools off is written down before."""
        is_noted = self.giving.pools.notes_releases(view.key)
        if is_noted:
            releases = await self._noted(view, record, releases)
        # What was noted was looked for on the server already.
        release = self._release_found if is_noted else self._release
        await all_of(
            partial(self.giving.guarded, record, claim, partial(release, view, claim, addresses))
            for claim, addresses in releases
        )

    async def _noted(
        self, view: PoolView, record: PoolRecord, releases: Sequence[tuple[Object, Sequence[Object]]]
    ) -> list[tuple[Object, Sequence[Object]]]:
        """Write down in the pool what is about to be released; return nothing, if that fails: it is tried again."""
        try:
            found = [(claim, await self._all_of(view, claim, list(addresses))) for claim, addresses in releases]
            await self.giving.pools.note_released(each for _, addresses in found for each in addresses)
        except (ApiError, ApiUnreachable) as error:
            for claim, _ in releases:
                self.giving.failed(record, claim, error)
            return []
        return list(found)

    async def _release(self, view: PoolView, claim: Object, addresses: Sequence[Object]) -> None:
        await self._release_found(view, claim, await self._all_of(view, claim, list(addresses)))

    async def _release_found(self, view: PoolView, claim: Object, addresses: Sequence[Object]) -> None:
        if await self.giving.claims.release(claim, list(addresses), self._ledgers_release(view, claim)):
            self.giving.meter.released += 1

    async def _give_back(self, view: PoolView, record: PoolRecord, claim: Object) -> None:
        """Let the ledger hold nothing for a claim, and pick another address."""
        if self.giving.ledgers is not None:
            await self.giving.ledgers.release(view.key, claim, "picked again")
            self.giving.look_again(view, record, claim)

    def _ledgers_release(self, view: PoolView, claim: Object) -> Work | None:
        """Return how a claim is released in the ledger of its pool; nothing, where the pool is bound to none."""
        ledgers = self.giving.ledgers
        if ledgers is None or view.book.spec.ledger is None:
            return None
        return partial(ledgers.release, view.key, claim)

    def _ledgers_keep(self, view: PoolView, claim: Object, address: Object) -> Work | None:
        """Return how the ledger of a pool comes to hold what a claim has; nothing, where the pool is bound to none."""
        if self.giving.ledgers is None or view.book.spec.ledger is None:
            return None
        return partial(self._keep_in_ledger, self.giving.ledgers, view, claim, address)

    async def _keep_in_ledger(self, ledgers: PoolLedgers, view: PoolView, claim: Object, address: Object) -> None:
        """Have the ledger hold what a claim has; a claim that was told its address keeps it all the same."""
        position = position_of(address)
        assert position is not None, "only addresses that can be read are adopted"
        try:
            await ledgers.keep(view.key, claim, position)
        except LedgerTrouble as error:
            if not was_served(claim):
                raise
            LOG.warning("%s has %s: %s", id_of(claim), key_of(address)[1], error)

    async def _adopt(
        self, view: PoolView, record: PoolRecord, claim: Object, address: Object, surplus: Iterable[Object]
    ) -> None:
        """Let a claim have an address object; what two leaders made for it besides goes."""
        id = id_of(claim)
        # Behind the finalizer: a claim that went in between would leave a holding. Before it names the address: a claim
        # that was never served must not name what its ledger refuses.
        keep = self._ledgers_keep(view, claim, address)
        if await self.giving.claims.adopt(claim, view.pool, address, keep):
            self.giving.meter.adopted += 1
        if not is_fit_to_move(claim, position_of(address)):
            record.name_later(id)
        for each in surplus:
            self.giving.meter.conflicts += 1
            LOG.warning("%s has %s, and %s as well, which goes", id, key_of(address)[1], key_of(each)[1])
            await self.giving.claims.delete_address(each)
        record.unsettled.discard(id)

    async def _withdraw(self, claim: Object, addresses: Iterable[Object]) -> None:
        """Delete objects that nobody was told of; the server is asked, since an answer that said so may be lost."""
        current = await self.giving.claims.read_claim(claim, key_of(claim)[1])
        if current is None or uid_of(current) != uid_of(claim):
            return  # it went, and they go with it
        for each in addresses:
            if not was_told(current, each):
                self.giving.meter.conflicts += 1
                LOG.warning("%s: %s/%s has another object, too; ours goes", id_of(claim), *key_of(each))
                await self.giving.claims.delete_address(each)

    async def _end_release(self, addresses: Iterable[Object]) -> None:
        """Let addresses go that went with a former claim."""
        for each in addresses:
            self.giving.meter.released += await self.giving.claims.release_orphan(each)

    async def _all_of(self, view: PoolView, claim: Object, addresses: list[Object]) -> list[Object]:
        """Return the addresses of a claim that is going, those included that only the server knows of yet.

        A claim that names an address for which no object is known may have one all the same: its former leader may have
        died between creating it and hearing so.
        """
        position = own_address(claim)
        if position is None:
            position = view.book.position_of((RESERVED, uid_of(claim)))
        has_names = bool(view.book.spec.name_prefix) or POOL_KINDS[view.key.kind].named_by_claim
        if addresses or position is None or not has_names:
            return addresses
        name = object_name(view.key, view.book.spec, claim, position)
        found = await self.giving.claims.read_address(claim, name)
        # The name alone is no proof: an object of a pool with the same prefix may have it.
        is_its = found is not None and (uid_of(claim) in owner_uids(found))
        return [found] if found is not None and is_its else []

    async def _serve_line(self, view: PoolView, record: PoolRecord, newly: list[ClaimId]) -> None:
        """Serve claims that wait for any address, in the order of their arrival, for as long as there are any."""
        while record.waiting and record.book.free and view.pool is not None:
            takes = self._next_takes(view, record)
            if not takes:
                break
            await self.giving.take(view, record, takes)
            # The batch has changed the pool: the next one is decided on the pool as it is by now.
            view = self._view(view.key)
        # Only claims that are new in the line: each gets its message once, and not with every pass.
        await all_of(partial(self._refuse_waiting, record, id) for id in newly if record.is_in_line(id))

    async def _refuse_waiting(self, record: PoolRecord, id: ClaimId) -> None:
        """Say on a claim in the line that no address is free."""
        claim = self.caches.objects.claim(id)
        if claim is not None:
            refuse = partial(self.giving.refuse, claim, EXHAUSTED, Unserved.POOL_EXHAUSTED)
            await self.giving.guarded(record, claim, refuse)

    def _next_takes(self, view: PoolView, record: PoolRecord) -> list[tuple[Object, int]]:
        """Take claims out of the line, and pick an address for each; decide again, since they may have changed."""
        takes: list[tuple[Object, int]] = []
        while len(takes) < BATCH and record.book.free and (id := record.next_in_line()) is not None:
            claim = self.caches.objects.claim(id)
            if claim is None or not self._is_ours_of(view.key, claim):
                continue
            if not isinstance(self._decide(view, record, claim), PickAny):
                # The claim is out of the line by now; the next pass does what else is decided about it.
                record.dirty.add(id)
                self.giving.again(view.key, 0.0)
                continue
            position = self.giving.pick(view, record, claim)
            if position is None:
                # The claim was taken out of the line for nothing, and goes back to its place.
                record.join_line(id, arrival_of(claim))
                break
            record.book.hold((PICKED, uid_of(claim)), position)
            takes.append((claim, position))
        return takes

    async def _finish(self, key: PoolId, record: PoolRecord) -> None:
        """Let a pool go that is to be deleted and has no address; else write its status, if it is due."""
        pool = self.caches.objects.pools.get(key)
        if pool is None:
            return
        if is_terminating(pool) and not record.addresses and not self._is_owed(pool, record):
            await self.giving.pools.let_go(pool)
            return
        # No event says that a claim never came: its reservation ends by a write that has to be asked for.
        if record.strangers:
            record.is_status_due = True
            self.giving.again(key, STRANGE_S)
        # No event says that a time is over, and the time alone frees nothing: a write does (I10).
        if (cooled_in_s := record.cooled_in_s) is not None:
            if cooled_in_s > 0:
                self.giving.again(key, cooled_in_s)
            record.is_status_due |= cooled_in_s <= 0
        await self._write_status(key, record)
        tried_in_s = self.giving.pools.cramped.tried_in_s(key.kind)
        # No event of a pool says that its definition was replaced by one with room.
        if tried_in_s is not None and tried_in_s > 0:
            self.giving.again(key, tried_in_s)

    async def _write_status(self, key: PoolId, record: PoolRecord) -> None:
        """Write what a pool says of itself, if that is due; also where its definition may have room for it by now."""
        tried_in_s = self.giving.pools.cramped.tried_in_s(key.kind)
        record.is_status_due |= tried_in_s is not None and tried_in_s <= 0
        record.is_status_due |= record.counted != record.waiting_counts
        # Before the ledger was read, what is free is not known: a new leader would write the status twice (KP12).
        if not record.is_status_due or (record.book.spec.ledger is not None and record.ledger.is_unread):
            return
        wait_s = record.status_at + STATUS_EVERY_S - time.monotonic()
        if wait_s > 0:
            self.giving.again(key, wait_s)
            return
        await self.giving.pools.write_status(key)

    def _is_owed(self, pool: Object, record: PoolRecord) -> bool:
        """Return whether the ledger holds addresses for claims of this pool that are gone: the pool waits for these.

        While the ledger is away nobody knows. A pool that never was on one, such as for a wrong Secret, owes nothing.
        """
        if record.book.spec.ledger is None:
            return False
        if record.ledger.away:
            return bool(text(pool, "status", "tenure", "ledger", "observedAt"))
        return any(row.pool_uid == uid_of(pool) for row in record.ledger.rows.values())

    def _is_writable(self, key: PoolId) -> bool:
        """Return whether the pool itself may be written: it is there and ours, not paused, and not being moved."""
        view = self._view(key)
        if view.pool is None or not view.is_served or is_marked(view.pool):
            return False
        return not self.caches.records.is_pool_paused(key)

    def _view(self, key: PoolId) -> PoolView:
        caches, pool = self.caches, self.caches.objects.pools.get(key)
        return PoolView(
            key=key,
            pool=pool,
            is_served=pool is None or self.serves(pool),
            is_going=caches.terminating.__contains__,
            unseen=caches.records.why_unseen(key),
            namesake=caches.objects.namesake,
            book=caches.records.of(key).book,
            addresses_for=caches.objects.addresses_for,
            claims=caches.objects,
            is_cluster_paused=caches.objects.is_cluster_paused,
            has_paused_cluster=caches.objects.has_paused_cluster,
            has_cluster=caches.objects.has_cluster,
            name_holder=caches.records.name_holder,
            is_moved=caches.departed.is_address_moved,
            is_cluster_missing=caches.records.is_cluster_missing(key),
            allows_outside=self.allows_outside,
            ledger=caches.records.of(key).ledger,
        )
