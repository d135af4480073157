"""What a claim may say, and what it gets before it is stored."""

from tenure.integrations.kubernetes.metal3.admission.admission_view import (
    AdmissionView,
    Defaults,
    Judgement,
    annotation_step,
    finalizer_step,
    in_its_namespace,
    is_judged,
    label_step,
)
from tenure.integrations.kubernetes.metal3.objects.address_objects import claim_id_of, owner_uids
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId, Reference
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import kind_of
from tenure.integrations.kubernetes.metal3.objects.claim_reading import claim_ranges, reference_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    BLOCK_MOVE,
    IP_CLAIM,
    IP_POOL,
    OWN_ADDRESS,
    PICKED_FOR,
    WISHED_ADDRESS,
    field,
    mapping,
    text,
)
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolSpec, SpecFault, read_address
from tenure.integrations.kubernetes.runtime.patches import pointer
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.integrations.kubernetes.runtime.webhooks.webhook_host import AdmissionRequest
from tenure.kernel.addressing.ranges import parse_range
from tenure.kernel.errors import Invalid


def default_claim(request: AdmissionRequest, view: AdmissionView) -> Defaults:
    """Return what a new claim gets: finalizer, label, mark; and what it loses: an address that a copied text has."""
    claim = in_its_namespace(request)
    reference = reference_of(claim)
    # The claim of another controller, or for a pool that it cannot have, would keep the finalizer for ever (KP3).
    if request.before is not None or reference is None or not view.is_open_to(reference.pool, request.namespace):
        return Defaults([], [])
    steps = []
    is_ours = view.serves_kind(kind_of(claim)) and view.serves(request.namespace, mapping(claim, "metadata", "labels"))
    if is_ours:
        steps += finalizer_step(claim, kind_of(claim).claim_finalizer)
        steps += label_step(claim, kind_of(claim).move_label)
    holder = _holder_of_copy(claim, reference, view)
    if is_ours and (holder is not None or OWN_ADDRESS not in mapping(claim, "metadata", "annotations")):
        steps += annotation_step(claim, BLOCK_MOVE)  # a move is to wait until the claim names its address (KD6)
    if holder is None:
        return Defaults(steps, [])
    annotations, id = mapping(claim, "metadata", "annotations"), claim_id_of(holder)
    for name in (OWN_ADDRESS, PICKED_FOR):
        if name in annotations:
            steps.append({"op": "remove", "path": pointer("metadata", "annotations", name)})
    warning = (
        f"metadata.annotations.{OWN_ADDRESS}: is dropped, since IPAddress {text(holder, 'metadata', 'name')} holds "
        f"{annotations[OWN_ADDRESS]} for {id.kind} {reference.pool.listed(id.key)}"
    )
    return Defaults(steps, [warning])


def _holder_of_copy(claim: Object, reference: Reference, view: AdmissionView) -> Object | None:
    """Return the IPAddress that holds the address of a claim's annotation for another claim, if its text is a copy.

    A claim that was moved here keeps its annotation, whoever has its address, and waits for that: its machine runs with
    it (KD6). It says for which uid the address was picked elsewhere, or, if it was adopted there, for none.
    """
    position = read_address(field(claim, "metadata", "annotations", OWN_ADDRESS), "", [])
    picked_for = text(claim, "metadata", "annotations", PICKED_FOR)
    if position is None or not picked_for:
        return None
    # It may have no name yet, which the server makes up then.
    id = ClaimId(kind_of(claim).claim.kind, *(text(claim, "metadata", part) for part in ("namespace", "name")))
    holders = view.addresses_at(reference.pool, position)
    others = [each for each in holders if claim_id_of(each) != id]
    is_copy = view.claim_of_uid(picked_for) or any(_is_of(each, picked_for, view) for each in others)
    return others[0] if others and is_copy else None


def _is_of(address: Object, picked_for: str, view: AdmissionView) -> bool:
    """Return whether an address is of a claim that has this uid, or that was moved here with it."""
    holder = view.claim(claim_id_of(address))
    brought = text(holder, "metadata", "annotations", PICKED_FOR) if holder is not None else ""
    return picked_for == brought or picked_for in owner_uids(address)


def judge_claim(request: AdmissionRequest, view: AdmissionView) -> Judgement:
    """Judge a claim that is created or changed."""
    claim, before = request.object or {}, request.before
    faults: list[SpecFault] = []
    if before is not None:
        _judge_changes(claim, before, faults)
    elif not text(claim, "spec", "pool", "name"):
        faults.append(SpecFault("spec.pool.name", field(claim, "spec", "pool", "name") or "", "cannot be empty"))
    if is_judged(request):
        _judge_tenure(claim, faults)
    _judge_annotations(claim, before, faults)
    if is_judged(request) or _annotation(claim, WISHED_ADDRESS) != _annotation(before, WISHED_ADDRESS):
        _judge_two_addresses(claim, faults)
        _judge_ranges(claim, faults)
    return Judgement(faults, [] if before is not None else _warnings(request, view))


def _warnings(request: AdmissionRequest, view: AdmissionView) -> list[str]:
    """Return a warning where a claim names a pool that does not serve its namespace; the pool may, later on (C28).

    And where it names a pool of another kind, of which nobody else may know: it would wait without a word.
    """
    claim = in_its_namespace(request)
    reference, kind = reference_of(claim), text(claim, "spec", "pool", "kind")
    if kind not in ("", IP_POOL.kind):
        asked = f"an {IP_CLAIM.kind} asks an {IP_POOL.kind}, and {kind} is none"
        return [f"spec.pool.kind: this operator leaves the claim alone: {asked}"]
    if reference is None or view.is_open_to(reference.pool, request.namespace):
        return []
    return [f"spec.pool: {reference.pool} does not serve namespace {request.namespace} (its spec.tenure.namespaces)"]


def judge_cluster_api_claim(request: AdmissionRequest, view: AdmissionView) -> Judgement:
    """Judge a claim of Cluster API's, whose fields are judged by its own webhook; those of other pools are not ours."""
    faults: list[SpecFault] = []
    claim = in_its_namespace(request)
    reference = reference_of(claim)
    if reference is None:
        return Judgement(faults, [])
    _judge_annotations(claim, request.before, faults)
    _judge_place(claim, request.before, view.spec_of(reference.pool), faults)
    return Judgement(faults, [])


def _judge_place(claim: Object, before: Object | None, spec: PoolSpec, faults: list[SpecFault]) -> None:
    """Note an address that is asked for and lies inside of a prefix of its pool.

    What a claim names as its own is not judged: a claim that is moved here arrives, and says then why it waits.
    """
    asked = _annotation(claim, WISHED_ADDRESS)
    position = read_address(asked, "", []) if asked != _annotation(before, WISHED_ADDRESS) else None
    if position is not None and (prefix := spec.prefix_around(position)):
        faults.append(SpecFault(f"metadata.annotations.{WISHED_ADDRESS}", asked, f"is inside of {prefix}"))


def _judge_annotations(claim: Object, before: Object | None, faults: list[SpecFault]) -> None:
    """Note annotations that are new, or changed, and no addresses."""
    for name in (WISHED_ADDRESS, OWN_ADDRESS):
        value = _annotation(claim, name)
        # A value that stays is not judged: a wrong value from before the webhook would forbid every other change, also
        # of finalizers.
        if value and value != _annotation(before, name):
            read_address(value, f"metadata.annotations.{name}", faults)


def is_other_reference(object: Object, before: Object, name: str) -> bool:
    """Return whether a reference names another object than before: by name, namespace and kind (B2)."""
    return any(
        (field(object, "spec", name, part) or "") != (field(before, "spec", name, part) or "")
        for part in ("name", "namespace", "kind")
    )


def _annotation(claim: Object | None, name: str) -> object:
    return field(claim or {}, "metadata", "annotations", name)


def _judge_changes(claim: Object, before: Object, faults: list[SpecFault]) -> None:
    if is_other_reference(claim, before, "pool"):
        faults.append(SpecFault("spec.pool", field(claim, "spec", "pool"), "cannot be modified"))
    tenure = field(claim, "spec", "tenure")
    # An address was picked by what the claim asked for then.
    if mapping(before, "spec", "tenure") and tenure != field(before, "spec", "tenure"):
        faults.append(SpecFault("spec.tenure", tenure, "cannot be modified"))


def _judge_tenure(claim: Object, faults: list[SpecFault]) -> None:
    tenure = mapping(claim, "spec", "tenure")
    for number, each in enumerate(tenure.get("ranges") or ()):
        try:
            parse_range(str(each))
        except Invalid as error:
            faults.append(SpecFault(f"spec.tenure.ranges[{number}]", each, str(error).removeprefix("range: ")))
    if tenure.get("address"):
        read_address(tenure["address"], "spec.tenure.address", faults)


def _judge_ranges(claim: Object, faults: list[SpecFault]) -> None:
    """Note an address that is asked for and does not lie where it must."""
    try:
        ranges = claim_ranges(claim)
    except Invalid:
        # What is no range is refused with the ``spec`` (``_judge_tenure``).
        return
    places = {
        "spec.tenure.address": field(claim, "spec", "tenure", "address"),
        f"metadata.annotations.{WISHED_ADDRESS}": _annotation(claim, WISHED_ADDRESS),
    }
    for place, asked in places.items():
        position = read_address(asked, "", [])
        if ranges and position is not None and not any(position in each for each in ranges):
            faults.append(SpecFault(place, asked, "lies outside of spec.tenure.ranges"))


def _judge_two_addresses(claim: Object, faults: list[SpecFault]) -> None:
    """Note a field and an annotation that ask for two addresses."""
    asked, annotated = field(claim, "spec", "tenure", "address"), _annotation(claim, WISHED_ADDRESS)
    positions = [read_address(each, "", []) for each in (asked, annotated)]
    # Compared as addresses: one address has many spellings.
    if None not in positions and positions[0] != positions[1]:
        reason = f"differs from annotation {WISHED_ADDRESS}, {annotated}; write only one of them"
        faults.append(SpecFault("spec.tenure.address", asked, reason))
