"""The history of an address, read: the log's entries about it and the holding that is there now."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from tenure.kernel.addressing.addresses import format_address, width
from tenure.kernel.errors import CursorExpired, Invalid
from tenure.kernel.holdings.deadlines import is_over
from tenure.kernel.holdings.holding_model import Change, NetworkId, Row
from tenure.kernel.holdings.tenures import History, Tenure, held_at, run_out, tenures_of
from tenure.kernel.names import shown
from tenure.kernel.plan.plan_model import Configuration, Places
from tenure.ports import LedgerStore
from tenure.service.read.whole_log import oldest_kept, whole_log

PAGE = 1000
MOST_PAGES = 50
"""How far behind a network's last entry the log is read for the name it was removed under."""


async def read_history(
    store: LedgerStore,
    spaces: Sequence[Configuration],
    position: int,
    network: NetworkId | None = None,
    at: datetime | None = None,
) -> History:
    """Tell who held an address, in all spaces or in one network; at a time, or ever."""
    # Rows are read before entries: a holding that ends in between is in both, and ``tenures_of`` counts it once.
    rows = await _rows_there(store, spaces, position)
    changes = await _changes_there(store, position)
    trimmed, complete_since = await _reach(store)
    now_us = await store.now_us() if any(row.until_us is not None for row in rows) else 0
    tenures = run_out(tenures_of(changes, rows), {row.generation for row in rows if is_over(row, now_us)})
    if at is not None:
        tenures = held_at(tenures, at)
    wanted = [tenure for tenure in tenures if network in (None, tenure.network_id)]
    names = await _names(store, spaces, wanted, changes)
    named = tuple(replace(tenure, network=names.get(tenure.network_id)) for tenure in wanted)
    return History(format_address(position), named, trimmed, complete_since)


async def _rows_there(store: LedgerStore, spaces: Sequence[Configuration], position: int) -> list[Row]:
    found: list[Row] = []
    for configuration in spaces:
        if any(Places(network.subnets).around(position) for network in configuration.networks.values()):
            found.extend(await store.rows_within(configuration.space, position, position, limit=1))
    return found


async def _changes_there(store: LedgerStore, position: int) -> list[Change]:
    """Read the entries about whatever the address lies in: a prefix around it begins at one of few places."""
    bits = width(position)
    # A unit begins at a multiple of its size, so there is one candidate for each prefix length.
    firsts = sorted({position >> size << size for size in range(bits + 1)})
    found: list[Change] = []
    after = 0
    while page := await store.changes_at(firsts, after=after, limit=PAGE):
        found.extend(change for change in page if change.last is not None and change.last >= position)
        after = page[-1].seq
    return found


async def _reach(store: LedgerStore) -> tuple[bool, datetime | None]:
    """Tell whether changes were dropped, and the time of the oldest one that is left, archived or not."""
    while (oldest := await oldest_kept(store)) > 0:
        try:
            async for kept in whole_log(store, oldest):
                return True, kept[0].at
            return True, None
        except CursorExpired:  # more was dropped meanwhile
            continue
    return False, None


async def _names(
    store: LedgerStore, spaces: Sequence[Configuration], tenures: Sequence[Tenure], changes: Sequence[Change]
) -> Mapping[NetworkId, str | None]:
    """Name the networks of tenures as they are called now, or as they were when they were removed."""
    names: dict[NetworkId, str | None] = {
        network.id: network.name for space in spaces for network in space.networks.values()
    }
    newest = {change.network: change for change in changes}
    for number in {tenure.network_id for tenure in tenures} - names.keys():
        if number in newest:
            names[number] = await _last_name(store, newest[number])
    return names


async def _last_name(store: LedgerStore, change: Change) -> str | None:
    after = change.seq
    for _ in range(MOST_PAGES):
        page, is_last = await _later(store, change, after)
        for later in page:
            if (later.verb, later.network) == ("network.remove", change.network):
                return str(later.details["network"])
        if is_last:
            return None
        after = page[-1].seq
    return None


async def _later(store: LedgerStore, change: Change, after: int) -> tuple[Sequence[Change], bool]:
    """Read what comes behind a number in a change's space (archived: in all); tell whether that is the end of it."""
    try:
        page = await store.watch(after, limit=PAGE, space=change.space)
    except CursorExpired:
        try:
            return await store.archived(after, limit=PAGE), False
        except CursorExpired:  # dropped
            return [], True
    return page, len(page) < PAGE


def check_time(value: object) -> datetime | None:
    """Return a time with its zone, if there is one; without a zone it would mean another time elsewhere."""
    if value is None:
        return None
    if not isinstance(value, datetime):
        raise Invalid(f"at: a datetime is needed, not {shown(value)}", field="at")
    if value.tzinfo is None or value.utcoffset() is None:
        raise Invalid(f"at: {shown(value)} has no time zone; write one, such as UTC", field="at")
    return value
