"""What pools of the in-cluster provider may say, when they may be deleted, and what they get before they are stored.

The answers are those of its own webhooks, also in their codes: 422 for a ``spec`` that cannot be served, 400 for a
change or a deletion that would take addresses from claims.
"""

from collections.abc import Iterator

from tenure.integrations.kubernetes.metal3.admission.admission_view import (
    AdmissionView,
    Defaults,
    Judgement,
    finalizer_step,
    is_judged,
    pool_asked_about,
)
from tenure.integrations.kubernetes.metal3.objects.address_objects import position_of
from tenure.integrations.kubernetes.metal3.objects.in_cluster_spec import unit_length
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    SKIPS_DELETE_CHECK,
    annotations_of,
    field,
    mapping,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kinds import POOL_KINDS, read_pool
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolSpec
from tenure.integrations.kubernetes.metal3.objects.reservations import reserved_in
from tenure.integrations.kubernetes.runtime.webhooks.webhook_host import AdmissionRequest
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.addressing.ranges import AddressRange, merge

IN_USE = "Pool has IPAddresses allocated. Cannot delete Pool until all IPAddresses have been removed."
FIXED_LENGTH = "spec.allocationPrefixLength is immutable"
MOST_NAMED = 50
"""How many ranges a refusal names."""


def default_in_cluster_pool(request: AdmissionRequest, view: AdmissionView) -> Defaults:
    """Return what a new pool gets: its finalizer, so that it stays for as long as it has addresses."""
    pool = request.object or {}
    is_new = request.before is None and view.serves(request.namespace, mapping(pool, "metadata", "labels"))
    return Defaults(finalizer_step(pool, POOL_KINDS[request.kind].finalizer) if is_new else [], [])


def judge_in_cluster_pool(request: AdmissionRequest, view: AdmissionView) -> Judgement:
    """Judge a pool that is created or changed."""
    if not is_judged(request):
        return Judgement([], [])
    reading = read_pool(request.object or {})
    if reading.faults:
        return Judgement(reading.faults, [])
    overlap = view.overlap_of(pool_asked_about(request), reading.spec)
    place = "spec.prefixes" if reading.spec.gives_prefixes else "spec.addresses"
    warnings = [f"{place}: {overlap}"] if overlap else []
    warnings += [*_prefix_warnings(reading.spec), *_emptiness(reading.spec, place)]
    if request.before is None:
        return Judgement([], warnings)
    if unit_length(mapping(request.before, "spec")) != unit_length(mapping(request.object or {}, "spec")):
        return Judgement([], [], FIXED_LENGTH)
    return Judgement([], warnings, _left_out(request, reading.spec, view))


def judge_in_cluster_deletion(request: AdmissionRequest, view: AdmissionView) -> Judgement:
    """Judge whether a pool may be deleted: not, while it has addresses; one that is being given keeps it as well."""
    before = request.before or {}
    if SKIPS_DELETE_CHECK in annotations_of(before):
        return Judgement([], [])
    is_used = any(True for _ in view.addresses_of(pool_asked_about(request)))
    return Judgement([], [], IN_USE if is_used else "")


def _left_out(request: AdmissionRequest, spec: PoolSpec, view: AdmissionView) -> str:
    """Return why a change is refused that takes addresses out of the pool which it had given; empty if it is not.

    What the pool did not give before the change either does not hold it up. Reservations count: their objects may not
    have reached this replica yet.
    """
    old = POOL_KINDS[request.kind].read(field(request.before or {}, "spec")).spec
    left = {each for each in _held(request, view) if old.gives(each) and not spec.gives(each)}
    if not left:
        return ""
    if spec.gives_prefixes:
        named = sorted(format_address(each) for each in left)[:MOST_NAMED]
        return f"existing allocations become non-allocatable: [{' '.join(named)}]"
    ranges = merge(AddressRange(each, each) for each in left)[:MOST_NAMED]
    named = [f"{format_address(each.first)}-{format_address(each.last)}" for each in ranges]
    return f"pool addresses do not contain allocated addresses: [{' '.join(named)}]"


def _held(request: AdmissionRequest, view: AdmissionView) -> Iterator[int]:
    yield from reserved_in(request.before or {}).values()
    for address in view.addresses_of(pool_asked_about(request)):
        if (position := position_of(address)) is not None:
            yield position


def _prefix_warnings(spec: PoolSpec) -> Iterator[str]:
    """Yield what the author of a pool of prefixes should know that are single addresses."""
    if not spec.gives_prefixes or spec.unit > 1:
        return
    yield "spec.allocationPrefixLength: 128 gives each claim a single address; an InClusterIPPool is made for that"
    gateway = spec.options.gateway
    if gateway and spec.entry_at(parse_address(gateway)) is not None:
        yield f"spec.gateway: {gateway} is not kept back; a claim may get it"


def _emptiness(spec: PoolSpec, place: str) -> Iterator[str]:
    """Yield why no claim will ever be served, where nothing is left to give."""
    if any(spec.runs()):
        return
    if spec.gives_prefixes:
        yield f"{place}: the pool has no prefix to hand out, since it excludes a part of each"
    else:
        reasons = "each is excluded, the gateway, or reserved in its network (allocateReservedIPAddresses)"
        yield f"{place}: the pool has no address to hand out: {reasons}"
