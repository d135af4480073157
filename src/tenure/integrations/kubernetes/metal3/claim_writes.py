"""The writes that a claim's decision takes: naming its address, creating and releasing objects, saying what happened.

Each write names what was read, so a former leader that wakes can do no harm (KP4), and each may be the last one before
a crash: whatever stands after it leads the next leader to the same end.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tenure.integrations.kubernetes.metal3.address_rights import ReadClaims, owner_of
from tenure.integrations.kubernetes.metal3.caches.ipam_caches import IpamCaches
from tenure.integrations.kubernetes.metal3.objects.address_objects import (
    claim_names_of,
    completing_patch,
    is_made_here,
    new_address,
    owner_uids,
    position_of,
)
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId, ClaimKind, Unserved
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import kind_named, kind_of
from tenure.integrations.kubernetes.metal3.objects.claim_reading import (
    blocks_move,
    own_address,
    was_served,
)
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    BLOCK_MOVE,
    OWN_ADDRESS,
    PICKED_FOR,
    annotations_of,
    finalizers_of,
    is_terminating,
)
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolSpec
from tenure.integrations.kubernetes.runtime.api_client import GONE, MERGE_PATCH, ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ObjectMissing
from tenure.integrations.kubernetes.runtime.patches import (
    Step,
    finalizer_steps,
    guarded,
    label_steps,
    pointer,
    remove_finalizer,
    status_patch,
)
from tenure.integrations.kubernetes.runtime.resource_types import Key, Object, ResourceType, key_of, uid_of, version_of
from tenure.kernel.addressing.addresses import format_address

UNBLOCK: Step = {"op": "remove", "path": pointer("metadata", "annotations", BLOCK_MOVE)}


@dataclass
class ClaimWrites:
    """Writes about claims and their addresses; each answer is in the caches before the next decision."""

    client: ApiClient
    caches: IpamCaches
    check: Callable[[Object], None]
    """Raises if this process must not write an object, such as when it does not lead; asked before every write."""
    note_released: Callable[[list[Object]], Awaitable[None]] | None = None
    """Writes down, before addresses go, that they are about to be released; nothing: nobody wants to know."""
    _cramped: set[ClaimKind] = field(default_factory=set)
    """Kinds whose definition has no room for ``status.tenure``, such as Metal3's own."""

    async def name_address(self, claim: Object, position: int) -> Object:
        """Write the chosen address on the claim, with the finalizer if the webhook did not set it; return the claim."""
        # An address that the claim brought from another cluster was not picked here: it is never exchanged (KD6).
        is_picked = own_address(claim) != position
        return await self._patch_claim(claim, _metadata_steps(claim, position, is_picked=is_picked))

    async def name_given(self, claim: Object) -> None:
        """Write on a claim the address that its status says it was given, if that is there and is not named yet."""
        address = self.caches.objects.addresses_like(claim).get((key_of(claim)[0], kind_of(claim).given(claim)))
        position = position_of(address) if address is not None else None
        # A status can be forged: only an object that this very claim owns is named.
        if address is None or position is None or is_terminating(claim) or uid_of(claim) not in owner_uids(address):
            return
        await self._patch_claim(claim, _metadata_steps(claim, position, is_picked=is_made_here(address)))

    async def let_move(self, claim: Object) -> None:
        """Let a move go on without waiting for a claim; from now on it names an address before it gets it."""
        # ``PICKED_FOR`` as well: without it, a claim without the mark ``BLOCK_MOVE`` would not name its address first
        # (``is_named_first``).
        picked = {"op": "add", "path": pointer("metadata", "annotations", PICKED_FOR), "value": uid_of(claim)}
        await self._patch_claim(claim, [picked, UNBLOCK])

    async def create_address(self, spec: PoolSpec, pool: Object, claim: Object, position: int) -> Object:
        """Create the object of an address; its name is the lock, so ``ObjectExists`` means that another has it."""
        self.check(claim)
        type = self.caches.objects.address_type(claim)
        made = await self.client.create(type, new_address(spec, pool, claim, position, type))
        self.caches.objects.addresses_like(claim).wrote(made)
        return made

    async def read_address(self, like: Object, name: str) -> Object | None:
        """Read an address from the server itself, and enter it into the cache; ``like``: a claim, or an address."""
        try:
            found = await self.client.get(self.caches.objects.address_type(like).path(key_of(like)[0], name))
        except ObjectMissing:
            return None
        self.caches.objects.addresses_like(found).wrote(found)
        return found

    async def read_claim(self, like: Object, name: str) -> Object | None:
        """Read a claim from the server itself, and enter it into the cache; ``like``: a claim, or an address."""
        return await self._read_claim(self.caches.objects.claim_type(like), (key_of(like)[0], name))

    async def read_claim_of_id(self, id: ClaimId) -> Object | None:
        """Read a claim of which no object is known from the server itself, and enter it into the cache."""
        return await self._read_claim(
            self.caches.objects.claims_of_kind(kind_named(id)).kind or kind_named(id).claim, id.key
        )

    async def _read_claim(self, type: ResourceType, key: Key) -> Object | None:
        try:
            found = await self.client.get(type.path(*key))
        except ObjectMissing:
            return None
        self.caches.objects.claims_like(found).wrote(found)
        return found

    async def adopt(
        self,
        claim: Object,
        pool: Object | None,
        address: Object,
        before_naming: Callable[[], Awaitable[None]] | None = None,
    ) -> bool:
        """Make claim and address say that they belong together; return whether anything was written.

        The claim has its finalizer before the address has the claim's uid: a claim that goes leaves nothing. A claim
        for which moves wait, or that has its address, names that later: its object says the same. ``before_naming`` is
        done behind the finalizer; if it fails, the claim neither names the address nor says that it has it.
        """
        written = False
        position = position_of(address)
        assert position is not None, "only addresses that can be read are adopted"
        names = not has_finalizer(claim) or not (was_served(claim) or blocks_move(claim))
        if before_naming is not None:
            if not has_finalizer(claim):
                claim = await self._patch_claim(claim, finalizer_steps(claim, kind_of(claim).claim_finalizer))
                written = True
            await before_naming()
        if names and (steps := _metadata_steps(claim, position, is_picked=False)):
            claim = await self._patch_claim(claim, steps)
            written = True
        if patch := completing_patch(address, pool, claim):
            self.check(address)
            address = await self.client.patch(kind_of(address).address_type(address), address, patch)
            self.caches.objects.addresses_like(address).wrote(address)
            written = True
        return await self.say_served(claim, address) or written

    async def say_served(self, claim: Object, address: Object) -> bool:
        """Write on the claim which address it has; return whether it did not say so already."""
        kind = kind_of(claim)
        status = kind.served(claim, address, has_room=kind not in self._cramped)
        if status is None:
            return False
        patched = await self._patch_status(claim, status)
        # The server drops what its definition has no room for.
        is_whole = kind.served(patched, address, has_room=True) is None
        # Noted at each answer: the definition may be replaced by ours while the operator runs.
        (self._cramped.discard if is_whole else self._cramped.add)(kind)
        return True

    async def say_waiting(self, claim: Object, message: str) -> None:
        """Write on the claim that it waits for its pool, where its kind has a place for that; there is no error."""
        if (status := kind_of(claim).waiting(claim, message)) is not None:
            await self._patch_status(claim, status)

    async def say_refused(self, claim: Object, message: str, why: Unserved) -> bool:
        """Write on the claim why it has no address; return whether it did not say so already.

        A claim that had an address goes on naming it, since it waits for that one and for no other.
        """
        status = kind_of(claim).refused(claim, message, why, keeps=self.caches.records.may_be_given(claim))
        if status is None:
            return False
        await self._patch_status(claim, status)
        return True

    async def release(
        self, claim: Object, addresses: list[Object], before_going: Callable[[], Awaitable[None]] | None = None
    ) -> bool:
        """Delete the addresses of a claim that is going, then let the claim go; return whether it went.

        An address goes before its claim (D1). One that has finalizers of others stays, and its claim with it.
        ``before_going`` is done between the two; if it fails, the claim stays.
        """
        all_gone = True
        for address in addresses:
            # In this order: behind an address that stays, the others are deleted all the same.
            all_gone = await self.delete_address(address) and all_gone
        if not all_gone:
            return False
        if before_going is not None:
            await before_going()
        kind = kind_of(claim)
        if has_finalizer(claim):
            self.check(claim)
            patch = remove_finalizer(claim, kind.claim_finalizer)
            try:
                answer = await self.client.patch(kind.claim_type(claim), claim, patch)
            except ObjectMissing:
                # The claim went meanwhile: its finalizer was taken away by force.
                answer = GONE
            self.caches.objects.claims_like(claim).deleted(claim, answer)
        return True

    async def release_orphan(self, address: Object) -> bool:
        """Look a second time, at the server itself, and release an address that is nobody's; return whether it is gone.

        A claim that adopts it after that changes it, and then it is not deleted: the deletion names its version (KP4).
        """
        current = await self.read_address(address, key_of(address)[1])
        if current is None or version_of(current) != version_of(address):
            return False  # it has changed: the next look decides
        # The claims that own it as well as the claim that it names: they may differ, and each of them keeps it.
        found = [await self.read_claim(current, name) for name in sorted(claim_names_of(current))]
        if owner_of(current, ReadClaims(claim for claim in found if claim is not None)) is not None:
            return False  # the cache is behind
        if self.note_released is not None:
            await self.note_released([current])
        return await self.delete_address(current)

    async def delete_address(self, address: Object) -> bool:
        """Delete an address object, and let it go if no other finalizer keeps it; return whether it is gone.

        It is deleted before its finalizer goes: from then on everybody sees that it is being released, so that no new
        claim of the same name adopts it (KD8).
        """
        try:
            return await self._delete_address(address)
        except ObjectMissing:
            self.caches.objects.addresses_like(address).deleted(address, GONE)
            return True

    async def _delete_address(self, address: Object) -> bool:
        kind, known = kind_of(address), self.caches.objects.addresses_like(address)
        type = kind.address_type(address)
        if not is_terminating(address):
            self.check(address)
            answer = await self.client.delete(type, address)
            known.deleted(address, answer)
            # The answer is a Status, or an object that nothing keeps: either way the address is gone.
            if not is_terminating(answer) or not finalizers_of(answer):
                return True
            address = answer
        if kind.address_finalizer in finalizers_of(address):
            self.check(address)
            answer = await self.client.patch(type, address, remove_finalizer(address, kind.address_finalizer))
            known.deleted(address, answer)
            address = answer
        return not finalizers_of(address)

    async def _patch_claim(self, claim: Object, steps: list[Step]) -> Object:
        if not steps:
            return claim
        self.check(claim)
        patched = await self.client.patch(kind_of(claim).claim_type(claim), claim, guarded(claim, *steps))
        self.caches.objects.claims_like(claim).wrote(patched)
        return patched

    async def _patch_status(self, claim: Object, status: Object) -> Object:
        self.check(claim)
        patch = status_patch(claim, status)
        type = kind_of(claim).claim_type(claim)
        patched = await self.client.patch(type, claim, patch, content_type=MERGE_PATCH, subresource="status")
        self.caches.objects.claims_like(claim).wrote(patched)
        return patched


def has_finalizer(claim: Object) -> bool:
    """Return whether a claim cannot go without being released."""
    return kind_of(claim).claim_finalizer in finalizers_of(claim)


def _metadata_steps(claim: Object, position: int, *, is_picked: bool) -> list[Step]:
    """Return what must be added to a claim's metadata: the finalizer, its address, and for which uid it was picked.

    An address that was adopted was not picked here, so it is never exchanged for another. Some claims get a label, too;
    and a move does not wait for the claim any more.
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
    # A JSON patch cannot add to a map that is not there.
    if not annotations:
        steps = [{"op": "add", "path": "/metadata/annotations", "value": wanted}]
    if blocks_move(claim):
        steps.append(UNBLOCK)
    if kind_of(claim).lacks_label(claim):
        steps += label_steps(claim, kind_of(claim).move_label)
    # The server refuses a new finalizer on an object that is being deleted, and with it the whole patch.
    return steps if is_terminating(claim) else steps + finalizer_steps(claim, kind_of(claim).claim_finalizer)
