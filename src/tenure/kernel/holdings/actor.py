"""On whose word: who asked for a change, kept with it.

It travels in the details of rows and entries, under one name, so that stores need not know of it.
"""

from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring_ascii as _quoted
from typing import Any, NamedTuple

from tenure.kernel.holdings.holding_model import Entry, Row
from tenure.kernel.names import check_name

BY = "by"


class Asker(NamedTuple):
    """Who asks (``token/ops``), and by which request of a door."""

    actor: str
    request_id: str | None = None


def check_asker(actor: object, request_id: object) -> Asker:
    """Read an asker from a caller's words."""
    named = None if request_id is None else check_name(request_id, field="request_id")
    return Asker(check_name(actor, field="actor"), named)


def asked(details: Mapping[str, Any], asker: Asker | None) -> Mapping[str, Any]:
    """Write on details who asked; whoever asked before is forgotten."""
    if asker is not None:
        return {**details, BY: list(asker)}
    return {name: value for name, value in details.items() if name != BY} if BY in details else details


def written_asker(by: Sequence[Any]) -> str:
    """Write as JSON who asked. By hand: every grant of a server does it, and this takes a fifth of the time."""
    actor, request_id = by
    return f"[{_quoted(actor)},{'null' if request_id is None else _quoted(request_id)}]"


def asker_of(details: Mapping[str, Any]) -> Asker | None:
    """Read from details who asked, if anybody said so."""
    by = details.get(BY)
    return None if by is None else Asker(*by)


def asker_text(actor: str | None, request: str | None, request_id: str | None) -> str:
    """Write on whose word, and by which request: the caller's name for it, or else the door's; empty if by neither."""
    named = request or request_id
    return ", ".join(word for word in (actor, named and f"request {named}") if word)


def ended_row(row: Row, request: str | None, asker: Asker | None) -> Row:
    """Return a row as the answer to its end shows it: by the request, and on the word, that ended it.

    Beside a release, the request of the grant would be read as that of the release. The log has both.
    """
    return row._replace(request=request, details=asked(row.details, asker))


def asked_entry(entry: Entry, asker: Asker | None) -> Entry:
    """Tell the log who asked."""
    return entry if asker is None else entry._replace(details=asked(entry.details, asker))
