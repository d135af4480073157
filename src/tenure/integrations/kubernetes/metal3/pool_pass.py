"""One pass over a pool: decide about the claims that changed, write what is decided, then say so in the pool.

The order of writes for a new address (KP3, KP4): the claim names it; one conditional write on the pool reserves it
together with all others of the pass; its object is created; the claim says that it is served. Only one leader can
have reserved an address, since the pool's version is named; and only one object can have its name.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tenure.integrations.kubernetes.metal3.address_objects import (
    address_name,
    claim_name_of,
    holder_of,
    is_made_here,
    owner_uids,
    pool_of,
)
from tenure.integrations.kubernetes.metal3.claim_decision import (
    EXHAUSTED,
    Action,
    Adopt,
    Leave,
    PickAny,
    PoolView,
    Refuse,
    ReleaseAddresses,
    TakeAddress,
    decide,
)
from tenure.integrations.kubernetes.metal3.claim_reading import arrival_of, own_address, reference_of, was_served
from tenure.integrations.kubernetes.metal3.claim_writes import ClaimWrites
from tenure.integrations.kubernetes.metal3.ipam_caches import IpamCaches
from tenure.integrations.kubernetes.metal3.ipam_kinds import (
    DELETE_FOR_MOVE,
    IP_CLAIM,
    annotations_of,
    is_terminating,
    text,
)
from tenure.integrations.kubernetes.metal3.ipam_meter import IpamMeter
from tenure.integrations.kubernetes.metal3.pool_book import CLAIM
from tenure.integrations.kubernetes.metal3.pool_record import PoolRecord
from tenure.integrations.kubernetes.metal3.pool_writes import PoolWrites
from tenure.integrations.kubernetes.runtime.api_errors import (
    ApiError,
    ApiUnreachable,
    ObjectExists,
    ObjectMissing,
    WriteConflict,
)
from tenure.integrations.kubernetes.runtime.event_recorder import EventRecorder
from tenure.integrations.kubernetes.runtime.resource_types import Key, Object, key_of, uid_of
from tenure.kernel.addressing.addresses import format_address

LOG = logging.getLogger(__name__)

BATCH = 256
"""How many addresses one write on the pool reserves."""
STATUS_EVERY_S = 0.25
"""A status that only counts is written so often; what others made shows within a second."""
WATCH_WITHIN_S = 2.0
"""How long the watch is waited for after an object was created; it needs some milliseconds."""
RETRY_S = 5.0
"""After how long a pool is looked at again that could not be written."""
FEW = 8
"""A pass that serves so few claims also writes events of it; more would double the writes (KP12)."""

Again = Callable[[Key, float], None]
"""Ask for another pass over a pool after a time."""


@dataclass
class PoolPasses:
    """Serves pools, as long as this process leads. One pass over a pool at a time; passes of many pools at once."""

    caches: IpamCaches
    claims: ClaimWrites
    pools: PoolWrites
    events: EventRecorder
    again: Again
    serves: Callable[[Object], bool]
    """Return whether an object is one that this operator looks after (E7)."""
    allows_outside: bool = False
    meter: IpamMeter = field(default_factory=IpamMeter)

    async def settle(self, key: Key) -> None:
        """Look at the claims of a pool that changed, and at the pool."""
        record = self.caches.record(key)
        is_ours = self._is_writable(key)
        if is_ours:
            await self._prepare(key, record)
        if is_ours or self.caches.pools.get(key) is None:
            await self._release_vanished(record)
        taken = record.take_dirty()
        try:
            await self._settle_all(key, record, taken)
        except BaseException:
            # Whatever went wrong, and also where the leadership ended: none of them may be forgotten.
            record.dirty |= set(taken)
            raise
        if (retry_in_s := record.retry_in_s) is not None:
            # This pass may have come before the one that a failed claim asked for, and in its place.
            self.again(key, retry_in_s)
        if is_ours:
            await self._finish(key, record)
        self.caches.tidy(key)

    async def _prepare(self, key: Key, record: PoolRecord) -> None:
        """Give the pool what it lacks; a pool that cannot be written releases addresses all the same."""
        pool = self.caches.pools.get(key)
        assert pool is not None
        try:
            await self.pools.prepare(pool, record.book.spec)
        except (ApiError, ApiUnreachable) as error:
            LOG.warning("IPPool %s/%s: %s", *key, error)
            self.again(key, RETRY_S)

    async def _release_vanished(self, record: PoolRecord) -> None:
        """Release the addresses of claims that went although they had their finalizer.

        No grace is needed: this process saw the claim go. Where a claim of the same name is there, that one adopts the
        address, or goes as well: that is another pass.
        """
        for uid in list(record.vanished):
            left = [each for each in self.caches.addresses.by_index("owner", uid) if is_made_here(each)]
            if not left or self.caches.lives(uid):
                record.vanished.discard(uid)
                continue
            for address in left:
                try:
                    self.meter.released += await self.claims.release_orphan(address)
                except (ApiError, ApiUnreachable) as error:
                    LOG.warning("%s/%s: %s", *key_of(address), error)

    async def _settle_all(self, key: Key, record: PoolRecord, taken: Iterable[Key]) -> None:
        """Serve claims that changed and claims that wait; what is freed goes to the first that came (KD10)."""
        newly, behind = await self._settle_claims(self._view(key), record, taken)
        await self._serve_line(self._view(key), record, newly)
        if behind:
            late, _ = await self._settle_claims(self._view(key), record, behind, waits=False)
            await self._serve_line(self._view(key), record, late)

    async def _settle_claims(
        self, view: PoolView, record: PoolRecord, keys: Iterable[Key], *, waits: bool = True
    ) -> tuple[list[Key], list[Key]]:
        """Do what is decided about each claim; return those that joined the line for any address.

        Returned, too, are those that want one address and came later than a claim in the line: they are looked at
        again when the line is served.
        """
        work: list[Awaitable[None]] = []
        takes: list[tuple[Object, int]] = []
        newly, behind = [], []
        for claim in self._in_order(view, record, keys):
            key = key_of(claim)
            action = self._decide(view, record, claim)
            if action is None:
                continue
            record.leave_line(key)
            record.stop_wanting(key)
            record.idle.discard(key)
            record.unsettled.add(key)
            match action:
                case PickAny():
                    # A claim in the line holds nothing, also not an address that it once named.
                    self.caches.free(record, claim)
                    record.join_line(key, arrival_of(claim))
                    newly.append(key)
                case TakeAddress() if waits and record.has_earlier(arrival_of(claim)):
                    behind.append(key)
                case TakeAddress(position):
                    # Held at once: the next claim of this pass must not get it as well.
                    record.book.hold((CLAIM, uid_of(claim)), position)
                    takes.append((claim, position))
                case Leave(reason, says):
                    LOG.debug("%s/%s: %s", *key, reason)
                    if says:
                        record.wait_idly(key)
                        self.events.record(IP_CLAIM, claim, "Waiting", reason)
                        work.append(self._guarded(record, claim, self.claims.say_nothing(claim)))
                case _:
                    if isinstance(action, Refuse) and action.position is not None:
                        record.want(key, action.position)
                    work.append(self._guarded(record, claim, self._do(view, record, claim, action)))
        await _all(work)
        await self._take(view, record, takes)
        return newly, behind

    def _in_order(self, view: PoolView, record: PoolRecord, keys: Iterable[Key]) -> list[Object]:
        """Return the claims of this pool among some, in the order of their arrival; forget those that are gone."""
        found = []
        for key in keys:
            claim = self.caches.claims.get(key)
            reference = reference_of(claim) if claim is not None else None
            if claim is None:
                record.forget(key)
            elif reference is not None and reference.pool == view.key and self.serves(claim):
                found.append(claim)
        return sorted(found, key=arrival_of)

    def _decide(self, view: PoolView, record: PoolRecord, claim: Object) -> Action | None:
        """Decide about a claim; nothing, if that fails: a claim that cannot be read must not stop the others."""
        reference = reference_of(claim)
        assert reference is not None
        try:
            return decide(claim, reference, view)
        except Exception:
            LOG.exception("IPClaim %s/%s", *key_of(claim))
            self.again(view.key, record.failed(key_of(claim)))
            return None

    async def _do(self, view: PoolView, record: PoolRecord, claim: Object, action: Action) -> None:
        """Write what is decided about one claim."""
        key = key_of(claim)
        match action:
            case Adopt(address, surplus):
                if await self.claims.adopt(claim, view.pool, address):
                    self.meter.adopted += 1
                for each in surplus:
                    self.meter.conflicts += 1
                    LOG.warning("%s/%s has %s, and %s as well, which goes", *key, key_of(address)[1], key_of(each)[1])
                    await self.claims.delete_address(each)
                record.unsettled.discard(key)
            case Refuse(message):
                await self._refuse(claim, message)
            case ReleaseAddresses(addresses):
                if await self.claims.release(claim, await self._all_of(view, claim, list(addresses))):
                    self.meter.released += 1

    async def _all_of(self, view: PoolView, claim: Object, addresses: list[Object]) -> list[Object]:
        """Return the addresses of a claim that is going, those included that only the server knows of yet.

        A claim that names an address for which no object is known may have one all the same: its former leader may have
        died between creating it and hearing so.
        """
        position = own_address(claim)
        if addresses or position is None or not view.book.spec.name_prefix:
            return addresses
        name = address_name(view.book.spec.name_prefix, position)
        found = await self.claims.read_address(view.key[0], name)
        is_its = found is not None and (uid_of(claim) in owner_uids(found))
        return [found] if found is not None and is_its else []

    async def _serve_line(self, view: PoolView, record: PoolRecord, newly: list[Key]) -> None:
        """Serve claims that wait for any address, in the order of their arrival, for as long as there are any."""
        while record.waiting and record.book.free and view.pool is not None:
            takes = self._next_takes(view, record)
            if not takes:
                break
            await self._take(view, record, takes)
            view = self._view(view.key)
        waiting = [self.caches.claims.get(key) for key in newly if record.is_in_line(key)]
        await _all(
            self._guarded(record, claim, self._refuse(claim, EXHAUSTED)) for claim in waiting if claim is not None
        )

    def _next_takes(self, view: PoolView, record: PoolRecord) -> list[tuple[Object, int]]:
        """Take claims out of the line, and pick an address for each; decide again, since they may have changed."""
        takes: list[tuple[Object, int]] = []
        while len(takes) < BATCH and record.book.free and (key := record.next_in_line()) is not None:
            claim = self.caches.claims.get(key)
            if claim is None or reference_of(claim) is None:
                continue
            if not isinstance(self._decide(view, record, claim), PickAny):
                record.dirty.add(key)
                self.again(view.key, 0.0)
                continue
            position = self._pick(view, record)
            if position is None:
                record.join_line(key, arrival_of(claim))
                break
            record.book.hold((CLAIM, uid_of(claim)), position)
            takes.append((claim, position))
        return takes

    def _pick(self, view: PoolView, record: PoolRecord) -> int | None:
        """Pick a free address whose object name is free, too: pools of one prefix share their names."""
        while (position := record.book.pick()) is not None:
            name = address_name(record.book.spec.name_prefix, position)
            if self.caches.addresses.get((view.key[0], name)) is None:
                return position
            self.caches.block_name(view.key, position, name)
        return None

    async def _take(self, view: PoolView, record: PoolRecord, takes: Sequence[tuple[Object, int]]) -> None:
        """Give addresses to claims, so many at once that one write on the pool can reserve them."""
        for start in range(0, len(takes), BATCH):
            await self._take_batch(view, record, takes[start : start + BATCH])

    async def _take_batch(self, view: PoolView, record: PoolRecord, takes: Sequence[tuple[Object, int]]) -> None:
        """Give addresses to claims: name, reserve, create, say."""
        named = await asyncio.gather(*(self._name(record, claim, position) for claim, position in takes))
        chosen = []
        for claim, position in named:
            if claim is None:
                continue
            if record.book.others_at(position, uid_of(claim)):
                self._look_again(view, record, claim)
            else:
                chosen.append((claim, position))
        pool = await self._reserve(view, record, chosen) if chosen else None
        if pool is not None:
            says = len(chosen) <= FEW
            await _all(
                self._guarded(record, claim, self._give(view, record, pool, claim, position, says))
                for claim, position in chosen
            )

    async def _name(self, record: PoolRecord, claim: Object, position: int) -> tuple[Object | None, int]:
        """Write the address on the claim; return the claim, or nothing if it changed meanwhile."""
        try:
            return await self.claims.name_address(claim, position), position
        except (ApiError, ApiUnreachable) as error:
            self._failed(record, claim, error)
            return None, position

    def _look_again(self, view: PoolView, record: PoolRecord, claim: Object) -> None:
        """Look again at a claim whose address another one holds by now."""
        self.meter.conflicts += 1
        record.dirty.add(key_of(claim))
        self.again(view.key, 0.0)

    async def _reserve(self, view: PoolView, record: PoolRecord, chosen: list[tuple[Object, int]]) -> Object | None:
        """Reserve addresses in the pool, in one write; return the pool, or nothing if it changed meanwhile."""
        try:
            return await self.pools.reserve(view.key, {uid_of(claim): position for claim, position in chosen})
        except (ApiError, ApiUnreachable) as error:
            LOG.info("%s/%s: not reserved: %s", *view.key, error)
            for claim, _ in chosen:
                self._failed(record, claim, error)
            # Last, since it may fail as well, and the claims must not be forgotten by that.
            if isinstance(error, WriteConflict):
                await self.pools.refresh(view.key)
            return None

    async def _give(
        self, view: PoolView, record: PoolRecord, pool: Object, claim: Object, position: int, says: bool
    ) -> None:
        """Create the object of a reserved address, and say on the claim that it is served."""
        key = key_of(claim)
        known = self.caches.claims.get(key)
        if known is None or uid_of(known) != uid_of(claim) or is_terminating(known):
            return  # it went meanwhile; what it leaves is released with it
        if record.book.others_at(position, uid_of(claim)):
            self._look_again(view, record, claim)  # an object was made by hand since the address was reserved
            return
        name = address_name(record.book.spec.name_prefix, position)
        try:
            address = await self.claims.create_address(record.book.spec, pool, claim, position)
        except ObjectExists:
            await self._exists(view, record, claim, position, name)
            return
        except ApiError as error:
            if error.status in (403, 422):
                await self._refuse(claim, "Failed to create associated IPAddress object", str(error))
            raise
        if not await self._is_alone(view, record, claim, position, address):
            return
        if was_served(claim):
            self.events.record(
                IP_CLAIM, claim, "AddressMissing", f"IPAddress {name} was gone; it is made again", "Warning"
            )
        current = self.caches.claims.get(key)
        if current is None or uid_of(current) != uid_of(claim):
            return
        await self.claims.say_served(current, address)
        record.unsettled.discard(key)
        record.succeeded(key)
        self.meter.served += 1
        if says:
            self.events.record(IP_CLAIM, claim, "Served", f"IPAddress {name} has {format_address(position)}")

    async def _is_alone(
        self, view: PoolView, record: PoolRecord, claim: Object, position: int, address: Object
    ) -> bool:
        """Return whether a new object is the only one for its address; else it goes, and the claim is looked at again.

        An object of another name may have been made by hand just before. Once the watch has reached the version of
        ours, every earlier one is known; and a later one is refused by the webhook, which knows of ours.
        """
        await self.caches.addresses.reach(address, WATCH_WITHIN_S)
        if not record.book.others_at(position, uid_of(claim), [holder_of(address)]):
            return True
        LOG.warning("%s/%s: %s has another object, too; ours goes", *view.key, format_address(position))
        await self.claims.delete_address(self.caches.addresses.get(key_of(address)) or address)
        self._look_again(view, record, claim)
        return False

    async def _exists(self, view: PoolView, record: PoolRecord, claim: Object, position: int, name: str) -> None:
        """Look at the object that has the name of an address: it may be this claim's own, from before a crash."""
        await self.claims.read_address(view.key[0], name)
        found = self.caches.addresses.get((view.key[0], name))  # nothing, if it has gone since it was read
        if found is not None and not self._is_own(view, claim, found):
            LOG.info("%s/%s: %s is not to be had: the name %s is taken", *view.key, format_address(position), name)
            self.caches.block_name(view.key, position, name)
            note = f"{format_address(position)} is not to be had: IPAddress {name} is there already"
            self.events.record(IP_CLAIM, claim, "Conflict", note, "Warning")
        self._look_again(view, record, claim)

    def _is_own(self, view: PoolView, claim: Object, address: Object) -> bool:
        """Return whether an address object is a claim's own, so that the next pass adopts it."""
        names_it = uid_of(claim) in owner_uids(address) or claim_name_of(address) == key_of(claim)[1]
        return names_it and pool_of(address) == view.key

    async def _refuse(self, claim: Object, message: str, reason: str = "") -> None:
        if was_served(claim) and await self._is_served(claim):
            return
        if await self.claims.say_refused(claim, message):
            self.meter.refused += 1
            note = f"{message}: {reason}" if reason else message
            self.events.record(IP_CLAIM, claim, "NotServed", note, "Warning")

    async def _is_served(self, claim: Object) -> bool:
        """Return whether the server has the address that a claim was given, whatever was decided about the claim.

        Another leader may have given it meanwhile, and the watch of claims may be ahead of that of addresses. What is
        read is entered into the cache, so the claim is looked at again.
        """
        found = await self.claims.read_address(key_of(claim)[0], text(claim, "status", "address", "name"))
        reference = reference_of(claim)
        return (
            found is not None
            and uid_of(claim) in owner_uids(found)
            and reference is not None
            and pool_of(found) == reference.pool
        )

    async def _guarded(self, record: PoolRecord, claim: Object, work: Awaitable[None]) -> None:
        """Do something about one claim; a failure delays this claim alone."""
        try:
            await work
        except (ApiError, ApiUnreachable) as error:
            self._failed(record, claim, error)
        else:
            record.succeeded(key_of(claim))

    def _failed(self, record: PoolRecord, claim: Object, error: Exception) -> None:
        key = key_of(claim)
        current = self.caches.claims.get(key)
        known = current is not None and uid_of(current) == uid_of(claim)
        # What was picked and not written is free again, for whatever waits for it; what was written is on the claim.
        self.caches.free(record, claim)
        if known and current is not None:
            record.book.hold((CLAIM, uid_of(claim)), own_address(current))
        level = logging.DEBUG if isinstance(error, WriteConflict | ObjectMissing) else logging.WARNING
        LOG.log(level, "%s/%s: %s", *key, error)
        reference = reference_of(claim)
        assert reference is not None
        self.again(reference.pool, record.failed(key))

    async def _finish(self, key: Key, record: PoolRecord) -> None:
        """Let a pool go that is to be deleted and has no address; else write its status, if it is due."""
        pool = self.caches.pools.get(key)
        if pool is None:
            return
        if is_terminating(pool) and not record.addresses:
            await self.pools.let_go(pool)
            return
        if not record.is_status_due:
            return
        wait_s = record.status_at + STATUS_EVERY_S - time.monotonic()
        if wait_s > 0:
            self.again(key, wait_s)
            return
        await self.pools.write_status(key)

    def _is_writable(self, key: Key) -> bool:
        """Return whether the pool itself may be written: it is there and ours, not paused, and not being moved."""
        view = self._view(key)
        if view.pool is None or not view.is_served or DELETE_FOR_MOVE in annotations_of(view.pool):
            return False
        return not self.is_paused(key)

    def is_paused(self, key: Key) -> bool:
        """Return whether a pool is paused, by itself or by its cluster."""
        view = self._view(key)
        cluster = view.book.spec.cluster_name
        return view.is_paused or (bool(cluster) and self.caches.is_cluster_paused(key[0], cluster))

    def _view(self, key: Key) -> PoolView:
        caches, pool = self.caches, self.caches.pools.get(key)
        return PoolView(
            key=key,
            pool=pool,
            is_served=pool is None or self.serves(pool),
            book=caches.record(key).book,
            addresses_for=caches.addresses_for,
            lives=caches.lives,
            is_cluster_paused=caches.is_cluster_paused,
            name_holder=caches.name_holder,
            is_moved=caches.is_moved,
            is_cluster_missing=caches.is_cluster_missing(key),
            allows_outside=self.allows_outside,
        )


async def _all(work: Iterable[Awaitable[None]]) -> None:
    """Do things at once, and wait for all of them also where one fails: a pass ends when all its writes have ended."""
    for outcome in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
