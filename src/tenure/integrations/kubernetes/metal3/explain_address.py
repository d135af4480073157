"""Why an address of a cluster is what it is: who has it, or what keeps it back, or that it is free."""

from collections.abc import Iterator
from dataclasses import dataclass

from tenure.integrations.kubernetes.metal3.objects.address_objects import claim_id_of, position_of, range_of
from tenure.integrations.kubernetes.metal3.objects.cooling_addresses import cooling_in
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import text
from tenure.integrations.kubernetes.metal3.objects.kept_addresses import FREE, KEPT_BACK, kept_status
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolSpec
from tenure.integrations.kubernetes.metal3.read_pools import ReadPools
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of


@dataclass(frozen=True)
class AddressFinding:
    """What one pool has to say about an address."""

    pool: PoolId
    status: str
    """In a word: held, orphaned, cooling, pre-allocated, kept back, drained or free."""
    text: str
    claim: str = ""
    object: str = ""
    since: str = ""
    """When the IPAddress was created."""


def explain_address(read: ReadPools, position: int) -> list[AddressFinding]:
    """Return what each pool says in which an address lies or is held, in the order of their names."""
    return [finding for key in sorted(read.pools) for finding in _in_pool(read, key, position)]


def _in_pool(read: ReadPools, key: PoolId, position: int) -> Iterator[AddressFinding]:
    spec = read.spec_of(key).spec
    held = [each for each in read.addresses_of(key) if _holds(each, position, spec)]
    for address in held:
        yield _held(read, key, address)
    if held:
        return
    name = f"{key}"
    if (cooling := cooling_in(read.pools[key]).get(spec.unit_at(position))) is not None:
        said = f"cooling in {name} until {cooling.until_text}: {cooling.claim} released it"
        yield AddressFinding(key, "cooling", said, str(cooling.claim))
        return
    waits_for = next((claim for claim, at in spec.pre_allocations.items() if at == position), None)
    if waits_for is not None:
        taken = _name_taken(read, key, position)
        said = f"pre-allocated in {name} to claim {waits_for}, which has it not{taken and f'; {taken}'}"
        yield AddressFinding(key, "pre-allocated", said, waits_for)
    elif spec.entry_at(position) is not None:
        status, why = kept_status(spec, position)
        if status == FREE and (taken := _name_taken(read, key, position)):
            status, why = KEPT_BACK, taken
        yield AddressFinding(key, status, f"{status} in {name}{why and f': {why}'}")


def _name_taken(read: ReadPools, key: PoolId, position: int) -> str:
    """Say which object has the name that an address would get; nothing if none has."""
    named = read.names_taken(key).get(position)
    shown = f"IPAddress {key.listed(key_of(named))}, which is there, for" if named is not None else ""
    return f"its object would be {shown} {text(named, 'spec', 'address')}" if named is not None else ""


def _holds(address: Object, position: int, spec: PoolSpec) -> bool:
    """Return whether an object holds an address, or the prefix that it lies in."""
    at, range = position_of(address), range_of(address, spec)
    return (at is not None and spec.unit_at(at) == spec.unit_at(position)) or (range is not None and position in range)


def _held(read: ReadPools, key: PoolId, address: Object) -> AddressFinding:
    claim, object = claim_id_of(address), key_of(address)[1]
    since = text(address, "metadata", "creationTimestamp")
    is_there = read.claim_of(address) is not None
    missing = "" if is_there else ", which is not there"
    said = f"held by {claim}{missing}, as IPAddress {object} of {key}, since {since}"
    return AddressFinding(key, "held" if is_there else "orphaned", said, str(claim), object, since)
