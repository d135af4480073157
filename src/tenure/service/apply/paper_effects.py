"""What ``apply`` does with papers: all that it names are read first, those next to each other are written together."""

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from tenure.kernel.errors import AlreadyExists, Conflict, Invalid, NotFound
from tenure.kernel.holdings.holding_model import Paper
from tenure.kernel.holdings.log_entries import paper_entry
from tenure.kernel.names import check_name, check_number, shown
from tenure.service.apply.context import Ground
from tenure.service.apply.operations import ExpectPaper, Operation, RemovePaper, WritePaper

Place = tuple[str, str]
"""Kind and name of a paper."""


async def open_papers(ground: Ground, operations: Sequence[Operation]) -> None:
    """Read every paper that operations name, and keep it from changing until the end.

    In one order everywhere, so that two who write the same papers wait for each other and not in a ring. Before
    anything else is looked at, so that it does not matter where among the operations an expectation stands.
    """
    changed = {_place(each) for each in operations if isinstance(each, WritePaper | RemovePaper)}
    expected = {_place(each) for each in operations if isinstance(each, ExpectPaper)} - changed
    for (kind, shared), places in groupby(sorted(changed | expected), lambda place: (place[0], place in expected)):
        names = [name for _, name in places]
        found = await ground.tx.papers_named(kind, names, shared=shared)
        ground.papers.update(((kind, name), paper) for name, paper in zip(names, found, strict=True))


async def write_papers(ground: Ground, operations: Sequence[WritePaper | RemovePaper]) -> list[Paper | None]:
    """Write and remove papers that stand next to each other: in order to those who ask, at once to the store."""
    before = {_place(operation): ground.papers[_place(operation)] for operation in operations}
    answers = [_changed(ground, operation) for operation in operations]
    now = {place: ground.papers[place] for place in sorted(before)}
    added = [paper for place, paper in now.items() if paper is not None and before[place] is None]
    put = [paper for place, paper in now.items() if paper is not None and before[place] is not None]
    gone = [place for place, paper in now.items() if paper is None and before[place] is not None]
    for kind in sorted({kind for kind, _ in gone}):
        await ground.tx.remove_papers(kind, [name for of, name in gone if of == kind])
    if added:
        await ground.tx.add_papers(added)
    if put:
        await ground.tx.put_papers(put)
    return answers


def _changed(ground: Ground, operation: WritePaper | RemovePaper) -> Paper | None:
    """Do one operation to the papers as they are now; of index marks the log is not told."""
    place = _place(operation)
    known, revision = ground.papers[place], check_number(operation.revision, field="revision")
    new = None
    if isinstance(operation, WritePaper):
        new = Paper(*place, revision + 1, check_document(operation.document))
        if known is not None and revision == 0:
            raise AlreadyExists(*place, field="name")
    elif known is None:
        raise NotFound(*place, field="name")
    found = 0 if known is None else known.revision
    if found != revision:
        kind, name = place
        raise Conflict(f"{kind} {name!r} was changed meanwhile (revision {found}, not {revision})", field="revision")
    ground.papers[place] = new
    if any(paper is not None and paper.document for paper in (known, new)):
        verb, paper = ("paper.remove", known) if new is None else ("paper.write", new)
        assert paper is not None
        ground.entries.append(paper_entry(verb, paper))
    return new


def _place(operation: WritePaper | RemovePaper | ExpectPaper) -> Place:
    return check_name(operation.kind, field="kind"), check_name(operation.name, field="name")


def check_document(document: object) -> Mapping[str, Any]:
    """Return a document as JSON would give it back, or say that it is none."""
    if not isinstance(document, Mapping):
        raise Invalid(f"document: a mapping is needed, not {type(document).__name__}", field="document")
    try:
        # Read back, so that the answer equals what a later reading gives: tuples become lists.
        read: Mapping[str, Any] = json.loads(json.dumps(dict(document), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"document: cannot be written as JSON ({str(error)[:80]})", field="document") from None
    # After ``dumps``, which refuses a document that contains itself: this walk would not end.
    _check_keys(document)
    return read


def _check_keys(value: object) -> None:
    """Refuse keys that are no text: JSON would make text of them, and two could become one."""
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise Invalid(f"document: a key must be text, not {shown(name)}", field="document")
    if isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            _check_keys(inner)
