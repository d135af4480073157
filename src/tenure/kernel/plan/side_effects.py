"""What edits of a network did beside what they say: pools that were cut, or nothing at all."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.addressing.ranges import AddressRange, merge, subtract, subtract_each
from tenure.kernel.plan.plan_model import KeepBack, Network, Pool, Subnet

NOTHING_CHANGED = "nothing was changed: it is so already"

MOST_NAMED = 10
"""How many parts of one range are named: a reservation may have thousands of gaps."""


def side_effects(before: Network, after: Network) -> list[str]:
    """Tell in words what edits did to a network without being asked to, or that they did nothing. O(subnets)."""
    # Every edit counts up the serial and sets the time, so these two are no change.
    if replace(after, serial=before.serial, modified_us=before.modified_us) == before:
        return [NOTHING_CHANGED]
    return [
        _cut_text(before, pool, left, subnet)
        for old, subnet in _moved(before, after)
        for pool in old.pools
        if (left := _left(pool, subnet)) < pool.range.size
    ]


def _cut_text(before: Network, pool: Pool, left: int, subnet: Subnet) -> str:
    """Write what a shrink did to a range of a pool; a pool of several ranges still has the others."""
    several = pool.name is not None and len(before.pools_named(pool.name)) > 1
    which = f"range {pool.range} of pool {pool.name}" if several else f"pool {pool.name or pool.range}"
    if not left:
        return f"{which} ({pool.range.size} addresses) is gone: {subnet.cidr} does not cover it"
    lies = "it" if several else pool.range
    return f"{which} was cut from {pool.range.size} to {left} addresses: {lies} lies in {subnet.cidr} only in part"


def newly_kept_back(before: Network, after: Network) -> list[tuple[Subnet, int, KeepBack]]:
    """List the addresses that a subnet keeps back because its block is another one: network, broadcast and the like."""
    return [
        (subnet, position, why)
        for old, subnet in _moved(before, after)
        for position, why in subnet.kept_back()
        if why is not KeepBack.GATEWAY and position not in dict(old.kept_back())
    ]


def kept_back_text(subnet: Subnet, position: int, why: KeepBack, holders: Sequence[str]) -> str | None:
    """Write that an address that could be picked, or is held, is kept back now; None if it is neither."""
    pool = next((pool for pool in subnet.pools if position in pool.range), None)
    if pool is None and not holders:
        return None
    where = "" if pool is None else f" of pool {pool.name or pool.range}"
    holds = "".join(f"; {holder} holds it and keeps it" for holder in holders)
    return f"{format_address(position)}{where} is the {why} address of {subnet.cidr} now and is not picked{holds}"


def unreserved_already(hole: AddressRange, reserved: Iterable[AddressRange]) -> list[str]:
    """Write which parts of a range that is no longer to be reserved were not: a few of them, and how many more."""
    pieces = subtract(hole, merge(reserved))
    named = [f"{piece} was not reserved" for piece in islice(pieces, MOST_NAMED)]
    # The others are only counted: a range may have thousands of gaps.
    more = sum(1 for _ in pieces)
    return [*named, f"and {more} more parts of {hole} were not reserved"] if more else named


def lost_pool_ground(before: Network, after: Network) -> list[AddressRange]:
    """List what lay in a pool and lies in none any more, though a subnet still covers it."""
    # Most edits leave all pools alone; then nothing need be subtracted.
    if [pool for _, pool in before.pools()] == [pool for _, pool in after.pools()]:
        return []
    lost = subtract_each((pool.range for _, pool in before.pools()), (pool.range for _, pool in after.pools()))
    pieces = (piece for _, left in lost for piece in left)
    uncovered = subtract_each(pieces, (subnet.cidr.range for subnet in after.subnets))
    return [piece for piece, left in uncovered if not left]


def _moved(before: Network, after: Network) -> list[tuple[Subnet, Subnet]]:
    """List the subnets that have another block now, each with what it was."""
    known = {subnet.uuid: subnet for subnet in before.subnets}
    pairs = [(known[subnet.uuid], subnet) for subnet in after.subnets if subnet.uuid in known]
    return [(old, subnet) for old, subnet in pairs if old.cidr != subnet.cidr]


def _left(pool: Pool, subnet: Subnet) -> int:
    """Count the addresses of a pool that a subnet still covers."""
    block = subnet.cidr.range
    return max(0, min(pool.range.last, block.last) - max(pool.range.first, block.first) + 1)
