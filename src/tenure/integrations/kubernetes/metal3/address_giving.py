"""Giving addresses to claims: the writes of a batch, and what becomes of each claim when one of them fails.

The order (KP3, KP4): where the pool is bound to a ledger, that grants the addresses; one conditional write on the pool
reserves the addresses of a batch, each for a claim; the objects are created; the claims say that they are served. Only
one leader can have reserved an address, since the pool's version is named; and a leader that takes over gives a claim
what is reserved for it. A claim without its finalizer gets that first, with its address. The others name their address
later (``name_served``): it is for a move to another cluster, and nothing here waits for it. Until then they have the
mark ``block-move`` from the webhook, which goes with the same write: clusterctl waits for that. Claims that are paused,
as at the beginning of a move, name it at once (``NameAddress``).
"""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Literal

from tenure.integrations.kubernetes.metal3.address_rights import holders_before, other_objects, was_told
from tenure.integrations.kubernetes.metal3.caches.ipam_caches import IpamCaches
from tenure.integrations.kubernetes.metal3.claim_decision import PoolView, is_given, is_of_claim
from tenure.integrations.kubernetes.metal3.claim_writes import ClaimWrites, has_finalizer
from tenure.integrations.kubernetes.metal3.ipam_meter import IpamMeter
from tenure.integrations.kubernetes.metal3.ledger.pool_ledgers import PoolLedgers
from tenure.integrations.kubernetes.metal3.ledger_state import LedgerAway, LedgerRefused, LedgerTrouble
from tenure.integrations.kubernetes.metal3.objects.address_objects import (
    object_name,
    owner_uids,
    pool_of,
)
from tenure.integrations.kubernetes.metal3.objects.claim_kind import Unserved
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import id_of, kind_of
from tenure.integrations.kubernetes.metal3.objects.claim_reading import (
    is_fit_to_move,
    is_named_first,
    reference_of,
    was_served,
)
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import is_terminating
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_kinds import POOL_KINDS
from tenure.integrations.kubernetes.metal3.pool_record import PoolRecord
from tenure.integrations.kubernetes.metal3.pool_writes import PoolWrites
from tenure.integrations.kubernetes.runtime.api_client import IN_FLIGHT
from tenure.integrations.kubernetes.runtime.api_errors import (
    ApiError,
    ApiUnreachable,
    ObjectExists,
    ObjectMissing,
    WriteConflict,
)
from tenure.integrations.kubernetes.runtime.event_recorder import EventRecorder
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of, uid_of
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.addressing.ranges import AddressRange

LOG = logging.getLogger(__name__)

BATCH = 256
"""How many addresses one write on the pool reserves."""
AT_ONCE = 2 * IN_FLIGHT
"""How many claims are written about at a time: while some wait for the watch, others have requests in flight."""
WATCH_WITHIN_S = 2.0
"""How long the watch is waited for after an object was created; it needs some milliseconds."""
NAMED_AT_ONCE = 16
"""So many served claims name their addresses before it is looked whether others wait to be served."""
NAMED_WITHIN_S = 5.0
"""After this time they do so also while others wait."""
FEW = 8
"""A batch of so few claims also writes events of it; more would double the writes (KP12)."""

FAILED_TO_CREATE = "Failed to create associated IPAddress object"

Work = Callable[[], Awaitable[None]]
"""Something to be done; it begins when it is called, so that what is never begun leaves nothing behind."""
Again = Callable[[PoolId, float], None]
"""Ask for another pass over a pool after a time."""


@dataclass
class AddressGiving:
    """Gives addresses that were decided on or picked, as long as this process leads."""

    caches: IpamCaches
    claims: ClaimWrites
    pools: PoolWrites
    events: EventRecorder
    again: Again
    meter: IpamMeter = field(default_factory=IpamMeter)
    ledgers: PoolLedgers | None = None
    """The ledgers that pools are bound to; nothing, where none can be."""

    def pick(
        self, view: PoolView, record: PoolRecord, claim: Object, ranges: Sequence[AddressRange] = ()
    ) -> int | None:
        """Pick a free address whose object name is free, too: pools of one prefix share their names.

        An object that is named after its claim has a name whatever is picked. In a pool for several namespaces, an
        address whose name is taken in one of them is kept from all, for as long as it is.
        """
        while (position := record.book.pick(ranges)) is not None:
            if POOL_KINDS[view.key.kind].named_by_claim:
                return position
            name = object_name(view.key, record.book.spec, claim, position)
            found = self.caches.objects.addresses_like(claim).get((key_of(claim)[0], name))
            if found is None:
                return position
            self.caches.records.block_name(view.key, position, found)
        return None

    async def take(self, view: PoolView, record: PoolRecord, takes: Sequence[tuple[Object, int]]) -> None:
        """Give addresses to claims, so many at once that one write on the pool can reserve them."""
        for start in range(0, len(takes), BATCH):
            await self._take_batch(view, record, takes[start : start + BATCH])

    async def _take_batch(self, view: PoolView, record: PoolRecord, takes: Sequence[tuple[Object, int]]) -> None:
        """Give addresses to claims: name where that must be, reserve, create, say."""
        for claim, _ in takes:
            record.tried_again(id_of(claim))
        try:
            await self._give_batch(view, record, takes)
        finally:
            for claim, _ in takes:
                self.caches.records.end_pick(record, claim)

    async def _give_batch(self, view: PoolView, record: PoolRecord, takes: Sequence[tuple[Object, int]]) -> None:
        chosen = []
        for claim, position in await self._named(record, takes):
            if claim is None or not self._is_there(claim):
                continue  # it changed meanwhile, or it went
            # Asked again: while claims were named, another holder may have come, or the pool have been changed.
            if self._is_to_be_had(view, record, claim, position):
                chosen.append((claim, position))
            else:
                self.look_again(view, record, claim)
        if self.ledgers is not None and record.book.spec.ledger is not None:
            granted = await self._granted(self.ledgers, view, record, chosen)
            # What the ledger has granted to a claim that went meanwhile is released with it, or found as an orphan.
            chosen = [(claim, position) for claim, position in granted if self._is_there(claim)]
        pool = await self._reserve(view, record, chosen) if chosen else None
        if pool is not None:
            says = len(chosen) <= FEW
            await all_of(
                partial(self.guarded, record, claim, partial(self._give, view, record, pool, claim, position, says))
                for claim, position in chosen
            )

    def _is_there(self, claim: Object) -> bool:
        return self.caches.objects.claim_of_uid(uid_of(claim)) is not None

    async def _granted(
        self, ledgers: PoolLedgers, view: PoolView, record: PoolRecord, chosen: list[tuple[Object, int]]
    ) -> list[tuple[Object, int]]:
        """Return those that have their address in the ledger by now; the others are looked at again.

        All are asked for at once: the ledger makes one transaction of many.
        """
        asked = (ledgers.grant(view.key, claim, position) for claim, position in chosen)
        # All outcomes are looked at: one refusal must not hide what the ledger has granted to the others.
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        granted, away = [], []
        for (claim, position), outcome in zip(chosen, outcomes, strict=True):
            if isinstance(outcome, LedgerRefused):
                self.look_again(view, record, claim)
            elif isinstance(outcome, LedgerAway):
                away.append(partial(self._wait_for_ledger, record, claim, outcome))
            elif outcome is not None:
                raise outcome
            else:
                granted.append((claim, position))
        await all_of(away)
        return granted

    async def _named(self, record: PoolRecord, takes: Sequence[tuple[Object, int]]) -> list[tuple[Object | None, int]]:
        """Write addresses on claims that name them first; where that failed, nothing stands in the claim's place."""
        first = [take for take in takes if not has_finalizer(take[0]) or is_named_first(*take)]
        claims = await asyncio.gather(*(self._name(record, *take) for take in first))
        named = {uid_of(claim): written for (claim, _), written in zip(first, claims, strict=True)}
        return [(named.get(uid_of(claim), claim), position) for claim, position in takes]

    async def _name(self, record: PoolRecord, claim: Object, position: int) -> Object | None:
        """Write an address on a claim; return the claim, or nothing if it changed meanwhile."""
        try:
            return await self.claims.name_address(claim, position)
        except (ApiError, ApiUnreachable) as error:
            self.failed(record, claim, error)
            return None

    def _is_to_be_had(self, view: PoolView, record: PoolRecord, claim: Object, position: int) -> bool:
        """Return whether a claim can have what was decided on: nobody got it meanwhile, and the pool still gives it."""
        is_taken = bool(holders_before(claim, position, record.book, self.caches.objects))
        return not is_taken and is_given(claim, position, view)

    def look_again(self, view: PoolView, record: PoolRecord, claim: Object) -> None:
        """Look again at a claim whose address is not to be had any more."""
        self.meter.conflicts += 1
        record.dirty.add(id_of(claim))
        self.again(view.key, 0.0)

    async def _reserve(self, view: PoolView, record: PoolRecord, chosen: list[tuple[Object, int]]) -> Object | None:
        """Reserve addresses in the pool, in one write; return the pool's type and metadata, or nothing if that failed.

        Spec and status are left out: the whole batch keeps what is returned.
        """
        try:
            pool = await self.pools.reserve(view.key, {uid_of(claim): position for claim, position in chosen})
            return {name: pool[name] for name in ("apiVersion", "kind", "metadata")}
        except (ApiError, ApiUnreachable) as error:
            LOG.info("%s: not reserved: %s", view.key, error)
            for claim, _ in chosen:
                self.failed(record, claim, error)
            # Last, since it may fail as well, and the claims must not be forgotten by that.
            if isinstance(error, WriteConflict):
                await self.pools.refresh(view.key)
            return None

    async def _give(
        self, view: PoolView, record: PoolRecord, pool: Object, claim: Object, position: int, says: bool
    ) -> None:
        """Create the object of a reserved address, and say on the claim that it is served."""
        id = id_of(claim)
        known = self.caches.objects.claim(id)
        if known is None or uid_of(known) != uid_of(claim) or is_terminating(known):
            return  # it went meanwhile; what it leaves is released with it
        if id.namespace in self.caches.terminating:
            return  # it goes with its namespace
        # Once more, behind the reservation: where no webhook is asked, the ranges may have been changed.
        if not self._is_to_be_had(view, record, claim, position):
            self.look_again(view, record, claim)
            return
        address = await self._created(view, record, pool, claim, position)
        if address is None or not await self._may_stay(view, record, claim, position, address):
            return
        name = key_of(address)[1]
        if was_served(claim):
            self.record(claim, "AddressMissing", f"IPAddress {name} was gone; it is made again", "Warning")
        # As it is by now: the server refuses a status on a version that is not the claim's last.
        current = self.caches.objects.claim(id)
        if current is None or uid_of(current) != uid_of(claim):
            return
        await self.claims.say_served(current, address)
        record.unsettled.discard(id)
        record.idle.discard(id)
        record.succeeded(id)
        if not is_fit_to_move(current, position):
            record.name_later(id)
        self.meter.served += 1
        if says:
            self.record(claim, "Served", f"IPAddress {name} has {format_address(position)}")

    async def _created(
        self, view: PoolView, record: PoolRecord, pool: Object, claim: Object, position: int
    ) -> Object | None:
        """Create the object of an address; return nothing if its name is taken: the claim is looked at again."""
        try:
            return await self.claims.create_address(record.book.spec, pool, claim, position)
        except ObjectExists:
            await self._exists(view, record, claim, position)
            return None
        except ApiError as error:
            # A namespace that is going takes no new objects; its claims go with it, and get no message (KP8).
            is_going = self.caches.terminating.note(key_of(claim)[0], error)
            is_refused = error.status in (403, 422) or isinstance(error, ObjectMissing)  # or the kind is not there
            if is_refused and not is_going:
                await self.refuse(claim, FAILED_TO_CREATE, reason=str(error))
            # Raised all the same, so that the claim is tried again: a quota or a policy may change.
            raise

    def record(self, claim: Object, reason: str, note: str, type: Literal["Normal", "Warning"] = "Normal") -> None:
        """Record an event of a claim."""
        self.events.record(kind_of(claim).claim_type(claim), claim, reason, note, type)

    async def name_served(self, record: PoolRecord, may: Callable[[Object], bool]) -> None:
        """Let claims that were served name their addresses, as long as no other claim waits to be looked at.

        A claim that may not be written now is looked at again when it may, and then enters here again.
        """
        while record.unnamed:
            oldest = next(iter(record.unnamed.values()))
            if time.monotonic() - oldest < NAMED_WITHIN_S and self._is_wanted(record):
                return
            chosen = list(islice(record.unnamed, NAMED_AT_ONCE))
            for id in chosen:
                del record.unnamed[id]
            known = [claim for id in chosen if (claim := self.caches.objects.claim(id)) is not None]
            claims = [claim for claim in known if was_served(claim) and may(claim)]
            await all_of(
                partial(self.guarded, record, claim, partial(self.claims.name_given, claim)) for claim in claims
            )

    def _is_wanted(self, record: PoolRecord) -> bool:
        """Return whether a claim that is to be looked at next has no address yet, or is going."""
        claims = (self.caches.objects.claim(id) for id in record.dirty)
        return any(claim is None or not was_served(claim) or is_terminating(claim) for claim in claims)

    async def _may_stay(
        self, view: PoolView, record: PoolRecord, claim: Object, position: int, address: Object
    ) -> bool:
        """Return whether a new object is what its claim gets; else it goes, and the claim is looked at again.

        An object of another name may have been made by hand just before. Once the watch has reached the version of
        ours, every earlier one is known; and a later one is refused by the webhook, which knows of ours. So it is with
        ranges of the pool that leave the address out: the webhook refuses them, but there may be none. If ours cannot
        be deleted now, the next decision about the claim withdraws it, or the claim keeps it.
        """
        await self._reach(address)
        others = other_objects(address, position, record.book)
        # Or one for this very claim, which is adopted then (KS2).
        made = [each for each in self.caches.objects.addresses_for(claim) if key_of(each) != key_of(address)]
        if others or any(is_of_claim(each, claim, view) for each in made):
            LOG.warning("%s: %s has another object, too; ours goes", view.key, format_address(position))
        elif not was_told(claim, address) and not is_given(claim, position, view):
            LOG.warning("%s: %s is not in the pool any more; ours goes", view.key, format_address(position))
        else:
            return True
        await self._withdraw(view, record, claim, address)
        return False

    async def _withdraw(self, view: PoolView, record: PoolRecord, claim: Object, address: Object) -> None:
        """Delete a new object of which nobody was told, and look at its claim again."""
        # In its last version, which the deletion names: another program may have changed it since.
        await self.claims.delete_address(self.caches.objects.addresses_like(address).get(key_of(address)) or address)
        self.look_again(view, record, claim)

    async def _reach(self, address: Object) -> None:
        """Wait until the watch has brought what was written before an address, of its kind."""
        await self.caches.objects.addresses_like(address).reach(address, WATCH_WITHIN_S)

    async def _exists(self, view: PoolView, record: PoolRecord, claim: Object, position: int) -> None:
        """Look at the object that has the name of an address: it may be this claim's own, from before a crash."""
        name = object_name(view.key, record.book.spec, claim, position)
        # From the server: the watch may not have brought the object that was in the way.
        await self.claims.read_address(claim, name)
        # Nothing, if it has gone since it was read.
        found = self.caches.objects.addresses_like(claim).get((key_of(claim)[0], name))
        if found is None:
            # Or its kind is not followed yet. A failure, so that the claim is tried again, each time later.
            raise WriteConflict(409, "Conflict", f"IPAddress {name} was there, and is not known")
        if not is_of_claim(found, claim, view):
            LOG.info("%s: %s is not to be had: the name %s is taken", view.key, format_address(position), name)
            # Where objects have the names of claims, no other address would have a free one: the claim waits.
            if not POOL_KINDS[view.key.kind].named_by_claim:
                self.caches.records.block_name(view.key, position, found)
            note = f"{format_address(position)} is not to be had: IPAddress {name} is there already"
            self.record(claim, "Conflict", note, "Warning")
        self.look_again(view, record, claim)

    async def refuse(
        self, claim: Object, message: str, why: Unserved = Unserved.ALLOCATION_FAILED, reason: str = ""
    ) -> None:
        """Say on a claim, and in an event, why it has no address; not, if the server knows that it has."""
        if was_served(claim) and await self._is_served(claim):
            return
        if await self.claims.say_refused(claim, message, why):
            self.meter.refused += 1
            self.record(claim, "NotServed", f"{message}: {reason}" if reason else message, "Warning")

    async def _is_served(self, claim: Object) -> bool:
        """Return whether the server has the address that a claim was given, whatever was decided about the claim.

        Another leader may have given it meanwhile, and the watch of claims may be ahead of that of addresses. What is
        read is entered into the cache, so the claim is looked at again.
        """
        found = await self.claims.read_address(claim, kind_of(claim).given(claim))
        reference = reference_of(claim)
        return (
            found is not None
            and uid_of(claim) in owner_uids(found)
            and reference is not None
            and pool_of(found) == reference.pool
        )

    async def guarded(self, record: PoolRecord, claim: Object, work: Work) -> None:
        """Do something about one claim; a failure delays this claim alone."""
        try:
            await work()
        except (ApiError, ApiUnreachable) as error:
            self.failed(record, claim, error)
        except LedgerTrouble as error:
            await self._wait_for_ledger(record, claim, error)
        else:
            record.succeeded(id_of(claim))

    async def _wait_for_ledger(self, record: PoolRecord, claim: Object, error: LedgerTrouble) -> None:
        """Let a claim be looked at again later, and say why it waits."""
        # First, since the message may fail as well, and the claim must not be forgotten by that.
        self.failed(record, claim, error)
        with contextlib.suppress(ApiError, ApiUnreachable):
            await self.refuse(claim, str(error), Unserved.POOL_NOT_READY)

    def failed(self, record: PoolRecord, claim: Object, error: Exception) -> None:
        """Let a claim be looked at again later, because a write about it failed; until then it counts as waiting."""
        id = id_of(claim)
        if not was_served(claim) and not is_terminating(claim) and self._is_there(claim):
            record.wait_idly(id)
        # A conflict, or an object that went, is not logged as a warning: users and other controllers write as well.
        level = logging.DEBUG if isinstance(error, WriteConflict | ObjectMissing) else logging.WARNING
        LOG.log(level, "%s: %s", id, error)
        reference = reference_of(claim)
        assert reference is not None
        self.again(reference.pool, record.failed(id))


async def all_of(work: Iterable[Work]) -> None:
    """Do things, many at once, and wait for all of them also where one fails: a pass ends when all its writes have.

    No more than ``AT_ONCE`` are begun at a time, so the first do not wait for the last. A task for each of thousands
    would only wait for its turn, with all that it needs in memory.
    """
    left = deque(work)
    failures: list[BaseException] = []

    async def worker() -> None:
        while left:
            try:
                await left.popleft()()
            except (Exception, asyncio.CancelledError) as error:
                if _is_being_cancelled():
                    raise
                # Also what a piece of work was cancelled by alone: a group of tasks would not report it.
                failures.append(error)

    async with asyncio.TaskGroup() as workers:
        for _ in range(min(AT_ONCE, len(left))):
            workers.create_task(worker())
    if failures:
        raise failures[0]


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
