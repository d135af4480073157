"""What the log tells of grants and releases, the same from every store."""

from collections.abc import Mapping
from typing import Any

from tenure.kernel.holdings.actor import BY, Asker, asked, asked_entry
from tenure.kernel.holdings.deadlines import COOLED_OFF, DEADLINE
from tenure.kernel.holdings.holding_model import Entry, Paper, Row, State, Waiter

KEPT_REQUEST, SHOWN_REQUEST = "request", "began_request"
"""How entries that end a holding name the request by which it began: in stores, and to users."""

BEGAN_BY = "began_by"
"""How they name on whose word it began: the actor, and the request of a door, or null."""


def grant_entry(row: Row) -> Entry:
    """Tell the log of a grant."""
    return Entry(
        "grant", row.space, row.network, row.first, row.last, row.owner, row.slot, row.generation, row.request,
        grant_details(row.state, row.until_us, row.details),
    )  # fmt: skip


def grant_details(state: State, until_us: int | None, details: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a grant's entry tells beyond its columns."""
    # The usual grant: its entry shares the details of the row, without a copy.
    if state is State.HELD and until_us is None:
        return details
    told = dict(details)
    if state is not State.HELD:
        told["state"] = str(state)
    if until_us is not None:
        told["until_us"] = until_us
    return told


def release_entry(row: Row, request: str | None, because: str | None = None) -> Entry:
    """Tell the log that an address became free, and why if nobody asked for it."""
    told = _began(row)
    if because is not None:
        told["because"] = because
    return Entry(
        "release", row.space, row.network, row.first, row.last, row.owner, row.slot, row.generation, request, told
    )


def _began(row: Row) -> dict[str, Any]:
    """Return since when, by which request and on whose word a holding that ends was held.

    Grants are not indexed by address, so the history of an address reads it here. ``queries.sql`` of PostgreSQL writes
    the same.
    """
    began: dict[str, Any] = {"since_us": row.since_us}
    if row.request is not None:
        began[KEPT_REQUEST] = row.request
    if BY in row.details:
        began[BEGAN_BY] = row.details[BY]
    return began


def shown_details(details: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what an entry tells, as users see it: with the request of the beginning under a name of its own.

    Stores have kept it as ``request`` from the first. Beside the entry's own request it would be read as that one.
    """
    if KEPT_REQUEST not in details:
        return details
    return {SHOWN_REQUEST if name == KEPT_REQUEST else name: value for name, value in details.items()}


def overdue_entry(row: Row) -> Entry:
    """Return the entry of a row that time ended: the ledger's own doing, by nobody's request."""
    return release_entry(row, None, COOLED_OFF if row.state is State.COOLING else DEADLINE)


def cooled_entry(row: Row, request: str | None, asker: Asker | None) -> Entry:
    """Return the entry of a row that a caller lets cool no longer; unlike time, he is named."""
    return asked_entry(release_entry(row, request, COOLED_OFF), asker)


def cool_entry(row: Row, request: str | None) -> Entry:
    """Tell the log of a release after which the address is not handed out for a while."""
    told = {**_began(row), "until_us": row.until_us}
    return Entry(
        "cool", row.space, row.network, row.first, row.last, row.owner, row.slot, row.generation, request, told
    )


def confirm_entry(row: Row, request: str | None) -> Entry:
    """Tell the log that a pending holding is held."""
    return Entry("confirm", row.space, row.network, row.first, row.last, row.owner, row.slot, row.generation, request)


def waiting_entry(verb: str, waiter: Waiter, because: str | None = None) -> Entry:
    """Return the entry of a claim that began to wait (``wait``) or gave up (``leave``), and why if no caller asked."""
    told: dict[str, Any] = {"ticket": waiter.ticket}
    if because is not None:
        told["because"] = because
    return Entry(verb, waiter.space, waiter.network, owner=waiter.owner, slot=waiter.slot, details=told)


def trim_entry(before: int) -> Entry:
    """Tell the log that it was dropped below a number."""
    return Entry("trim", details={"before": before})


def paper_entry(verb: str, paper: Paper) -> Entry:
    """Tell the log of a paper that was written or removed."""
    return Entry(verb, details={"kind": paper.kind, "name": paper.name, "revision": paper.revision})


def transfer_entry(row: Row, before: Row) -> Entry:
    """Tell the log of a transfer."""
    told = {"from": before.owner, "from_slot": before.slot, **_began(before)}
    return Entry(
        "transfer", row.space, row.network, row.first, row.last, row.owner, row.slot, row.generation, row.request, told
    )


def modify_entry(row: Row, request: str | None) -> Entry:
    """Tell the log what a holding has become."""
    # Without the asker of the row: the entry gets the asker of this change.
    told = {**asked(row.details, None), "state": str(row.state)}
    return Entry(
        "modify", row.space, row.network, row.first, row.last, row.owner, row.slot, row.generation, request, told
    )
