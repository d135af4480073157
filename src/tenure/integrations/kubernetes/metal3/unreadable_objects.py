"""Claims and addresses that say too little to be served, such as those from before the webhooks: each gets an event.

Pools that cannot be read say so in their status, and have their event with it (``pool_writes``).
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass

from tenure.integrations.kubernetes.metal3.caches.ipam_caches import IpamCaches
from tenure.integrations.kubernetes.metal3.objects.address_objects import claim_name_of, pool_of, position_of
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimKind
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import CLAIM_KINDS, kind_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import is_terminating, text
from tenure.integrations.kubernetes.runtime.event_recorder import EventRecorder
from tenure.integrations.kubernetes.runtime.object_cache import Delta
from tenure.integrations.kubernetes.runtime.resource_types import Object

UNREADABLE = "Unreadable"
"""The reason of the events."""


def fault_of_claim(claim: Object) -> str:
    """Return why a claim cannot be served by any pool; empty if nothing is wrong with it."""
    return "spec.pool.name is empty: no pool serves the claim" if kind_of(claim).names_no_pool(claim) else ""


def fault_of_address(address: Object) -> str:
    """Return what an address leaves unsaid; empty if it holds an address of a pool for a claim, or is not ours."""
    if kind_of(address).names_no_pool(address):
        return "spec.pool.name is empty: it is of no pool, and holds nothing"
    if pool_of(address) is None:
        return ""
    if position_of(address) is None:
        return f"spec.address is no IP address, so that it holds nothing: {text(address, 'spec', 'address')[:100]}"
    return "" if claim_name_of(address) else "it names no claim: it keeps its address from all of them"


@dataclass
class UnreadableObjects:
    """Reports them, as long as this process leads."""

    caches: IpamCaches
    events: EventRecorder
    serves: Callable[[Object], bool]
    """Return whether an object is one that this operator looks after (E7)."""
    kinds: Collection[ClaimKind] = tuple(CLAIM_KINDS.values())
    """The kinds of claims that are served (KD12)."""
    _leads: bool = False

    def __post_init__(self) -> None:
        for kind in self.kinds:
            self.caches.objects.claims_of_kind(kind).on_change(self._claim_changed)
            self.caches.objects.addresses_of_kind(kind).on_change(self._address_changed)

    async def run(self) -> None:
        """Report what is there, and then what comes, until cancelled. O(n) of all claims and addresses, once."""
        self._leads = True
        try:
            for kind in self.kinds:
                for claim in self.caches.objects.claims_of_kind(kind):
                    self._report_claim(claim)
                for address in self.caches.objects.addresses_of_kind(kind):
                    self._report_address(address)
            await asyncio.Event().wait()
        finally:
            self._leads = False

    def _claim_changed(self, delta: Delta) -> None:
        if self._leads and delta.after is not None:
            self._report_claim(delta.after)

    def _address_changed(self, delta: Delta) -> None:
        if self._leads and delta.after is not None:
            self._report_address(delta.after)

    def _report_claim(self, claim: Object) -> None:
        if (fault := fault_of_claim(claim)) and self._concerns(claim):
            self.events.record(kind_of(claim).claim_type(claim), claim, UNREADABLE, fault, "Warning")

    def _report_address(self, address: Object) -> None:
        if (fault := fault_of_address(address)) and self._concerns(address):
            self.events.record(kind_of(address).address_type(address), address, UNREADABLE, fault, "Warning")

    def _concerns(self, object: Object) -> bool:
        return kind_of(object) in self.kinds and not is_terminating(object) and self.serves(object)
