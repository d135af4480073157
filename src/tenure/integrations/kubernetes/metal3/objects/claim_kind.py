"""A kind of claims, with the kind of addresses that it gets: all in which Metal3's and Cluster API's differ.

A pool serves both kinds from one book. Whatever says, reads or writes a field that only one of them has is here, and in
``metal3_claims`` and ``cluster_api_claims``; nothing else asks which kind a claim is of. ``in_cluster_claims`` are
Cluster API's claims on another provider's pools.
"""

import enum
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import ClassVar, NamedTuple

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import CLUSTER_NAME, labels_of, text
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId, Provider
from tenure.integrations.kubernetes.metal3.objects.pool_spec import AddressOptions
from tenure.integrations.kubernetes.runtime.resource_types import Key, Object, ResourceType, key_of, uid_of


class Reference(NamedTuple):
    """The pool that a claim names."""

    pool: PoolId
    is_elsewhere: bool
    """Whether it is in another namespace than the claim; then it serves the claim only if it says so (C28)."""


class ClaimId(NamedTuple):
    """Which claim: two kinds of claims may have one name."""

    kind: str
    namespace: str
    name: str

    @property
    def key(self) -> Key:
        """Return where the claim is found among its kind."""
        return self.namespace, self.name

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class Unserved(enum.StrEnum):
    """Why a claim has no address, in Cluster API's words."""

    ALLOCATION_FAILED = "AllocationFailed"
    POOL_EXHAUSTED = "PoolExhausted"
    POOL_NOT_READY = "PoolNotReady"


class ClaimKind(ABC):
    """One of the two kinds. The statuses it writes are fields of a merge patch; nothing means: it says so already."""

    claim: ClassVar[ResourceType]
    address: ClassVar[ResourceType]
    claim_finalizer: ClassVar[str]
    address_finalizer: ClassVar[str]
    holder_prefix: ClassVar[str]
    """What tells its address objects from those of the other kind in a book: two objects may have one name."""
    needs_cluster: ClassVar[bool]
    """Whether a claim that names a cluster is left alone until there is one (F6)."""

    provider: ClassVar[Provider] = Provider.METAL3
    """Whose manager would serve such claims, if ours did not."""

    move_label: ClassVar[str] = ""
    """A label that each claim needs so that clusterctl moves it; empty, where the definition of the kind has it."""

    def lacks_label(self, claim: Object) -> bool:
        """Return whether clusterctl would leave a claim behind that has no owner, as one that a user made (KD6)."""
        return bool(self.move_label) and self.move_label not in labels_of(claim)

    def claim_type(self, claim: Object) -> ResourceType:
        """Return the type of a claim, in the version that the server serves it in."""
        return replace(self.claim, version=_version(claim) or self.claim.version)

    def address_type(self, object: Object) -> ResourceType:
        """Return the type of an address, or of the address of a claim, in the version that the server serves."""
        return replace(self.address, version=_version(object) or self.address.version)

    def id_of(self, claim: Object) -> ClaimId:
        """Return which claim it is."""
        return ClaimId(self.claim.kind, *key_of(claim))

    def cluster_of(self, claim: Object) -> str:
        """Return the name of the claim's own cluster; empty if it names none (KD11)."""
        return labels_of(claim).get(CLUSTER_NAME) or ""

    def owners(self, pool: Object | None, claim: Object) -> list[Object]:
        """Return an address's references to its pool and its claim, in this order (C2).

        An owner must be in the namespace of what it owns, or in none: the garbage collector takes any other for gone.
        """
        is_owner = pool is not None and key_of(pool)[0] in ("", key_of(claim)[0])
        references = [self._pool_owner(pool)] if pool is not None and is_owner else []
        return [*references, self._claim_owner(claim)]

    @abstractmethod
    def reference_of(self, claim: Object) -> Reference | None:
        """Return the pool that a claim is for; nothing if it names none, or something that is no IPPool (F4)."""

    def names_no_pool(self, object: Object) -> bool:
        """Return whether a claim or an address has no name where its pool should be; a definition may require one."""
        return False

    @abstractmethod
    def pool_of(self, address: Object) -> PoolId | None:
        """Return the pool that an address belongs to; nothing if it belongs to none that is served here."""

    @abstractmethod
    def claim_of(self, address: Object) -> str:
        """Return the name of the claim that an address is for."""

    @abstractmethod
    def address_fields(self, pool: PoolId, claim: ClaimId, address: str, options: AddressOptions) -> Object:
        """Return the ``spec`` of a new address."""

    @abstractmethod
    def given(self, claim: Object) -> str:
        """Return the name of the address that the claim's status names; empty if it names none."""

    @abstractmethod
    def served(self, claim: Object, address: Object, *, has_room: bool) -> Object | None:
        """Return the status of a claim that has an address; ``has_room``: whether the definition has ``tenure``."""

    @abstractmethod
    def refused(self, claim: Object, message: str, why: Unserved, *, keeps: bool) -> Object | None:
        """Return the status of a claim that is refused; ``keeps``: whether it goes on naming its address."""

    @abstractmethod
    def waiting(self, claim: Object, message: str) -> Object | None:
        """Return the status of a claim that waits for its pool: it has no address, and there is no error."""

    @abstractmethod
    def _pool_owner(self, pool: Object) -> Object: ...

    @abstractmethod
    def _claim_owner(self, claim: Object) -> Object: ...


def owner_reference(kind: ResourceType, owner: Object, **flags: bool) -> Object:
    """Return a reference to an owner."""
    name = key_of(owner)[1]
    return {"apiVersion": kind.api_version, "kind": kind.kind, "name": name, "uid": uid_of(owner), **flags}


def _version(object: Object) -> str:
    """Return the version that an object says it is of."""
    return text(object, "apiVersion").partition("/")[2]
