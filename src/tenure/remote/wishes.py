"""What is asked of a server, written from what callers said and this end has checked."""

from dataclasses import replace
from typing import Any

from tenure.kernel.addresses import format_address
from tenure.kernel.errors import Invalid, TenureError
from tenure.kernel.values import State
from tenure.remote.transport import short_key
from tenure.service.claims import Claim
from tenure.service.operations import Allocate, AllocateRun, Operation, WritePaper
from tenure.service.paper_work import check_document


def wish_of(claim: Claim) -> dict[str, Any]:
    """Write a claim: what it says, and nothing that goes without saying."""
    said = {
        "owner": str(claim.owner),
        "slot": claim.slot,
        "address": None if claim.address is None else format_address(claim.address),
        "pool": claim.pool,
        "subnet": claim.subnet,
        "zone": claim.zone,
        "policy": None if claim.policy is None else str(claim.policy),
        "reserved": claim.reserved if claim.address is not None else None,  # it is about named addresses only
        "request": claim.request,
        "pending": claim.state is State.PENDING or None,
        "lasts_s": None if claim.lasts_us is None else claim.lasts_us / 1_000_000,
        **claim.details,
    }
    return {name: value for name, value in said.items() if value not in (None, "")}


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
