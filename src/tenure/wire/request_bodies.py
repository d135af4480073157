"""What the API is asked: bodies made from the ledger's own operations, so that neither can say more than the other.

``KEEP`` has no place in JSON: a field that is left out is left as it is, and ``null`` empties it.
"""

import dataclasses
import math
import types
from collections.abc import Mapping, Sequence
from functools import cache
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from tenure.kernel.addressing.ranges import AddressRange, Cidr
from tenure.kernel.errors import Invalid
from tenure.kernel.names import shown
from tenure.kernel.plan import edits
from tenure.kernel.plan.edits import KEEP, Keep
from tenure.service.apply.operations import Operation
from tenure.wire import field_types

WRITTEN_AS_TEXT = (
    IPv4Address, IPv6Address, IPv4Network, IPv6Network, IPv4Interface, IPv6Interface, AddressRange, Cidr,
)  # fmt: skip

EDITS: tuple[type, ...] = tuple(
    kind for kind in vars(edits).values() if isinstance(kind, type) and issubclass(kind, edits.Edit)
)


def word_of(kind: type) -> str:
    """Name an operation as it travels: an edit by its verb, others in small letters."""
    if issubclass(kind, edits.Edit):
        return kind.verb
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in kind.__name__).lstrip("_")


def body_of(
    kind: type,
    *,
    without: Sequence[str] = (),
    renamed: Mapping[str, str] | None = None,
    tag: str | None = None,
    name: str | None = None,
    more: Sequence[tuple[str, Any, Any]] = (),
) -> Any:
    """Make the body that asks for an operation; what the path or the header says is left out of it.

    ``more`` are fields that only the route knows, each with its default.
    """
    hints = get_type_hints(kind)
    own = [_field(kind, each, hints[each.name]) for each in dataclasses.fields(kind) if each.name not in without]
    called = name or (kind.__name__ if tag is not None else f"{kind.__name__}Body")
    return msgspec.defstruct(
        called,
        [*own, *more],
        namespace={"__doc__": kind.__doc__},
        kw_only=True,
        # A misspelt field is refused: ignored, it would silently ask for something else.
        forbid_unknown_fields=True,
        rename=None if renamed is None else dict(renamed),
        tag_field=None if tag is None else "op",
        tag=tag,
    )


def _field(kind: type, each: "dataclasses.Field[Any]", hint: Any) -> tuple[str, Any] | tuple[str, Any, Any]:
    wanted = wire_type(kind, each.name, hint)
    if each.default is KEEP:
        return each.name, wanted | UnsetType, UNSET
    if each.default_factory is not dataclasses.MISSING:
        return each.name, wanted, msgspec.field(default_factory=each.default_factory)
    if each.default is dataclasses.MISSING:
        return each.name, wanted
    # JSON knows lists only; msgspec gives every body an empty list of its own.
    return each.name, wanted, [] if each.default == () else each.default


def wire_type(kind: type, name: str, hint: Any) -> Any:
    """Return what a field of an operation is in JSON."""
    pieces = get_args(hint) if isinstance(hint, types.UnionType) or get_origin(hint) is Union else (hint,)
    known = field_types.SPECIAL.get((kind.__name__, name)) or field_types.KNOWN.get(name)
    plain = known or next(piece for piece in pieces if piece not in (Keep, type(None)))
    return plain | None if type(None) in pieces else plain


OPERATION_BODIES: Mapping[type, type[msgspec.Struct]] = {
    kind: body_of(kind, tag=word_of(kind)) for kind in (*EDITS, *get_args(Operation)) if kind is not edits.Edit
}
"""The body of each operation as ``apply`` takes it."""

_KIND_OF = {body: kind for kind, body in OPERATION_BODIES.items()}


def operation_of(body: msgspec.Struct) -> Operation:
    """Read an operation that ``apply`` was given."""
    operation: Operation = _made(_KIND_OF[type(body)], body)
    return operation


def read_body(kind: type, body: msgspec.Struct, **said: Any) -> Any:
    """Read an operation from a body of its own route, and what the path and the headers said.

    What the route alone knows (``more`` of ``body_of``) is no part of the operation.
    """
    return _made(kind, body, **said)


def _made(kind: type, body: msgspec.Struct, **said: Any) -> Any:
    pairs = ((name, getattr(body, name)) for name in _shared(kind, type(body)))
    return kind(**{name: value for name, value in pairs if value is not UNSET}, **said)


@cache
def _shared(kind: type, body: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the fields that an operation and a body have in common."""
    return tuple(each.name for each in dataclasses.fields(kind) if each.name in body.__struct_fields__)


def written(operation: Operation) -> dict[str, Any]:
    """Write an operation for ``apply``: what it says, and nothing that goes without saying."""
    told: dict[str, Any] = {"op": word_of(type(operation))}
    for each in dataclasses.fields(operation):
        value = getattr(operation, each.name)
        # Where KEEP is the default any other value says something, None too: it empties the field.
        if value is not KEEP and (each.default is KEEP or value != each.default):
            told[each.name] = plain(value, each.name)
    return told


def plain(value: Any, field: str) -> Any:
    """Write a value as JSON can hold it, or say which field cannot travel."""
    if isinstance(value, float) and not math.isfinite(value):  # JSON would make it a null, which says something else
        raise Invalid(f"{field}: {shown(value)} is no number", field=field)
    if value is None or isinstance(value, str | int | float):
        # An owner is a subclass of str, which the encoder does not know.
        return str(value) if isinstance(value, str) else value
    if isinstance(value, WRITTEN_AS_TEXT):
        return str(value)
    if isinstance(value, Mapping):
        return {_key(name, field): plain(each, field) for name, each in value.items()}
    # Bytes are a sequence, too: of numbers.
    if isinstance(value, Sequence | frozenset | set) and not isinstance(value, bytes | bytearray):
        return [plain(each, field) for each in value]
    raise Invalid(f"{field}: {shown(value)} cannot be sent to a server", field=field)


def _key(name: object, field: str) -> str:
    if not isinstance(name, str):
        raise Invalid(f"{field}: {shown(name)} is not a name", field=field)
    return str(name)
