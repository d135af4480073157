"""What the log tells of grants and releases, the same from every store."""

from typing import Any

from tenure.kernel.values import Entry, Row, State


def grant_entry(row: Row) -> Entry:
    """Tell the log of a grant."""
    return Entry(
        "grant", row.space, row.network, row.first, row.last, row.owner, row.slot, row.generation, row.request,
        grant_details(row.state, row.until_us, row.details),
    )  # fmt: skip


def grant_details(state: State, until_us: int | None, details: Any) -> dict[str, Any]:
    """Return what a grant's entry tells beyond its columns."""
    told = dict(details)
    if state is not State.HELD:
        told["state"] = str(state)
    if until_us is not None:
        told["until_us"] = until_us
    return told


def release_entry(row: Row, request: str | None) -> Entry:
    """Tell the log of a release."""
    return Entry("release", row.space, row.network, row.first, row.last, row.owner, row.slot, row.generation, request)


def transfer_entry(row: Row, before: Row) -> Entry:
    """Tell the log of a transfer."""
    told = {"from": before.owner, "from_slot": before.slot}
    return Entry(
        "transfer", row.space, row.network, row.first, row.last, row.owner, row.slot, row.generation, row.request, told
    )


def modify_entry(row: Row, request: str | None) -> Entry:
    """Tell the log what a holding has become."""
    told = {**row.details, "state": str(row.state)}
    return Entry(
        "modify", row.space, row.network, row.first, row.last, row.owner, row.slot, row.generation, request, told
    )
