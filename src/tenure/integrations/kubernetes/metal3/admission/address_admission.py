"""What an IPAddress may say: no two objects may hold one address."""

from collections.abc import Iterable
from itertools import islice

from tenure.integrations.kubernetes.metal3.admission.admission_view import AdmissionView, Judgement, in_its_namespace
from tenure.integrations.kubernetes.metal3.admission.claim_admission import is_other_reference
from tenure.integrations.kubernetes.metal3.admission.pool_warnings import is_object_name
from tenure.integrations.kubernetes.metal3.objects.address_objects import claim_name_of, position_of
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import kind_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import field, text
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolSpec, SpecFault, read_address
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.integrations.kubernetes.runtime.webhooks.webhook_host import AdmissionRequest


def judge_address(request: AdmissionRequest, view: AdmissionView) -> Judgement:
    """Judge an address that is created or changed."""
    address = request.object or {}
    # No holders are asked: an address cannot change, and a doubled object must be able to lose its finalizers.
    if request.before is not None:
        return Judgement(_changes(address, request.before), [])
    faults = [
        SpecFault(f"spec.{'.'.join(path)}", "", "cannot be empty")
        for path in (("pool", "name"), ("claim", "name"), ("address",))
        if not field(address, "spec", *path)
    ]
    return _judged_place(request, view, faults)


def judge_cluster_api_address(request: AdmissionRequest, view: AdmissionView) -> Judgement:
    """Judge an address of Cluster API's, whose fields are judged by its own webhook: it must not be held by another."""
    is_ours = kind_of(request.object or {}).pool_of(request.object or {}) is not None
    return _judged_place(request, view, []) if is_ours and request.before is None else Judgement([], [])


def _judged_place(request: AdmissionRequest, view: AdmissionView, faults: list[SpecFault]) -> Judgement:
    """Judge where a new address is: whether another object or claim has that place."""
    address = in_its_namespace(request)
    position = None
    if written := field(address, "spec", "address"):
        position = read_address(written, "spec.address", faults)
    kind = kind_of(address)
    pool = kind.pool_of(address)
    if position is None or pool is None:
        return Judgement(faults, [])
    if not view.is_open_to(pool, request.namespace):
        reason = f"{pool} does not serve namespace {request.namespace} (its spec.tenure.namespaces)"
        return Judgement([*faults, SpecFault("spec.pool.namespace", pool.namespace, reason)], [])
    faults += _other_unit(address, position, view.spec_of(pool))
    holders = view.addresses_at(pool, position)
    claims = view.claims_at(pool, position)
    claim = ClaimId(kind.claim.kind, request.namespace, kind.claim_of(address))
    return Judgement(
        faults + (_doubles(address, holders) or _promised(address, claim, claims)),
        _warnings(address, claim, view.addresses_for(claim)),
    )


def _other_unit(address: Object, position: int, spec: PoolSpec) -> list[SpecFault]:
    """Return why an object is no prefix that its pool hands out: all of them have one length (KD18)."""
    if not spec.gives_prefixes:
        return []
    length, written = spec.options.prefix, field(address, "spec", "prefix")
    if written != length:
        return [SpecFault("spec.prefix", written, f"its pool hands out prefixes of length {length}, and no others")]
    if prefix := spec.prefix_around(position):
        return [SpecFault("spec.address", field(address, "spec", "address"), f"is inside of {prefix}")]
    return []


def _changes(address: Object, before: Object) -> list[SpecFault]:
    """Return what was changed that cannot be; prefix, gateway and DNS servers can (B6)."""
    faults = []
    written = field(address, "spec", "address")
    if written != field(before, "spec", "address") and not _is_same(address, before):
        faults.append(SpecFault("spec.address", written, "cannot be modified"))
    return faults + [
        SpecFault(f"spec.{name}", field(address, "spec", name), "cannot be modified")
        for name in ("pool", "claim")
        if is_other_reference(address, before, name)
    ]


def _is_same(address: Object, before: Object) -> bool:
    """Return whether two objects mean one address by two spellings."""
    position = position_of(address)
    return position is not None and position == position_of(before)


def _doubles(address: Object, holders: Iterable[Object]) -> list[SpecFault]:
    """Return an error for each object that holds the address already.

    Metal3 accepts a second object for an address and then lists one of the two claims: two machines would get one
    address. An object's name cannot prevent it, since names are free and there are two kinds.
    """
    return [
        SpecFault(
            "spec.address",
            field(address, "spec", "address"),
            f"is held by IPAddress {text(other, 'metadata', 'name')} for {kind_of(other).claim.kind} "
            f"{claim_name_of(other)}",
        )
        for other in holders
        if not _is_itself(other, address)
    ]


def _promised(address: Object, claim: ClaimId, claims: Iterable[ClaimId]) -> list[SpecFault]:
    """Return an error for each other claim that is about to get the address: its object may be on its way."""
    return [
        SpecFault("spec.address", field(address, "spec", "address"), f"is the address of {other.kind} {other.name}")
        for other in claims
        if other != claim
    ]


def _warnings(address: Object, claim: ClaimId, others: Iterable[Object]) -> list[str]:
    """Return a warning if the claim has another address, or if no claim can have its name, as in the seed's example."""
    if claim.name and not is_object_name(claim.name):
        return [f"no {claim.kind} can have the name {claim.name[:100]}; the address is kept, and nobody gets it"]
    names = (text(other, "metadata", "name") for other in others if not _is_itself(other, address))
    return [f"{claim.kind} {claim.name} has IPAddress {name} already" for name in islice(names, 1)]


def _is_itself(other: Object, address: Object) -> bool:
    """Return whether a known object has the name of the new one: the server refuses that better than we do."""
    is_named_so = field(other, "metadata", "name") == field(address, "metadata", "name")
    return is_named_so and kind_of(other) is kind_of(address)
