"""What is odd in an IPPool, and accepted: its author is warned (KS5)."""

import re
from collections.abc import Iterable, Iterator

from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolEntry, PoolSpec
from tenure.kernel.addressing.addresses import format_address, parse_address, width
from tenure.kernel.addressing.ranges import AddressRange

MOST_WARNINGS = 10
"""An API server cuts warnings that are longer than 4,096 characters together."""

LONGEST_NAME = 253
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def is_object_name(name: str) -> bool:
    """Return whether an object can have a name: an RFC 1123 subdomain."""
    return len(name) <= LONGEST_NAME and SUBDOMAIN.fullmatch(name) is not None


def pool_warnings(spec: PoolSpec, others: Iterable[str] = ()) -> list[str]:
    """Return what the author of a pool should know, behind other warnings. O(n log n) of the entries."""
    found = [*others, *(warning for entry in spec.entries for warning in _of_entry(entry))]
    found += _of_overlaps(spec)
    found += _of_gateways(spec)
    found += _of_pre_allocations(spec)
    found += _of_emptiness(spec)
    if len(found) > MOST_WARNINGS:
        found[MOST_WARNINGS - 1 :] = [f"and {len(found) - MOST_WARNINGS + 1} more warnings"]
    return found


def _of_entry(entry: PoolEntry) -> Iterator[str]:
    path, subnet, options = f"spec.pools[{entry.number}]", entry.subnet, entry.options
    if entry.bounds is not None and options.prefix > width(entry.bounds.first):
        yield f"{path}: prefix {options.prefix} is more than an IPv4 address has; no machine can be configured by it"
    if subnet is None:
        return
    inside = subnet.range
    for name, position in (("start", entry.start), ("end", entry.end)):
        if position is not None and position not in inside:
            yield (
                f"{path}.{name}: {format_address(position)} lies outside subnet {subnet}; "
                "addresses outside the subnet are not handed out"
            )
    if options.prefix != subnet.prefix:
        yield f"{path}: prefix {options.prefix} is not the length of subnet {subnet}"
    if options.gateway and parse_address(options.gateway) not in inside:
        yield f"{path}: gateway {options.gateway} lies outside subnet {subnet}"


def _of_overlaps(spec: PoolSpec) -> Iterator[str]:
    found = [(entry.bounds, entry.number) for entry in spec.entries if entry.bounds is not None]
    found.sort(key=lambda each: (each[0].first, each[1]))
    farthest: tuple[AddressRange, int] | None = None
    for bounds, number in found:
        # The range that reaches farthest so far is the one to compare with: comparing all pairs would be quadratic.
        if farthest is not None and bounds.first <= farthest[0].last:
            low, high = sorted((farthest[1], number))
            yield f"spec.pools[{high}]: overlaps spec.pools[{low}]; the first entry of an address has it"
        if farthest is None or bounds.last > farthest[0].last:
            farthest = bounds, number


def _of_gateways(spec: PoolSpec) -> Iterator[str]:
    for gateway in () if spec.gives_reserved else sorted(spec.gateways):
        if (entry := spec.entry_at(gateway)) is not None:
            text = format_address(gateway)
            yield f"spec.pools[{entry.number}]: {text} is a gateway and is kept back; no claim gets it"


def _of_pre_allocations(spec: PoolSpec) -> Iterator[str]:
    for name, position in spec.pre_allocations.items():
        path = f"spec.preAllocations.{name}"
        if position in spec.gateways:
            yield f"{path}: {format_address(position)} is a gateway of the pool"
        # A claim of another namespace is named with that.
        if not is_object_name(name.rpartition("/")[2]):
            yield f"{path}: no claim can have that name"


def _of_emptiness(spec: PoolSpec) -> Iterator[str]:
    gives_what_network_has = spec.ledger is not None and not spec.entries
    is_filled_otherwise = spec.external or spec.pre_allocations or gives_what_network_has
    if not is_filled_otherwise and not any(spec.runs()):
        yield "spec.pools: the pool has no address to hand out"
