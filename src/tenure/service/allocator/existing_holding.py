"""What a claim gets where the ledger has an address for its owner: the holding in its slot, or one that waits for it.

Every way of asking rests on this: the lane, the doubtful pick, runs, ``apply``, the line, books, and a caller's own
transaction. An address that is not what the claim asks for is never its answer.
"""

from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.addressing.ranges import AddressRange
from tenure.kernel.errors import AlreadyExists, TenureError
from tenure.kernel.holdings.holding_model import Row, State
from tenure.kernel.plan.layout import Layout, LineKey
from tenure.service.allocator.claim import Claim, Granted

Answer = Granted | TenureError


def line_key(claim: Claim) -> LineKey:
    """Name the line a claim is served from."""
    return (claim.network, claim.pool, claim.subnet, claim.zone, claim.family)


def already(claim: Claim, row: Row, layout: Layout) -> Answer:
    """Answer a claim whose owner's slot holds something: that, if it is what the claim asks for, else why not.

    What a claim asks for is the address it names, the limits of where it may be served from, and a firm hold. The
    policy is how an address is picked, so no holding is at odds with it.
    """
    try:
        wrong = _at_odds(claim, row, layout)
    # The claim names a pool or a subnet that is not there (any more), or another length than that of the unit.
    except TenureError as error:
        return error
    if wrong is None:
        return Granted(row, layout)
    field, hint = wrong
    return AlreadyExists("holding", _place(claim), hint=hint, field=field)


def _at_odds(claim: Claim, row: Row, layout: Layout) -> tuple[str, str] | None:
    """Return the field that a holding is at odds with, and the reason."""
    held = format_address(row.first)
    if claim.address is not None:
        layout.check_length(claim.network, claim.address, claim.length)
    if claim.address is not None and claim.address != row.first:
        wanted = format_address(claim.address)
        return "address", f"{claim.owner} holds {held} there, not {wanted}; release it first, or use another slot"
    if (broken := layout.broken_limit(line_key(claim), row.first)) is not None:
        hint = f"{claim.owner} holds {held} there, which is not {broken.text}; release it first, or use another slot"
        return broken.field, hint
    if row.state is State.PENDING and claim.state is State.HELD:
        return "owner", f"{held} is pending for {claim.owner}; confirm it, or cancel it first"
    return None


def _place(claim: Claim) -> str:
    """Name where an owner has one address: its slot in a network; of many claims only this says which is meant."""
    return f"{claim.owner}{claim.slot and f' ({claim.slot})'} in {claim.network}"


def wanted_address(claim: Claim, layout: Layout) -> int | None:
    """Return the one address that will do: the one that was named, or the one that waits for this owner."""
    if claim.address is not None:
        return claim.address
    return layout.preallocated(claim.network, claim.owner, claim.slot)


def wanted_unit(claim: Claim, address: int, layout: Layout) -> AddressRange:
    """Return the unit at the one address that will do, or raise why the claim cannot have it."""
    if claim.address is None and (broken := layout.broken_limit(line_key(claim), address)) is not None:
        waits = f"{format_address(address)} waits for {claim.owner} there, which is not {broken.text}"
        hint = f"{waits}; remove the pre-allocation, or use another slot"
        raise AlreadyExists("pre-allocation", _place(claim), hint=hint, field=broken.field)
    layout.check_length(claim.network, address, claim.length)
    return layout.check_wanted(claim.network, address, claim.owner, claim.slot, claim.reserved)
