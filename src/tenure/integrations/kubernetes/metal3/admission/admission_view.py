"""What webhooks know of the cluster besides the object that they are asked about, and how they answer."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId, ClaimKind
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import field, is_terminating, mapping
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolSpec, SpecFault
from tenure.integrations.kubernetes.runtime.patches import Step, finalizer_steps, label_steps, pointer
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.integrations.kubernetes.runtime.webhooks.webhook_host import AdmissionRequest


class AdmissionView(Protocol):
    """The operator's caches and settings, as webhooks need them; every replica has them, the leader is not asked."""

    @property
    def synced(self) -> bool:
        """Whether the caches hold all that the API server holds."""

    @property
    def default_strategy(self) -> str:
        """The strategy of a new pool that names none (KS6)."""

    @property
    def allow_outside(self) -> bool:
        """Whether pre-allocations may lie outside the entries of a pool that says nothing of it (A10)."""

    def serves(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Return whether the operator works in a namespace, on objects with such labels."""

    def serves_kind(self, kind: ClaimKind) -> bool:
        """Return whether claims of a kind are served; a claim of another kind would keep our finalizer for ever."""

    def addresses_of(self, pool: PoolId) -> Iterable[Object]:
        """Return the IPAddress objects, of both groups, that name a pool. O(n)."""

    def addresses_at(self, pool: PoolId, position: int) -> Iterable[Object]:
        """Return the IPAddress objects, of both groups, that hold an address of a pool, or the prefix around it."""

    def claims_at(self, pool: PoolId, position: int) -> Iterable[ClaimId]:
        """Return the claims, of both kinds, that have an address of a pool, or are about to get it."""

    def spec_of(self, pool: PoolId) -> PoolSpec:
        """Return what a pool says; nothing is in it where there is no such pool."""

    def is_open_to(self, pool: PoolId, namespace: str) -> bool:
        """Return whether a pool may be claimed from a namespace: its own, one that it names, or any."""

    def overlap_of(self, pool: PoolId, spec: PoolSpec) -> str:
        """Return what a pool of such a ``spec`` shares with others of its network, for people; empty if nothing."""

    def addresses_for(self, claim: ClaimId) -> Iterable[Object]:
        """Return the IPAddress objects, of the claim's group, that name a claim."""

    def claim(self, id: ClaimId) -> Object | None:
        """Return a claim, or nothing."""

    def claim_of_uid(self, uid: str) -> Object | None:
        """Return the claim of a uid, or nothing."""


class Defaults(NamedTuple):
    """What is changed in an object before it is stored, and what its author should know of that."""

    steps: list[Step]
    warnings: list[str]


class Judgement(NamedTuple):
    """What is wrong with an object, and what is odd but accepted."""

    faults: list[SpecFault]
    warnings: list[str]
    refusal: str = ""
    """Why nothing is wrong with the object, and it cannot be so all the same; empty if it can."""


def is_judged(request: AdmissionRequest) -> bool:
    """Return whether the rules for a ``spec`` apply to a request.

    They do not where an update leaves the ``spec`` as it is, nor to objects that are to be deleted. An object that was
    invalid before the webhook came could otherwise never lose its finalizers.
    """
    if request.before is None:
        return True
    after = request.object or {}
    if mapping(after, "metadata") and is_terminating(after):
        return False
    return bool(field(after, "spec") != field(request.before, "spec"))


def in_its_namespace(request: AdmissionRequest) -> Object:
    """Return the object of a request with the namespace of that, which a new object need not name."""
    object = request.object or {}
    metadata = mapping(object, "metadata")
    return object if not metadata else {**object, "metadata": {"namespace": request.namespace, **metadata}}


def pool_asked_about(request: AdmissionRequest) -> PoolId:
    """Return the pool that a request is about."""
    return PoolId(request.namespace, request.name, request.kind)


def finalizer_step(object: Object, finalizer: str) -> list[Step]:
    """Return the step that gives a new object a finalizer; none, if the object has it."""
    metadata = mapping(object, "metadata")
    if not metadata or not isinstance(metadata.get("finalizers") or [], list):
        return []
    return finalizer_steps(object, finalizer)


def annotation_step(object: Object, name: str) -> list[Step]:
    """Return the step that gives a new object an annotation without a value; none, if the object has it."""
    metadata = mapping(object, "metadata")
    annotations = metadata.get("annotations") or {}
    if not metadata or not isinstance(annotations, dict) or name in annotations:
        return []
    if not annotations:
        return [{"op": "add", "path": "/metadata/annotations", "value": {name: ""}}]
    return [{"op": "add", "path": pointer("metadata", "annotations", name), "value": ""}]


def label_step(object: Object, label: str) -> list[Step]:
    """Return the step that gives a new object a label; none, if the object has it or the label has no name."""
    metadata = mapping(object, "metadata")
    if not label or not metadata or not isinstance(metadata.get("labels") or {}, dict):
        return []
    return label_steps(object, label)
