"""Files in, sources out: which format a file has is seen from what stands in it."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tenure.interchange.formats.netbox_reader import GLOBAL, read_netbox
from tenure.interchange.formats.netbox_records import OF_NETBOX, Record, kind_of, records_of_list, records_of_table
from tenure.interchange.formats.source_items import Item, Source
from tenure.interchange.formats.tenure_csv import read_own_csv
from tenure.interchange.formats.tenure_json import is_own_json, read_own_json
from tenure.interchange.formats.text_tables import columns_of, decoded
from tenure.kernel.errors import Invalid
from tenure.kernel.names import shown

FORMATS = ("auto", "csv", "json", "netbox")


def read_source(
    paths: Path | str | Sequence[Path | str],
    *,
    format: str = "auto",
    name: str | None = None,
    global_network: str = GLOBAL,
) -> Source:
    """Read a file, or the several files of one NetBox export, into a source.

    Raises Invalid where nothing can be read at all; whatever is wrong inside becomes a fault with its place.
    """
    if format not in FORMATS:
        raise Invalid(f"format: {shown(format)} is none of {', '.join(FORMATS)}", field="format")
    files = [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    contents = [(file.name, _content(file)) for file in files]
    return parse_source(contents, format=format, name=name, global_network=global_network)


def parse_source(
    contents: Sequence[tuple[str, bytes]],
    *,
    format: str = "auto",
    name: str | None = None,
    global_network: str = GLOBAL,
) -> Source:
    """Read contents that come with names, as ``read_source`` reads files."""
    if not contents:
        raise Invalid("source: name at least one file", field="source")
    source = Source(name or ", ".join(each for each, _ in contents))
    records: list[Record] = []
    for each, content in contents:
        for found in _read(decoded(content, each), each, format):
            if isinstance(found, Record):
                records.append(found)
            else:
                source.items.append(found)
    # After all files: addresses may stand in an earlier file than the prefixes around them.
    source.items.extend(read_netbox(records, request=source.request, global_network=global_network))
    return source


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise Invalid(f"source: {file} cannot be read: {error.strerror or error}", field="source") from None


def _read(text: str, name: str, format: str) -> Iterator[Record | Item]:
    begins = text.lstrip()[:1]
    if format == "json" or (format != "csv" and begins in ("{", "[")):
        return _read_document(text, name, format)
    columns = columns_of(text)
    if not columns:
        raise Invalid(f"source: {name} is empty", field="source")
    kind = kind_of(columns)
    # NetBox's table of addresses has a column address as ours has; only ours has a column network.
    netboxs = kind is not None and "network" not in columns and not OF_NETBOX.isdisjoint(columns)
    if format == "csv" or (format == "auto" and not netboxs):
        return iter(read_own_csv(text, name))
    if kind is None:
        known = "prefix, start_address or address"
        raise Invalid(f"source: {name} is no table of NetBox: no column {known}", field="source")
    return records_of_table(text, name, kind)


def _read_document(text: str, name: str, format: str) -> Iterator[Record | Item]:
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"source: {name} is not JSON: {str(error)[:160]}", field="source") from None
    if is_own_json(document) and format != "netbox":
        return read_own_json(document, name)
    listed = isinstance(document, list) or (isinstance(document, dict) and isinstance(document.get("results"), list))
    if format == "json" or not listed:
        wanted = "an export of Tenure" if format == "json" else "an export of Tenure or a list of NetBox"
        raise Invalid(f"source: {name} is not {wanted}", field="source")
    return records_of_list(document, name)
