"""SQL is a file: named statements, and the steps that make a schema.

A statements file holds ``-- :name`` and ``-- :cost`` lines above each statement. Migrations are numbered files,
applied in order and never changed once released.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from tenure.kernel.addresses import key, position
from tenure.kernel.errors import StoreUnavailable
from tenure.kernel.values import NO_DETAILS, Change, Row, State

STATES = (State.PENDING, State.HELD, State.DRAINING, State.COOLING)
STATE_NUMBER = {state: number for number, state in enumerate(STATES)}


@dataclass(frozen=True, slots=True)
class Statement:
    """A named SQL statement and what it costs."""

    name: str
    cost: str
    sql: str


def load_statements(package: str) -> dict[str, Statement]:
    """Read a package's ``queries.sql``."""
    statements: dict[str, Statement] = {}
    for block in (files(package) / "queries.sql").read_text("utf-8").split("-- :name ")[1:]:
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


def dump_details(details: Mapping[str, Any]) -> str | None:
    """Write details; nothing at all for none, so that the usual row stays small."""
    return json.dumps(details, separators=(",", ":"), sort_keys=True) if details else None


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


def read_change(record: Any) -> Change:
    """Read a change from the columns in the order every statement selects them."""
    seq, at_us, verb, space, network, first, last, owner, slot, generation, request, details = record
    return Change(
        seq, at_us, verb, space, network,
        None if first is None else position(first), None if last is None else position(last),
        owner, slot, generation, request, read_details(details),
    )  # fmt: skip


def optional_key(value: int | None) -> bytes | None:
    """Encode an optional position."""
    return None if value is None else key(value)


def read_spans(records: Iterable[Any]) -> list[tuple[int, int]]:
    """Read first and last addresses; most holdings are of one address, whose key need not be read twice."""
    read = int.from_bytes
    return [((first := read(low, "big")), first if low == high else read(high, "big")) for low, high in records]
