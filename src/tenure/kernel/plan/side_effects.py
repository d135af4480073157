"""What edits of a network did beside what they say: pools that were cut, or nothing at all."""

from dataclasses import replace

from tenure.kernel.addressing.ranges import AddressRange, subtract
from tenure.kernel.plan.plan_model import Network, Pool, Subnet

NOTHING_CHANGED = "nothing was changed: it is so already"


def side_effects(before: Network, after: Network) -> list[str]:
    """Tell in words what edits did to a network without being asked to, or that they did nothing. O(subnets)."""
    if replace(after, serial=before.serial, modified_us=before.modified_us) == before:
        return [NOTHING_CHANGED]
    return [
        f"pool {pool.name or pool.range} was cut from {pool.range.size} to {left} addresses: {pool.range} lies in "
        f"{subnet.cidr} only in part"
        if left
        else f"pool {pool.name or pool.range} ({pool.range.size} addresses) is gone: {subnet.cidr} does not cover it"
        for old, subnet in _moved(before, after)
        for pool in old.pools
        if (left := _left(pool, subnet)) < pool.range.size
    ]


def lost_pool_ground(before: Network, after: Network) -> list[AddressRange]:
    """List what lay in a pool and lies in none any more, though a subnet still covers it."""
    if [pool for _, pool in before.pools()] == [pool for _, pool in after.pools()]:
        return []
    pools = sorted(pool.range for _, pool in after.pools())
    blocks = sorted(subnet.cidr.range for subnet in after.subnets)
    lost = [piece for _, pool in before.pools() for piece in subtract(pool.range, pools)]
    return [piece for piece in lost if not list(subtract(piece, blocks))]


def _moved(before: Network, after: Network) -> list[tuple[Subnet, Subnet]]:
    """List the subnets that have another block now, each with what it was."""
    known = {subnet.uuid: subnet for subnet in before.subnets}
    pairs = [(known[subnet.uuid], subnet) for subnet in after.subnets if subnet.uuid in known]
    return [(old, subnet) for old, subnet in pairs if old.cidr != subnet.cidr]


def _left(pool: Pool, subnet: Subnet) -> int:
    """Count the addresses of a pool that a subnet still covers."""
    block = subnet.cidr.range
    return max(0, min(pool.range.last, block.last) - max(pool.range.first, block.first) + 1)
