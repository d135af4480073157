"""Addresses without a claim, and claims without an address: counted, reported, and only then, if ours, released.

An address is ours if it says for which claim this operator made it (KD7). Metal3's leaks and addresses made by hand are
reported and never released here; they may be there on purpose, to rule an address out (KS1).
"""

import asyncio
import logging
import time
from dataclasses import dataclass, field

from tenure.integrations.kubernetes.metal3.address_objects import claim_name_of, is_made_here, owner_uids, pool_of
from tenure.integrations.kubernetes.metal3.claim_writes import ClaimWrites
from tenure.integrations.kubernetes.metal3.ipam_caches import IpamCaches
from tenure.integrations.kubernetes.metal3.ipam_kinds import (
    DELETE_FOR_MOVE,
    IP_ADDRESS,
    IP_CLAIM,
    annotations_of,
    text,
)
from tenure.integrations.kubernetes.metal3.ipam_meter import IpamMeter
from tenure.integrations.kubernetes.metal3.pool_status import now_text
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable, ObjectMissing
from tenure.integrations.kubernetes.runtime.event_recorder import EventRecorder
from tenure.integrations.kubernetes.runtime.resource_types import Key, Object, key_of, uid_of, version_of

LOG = logging.getLogger(__name__)

LOOKS_EVERY_S = 30.0


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
    orphans: dict[str, OrphanedAddress] = field(default_factory=dict)
    """By the uid of the address."""

    def of_pool(self, pool: Key) -> list[Object]:
        """Return the orphans of a pool as its status lists them."""
        return [
            {
                "address": text(each.address, "spec", "address"),
                "name": key_of(each.address)[1],
                "since": each.since_text,
            }
            for each in self.orphans.values()
            if pool_of(each.address) == pool
        ]

    async def run(self) -> None:
        """Look regularly until cancelled."""
        while True:
            try:
                await self.look()
            except (ApiError, ApiUnreachable) as error:
                LOG.warning("addresses without a claim: %s", error)
            await asyncio.sleep(min(LOOKS_EVERY_S, max(self.grace_s / 4, 0.1)))

    async def look(self) -> None:
        """Find orphans, report new ones, and release those whose time has come. O(n) of all addresses."""
        found = {uid_of(each): each for each in self.caches.addresses if self._is_orphan(each)}
        for uid in self.orphans.keys() - found.keys():
            self._due(self.orphans.pop(uid).address)
        for uid, address in found.items():
            if uid not in self.orphans:
                self.orphans[uid] = OrphanedAddress(address, time.monotonic())
                self._due(address)
                ours = "it is released after a while" if is_made_here(address) else "it was not made here and stays"
                note = f"IPClaim {claim_name_of(address)} is not there; {ours}"
                self.events.record(IP_ADDRESS, address, "Orphaned", note, "Warning")
            orphan = self.orphans[uid]
            orphan.address = address
            if is_made_here(address) and time.monotonic() - orphan.since >= self.grace_s:
                await self._release(address)

    def _is_orphan(self, address: Object) -> bool:
        if DELETE_FOR_MOVE in annotations_of(address) or pool_of(address) is None:
            return False
        if any(self.caches.lives(uid) for uid in owner_uids(address)):
            return False
        return self.caches.claims.get((key_of(address)[0], claim_name_of(address))) is None

    async def _release(self, address: Object) -> None:
        """Look a second time, at the server itself, and release the address if its claim is not there."""
        namespace, name = key_of(address)
        try:
            await self.claims.client.get(IP_CLAIM.path(namespace, claim_name_of(address)))
            return  # the cache is behind
        except ObjectMissing:
            pass
        current = await self.claims.read_address(namespace, name)
        if current is None or version_of(current) != version_of(address):
            return  # somebody has changed it: the next look decides
        if await self.claims.delete_address(current):
            self.meter.orphans_released += 1
            LOG.warning("%s/%s was without a claim and is released", namespace, name)

    def _due(self, address: Object) -> None:
        pool = pool_of(address)
        if pool is not None:
            self.caches.status_due(pool)
