"""What an IPPool may say, and what it gets where it says nothing."""

from collections.abc import Iterator

from tenure.integrations.kubernetes.metal3.admission.admission_view import (
    AdmissionView,
    Defaults,
    Judgement,
    finalizer_step,
    is_judged,
    pool_asked_about,
)
from tenure.integrations.kubernetes.metal3.admission.pool_warnings import LONGEST_NAME, is_object_name, pool_warnings
from tenure.integrations.kubernetes.metal3.objects.address_objects import claim_name_of, position_of
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import POOL_FINALIZER, field, mapping, text
from tenure.integrations.kubernetes.metal3.objects.pool_spec import (
    LedgerBinding,
    PoolEntry,
    PoolReading,
    PoolSpec,
    SpecFault,
    read_pool_spec,
)
from tenure.integrations.kubernetes.metal3.objects.reservations import reserved_in
from tenure.integrations.kubernetes.runtime.patches import Step
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of
from tenure.integrations.kubernetes.runtime.webhooks.webhook_host import AdmissionRequest
from tenure.kernel.addressing.addresses import FAMILY_NAMES, Family, family_of, format_address
from tenure.kernel.picking.policies import POLICIES

LARGEST_RANDOM = (1 << 63) - 1
"""The largest entry that Metal3 draws from; a larger one would not work after a return to Metal3 (A11)."""

ADDRESS_LENGTHS = {Family.IPV4: 15, Family.IPV6: 39}
MOST_NAMED = 10
"""How many addresses a refusal names; the others are counted."""

OUT_OF_BOUNDS = "out of bounds of the pools given"
IN_USE = f"in use but {OUT_OF_BOUNDS}"
UNBOUND = (
    "spec.tenure.ledger: without it, this pool does not know what others hold of its addresses, and gives these, too; "
    "`tenure ipam export --dry-run` lists them"
)
UNSEEN = ClaimId("", "", "")
"""A claim that this replica has not seen yet."""


def default_pool(request: AdmissionRequest, view: AdmissionView) -> Defaults:
    """Return what a pool gets: a strategy that it does not name (A2), and its finalizer."""
    pool = request.object or {}
    steps: list[Step] = []
    # A change that leaves the strategy out means the one that the pool has, which cannot be modified.
    strategy = text(request.before, "spec", "allocationStrategy") if request.before else view.default_strategy
    if strategy and isinstance(field(pool, "spec"), dict) and not field(pool, "spec", "allocationStrategy"):
        steps.append({"op": "add", "path": "/spec/allocationStrategy", "value": strategy})
    if request.before is None and view.serves(request.namespace, mapping(pool, "metadata", "labels")):
        steps += finalizer_step(pool, POOL_FINALIZER)
    return Defaults(steps, [])


def judge_pool(request: AdmissionRequest, view: AdmissionView) -> Judgement:
    """Judge a pool that is created or changed."""
    pool = request.object or {}
    faults = [] if request.before is None else _changes(request.before, pool)
    if not is_judged(request):
        return Judgement(faults, [])
    reading = read_pool_spec(field(pool, "spec"))
    faults += _faults_of(mapping(pool, "spec"), reading)
    faults += _ledger_faults(request, reading.spec, view)
    faults += _name_prefix_faults(reading.spec, request.before)
    # Of a pool without entries of its own, only the ledger knows which addresses it has.
    has_own = reading.spec.ledger is None or bool(reading.spec.entries)
    if has_own and all(not fault.field.startswith("spec.pools") for fault in reading.faults):
        faults += _outside(reading.spec, view, request.before is None)
        faults += _left_behind(request, reading.spec, view)
    overlap = view.overlap_of(pool_asked_about(request), reading.spec)
    warnings = pool_warnings(reading.spec, [f"spec.pools: {overlap}"] if overlap else ())
    if reading.spec.ledger is None and _binding_before(request) is not None:
        warnings.append(UNBOUND)
    # With faults, the reading lacks what they name: a warning could be about that alone.
    return Judgement(faults, [] if reading.faults else warnings)


def _changes(before: Object, after: Object) -> list[SpecFault]:
    """Return what was changed that cannot be (A13, A14)."""
    faults = []
    prefix = field(after, "spec", "namePrefix")
    if prefix != field(before, "spec", "namePrefix"):
        faults.append(SpecFault("spec.namePrefix", prefix, "cannot be modified"))
    strategy = field(after, "spec", "allocationStrategy")
    # A pool from before the webhook may name none, and is served as a sequential one.
    if (strategy or "sequential") != (field(before, "spec", "allocationStrategy") or "sequential"):
        faults.append(SpecFault("spec.allocationStrategy", strategy, "cannot be modified after creation"))
    return faults


def _faults_of(written: Object, reading: PoolReading) -> Iterator[SpecFault]:
    yield from reading.faults
    yield from _doubles(written, reading.spec)
    if POLICIES[reading.spec.policy].striped:
        yield from _not_random(written, reading.spec)


def _ledger_faults(request: AdmissionRequest, spec: PoolSpec, view: AdmissionView) -> Iterator[SpecFault]:
    """Yield why a pool cannot be bound as it says: what is held in one ledger is not found in another.

    A pool may be bound when it has addresses already, and be unbound: `tenure ipam import` and `export` are for that.
    """
    if spec.ledger is not None and spec.external:
        yield SpecFault("spec.tenure.external", True, "cannot be used with spec.tenure.ledger, which decides")
    if spec.ledger is not None and spec.cooling_s:
        reason = "cannot be used with spec.tenure.ledger: the pools of its network say how long an address cools off"
        yield SpecFault("spec.tenure.coolingSeconds", spec.cooling_s, reason)
    before = _binding_before(request)
    if spec.ledger is None or before is None:
        return
    is_used = any(True for _ in view.addresses_of(pool_asked_about(request)))
    for name in ("network", "realm"):
        value = getattr(spec.ledger, name)
        if is_used and value != getattr(before, name):
            reason = f"cannot be modified while the pool has addresses, which are held as {getattr(before, name)!r}"
            yield SpecFault(f"spec.tenure.ledger.{name}", value, reason)


def _binding_before(request: AdmissionRequest) -> LedgerBinding | None:
    """Return the network that a pool was bound to until now."""
    return read_pool_spec(field(request.before, "spec")).spec.ledger if request.before else None


def _doubles(written: Object, spec: PoolSpec) -> Iterator[SpecFault]:
    """Yield addresses that are promised to two claims, in whatever spellings (A8)."""
    first: dict[int, str] = {}
    for name, position in spec.pre_allocations.items():
        other = first.setdefault(position, name)
        if other != name:
            value = field(written, "preAllocations", name)
            reason = f'IP address is already pre-allocated to claim "{other}"'
            yield SpecFault(f"spec.preAllocations.{name}", value, reason)


def _not_random(written: Object, spec: PoolSpec) -> Iterator[SpecFault]:
    """Yield entries that have no size to draw from (A11)."""
    for entry in spec.entries:
        if reason := _why_not_random(entry):
            value = written["pools"][entry.number]
            message = f'cannot be used with allocationStrategy "random": {reason}'
            yield SpecFault(f"spec.pools[{entry.number}]", value, message)


def _why_not_random(entry: PoolEntry) -> str:
    if entry.start is not None and entry.end is None and entry.subnet is None:
        return "pool with Start requires End or Subnet to determine size"
    if entry.bounds is not None and entry.bounds.size > LARGEST_RANDOM:
        return "pool size exceeds int range"
    return ""


def _name_prefix_faults(spec: PoolSpec, before: Object | None) -> list[SpecFault]:
    """Return why no object could be named after the pool.

    The prefix cannot be changed, so an error that the pool has had all along would only forbid every other change.
    """
    faults = _prefix_faults(spec)
    if faults and before is not None and faults == _prefix_faults(read_pool_spec(field(before, "spec")).spec):
        return []
    return faults


def _prefix_faults(spec: PoolSpec) -> list[SpecFault]:
    positions = [entry.bounds.first for entry in spec.entries if entry.bounds] + list(spec.pre_allocations.values())
    # A pool without addresses may get those of either family, and its prefix cannot be changed then.
    families = {family_of(position) for position in positions} or set(Family)
    family = max(families, key=lambda each: ADDRESS_LENGTHS[each])
    longest = LONGEST_NAME - 1 - ADDRESS_LENGTHS[family]
    if len(spec.name_prefix) > longest:
        reason = f"is too long: with {FAMILY_NAMES[family]} addresses, at most {longest} characters fit into a name"
        return [SpecFault("spec.namePrefix", spec.name_prefix, reason)]
    if not is_object_name(f"{spec.name_prefix}-0"):
        reason = "cannot begin a name: lower-case letters, digits, - and . are possible, a letter or digit comes first"
        return [SpecFault("spec.namePrefix", spec.name_prefix, reason)]
    return []


def _outside(spec: PoolSpec, view: AdmissionView, is_new: bool) -> Iterator[SpecFault]:
    """Yield pre-allocations that lie in no entry, unless the pool or the operator allows them (A10, KD9)."""
    if view.allow_outside if spec.allows_outside is None else spec.allows_outside:
        return
    # Metal3 has this slip of the pen in its answer to a new pool, and scripts may look for it.
    bounds = "bonds" if is_new else "bounds"
    for position in spec.pre_allocations.values():
        if spec.entry_at(position) is None:
            reason = f"is out of {bounds} of the pools given, and spec.tenure.outsidePreAllocations is not allow"
            yield SpecFault("spec.preAllocations", format_address(position), reason)


def _left_behind(request: AdmissionRequest, spec: PoolSpec, view: AdmissionView) -> list[SpecFault]:
    """Return addresses in use that a change takes out of the pool (A15).

    Objects are asked, not the list of them in the status, which may be old or forged (KP13). An address that was in no
    entry before either, made by hand or pre-allocated outside, does not hold up a change.
    """
    before = request.before
    if before is None or field(before, "spec", "pools") == field(request.object or {}, "spec", "pools"):
        return []
    old = read_pool_spec(field(before, "spec")).spec
    # What objects say replaces the rest: an object names its claim, a reservation may only say that there is a claim.
    left = dict(_being_given(request, old, spec, view)) | dict(_in_use(request, old, spec, view))
    faults = [SpecFault("spec.pools", format_address(position), reason) for position, reason in sorted(left.items())]
    if more := faults[MOST_NAMED:]:
        faults = [*faults[:MOST_NAMED], SpecFault("spec.pools", len(more), f"more addresses are {IN_USE}")]
    return faults


def _in_use(request: AdmissionRequest, old: PoolSpec, new: PoolSpec, view: AdmissionView) -> Iterator[tuple[int, str]]:
    """Yield addresses of objects that a change takes out of the pool."""
    for address in view.addresses_of(pool_asked_about(request)):
        position, claim = position_of(address), claim_name_of(address)
        listed = pool_asked_about(request).listed((key_of(address)[0], claim))
        if position is not None and _falls_out(old, new, position, listed):
            yield position, f"is {IN_USE}: IPAddress {text(address, 'metadata', 'name')} is for claim {claim}"


def _being_given(
    request: AdmissionRequest, old: PoolSpec, new: PoolSpec, view: AdmissionView
) -> Iterator[tuple[int, str]]:
    """Yield addresses that a leader is about to give, or has just given, and that a change takes out of the pool.

    This replica may not have seen their objects yet. Their reservations it has, without fail: they are part of the pool
    that the change is made to, and the server stores no change of a pool that has another version by then.
    """
    for position in set(reserved_in(request.before or {}).values()):
        claims = list(view.claims_at(pool_asked_about(request), position))
        listed = [pool_asked_about(request).listed(claim.key) for claim in claims or [UNSEEN]]
        if not any(_falls_out(old, new, position, claim) for claim in listed):
            continue
        names = ", ".join(f"{claim.kind} {claim.name}" for claim in claims)
        yield position, f"is being given to {names or 'a claim'} but {OUT_OF_BOUNDS}; try again"


def _falls_out(old: PoolSpec, new: PoolSpec, position: int, claim: str) -> bool:
    """Return whether a change takes an address out of the pool that is a claim's."""
    is_left_out = old.entry_at(position) is not None and new.entry_at(position) is None
    return is_left_out and new.pre_allocations.get(claim) != position
