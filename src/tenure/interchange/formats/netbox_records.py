"""Records of NetBox, from a table of its pages or a list of its REST interface, in one flat form."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tenure.interchange.formats.source_items import Fault, Item, SourcePlace
from tenure.interchange.formats.text_tables import read_table

PREFIXES, RANGES, ADDRESSES = "prefixes", "ip-ranges", "ip-addresses"

TELLING = {PREFIXES: "prefix", RANGES: "start_address", ADDRESSES: "address"}
"""The field by which each kind of record is known."""

OF_NETBOX = frozenset({"vrf", "status"})
"""Columns by which a table is known as NetBox's: a spreadsheet has a column of addresses, too."""

_ALIASES = {
    "ip_address": "address",
    "pool": "is_pool",
    "marked_utilized": "mark_utilized",
    "marked_populated": "mark_populated",
    "device_vm": "parent",
    "assigned_object_parent": "parent",
    "assigned_object": "interface",
}
"""Heads of NetBox's pages, and the names of its fields."""

_WITH_DISTINGUISHER = re.compile(r"(.+?) \([^()]*:[^()]*\)")
_TRUE = {"true", "yes", "1", "✔", "t", "y"}


class Record(NamedTuple):
    """A record: its kind, its place, and its fields as text."""

    kind: str
    place: SourcePlace
    fields: Mapping[str, str]

    def text(self, name: str) -> str:
        """Return a field, or nothing."""
        return self.fields.get(name, "")

    def flag(self, name: str) -> bool:
        """Tell whether a field says yes."""
        return self.text(name).lower() in _TRUE


def kind_of(fields: Iterable[str]) -> str | None:
    """Tell which kind of record has these fields."""
    names = {_ALIASES.get(name, name) for name in fields}
    return next((kind for kind, telling in TELLING.items() if telling in names), None)


def records_of_table(text: str, name: str, kind: str) -> Iterator[Record | Item]:
    """Read a table that NetBox exported; rows that cannot be read are items with a fault."""
    for line in read_table(text, name):
        if line.fault is not None:
            yield Item(line.place, line.fault)
            continue
        fields = {_ALIASES.get(column, column): cell.strip() for column, cell in line.cells.items()}
        fields["vrf"] = _vrf_cell(fields.get("vrf", ""))
        if kind == PREFIXES:
            fields["prefix"] = fields.get("prefix", "").lstrip("•· \u00a0")  # the page indents by depth
        yield Record(kind, line.place, fields)


def _vrf_cell(cell: str) -> str:
    """Read a VRF of a page: ``red (65000:1)`` is ``red``; the pages write Global where there is none."""
    if match := _WITH_DISTINGUISHER.fullmatch(cell):
        return match[1]
    return "" if cell in ("Global", "—", "-") else cell


def records_of_list(document: Any, name: str) -> Iterator[Record | Item]:
    """Read a list of the REST interface, or its page with ``results``."""
    paged = isinstance(document, dict)
    for index, entry in enumerate(document.get("results", []) if paged else document):
        place = SourcePlace(name, path=f"results[{index}]" if paged else f"[{index}]")
        kind = kind_of(entry) if isinstance(entry, dict) else None
        if kind is None:
            reason = "neither a prefix, nor an IP range, nor an IP address of NetBox"
            yield Item(place, Fault(place, "", "unknown_record", reason))
        else:
            yield Record(kind, place, _flat(entry))
    if paged and document.get("next"):
        place = SourcePlace(name, path="next")
        reason = "this is one page of several: fetch them all (limit=0, or follow next)"
        yield Item(place, Fault(place, "next", "not_all", reason))


def _flat(entry: Mapping[str, Any]) -> dict[str, str]:
    fields = {key: _plain(value) for key, value in entry.items() if key != "assigned_object"}
    assigned = entry.get("assigned_object")
    if not isinstance(assigned, dict):
        return fields
    for kind in ("device", "virtual_machine"):
        if isinstance(assigned.get(kind), dict):
            fields[kind] = _plain(assigned[kind])
            fields["interface"] = _plain(assigned)
            return fields
    fields["fhrp_group"] = _plain(assigned)
    return fields


def _plain(value: Any) -> str:
    """Write a value as a table would: of an object its value or name, of a list all of them."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        # NetBox writes a choice with value and label, other objects with a name or a display.
        told = (value.get(key) for key in ("value", "name", "display", "slug", "id"))
        return _plain(next((one for one in told if one not in (None, "")), None))
    if isinstance(value, list):
        return ",".join(_plain(one) for one in value)
    return str(value).strip()
