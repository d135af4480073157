"""What a claim gets where the ledger has an address for its owner: the holding in its slot, or one that waits for it.

Every way of asking rests on this: the lane, the doubtful pick, runs, ``apply``, the line, books, and a caller's own
transaction. An address that is not what the claim asks for is never its answer.
"""

from tenure.kernel.addressing.addresses import format_address, unit_text
from tenure.kernel.addressing.ranges import AddressRange
from tenure.kernel.errors import AlreadyExists, TenureError
from tenure.kernel.holdings.holding_model import Row, State, moment
from tenure.kernel.plan.layout import Layout, LineKey
from tenure.service.allocator.claim import Claim, Granted

Answer = Granted | TenureError

WRITTEN = ("labels", "description", "carrier", "plan")
"""What a claim has written on its holding, and ``modify_holding`` can change."""


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
        return with_warnings(claim, Granted(row, layout))
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


def with_warnings(claim: Claim, granted: Granted) -> Granted:
    """Add warnings to an answer with a holding from before, where it is not written as the claim says.

    The holding stays as it is: a request that is repeated late must not undo what was modified since. The warnings
    follow from the claim and the row alone, so an answer that is kept under a key has the same ones each time.
    """
    row = granted.row
    unchanged = [name for name in WRITTEN if name in claim.details and not _is_written(name, claim, row)]
    said = [f"unchanged: {', '.join(unchanged)} (modify the holding to change that)"] if unchanged else []
    # A claim for a firm hold says nothing of a deadline, and is never answered with a pending holding.
    if claim.state is State.PENDING and row.state is not State.PENDING:
        said.append(f"it is {row.state}, not pending, and has no deadline")
    elif claim.state is State.PENDING and claim.lasts_us != _lasts_us(row):
        said.append(f"unchanged: deadline, {'none' if row.until_us is None else _time(row.until_us)}")
    if not said:
        return granted
    before = f"{row.owner} has held {unit_text(row.first, row.last)} since {_time(row.since_us)}"
    return granted._replace(warnings=tuple(f"{before}; {text}" for text in said))


def _is_written(name: str, claim: Claim, row: Row) -> bool:
    """Return whether a row has what the claim says; it may have labels that the claim does not name."""
    said, written = claim.details[name], row.details.get(name)
    return said.items() <= (written or {}).items() if name == "labels" else bool(said == written)


def _lasts_us(row: Row) -> int | None:
    return None if row.until_us is None else row.until_us - row.since_us


def _time(at_us: int) -> str:
    return moment(at_us).strftime("%Y-%m-%d %H:%M:%S UTC")


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
