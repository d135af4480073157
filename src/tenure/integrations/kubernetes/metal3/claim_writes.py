"""The writes that a claim's decision takes: naming its address, creating and releasing objects, saying what happened.

Each write names what was read, so a former leader that wakes can do no harm (KP4), and each may be the last one before
a crash: whatever stands after it leads the next leader to the same end.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from tenure.integrations.kubernetes.metal3.address_objects import (
    claim_name_of,
    completing_patch,
    new_address,
    position_of,
)
from tenure.integrations.kubernetes.metal3.claim_reading import own_address
from tenure.integrations.kubernetes.metal3.ipam_caches import IpamCaches
from tenure.integrations.kubernetes.metal3.ipam_kinds import (
    ADDRESS_FINALIZER,
    CLAIM_FINALIZER,
    IP_ADDRESS,
    IP_CLAIM,
    OWN_ADDRESS,
    PICKED_FOR,
    annotations_of,
    finalizers_of,
    is_terminating,
    text,
)
from tenure.integrations.kubernetes.metal3.pool_spec import PoolSpec
from tenure.integrations.kubernetes.runtime.api_client import GONE, MERGE_PATCH, ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ObjectMissing
from tenure.integrations.kubernetes.runtime.patches import (
    Step,
    finalizer_steps,
    guarded,
    pointer,
    remove_finalizer,
    status_patch,
)
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of, uid_of, version_of
from tenure.kernel.addressing.addresses import format_address

LOG = logging.getLogger(__name__)


@dataclass
class ClaimWrites:
    """Writes about claims and their addresses; each answer is in the caches before the next decision."""

    client: ApiClient
    caches: IpamCaches
    check: Callable[[], None]
    """Raises if this process does not lead any more; asked before every write."""
    _is_foreign_kind: bool = False
    """Whether the definition of claims has no room for ``status.tenure``: it is Metal3's."""

    async def name_address(self, claim: Object, position: int) -> Object:
        """Write the chosen address on the claim, with the finalizer if the webhook did not set it; return the claim."""
        # An address that the claim brought from another cluster was not picked here: it is never exchanged (KD6).
        is_picked = own_address(claim) != position
        return await self._patch_claim(claim, _metadata_steps(claim, position, is_picked=is_picked))

    async def create_address(self, spec: PoolSpec, pool: Object, claim: Object, position: int) -> Object:
        """Create the object of an address; its name is the lock, so ``ObjectExists`` means that another has it."""
        self.check()
        made = await self.client.create(IP_ADDRESS, new_address(spec, pool, claim, position))
        self.caches.addresses.wrote(made)
        return made

    async def read_address(self, namespace: str, name: str) -> Object | None:
        """Read an address from the server itself, and enter it into the cache."""
        try:
            found = await self.client.get(IP_ADDRESS.path(namespace, name))
        except ObjectMissing:
            return None
        self.caches.addresses.wrote(found)
        return found

    async def adopt(self, claim: Object, pool: Object | None, address: Object) -> bool:
        """Make claim and address say that they belong together; return whether anything was written.

        The claim has its finalizer before the address has the claim's uid: a claim that goes leaves nothing.
        """
        written = False
        position = position_of(address)
        assert position is not None, "only addresses that can be read are adopted"
        if steps := _metadata_steps(claim, position, is_picked=False):
            claim = await self._patch_claim(claim, steps)
            written = True
        if patch := completing_patch(address, pool, claim):
            self.check()
            address = await self.client.patch(IP_ADDRESS, address, patch)
            self.caches.addresses.wrote(address)
            written = True
        return await self.say_served(claim, address) or written

    async def say_served(self, claim: Object, address: Object) -> bool:
        """Write on the claim which address it has; return whether it did not say so already."""
        namespace, name = key_of(address)
        shown = text(address, "spec", "address")
        known = (text(claim, "status", "address", "name"), text(claim, "status", "address", "namespace"))
        is_shown = self._is_foreign_kind or text(claim, "status", "tenure", "address") == shown
        if known == (name, namespace) and is_shown and not text(claim, "status", "errorMessage"):
            return False
        status = {
            "address": {"name": name, "namespace": namespace},
            "errorMessage": None,
            "tenure": {"address": shown},
        }
        patched = await self._patch_status(claim, status)
        self._is_foreign_kind = not text(patched, "status", "tenure", "address")
        return True

    async def say_nothing(self, claim: Object) -> None:
        """Take off the claim's status what is not true: it has no address, and there is no error."""
        if text(claim, "status", "address", "name") or text(claim, "status", "errorMessage"):
            await self._patch_status(claim, {"address": None, "errorMessage": None, "tenure": None})

    async def say_refused(self, claim: Object, message: str) -> bool:
        """Write on the claim why it has no address; return whether it did not say so already.

        A claim that had an address goes on naming it, since it waits for that one and for no other.
        """
        lost = own_address(claim) is None and bool(text(claim, "status", "address", "name"))
        if text(claim, "status", "errorMessage") == message and not lost:
            return False
        status: Object = {"errorMessage": message, "tenure": None}
        if own_address(claim) is None:
            status["address"] = None
        await self._patch_status(claim, status)
        return True

    async def release(self, claim: Object, addresses: list[Object]) -> bool:
        """Delete the addresses of a claim that is going, then let the claim go; return whether it went.

        An address goes before its claim (D1). One that has finalizers of others stays, and its claim with it.
        """
        all_gone = True
        for address in addresses:
            all_gone = await self.delete_address(address) and all_gone
        if not all_gone:
            return False
        if CLAIM_FINALIZER in finalizers_of(claim):
            self.check()
            try:
                answer = await self.client.patch(IP_CLAIM, claim, remove_finalizer(claim, CLAIM_FINALIZER))
            except ObjectMissing:
                answer = GONE
            self.caches.claims.deleted(claim, answer)
        return True

    async def release_orphan(self, address: Object) -> bool:
        """Look a second time, at the server itself, and release an address whose claim is not there; return whether."""
        namespace, name = key_of(address)
        try:
            await self.client.get(IP_CLAIM.path(namespace, claim_name_of(address)))
            return False  # the cache is behind
        except ObjectMissing:
            pass
        current = await self.read_address(namespace, name)
        if current is None or version_of(current) != version_of(address):
            return False  # it has changed: the next look decides
        return await self.delete_address(current)

    async def delete_address(self, address: Object) -> bool:
        """Delete an address object, and let it go if no other finalizer keeps it; return whether it is gone.

        It is deleted before its finalizer goes: from then on everybody sees that it is being released, so that no new
        claim of the same name adopts it (KD8).
        """
        try:
            return await self._delete_address(address)
        except ObjectMissing:
            self.caches.addresses.deleted(address, GONE)
            return True

    async def _delete_address(self, address: Object) -> bool:
        if not is_terminating(address):
            self.check()
            answer = await self.client.delete(IP_ADDRESS, address)
            self.caches.addresses.deleted(address, answer)
            if not is_terminating(answer) or not finalizers_of(answer):
                return True
            address = answer
        if ADDRESS_FINALIZER in finalizers_of(address):
            self.check()
            answer = await self.client.patch(IP_ADDRESS, address, remove_finalizer(address, ADDRESS_FINALIZER))
            self.caches.addresses.deleted(address, answer)
            address = answer
        return not finalizers_of(address)

    async def _patch_claim(self, claim: Object, steps: list[Step]) -> Object:
        if not steps:
            return claim
        self.check()
        patched = await self.client.patch(IP_CLAIM, claim, guarded(claim, *steps))
        self.caches.claims.wrote(patched)
        return patched

    async def _patch_status(self, claim: Object, status: Object) -> Object:
        self.check()
        patch = status_patch(claim, status)
        patched = await self.client.patch(IP_CLAIM, claim, patch, content_type=MERGE_PATCH, subresource="status")
        self.caches.claims.wrote(patched)
        return patched


def _metadata_steps(claim: Object, position: int, *, is_picked: bool) -> list[Step]:
    """Return what must be added to a claim's metadata: the finalizer, its address, and for which uid it was picked.

    An address that was adopted was not picked here, so it is never exchanged for another.
    """
    annotations = annotations_of(claim)
    wanted = {OWN_ADDRESS: format_address(position)}
    if is_picked:
        wanted[PICKED_FOR] = uid_of(claim)
    changed = {name: value for name, value in wanted.items() if annotations.get(name) != value}
    steps: list[Step] = [
        {"op": "add", "path": pointer("metadata", "annotations", name), "value": value}
        for name, value in changed.items()
    ]
    if not annotations:
        steps = [{"op": "add", "path": "/metadata/annotations", "value": wanted}]
    return steps if is_terminating(claim) else steps + finalizer_steps(claim, CLAIM_FINALIZER)
