"""What keeps an address back from everybody: what a pool drains or excludes, its gateways, the last of a subnet."""

from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolSpec
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.addressing.ranges import AddressRange

FREE, DRAINED, KEPT_BACK = "free", "drained", "kept back"
"""What an address of the entries is that nobody holds, and that waits for no claim."""


def kept_status(spec: PoolSpec, position: int) -> tuple[str, str]:
    """Return the status of an address of a pool that nobody holds, and the reason."""
    if any(position in drained for drained in spec.drained):
        return DRAINED, "spec.tenure.drain"
    unit = AddressRange(spec.unit_at(position), spec.unit_at(position) + spec.unit - 1)
    if any(excluded.overlaps(unit) for excluded in spec.excluded):
        return KEPT_BACK, "the pool excludes it, or it is an address of the network itself"
    if spec.gives_reserved:
        return FREE, ""
    if position in spec.gateways:
        return KEPT_BACK, f"{format_address(position)} is a gateway"
    entry = spec.entry_at(position)
    if entry is not None and (entry.range is None or position not in entry.range):
        return KEPT_BACK, "it is the last address of its subnet"
    return FREE, ""
