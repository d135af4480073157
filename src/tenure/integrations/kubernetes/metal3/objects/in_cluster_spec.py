"""What the ``spec`` of the in-cluster provider's pools says, in its words: lists of addresses, or of prefixes.

Its manager picks the lowest address of all that are listed, in whatever order they are written. So the entries of a
pool are its ranges, sorted and joined. The reasons of errors are those that its webhooks give: scripts may look for
them.
"""

from typing import Any

from tenure.integrations.kubernetes.metal3.objects.pool_spec import (
    AddressOptions,
    PoolEntry,
    PoolReading,
    PoolSpec,
    SpecFault,
    read_address,
    read_subnet,
)
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.kernel.addressing.addresses import format_address, is_v6
from tenure.kernel.addressing.ranges import AddressRange, merge

USUAL_LENGTH = 64
"""The length of prefixes that claims get, where the pool does not name one."""
NO_RANGE = "is not a valid IP, range, nor CIDR"
LONGEST_GRACE_S = (1 << 31) - 1
"""More the provider's own manager cannot read, and a time that far away cannot be written down."""


def read_address_pool(written: Any) -> PoolReading:
    """Read a pool of addresses. With faults, the pool that is returned must not be picked from."""
    spec = written if isinstance(written, dict) else {}
    faults: list[SpecFault] = []
    if not spec.get("addresses"):
        faults.append(SpecFault("spec.addresses", spec.get("addresses"), "addresses is required"))
    listed = _ranges(spec, "addresses", f"provided address {NO_RANGE}", faults)
    excluded = _ranges(spec, "excludedAddresses", f"provided address {NO_RANGE}", faults)
    gateway = read_address(spec["gateway"], "spec.gateway", faults) if spec.get("gateway") else None
    _judge_families(spec, listed, excluded, gateway, faults)
    cooling_s = _cooling_s(spec, faults)
    subnet = None if faults else _subnet_of(spec, listed, faults)
    if subnet is None:
        return PoolReading(PoolSpec(), faults)
    if spec.get("allocateReservedIPAddresses") is not True:
        excluded += _reserved(subnet)
    options = AddressOptions(spec["prefix"], "" if gateway is None else format_address(gateway))
    read = PoolSpec(
        entries=_entries(listed, options),
        gateways=frozenset() if gateway is None else frozenset({gateway}),
        options=options,
        excluded=tuple(merge(excluded)),
        cooling_s=cooling_s,
    )
    return PoolReading(read, faults)


def _cooling_s(spec: Object, faults: list[SpecFault]) -> int:
    """Read for how long a released address is kept back."""
    name = "addressReuseGracePeriodSeconds"
    written = spec.get(name) or 0
    if isinstance(written, int) and 0 <= written <= LONGEST_GRACE_S:
        return written
    limit = f"be at most {LONGEST_GRACE_S}" if isinstance(written, int) and written > 0 else "not be negative"
    faults.append(SpecFault(f"spec.{name}", written, f"{name} must {limit}"))
    return 0


def read_prefix_pool(written: Any) -> PoolReading:
    """Read a pool of IPv6 prefixes, of which each claim gets one; the gateway keeps none of them back."""
    spec = written if isinstance(written, dict) else {}
    faults: list[SpecFault] = []
    length = unit_length(spec)
    if not spec.get("prefixes"):
        faults.append(SpecFault("spec.prefixes", spec.get("prefixes"), "prefixes is required"))
    if not isinstance(length, int) or not 1 <= length <= 128:
        reason = "allocationPrefixLength must be between 1 and 128"
        return PoolReading(PoolSpec(), [*faults, SpecFault("spec.allocationPrefixLength", length, reason)])
    listed = [found for each in _list(spec, "prefixes", faults) if (found := _prefix(each, length, faults))]
    excluded = _ranges(spec, "excludedPrefixes", f"provided entry {NO_RANGE}", faults)
    if any(not is_v6(each.first) for each in excluded):
        reason = "only IPv6 excluded prefixes are supported"
        faults.append(SpecFault("spec.excludedPrefixes", spec.get("excludedPrefixes"), reason))
    gateway = read_address(spec["gateway"], "spec.gateway", faults) if spec.get("gateway") else None
    if gateway is not None and not is_v6(gateway):
        faults.append(SpecFault("spec.gateway", spec["gateway"], "provided gateway must be IPv6"))
    if faults:
        return PoolReading(PoolSpec(), faults)
    options = AddressOptions(length, "" if gateway is None else format_address(gateway))
    unit = 1 << (128 - length)
    read = PoolSpec(
        entries=_entries(listed, options),
        options=options,
        excluded=tuple(merge(excluded)),
        gives_prefixes=True,
        unit=unit,
    )
    return PoolReading(read, faults)


def unit_length(spec: Object) -> Any:
    """Return the length of the prefixes that claims get."""
    return spec.get("allocationPrefixLength") or USUAL_LENGTH


def _entries(listed: list[AddressRange], options: AddressOptions) -> tuple[PoolEntry, ...]:
    return tuple(PoolEntry(number, each, each, options) for number, each in enumerate(merge(listed)))


def _list(spec: Object, name: str, faults: list[SpecFault]) -> list[Any]:
    value = spec.get(name) or []
    if isinstance(value, list):
        return value
    faults.append(SpecFault(f"spec.{name}", value, "must be a list"))
    return []


def _ranges(spec: Object, name: str, reason: str, faults: list[SpecFault]) -> list[AddressRange]:
    """Read a list of addresses, ranges and networks; what is none of them is noted."""
    found = []
    for text in _list(spec, name, faults):
        if (read := read_range(text)) is None:
            faults.append(SpecFault(f"spec.{name}", text, reason))
        else:
            found.append(read)
    return found


def read_range(text: object) -> AddressRange | None:
    """Return the range that is written as an address, as two of them with a dash, or as a network; else nothing."""
    ignored: list[SpecFault] = []
    if not isinstance(text, str):
        return None
    if "-" in text:
        first, last = (read_address(part, "", ignored) for part in text.split("-", 1))
        if first is None or last is None or is_v6(first) != is_v6(last) or last < first:
            return None
        return AddressRange(first, last)
    if "/" in text:
        subnet = read_subnet(text, "", ignored)
        return subnet.block if subnet is not None else None
    position = read_address(text, "", ignored)
    return AddressRange(position, position) if position is not None else None


def _judge_families(
    spec: Object, listed: list[AddressRange], excluded: list[AddressRange], gateway: int | None, faults: list[SpecFault]
) -> None:
    """Note where IPv4 and IPv6 are mixed: a pool is of one family."""
    families, others = {is_v6(each.first) for each in listed}, {is_v6(each.first) for each in excluded}
    mixed = "provided addresses are of mixed IP families"
    if len(families) > 1:
        faults.append(SpecFault("spec.addresses", spec.get("addresses"), mixed))
    if gateway is not None and families - {is_v6(gateway)}:
        reason = "provided gateway and addresses are of mixed IP families"
        faults.append(SpecFault("spec.gateway", spec["gateway"], reason))
    if len(others) > 1:
        faults.append(SpecFault("spec.excludedAddresses", spec.get("excludedAddresses"), mixed))
    if families and others - families:
        reason = "addresses and excluded addresses are of mixed IP families"
        faults.append(SpecFault("spec.excludedAddresses", spec.get("excludedAddresses"), reason))


def _subnet_of(spec: Object, listed: list[AddressRange], faults: list[SpecFault]) -> AddressRange | None:
    """Return the network that the lowest address and the prefix make, which all addresses must lie in."""
    prefix = spec.get("prefix")
    if isinstance(prefix, bool) or not isinstance(prefix, int) or prefix < 0:
        faults.append(SpecFault("spec.prefix", prefix, "a valid prefix is required"))
        return None
    subnet = read_subnet(f"{format_address(min(listed).first)}/{prefix}", "", [])
    if subnet is None:
        faults.append(SpecFault("spec.prefix", prefix, "provided prefix is not valid"))
        return None
    # As many as were listed: with a text that is no range, the reading has ended before.
    for text, each in zip(spec["addresses"], listed, strict=True):
        if each.first not in subnet.block or each.last not in subnet.block:
            reason = "provided address belongs to a different subnet than others"
            faults.append(SpecFault("spec.addresses", text, reason))
    return None if faults else subnet.block


def _reserved(subnet: AddressRange) -> list[AddressRange]:
    """Return the address of the network itself and, in IPv4, the one that speaks to all of its hosts."""
    edges = [subnet.first] if is_v6(subnet.first) else [subnet.first, subnet.last]
    return [AddressRange(each, each) for each in edges]


def _prefix(text: object, length: int, faults: list[SpecFault]) -> AddressRange | None:
    """Read one of the networks of a pool of prefixes; noted is what is none, and what has no whole unit."""
    subnet = read_subnet(text, "", [])
    reason = ""
    if subnet is None:
        reason = "provided entry is not a valid IPv6 CIDR"
    elif not is_v6(subnet.written):
        reason = "only IPv6 prefixes are supported"
    elif subnet.written != subnet.block.first:
        reason = "CIDR must be network-aligned"
    elif subnet.length > length:
        reason = f"CIDR prefix length must be <= allocationPrefixLength ({length})"
    if reason:
        faults.append(SpecFault("spec.prefixes", text, reason))
    return subnet.block if subnet is not None and not reason else None
