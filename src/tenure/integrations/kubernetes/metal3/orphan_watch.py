"""Addresses without a claim: counted, reported, and only then, if ours, released.

An address is ours if it says for which claim this operator made it (KD7). Metal3's leaks and addresses made by hand are
reported; they may be there on purpose, to rule an address out (KS1). Such an address goes when a user deletes it:
then its finalizer is taken away, which no other program would do.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from tenure.integrations.kubernetes.metal3.address_rights import owner_of
from tenure.integrations.kubernetes.metal3.caches.ipam_caches import IpamCaches
from tenure.integrations.kubernetes.metal3.claim_writes import ClaimWrites
from tenure.integrations.kubernetes.metal3.ipam_meter import IpamMeter
from tenure.integrations.kubernetes.metal3.objects.address_objects import (
    claim_name_of,
    is_made_here,
    pool_of,
)
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimKind
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import CLAIM_KINDS, kind_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    is_terminating,
    now_text,
    text,
)
from tenure.integrations.kubernetes.metal3.objects.move_marks import is_marked
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable
from tenure.integrations.kubernetes.runtime.event_recorder import EventRecorder
from tenure.integrations.kubernetes.runtime.object_cache import Delta
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of, uid_of

LOG = logging.getLogger(__name__)

LOOKS_EVERY_S, LEAST_PAUSE_S = 30.0, 1.0
PAUSE_AN_ADDRESS_S = 0.0002
"""Four times as long as a look at an address takes: orphans that come one after the other keep no core busy."""
TURN = 200
"""So many addresses are looked at before other work has its turn, such as the renewal of the Lease."""


@dataclass
class OrphanedAddress:
    """An address without a claim."""

    address: Object
    since: float
    since_text: str = field(default_factory=now_text)


@dataclass
class OrphanWatch:
    """Finds addresses without a claim, and releases those that this operator made, after a grace period (D10)."""

    caches: IpamCaches
    claims: ClaimWrites
    events: EventRecorder
    meter: IpamMeter
    grace_s: float
    may_release: Callable[[Object], bool] = lambda address: True
    """Return whether an address may be released: its pool is ours, and not paused (E3, E7)."""
    kinds: Collection[ClaimKind] = tuple(CLAIM_KINDS.values())
    """The kinds of claims that are served (KD12)."""
    orphans: dict[str, OrphanedAddress] = field(default_factory=dict)
    """By the uid of the address."""
    _seen: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when an orphan comes or is deleted, so that it need not wait for the next look."""

    def __post_init__(self) -> None:
        for kind in self.kinds:
            self.caches.objects.addresses_of_kind(kind).on_change(self._changed)

    def of_pool(self, pool: PoolId) -> list[Object]:
        """Return the orphans of a pool as its status lists them."""
        return [
            {
                "address": text(each.address, "spec", "address"),
                "name": pool.listed(key_of(each.address)),
                "since": each.since_text,
            }
            for each in self.orphans.values()
            if pool_of(each.address) == pool
        ]

    async def run(self) -> None:
        """Look regularly until cancelled; the grace of an orphan begins with the leadership that finds it."""
        self.orphans.clear()
        while True:
            # Before the look: what is deleted while it goes on is looked at again.
            self._seen.clear()
            looked_at = await self.look()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(LOOKS_EVERY_S, max(self.grace_s / 4, LEAST_PAUSE_S))):
                    await self._seen.wait()
            # Besides that wait, which any orphan ends: a look costs by the number of all addresses.
            await asyncio.sleep(max(LEAST_PAUSE_S, PAUSE_AN_ADDRESS_S * looked_at))

    async def look(self) -> int:
        """Find orphans, report new ones, and release those whose time has come; return how many addresses there are.

        O(n) of all addresses, with turns for other work.
        """
        found, looked_at = {}, 0
        for looked_at, address in enumerate(self.caches.objects.all_addresses(), 1):
            if self._is_orphan(address):
                found[uid_of(address)] = address
            await _let_others_on(looked_at)
        for uid in self.orphans.keys() - found.keys():
            self._due(self.orphans.pop(uid).address)
        for number, (uid, address) in enumerate(found.items(), 1):
            await self._look_at(uid, address)
            await _let_others_on(number)
        return looked_at

    async def _look_at(self, uid: str, address: Object) -> None:
        """Report an orphan if it is new, and release it if its time has come."""
        if uid not in self.orphans:
            self.orphans[uid] = OrphanedAddress(address, time.monotonic())
            self._due(address)
            ours = "it is released after a while" if is_made_here(address) else "it was not made here and stays"
            kind = kind_of(address)
            note = f"{kind.claim.kind} {claim_name_of(address)} of this pool is not there; {ours}"
            self.events.record(kind.address_type(address), address, "Orphaned", note, "Warning")
        orphan = self.orphans[uid]
        # The object as it is now; its grace goes on, whatever was changed in it.
        orphan.address = address
        is_over = is_made_here(address) and time.monotonic() - orphan.since >= self.grace_s
        if (is_over or is_terminating(address)) and self.may_release(address):
            await self._release(address)

    def _changed(self, delta: Delta) -> None:
        if delta.after is not None and self._is_orphan(delta.after):
            self._seen.set()

    def _is_orphan(self, address: Object) -> bool:
        # A marked address is not without a claim for good: the move deletes it, or the mark is taken off.
        if kind_of(address) not in self.kinds or is_marked(address):
            return False
        return pool_of(address) is not None and owner_of(address, self.caches.objects) is None

    async def _release(self, address: Object) -> None:
        try:
            is_released = await self.claims.release_orphan(address)
        except (ApiError, ApiUnreachable) as error:
            LOG.warning("%s/%s is without a claim: %s", *key_of(address), error)
            return
        if is_released:
            self.meter.orphans_released += 1
            LOG.warning("%s/%s was without a claim and is released", *key_of(address))

    def _due(self, address: Object) -> None:
        pool = pool_of(address)
        if pool is not None:
            self.caches.records.status_due(pool)


async def _let_others_on(number: int) -> None:
    if number % TURN == 0:
        await asyncio.sleep(0)
