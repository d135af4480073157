"""What an edit opens in a network: blocks that it did not have, and addresses that could not be picked before."""

from tenure.kernel.addressing.ranges import AddressRange, subtract, subtract_each
from tenure.kernel.plan.plan_model import Network, Subnet


def new_blocks(before: Network | None, after: Network) -> list[AddressRange]:
    """List the blocks that subnets of a network have now and did not have before. O(subnets)."""
    return [
        piece
        for old, subnet in _changed(before, after)
        for piece in subtract(subnet.cidr.range, [] if old is None else [old.cidr.range])
    ]


def opened_ground(before: Network | None, after: Network) -> list[AddressRange]:
    """List where addresses can be had now that could not: new blocks, new pools, and reservations that were lifted."""
    opened = new_blocks(before, after)
    for old, subnet in _changed(before, after):
        if old is not None:
            for came, stood in ((subnet.pools, old.pools), (old.reserved, subnet.reserved)):
                ranges = subtract_each((each.range for each in came), (each.range for each in stood))
                opened.extend(piece for _, left in ranges for piece in left)
    return opened


def _changed(before: Network | None, after: Network) -> list[tuple[Subnet | None, Subnet]]:
    """List the subnets that an edit touched, each with what it was; a subnet is known by its uuid."""
    known = {} if before is None else {subnet.uuid: subnet for subnet in before.subnets}
    pairs = ((known.get(subnet.uuid), subnet) for subnet in after.subnets)
    # By identity: an edit makes new values of what it changes, and of nothing else.
    return [(old, subnet) for old, subnet in pairs if old is not subnet]
