"""What ``apply`` does with papers, and what it is told to make sure of first."""

import json
from collections.abc import Mapping
from typing import Any

from tenure.kernel.entries import paper_entry
from tenure.kernel.errors import AlreadyExists, Conflict, Invalid, NotFound, StillInUse
from tenure.kernel.names import check_name, shown
from tenure.kernel.values import Paper
from tenure.service.ground import Ground
from tenure.service.operations import Expect, ExpectNoPapers, RemovePaper, WritePaper


async def expect(ground: Ground, operation: Expect) -> None:
    """Make sure that a network is as it was read."""
    network = ground.now[ground.space_of(check_name(operation.network, field="network"))].network(operation.network)
    if network.serial != operation.serial:
        raise Conflict(
            f"network {network.name!r} was changed meanwhile (serial {network.serial}, not {operation.serial})",
            field="serial",
        )


async def expect_no_papers(ground: Ground, operation: ExpectNoPapers) -> None:
    """Make sure that there is no paper of a kind whose name begins so."""
    kind = check_name(operation.kind, field="kind")
    found = await ground.tx.papers(kind, prefix=check_name(operation.prefix, field="prefix"), limit=4)
    if found:
        raise StillInUse(kind, operation.prefix, [paper.name for paper in found])


async def write_paper(ground: Ground, operation: WritePaper) -> Paper:
    """Write a paper over the revision that the caller has read, or a new one."""
    kind, name = check_name(operation.kind, field="kind"), check_name(operation.name, field="name")
    document = _checked(operation.document)
    [known] = await ground.tx.papers_named(kind, [name])
    if known is not None and operation.revision == 0:
        raise AlreadyExists(kind, name, field="name")
    _check_revision(kind, name, known, operation.revision)
    paper = Paper(kind, name, operation.revision + 1, document)
    await ground.tx.put_papers([paper])
    ground.entries.append(paper_entry("paper.write", paper))
    return paper


async def remove_paper(ground: Ground, operation: RemovePaper) -> None:
    """Remove a paper of the revision that the caller has read."""
    kind, name = check_name(operation.kind, field="kind"), check_name(operation.name, field="name")
    [known] = await ground.tx.papers_named(kind, [name])
    if known is None:
        raise NotFound(kind, name, field="name")
    _check_revision(kind, name, known, operation.revision)
    await ground.tx.remove_papers(kind, [name])
    ground.entries.append(paper_entry("paper.remove", known))


def _check_revision(kind: str, name: str, known: Paper | None, revision: int) -> None:
    if not isinstance(revision, int) or isinstance(revision, bool) or revision < 0:
        raise Invalid(f"revision: a paper's revision is needed, not {shown(revision)}", field="revision")
    found = 0 if known is None else known.revision
    if found != revision:
        raise Conflict(f"{kind} {name!r} was changed meanwhile (revision {found}, not {revision})", field="revision")


def _checked(document: object) -> Mapping[str, Any]:
    """Return a document as JSON would give it back, or say that it is none."""
    if not isinstance(document, Mapping):
        raise Invalid(f"document: a mapping is needed, not {type(document).__name__}", field="document")
    try:
        read: Mapping[str, Any] = json.loads(json.dumps(document, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"document: cannot be written as JSON ({str(error)[:80]})", field="document") from None
    return read
