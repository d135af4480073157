"""What users of a pool asked for and saw, written down as the history that the checker of the stores explains.

A claim is a call: it is made when the user begins to create it, and answered when its status names an address. Its
deletion is a call as well, answered when the claim is gone. An address object is a tenancy. So the checker's promises
are judged by what users of Kubernetes see: no address for two at once, nothing lost, nothing that nobody asked for.
A witness looks at the objects besides, whether anybody was told of them or not.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from tenure.integrations.kubernetes.metal3.objects.address_objects import owner_uids
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimKind
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import kind_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import text
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable, ObjectExists
from tenure.integrations.kubernetes.runtime.object_cache import Delta
from tenure.integrations.kubernetes.runtime.resource_types import Object, uid_of, version_of
from tests.integrations.kubernetes.metal3.ipam_user import AddressWitness, IpamUser, following
from tests.proof.checking import Finding, check_calls
from tests.proof.history import NEVER, Call, History, Tenancy
from tests.proof.plan import Plan

POOL = "p"
AGAIN_S = 0.1


@dataclass
class ClaimLife:
    """What a user knows of a claim, with the times of this process."""

    kind: ClaimKind
    name: str
    asked: float
    uid: str = ""
    address: str = ""
    """What the claim itself says, by the name of the address object."""
    version: int = 0
    """In which version it said so first."""
    served: float = NEVER
    dismissed: float = NEVER
    gone: float = NEVER


@dataclass
class ClaimChronicle:
    """Users that create and delete claims, and all that they see."""

    user: IpamUser
    plan: Plan
    lives: dict[str, ClaimLife] = field(default_factory=dict)
    """By the uid of the claim."""
    tenancies: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    """Address objects by their uids: the uid of the claim, the address, and the version in which it was seen first."""
    witness: AddressWitness = field(default_factory=AddressWitness)

    async def create(self, kind: ClaimKind, name: str, *, is_kept: bool) -> ClaimLife:
        """Create a claim, also where the server is away meanwhile; ``is_kept``: with its finalizer, as webhooks do."""
        life = ClaimLife(kind, name, time.monotonic())
        finalizers = [kind.claim_finalizer] if is_kept else []
        while True:
            try:
                made = await self.user.claim_of(kind, name, POOL, finalizers=finalizers)
                break
            except ObjectExists:
                # The answer to an earlier try was lost; names are used once.
                made = await self._read(kind, name)
                break
            except (ApiError, ApiUnreachable):
                await asyncio.sleep(AGAIN_S)
        life.uid = uid_of(made)
        self.lives[life.uid] = life
        return life

    async def delete(self, life: ClaimLife) -> None:
        """Delete a claim, also where the server is away meanwhile."""
        life.dismissed = time.monotonic()
        while True:
            try:
                return await self.user.delete(life.kind.claim, life.name)
            except (ApiError, ApiUnreachable):
                await asyncio.sleep(AGAIN_S)

    async def _read(self, kind: ClaimKind, name: str) -> Object:
        while True:
            try:
                return await self.user.client.get(kind.claim.path(self.user.namespace, name))
            except ApiUnreachable:
                await asyncio.sleep(AGAIN_S)

    def claim_changed(self, delta: Delta) -> None:
        """Note that a claim was served, or is gone."""
        now = time.monotonic()
        life = self.lives.get(uid_of(delta.after or delta.before or {}))
        if life is None:
            return
        if delta.after is None:
            life.gone = now
        elif given := kind_of(delta.after).given(delta.after):
            life.served = min(life.served, now)
            life.address = life.address or given.removeprefix(f"{POOL}-").replace("-", ".")
            life.version = life.version or version_of(delta.after)

    def address_changed(self, delta: Delta) -> None:
        """Note an address object."""
        address = delta.after or delta.before or {}
        owner = next(iter(owner_uids(address)), "")
        self.tenancies.setdefault(uid_of(address), (owner, text(address, "spec", "address"), version_of(address)))

    async def until_seen(self, left: list[Object], within_s: float) -> None:
        """Wait until the watches have brought the end, too: those of two kinds have no order among them."""
        async with asyncio.timeout(within_s):
            while self.witness.living != {uid_of(each) for each in left}:  # noqa: ASYNC110 - a server is followed
                await asyncio.sleep(AGAIN_S)

    def findings(self, left: list[Object]) -> list[Finding]:
        """Judge everything by what is left at the end, and by what was there at any time."""
        self.witness.judge_kinds()
        return self._unexplained(left) + [Finding("witnessed", each) for each in self.witness.breaches]

    def _unexplained(self, left: list[Object]) -> list[Finding]:
        by_claim: dict[str, list[Tenancy]] = {}
        by_object: dict[str, Tenancy] = {}
        for uid, (owner, address, version) in self.tenancies.items():
            tenancy = Tenancy(POOL, address, version, owner, "", f"create-{owner}")
            by_object[uid] = tenancy
            by_claim.setdefault(owner, []).append(tenancy)
        calls = [call for life in self.lives.values() for call in _calls(life, by_claim.get(life.uid, []))]
        final = [by_object[uid_of(each)] for each in left]
        return check_calls(History(calls, final), self.plan)

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """See everything for as long as the block."""
        on_claim = [self.claim_changed, self.witness.claim_changed]
        async with following(self.user, on_claim, [self.address_changed, self.witness.address_changed]):
            yield


def _calls(life: ClaimLife, tenancies: list[Tenancy]) -> list[Call]:
    """Return a claim's life as calls: one that asks for an address, and one that gives it back."""
    asks = {"network": POOL, "owner": life.uid}
    if not tenancies and life.address and life.dismissed < NEVER:
        # The address came and went while its watch was broken; the claim, which has another watch, was seen with it.
        tenancies = [Tenancy(POOL, life.address, life.version, life.uid, "", f"create-{life.uid}")]
    rows = tenancies if life.served < NEVER else []
    calls = [Call(f"create-{life.uid}", "allocate", asks, life.asked, life.served, rows=rows)]
    if life.dismissed < NEVER:
        calls.append(
            Call(f"delete-{life.uid}", "release_owner", {"owner": life.uid}, life.dismissed, life.gone, rows=tenancies)
        )
    return calls
