"""What an IPAddress may say: who makes one by hand must not give an address twice."""

from collections.abc import Iterable

from tenure.integrations.kubernetes.metal3.address_objects import claim_name_of, is_cluster_apis, position_of
from tenure.integrations.kubernetes.metal3.admission_view import AdmissionView, Judgement
from tenure.integrations.kubernetes.metal3.claim_admission import is_other_reference
from tenure.integrations.kubernetes.metal3.ipam_kinds import field, text
from tenure.integrations.kubernetes.metal3.pool_spec import Fault, read_address
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.integrations.kubernetes.runtime.webhook_host import AdmissionRequest


def judge_address(request: AdmissionRequest, view: AdmissionView) -> Judgement:
    """Judge an address that is created or changed."""
    address = request.object or {}
    if request.before is not None:
        return Judgement(_changes(address, request.before), [])
    faults: list[Fault] = []
    for path in (("pool", "name"), ("claim", "name"), ("address",)):
        if not field(address, "spec", *path):
            faults.append(Fault(f"spec.{'.'.join(path)}", "", "cannot be empty"))
    position = None
    if written := field(address, "spec", "address"):
        position = read_address(written, "spec.address", faults)
    pool = text(address, "spec", "pool", "name")
    if position is None or not pool:
        return Judgement(faults, [])
    others = [
        other
        for other in view.addresses_of(request.namespace, pool)
        if is_cluster_apis(other) or text(other, "metadata", "name") != text(address, "metadata", "name")
    ]
    return Judgement(faults + _doubles(address, position, others), _warnings(address, others))


def _changes(address: Object, before: Object) -> list[Fault]:
    """Return what was changed that cannot be; prefix, gateway and DNS servers can (B6)."""
    faults = []
    written = field(address, "spec", "address")
    if written != field(before, "spec", "address") and not _is_same(address, before):
        faults.append(Fault("spec.address", written, "cannot be modified"))
    return faults + [
        Fault(f"spec.{name}", field(address, "spec", name), "cannot be modified")
        for name in ("pool", "claim")
        if is_other_reference(address, before, name)
    ]


def _is_same(address: Object, before: Object) -> bool:
    """Return whether two objects mean one address by two spellings."""
    position = position_of(address)
    return position is not None and position == position_of(before)


def _doubles(address: Object, position: int, others: Iterable[Object]) -> list[Fault]:
    """Return who holds the address already.

    Metal3 accepts a second object for an address and then lists one of the two claims: two machines would get one
    address. An object's name cannot prevent it, since names are free and there are two kinds.
    """
    return [
        Fault(
            "spec.address",
            field(address, "spec", "address"),
            f"is held by IPAddress {text(other, 'metadata', 'name')} for claim {claim_name_of(other)}",
        )
        for other in others
        if position_of(other) == position
    ]


def _warnings(address: Object, others: Iterable[Object]) -> list[str]:
    claim = text(address, "spec", "claim", "name")
    return [
        f"spec.claim.name: claim {claim} has IPAddress {text(other, 'metadata', 'name')} already"
        for other in others
        if not is_cluster_apis(other) and claim_name_of(other) == claim
    ][:1]
