"""Lists whose columns the user may choose: ``-o FIELDS``, without headings, with a separator of one's own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tenure.doors.cli.framework.click_base import with_options
from tenure.doors.cli.output.print_answer import Columns, Document, cell_text, echo, json_text, table, table_lines
from tenure.doors.cli.session import Session
from tenure.kernel.errors import NotFound

if TYPE_CHECKING:
    from tenure.integrations.ganeti.query.network_fields import Field

F = TypeVar("F")

ABSENT = "(unavail)"
"""What stands in a cell for a value that is not there, if the user wants words for it."""

FIELD_COLUMNS = {"FIELD": "name", "TITLE": "title", "MEANING": "doc"}

layout_options = with_options(
    click.option("-o", "--output", metavar="FIELD,…", help="Show these fields; +FIELD,… adds to the usual ones."),
    click.option("--no-headers", "headers", flag_value=False, default=True, help="Leave out the headings."),
    click.option("--separator", metavar="TEXT", help="Write it between the columns, in place of aligning them."),
    click.option("-v", "--verbose", is_flag=True, help=f"Write {ABSENT} for values that are not there."),
)


@dataclass(frozen=True, slots=True)
class ListLayout:
    """How a list is to look; ``output`` is None where nobody chose its columns."""

    output: str | None = None
    headers: bool = True
    separator: str | None = None
    verbose: bool = False

    @property
    def for_people(self) -> bool:
        """Tell whether nobody asked for anything that scripts want."""
        return self.headers and self.separator is None


def print_list(
    session: Session, documents: Sequence[Document], columns: Columns, layout: ListLayout, *, nothing: str
) -> None:
    """Write documents in columns, as the user wants to see them."""
    if session.json or (layout.for_people and not documents):
        table(session, documents, columns, nothing=nothing)
        return
    for line in _lines([_spoken(document, columns, layout) for document in documents], columns, layout):
        echo(session, line)


def _spoken(document: Document, columns: Columns, layout: ListLayout) -> dict[str, Any]:
    values = {key: document[key] for key in columns.values()}
    return {key: ABSENT if value is None and layout.verbose else value for key, value in values.items()}


def _lines(documents: Sequence[Document], columns: Columns, layout: ListLayout) -> list[str]:
    if layout.separator is None:
        return table_lines(documents, columns)[0 if layout.headers else 1 :]
    head = [layout.separator.join(columns)] if layout.headers else []
    return [*head, *(layout.separator.join(map(_cell, document.values())) for document in documents)]


def _cell(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else cell_text(value)


def chosen_fields(
    session: Session, layout: ListLayout, default: Sequence[str], fields: "Mapping[str, Field[F]]"
) -> "list[Field[F]]":
    """Return the fields that the user wants: those he named, else the usual ones, else (in JSON) all."""
    from tenure.integrations.ganeti.query.network_fields import select

    if session.json and layout.output is None:
        return list(fields.values())
    return select(layout.output, default, fields)


def print_fields(
    session: Session, facts: Sequence[F], fields: "Sequence[Field[F]]", layout: ListLayout, *, nothing: str
) -> None:
    """Write the fields of things: as a table, as lines for scripts, or as objects of exactly these fields."""
    if session.json:
        echo(session, json_text([field_values(each, fields) for each in facts]))
        return
    documents = [{field.name: _shown(field, each) for field in fields} for each in facts]
    titles = [field.title if layout.output is not None else field.title.upper() for field in fields]
    columns = dict(zip(titles, (field.name for field in fields), strict=True))
    print_list(session, documents, columns, layout, nothing=nothing)


def field_values(facts: F, fields: "Sequence[Field[F]]") -> dict[str, Any]:
    """Return a thing as an object of these fields."""
    return {field.name: field.read(facts) for field in fields}


def _shown(field: "Field[F]", facts: F) -> object:
    """Write a value for a cell; numbers stay numbers, so that they stand to the right."""
    value = field.read(facts)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    return field.write(value)


def print_field_list(session: Session, fields: "Mapping[str, Field[F]]", names: Sequence[str]) -> None:
    """Tell which fields there are, or what some of them mean."""
    for name in names:
        if name not in fields:
            raise NotFound("field", name, hint=f"there are: {', '.join(fields)}")
    chosen = [fields[name] for name in names or fields]
    documents = [{"name": field.name, "title": field.title, "doc": field.doc} for field in chosen]
    table(session, documents, FIELD_COLUMNS, nothing="no fields")
