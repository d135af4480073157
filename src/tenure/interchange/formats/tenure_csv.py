"""Our own table of holdings: one row a holding."""

from collections.abc import Iterator, Mapping

from tenure.interchange.formats.labels_cell import labels_cell, read_labels_cell
from tenure.interchange.formats.source_items import Fault, Item, Oddity, SourceHolding, SourcePlace
from tenure.interchange.formats.text_tables import columns_of, read_table, written_row
from tenure.kernel.addressing.addresses import unit_text
from tenure.kernel.errors import Invalid
from tenure.kernel.holdings.holding_model import Holding

NEEDED = ("network", "address", "owner")
READ = (*NEEDED, "slot", "state", "until", "labels", "description", "carrier", "plan")
TOLD = ("since", "generation", "request")
"""Written for people and left alone when read: an import makes its own."""

_NETBOXS = " (a table with vrf or status is taken for NetBox's; any other only with format netbox)"

COLUMNS = (*READ, *TOLD)


def read_own_csv(text: str, name: str) -> Iterator[Item]:
    """Read a table of holdings."""
    columns = columns_of(text)
    if missing := [column for column in NEEDED if column not in columns]:
        place = SourcePlace(name, 1)
        reason = f"the header has no column {missing[0]!r}; needed are {', '.join(NEEDED)}{_NETBOXS}"
        yield Item(place, Fault(place, missing[0], "missing_column", reason))
        return
    for column in columns:
        if column not in COLUMNS:
            place = SourcePlace(name, 1)
            yield Item(place, Oddity(place, column, "unknown_column", f"column {column!r} is not read"))
    for line in read_table(text, name):
        yield Item(line.place, line.fault or _held(line.cells, line.place))


def _held(cells: Mapping[str, str], place: SourcePlace) -> SourceHolding | Fault:
    try:
        labels = read_labels_cell(cells.get("labels", ""))
    except Invalid as error:
        return Fault(place, "labels", "invalid", str(error).removeprefix("labels: "))
    return SourceHolding(
        network=cells.get("network", "").strip(),
        address=cells.get("address", "").strip(),
        owner=cells.get("owner", "").strip(),
        slot=cells.get("slot", "").strip(),
        state=cells.get("state", "").strip() or "held",
        until=cells.get("until", "").strip() or None,
        labels=labels or None,
        description=cells.get("description", ""),
        carrier=cells.get("carrier", "").strip() or None,
        plan=cells.get("plan", "").strip() or None,
    )


def header_row() -> str:
    """Write the header."""
    return written_row(COLUMNS)


def holding_row(holding: Holding) -> str:
    """Write a holding."""
    return written_row(
        [
            holding.network,
            address_text(holding),
            holding.owner,
            holding.slot,
            holding.state,
            "" if holding.until is None else holding.until.isoformat(),
            labels_cell(holding.labels),
            holding.description,
            holding.carrier or "",
            holding.plan or "",
            holding.since.isoformat(),
            str(holding.generation),
            holding.request or "",
        ]
    )


def address_text(holding: Holding) -> str:
    """Write what is held: an address, or a prefix with its length."""
    return unit_text(holding.row.first, holding.row.last)
