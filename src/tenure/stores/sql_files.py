"""SQL is a file: named statements, and the steps that make a schema.

A statements file holds ``-- :name`` and ``-- :cost`` lines above each statement. Migrations are numbered files,
applied in order and never changed once released.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from tenure.kernel.addressing.addresses import key, position
from tenure.kernel.errors import StoreUnavailable
from tenure.kernel.holdings.actor import BY, written_asker
from tenure.kernel.holdings.archive_pages import ArchivedPage, places_in
from tenure.kernel.holdings.holding_model import NO_DETAILS, Change, Paper, Reply, Row, State, Waiter
from tenure.kernel.plan.document import network_document, read_network
from tenure.kernel.snapshot import Counters, Former, Kind, PlacedNetwork, Space

# Rows keep these numbers, and SQL compares them (state < 2 is owned, 3 is cooling): append, never reorder.
STATES = (State.PENDING, State.HELD, State.DRAINING, State.COOLING)
STATE_NUMBER = {state: number for number, state in enumerate(STATES)}


@dataclass(frozen=True, slots=True)
class Statement:
    """A named SQL statement and what it costs."""

    name: str
    cost: str
    sql: str


def load_statements(package: str, file: str = "queries.sql") -> dict[str, Statement]:
    """Read a package's statements."""
    statements: dict[str, Statement] = {}
    # The text above the first name is the file's own heading.
    for block in (files(package) / file).read_text("utf-8").split("-- :name ")[1:]:
        head, _, rest = block.partition("\n")
        cost_line, _, sql = rest.partition("\n")
        if not cost_line.startswith("-- :cost "):
            raise ValueError(f"statement {head.strip()} of {package} states no cost")
        statements[head.strip()] = Statement(head.strip(), cost_line.removeprefix("-- :cost ").strip(), sql.strip())
    return statements


def load_migrations(package: str) -> list[str]:
    """Read a package's migrations in order; the first brings an empty database to version 1."""
    folder = files(package) / "migrations"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(folder / name).read_text("utf-8") for name in names]


def check_version(found: int, known: int) -> None:
    """Refuse a database that a newer Tenure has written."""
    if found > known:
        raise StoreUnavailable(
            f"the database has schema version {found}, this Tenure knows up to {known}; install a newer Tenure",
            outcome="none",
        )


_written = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode
"""Made once: every grant that tells who asked writes two of these."""


def dump_details(details: Mapping[str, Any]) -> str | None:
    """Write details; nothing at all for none, so that the usual row stays small.

    What tells only who asked, as every grant of a server does, takes a short way.
    """
    if not details:
        return None
    if len(details) == 1 and (by := details.get(BY)) is not None:
        return f'{{"{BY}":{written_asker(by)}}}'
    return _written(details)


def read_details(text: str | None) -> Mapping[str, Any]:
    """Read back what ``dump_details`` wrote."""
    return NO_DETAILS if text is None else json.loads(text)


def read_row(record: Any) -> Row:
    """Read a holding from the columns in the order every statement selects them."""
    space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details = record
    return Row(
        space, network, position(first), position(last), owner, slot, STATES[state], generation, since_us, until_us,
        request, read_details(details),
    )  # fmt: skip


def row_columns(row: Row) -> tuple[Any, ...]:
    """Turn a holding into the columns that ``read_row`` reads."""
    space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details = row
    begin = key(first)
    return (
        space, network, begin, begin if first == last else key(last), owner, slot, STATE_NUMBER[state], generation,
        since_us, until_us, request, dump_details(details),
    )  # fmt: skip


def read_change(record: Any) -> Change:
    """Read a change from the columns in the order every statement selects them."""
    seq, at_us, verb, space, network, first, last, owner, slot, generation, request, details = record
    return Change(
        seq, at_us, verb, space, network,
        None if first is None else position(first), None if last is None else position(last),
        owner, slot, generation, request, read_details(details),
    )  # fmt: skip


def change_columns(change: Change) -> tuple[Any, ...]:
    """Turn a change into the columns that ``read_change`` reads."""
    # Readers fill in the last three fields (the network's name, the actor, the request id), which have no columns.
    seq, at_us, verb, space, network, first, last, owner, slot, generation, request, details, _, _, _ = change
    return (
        seq, at_us, verb, space, network, optional_key(first), optional_key(last), owner, slot, generation, request,
        dump_details(details),
    )  # fmt: skip


def read_waiter(record: Any) -> Waiter:
    """Read a waiting claim from the columns in the order every statement selects them."""
    ticket, space, network, owner, slot, since_us, until_us, document, lasts_us = record
    return Waiter(ticket, space, network, owner, slot, since_us, until_us, json.loads(document), lasts_us)


def reply_columns(reply: Reply, now_us: int) -> tuple[Any, ...]:
    """Turn a kept answer into the columns that statements take."""
    name, body, at_us, space, network, first, last, generation, until_us, answer = reply
    return (
        name, body, at_us or now_us, space, network, optional_key(first), optional_key(last), generation, until_us,
        answer,
    )  # fmt: skip


def read_reply(record: Any) -> Reply:
    """Read a kept answer from the columns in the order every statement selects them."""
    name, body, at_us, space, network, first, last, generation, until_us, answer = record
    return Reply(
        name, body, at_us, space, network, None if first is None else position(first),
        None if last is None else position(last), generation, until_us, answer,
    )  # fmt: skip


def read_paper(record: Any) -> Paper:
    """Read a paper from the columns in the order every statement selects them."""
    kind, name, revision, document = record
    return Paper(kind, name, revision, json.loads(document))


def paper_columns(paper: Paper) -> tuple[Any, ...]:
    """Turn a paper into the columns that ``read_paper`` reads."""
    return (paper.kind, paper.name, paper.revision, json.dumps(paper.document, separators=(",", ":"), sort_keys=True))


def after_prefix(prefix: str) -> str:
    """Return a text that comes right after everything that begins with a prefix."""
    # Names are printable, and this character is not: no name contains it, and it sorts behind all others.
    return prefix + "\U0010ffff"


def optional_key(value: int | None) -> bytes | None:
    """Encode an optional position."""
    return None if value is None else key(value)


def read_spans(records: Iterable[Any]) -> list[tuple[int, int]]:
    """Read first and last addresses, in order; spans that touch become one, of which there are far fewer to go through.

    Most holdings are of one address, whose key need not be read twice.
    """
    read = int.from_bytes
    joined: list[tuple[int, int]] = []
    # No position touches -2, so the first span never joins this placeholder; the return cuts it off.
    start, end = 0, -2
    for low, high in records:
        first = read(low, "big")
        if first != end + 1:
            joined.append((start, end))
            start = first
        end = first if low == high else read(high, "big")
    joined.append((start, end))
    return joined[1:]


def network_columns(placed: PlacedNetwork) -> tuple[Any, ...]:
    """Turn a network and its space into the columns that ``READERS`` read."""
    document = json.dumps(network_document(placed.network), separators=(",", ":"))
    return (placed.space, placed.network.id, placed.network.name, document)


READERS: dict[Kind, Callable[[Any], Any]] = {
    Kind.COUNTERS: lambda record: Counters(*record),
    Kind.SPACES: lambda record: Space(*record),
    Kind.NETWORKS: lambda record: PlacedNetwork(record[0], read_network(record[1], record[2], json.loads(record[3]))),
    Kind.HOLDINGS: read_row,
    Kind.FORMERS: lambda record: Former(record[0], record[1], record[2], position(record[3])),
    Kind.REPLIES: read_reply,
    Kind.PAPERS: read_paper,
    Kind.ARCHIVE_PAGES: lambda record: ArchivedPage(*record),
    Kind.CHANGES: read_change,
}
"""How each kind of a ledger's contents is read from the columns of its statement."""

WRITERS: dict[Kind, Callable[[Any], tuple[Any, ...]]] = {
    Kind.SPACES: tuple,
    Kind.NETWORKS: network_columns,
    Kind.HOLDINGS: row_columns,
    Kind.FORMERS: lambda former: (former.network, former.owner, former.slot, key(former.first)),
    # A copied reply has its time, so the 0 is never written.
    Kind.REPLIES: lambda reply: reply_columns(reply, 0),
    Kind.PAPERS: paper_columns,
    Kind.ARCHIVE_PAGES: lambda page: (*page, places_in(page)),
    Kind.CHANGES: change_columns,
}
"""How it is turned into the same columns, and the marks of a page's places. Counters have their own way in."""
