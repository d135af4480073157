"""What is asked of a server, written from what callers said and this end has checked."""

from dataclasses import replace

from tenure.client.transport import short_key
from tenure.kernel.errors import Invalid, TenureError
from tenure.service.apply.operations import Allocate, AllocateRun, Operation, WritePaper
from tenure.service.apply.paper_effects import check_document


def check_said(operation: Operation) -> None:
    """Refuse bad input by name before anything is asked: what JSON would make something else of, at least."""
    if isinstance(operation, Allocate):
        operation.claim()
    elif isinstance(operation, AllocateRun):
        operation.claims()
    elif isinstance(operation, WritePaper):
        check_document(operation.document)


def with_short_key(operation: Operation) -> Operation:
    """Return an operation with a key that servers take, if it has one of its own."""
    if isinstance(operation, Allocate) and operation.key is not None:
        return replace(operation, key=short_key(operation.key))
    return operation


def as_asked(error: TenureError) -> TenureError:
    """Let an error name the field as the caller knows it, not by its place in what was sent."""
    field = error.field or ""
    place, dot, name = field.partition("].")
    if isinstance(error, Invalid) and dot and place.startswith("operations["):
        error.field = name
        error.message = error.message.removeprefix(f"{place}].")
        error.args = (error.message,)
    return error
