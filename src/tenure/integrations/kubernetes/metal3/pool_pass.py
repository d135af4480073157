"""One pass over a pool: decide about the claims that changed, write what is decided, then say so in the pool.

The order of writes for a new address (KP3, KP4): the claim names it; one conditional write on the pool reserves it
together with all others of the pass; its object is created; the claim says that it is served. Only one leader can
have reserved an address, since the pool's version is named; and only one object can have its name.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from tenure.integrations.kubernetes.metal3.address_objects import (
    address_name,
    claim_name_of,
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
        pool = self.caches.pools.get(key)
        if pool is not None and not self.serves(pool):
            return
        is_paused = self._is_paused(key)
        if pool is not None and not is_paused:
            pool = await self.pools.prepare(pool, record.book.spec)
        if not is_paused:
            await self._release_vanished(record)
        view = self._view(key)
        newly = await self._settle_claims(view, record, record.take_dirty())
        await self._serve_line(view, record, newly)
        if (retry_in_s := record.retry_in_s) is not None:
            # This pass may have come before the one that a failed claim asked for, and in its place.
            self.again(key, retry_in_s)
        if pool is not None and not is_paused:
            await self._finish(key, record)

    async def _release_vanished(self, record: PoolRecord) -> None:
        """Release the addresses of claims that went although they had their finalizer.

        Where a claim of the same name is there, it adopts the address, or goes as well: that is another pass.
        """
        for uid in list(record.vanished):
            left = [each for each in self.caches.addresses.by_index("owner", uid) if is_made_here(each)]
            if not left:
                record.vanished.discard(uid)
            for address in left:
                if await self.claims.release_orphan(address):
                    self.meter.released += 1

    async def _settle_claims(self, view: PoolView, record: PoolRecord, keys: Iterable[Key]) -> list[Key]:
        """Do what is decided about each claim; return those that joined the line for any address."""
        work: list[Awaitable[None]] = []
        takes: list[tuple[Object, int]] = []
        newly = []
        for key in keys:
            claim = self.caches.claims.get(key)
            reference = reference_of(claim) if claim is not None else None
            if claim is None or reference is None or reference.pool != view.key or not self.serves(claim):
                continue
            action = decide(claim, reference, view)
            record.leave_line(key)
            record.stop_wanting(key)
            record.unsettled.add(key)
            match action:
                case PickAny():
                    record.join_line(key, arrival_of(claim))
                    newly.append(key)
                case TakeAddress(position):
                    # Held at once: the next claim of this pass must not get it as well.
                    record.book.hold((CLAIM, uid_of(claim)), position)
                    takes.append((claim, position))
                case Leave(reason):
                    LOG.debug("%s/%s: %s", *key, reason)
                case _:
                    work.append(self._guarded(record, claim, self._do(view, record, claim, action)))
        await asyncio.gather(*work)
        await self._take(view, record, takes)
        return newly

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
            case Refuse(message, position):
                if position is not None:
                    record.want(key, position)
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
        in_line = set(record.in_line())
        waiting = [claim for key in newly if key in in_line and (claim := self.caches.claims.get(key)) is not None]
        await asyncio.gather(*(self._guarded(record, claim, self._refuse(claim, EXHAUSTED)) for claim in waiting))

    def _next_takes(self, view: PoolView, record: PoolRecord) -> list[tuple[Object, int]]:
        """Take claims out of the line, and pick an address for each; decide again, since they may have changed."""
        takes: list[tuple[Object, int]] = []
        while len(takes) < BATCH and record.book.free and (key := record.next_in_line()) is not None:
            claim = self.caches.claims.get(key)
            reference = reference_of(claim) if claim is not None else None
            if claim is None or reference is None:
                continue
            if not isinstance(decide(claim, reference, view), PickAny):
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
            self._lost(view, position, name)
        return None

    def _lost(self, view: PoolView, position: int, name: str) -> None:
        self.meter.conflicts += 1
        LOG.info("%s/%s: %s is not to be had: the name %s is taken", *view.key, format_address(position), name)
        self.caches.block_name(view.key, position, name)

    async def _take(self, view: PoolView, record: PoolRecord, takes: list[tuple[Object, int]]) -> None:
        """Give addresses to claims: name, reserve, create, say."""
        if not takes:
            return
        named = await asyncio.gather(*(self._name(record, claim, position) for claim, position in takes))
        chosen = [(claim, position) for claim, position in named if claim is not None]
        chosen = [
            (claim, position) for claim, position in chosen
            if not record.book.others_at(position, uid_of(claim)) or self._retry(view, record, claim)
        ]  # fmt: skip
        if not chosen:
            return
        pool = await self._reserve(view, record, chosen)
        if pool is None:
            return
        await asyncio.gather(
            *(
                self._guarded(record, claim, self._give(view, record, pool, claim, position, len(chosen) <= FEW))
                for claim, position in chosen
            )
        )

    async def _name(self, record: PoolRecord, claim: Object, position: int) -> tuple[Object | None, int]:
        """Write the address on the claim; return the claim, or nothing if it changed meanwhile."""
        try:
            return await self.claims.name_address(claim, position), position
        except (ApiError, ApiUnreachable) as error:
            self._failed(record, claim, error)
            return None, position

    def _retry(self, view: PoolView, record: PoolRecord, claim: Object) -> bool:
        """Look at a claim again whose address turned out to be somebody else's; always false."""
        self.meter.conflicts += 1
        record.dirty.add(key_of(claim))
        self.again(view.key, 0.0)
        return False

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
        await self.claims.say_served(self.caches.claims.get(key) or claim, address)
        record.unsettled.discard(key)
        record.succeeded(key)
        self.meter.served += 1
        if says:
            self.events.record(IP_CLAIM, claim, "Served", f"IPAddress {name} has {format_address(position)}")

    async def _exists(self, view: PoolView, record: PoolRecord, claim: Object, position: int, name: str) -> None:
        """Look at the object that has the name of an address: it may be this claim's own, from before a crash."""
        found = await self.claims.read_address(view.key[0], name)
        own = found is not None and (uid_of(claim) in owner_uids(found) or claim_name_of(found) == key_of(claim)[1])
        if found is not None and not own:
            self._lost(view, position, name)
            note = f"{format_address(position)} was taken by IPAddress {name}; another one is picked"
            self.events.record(IP_CLAIM, claim, "Conflict", note, "Warning")
        record.dirty.add(key_of(claim))
        self.again(view.key, 0.0)

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
        # What was picked and not written is free again; what was written is on the claim.
        record.book.hold((CLAIM, uid_of(claim)), own_address(current) if known and current is not None else None)
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

    def _is_paused(self, key: Key) -> bool:
        """Return whether the pool itself must not be written: it is paused, or being moved to another cluster."""
        view = self._view(key)
        if view.pool is not None and DELETE_FOR_MOVE in annotations_of(view.pool):
            return True
        cluster = view.book.spec.cluster_name
        return view.is_paused or (bool(cluster) and self.caches.is_cluster_paused(key[0], cluster))

    def _view(self, key: Key) -> PoolView:
        caches = self.caches
        return PoolView(
            key=key,
            pool=caches.pools.get(key),
            book=caches.record(key).book,
            addresses_for=caches.addresses_for,
            lives=caches.lives,
            is_cluster_paused=caches.is_cluster_paused,
            name_holder=caches.name_holder,
            is_moved=caches.is_moved,
            is_cluster_missing=caches.is_cluster_missing(key),
            allows_outside=self.allows_outside,
        )
