"""The log of changes."""

from typing import Annotated

from msgspec import Meta

from tenure.doors.http.routing.endpoint import Call, RouteSection
from tenure.doors.http.routing.log_filter import Filter, WantedChanges
from tenure.doors.http.routing.principal import Need
from tenure.kernel.holdings.holding_model import Change
from tenure.wire import encode, responses

log = RouteSection("changes", "The ordered log of everything that happened.")

MOST_CHANGES = 1000


class Changes(WantedChanges, kw_only=True, forbid_unknown_fields=True):
    """Which entries of the log."""

    after: Annotated[int, Meta(ge=0, le=1 << 62, description="The number of the last entry that was read.")] = 0
    limit: Annotated[int, Meta(ge=1, le=MOST_CHANGES)] = 100


@log.route("GET", "/changes", need=Need.READ_OWN, query=Changes, answer=responses.ChangePage)
async def list_changes(call: Call) -> responses.ChangePage:
    """Read the log behind a number, in commit order; with filters a page may be short and still not the last."""
    wanted: Changes = call.query
    # Read before the page, which may have newer entries; `last` below is the larger of the two.
    fits, newest = Filter(wanted, call.visitor), await call.ledger.last_change()
    items: list[Change] = []
    after = wanted.after
    # With a filter, the entries that are looked at are limited; `next` moves on also where none of them fits.
    async for change in call.ledger.changes(wanted.after, limit=wanted.limit if fits.takes_all else 10 * MOST_CHANGES):
        after = change.seq
        if fits(change):
            items.append(change)
            if len(items) == wanted.limit:
                break
    return responses.ChangePage(items=[encode.change(each) for each in items], next=after, last=max(newest, after))
