"""Errors as problem documents (RFC 9457), and back: the same error at both ends."""

import dataclasses
from typing import Any

from tenure.kernel import errors
from tenure.kernel.errors import TenureError
from tenure.wire import http_errors, responses

STATUS: dict[type[TenureError], int] = {
    errors.Invalid: 422,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.KeyReused: 422,
    errors.PoolExhausted: 409,
    errors.CursorExpired: 410,
    errors.StoreUnavailable: 503,
    http_errors.Malformed: 400,
    http_errors.Unauthorised: 401,
    http_errors.Forbidden: 403,
    http_errors.NoSuchRoute: 404,
    http_errors.MethodNotAllowed: 405,
    http_errors.TooSlow: 408,
    http_errors.PreconditionFailed: 412,
    http_errors.TooLarge: 413,
    http_errors.NotJson: 415,
    http_errors.PreconditionRequired: 428,
    http_errors.RateLimited: 429,
    http_errors.NotInstalled: 501,
    http_errors.Overloaded: 503,
    http_errors.VersionNotSupported: 505,
}

OF_DOORS = {"document_rejected": 422, "deployment_refused": 409}
"""Statuses of errors that doors behind a server raise, by their codes: their classes lie above this room."""

TITLES = {
    "invalid": "The request says something wrong",
    "address_outside_subnet": "The address lies in no subnet of the network",
    "not_found": "Nothing goes by that name",
    "conflict": "The present state forbids it",
    "already_exists": "The name is taken",
    "address_in_use": "Somebody else holds the address",
    "address_reserved": "The address is kept away from picking",
    "address_covered": "A NIC without network has an address that the network covers",
    "overlap": "Two ranges that must be disjoint are not",
    "still_in_use": "Something stands on it",
    "not_owner": "Somebody else holds it",
    "key_reused": "The idempotency key stands for another request",
    "pool_exhausted": "Nothing is free there",
    "cursor_expired": "The log no longer reaches back that far",
    "store_unavailable": "The store did not answer",
    "document_rejected": "The document has faults",
    "deployment_refused": "The deployment cannot have what it wants",
    "unauthorised": "A good token is needed",
    "forbidden": "The token is not good for this",
    "rate_limited": "Too many requests",
    "share_used_up": "The token has as much at a time as it may have",
    "precondition_failed": "It changed since it was read",
    "precondition_required": "Say which reading this rests on",
    "no_such_route": "Nothing lies at this path",
    "method_not_allowed": "The path takes other methods",
    "too_large": "The request is too large",
    "malformed": "The request cannot be read",
    "not_json": "JSON is needed",
    "too_slow": "The request came too slowly",
    "not_installed": "The server was installed without this",
    "overloaded": "The server has more to do than it can",
    "version_not_supported": "HTTP/1.1 is spoken here",
    "internal": "A fault of the server",
}
"""One line a code; the detail says the rest."""


def _all_kinds(root: type[TenureError]) -> dict[str, type[TenureError]]:
    kinds = {root.code: root}
    for kind in root.__subclasses__():
        # Errors of doors are left out: which of them exist depends on the modules that were imported before.
        if kind.__module__ in (errors.__name__, http_errors.__name__):
            kinds.update(_all_kinds(kind))
    return kinds


KINDS = _all_kinds(TenureError)
"""Which error a code stands for."""


def _status(kind: type[TenureError]) -> int:
    return next((STATUS[above] for above in kind.__mro__ if above in STATUS), 500)


CODES: dict[str, int] = {**{code: _status(kind) for code, kind in KINDS.items()}, **OF_DOORS}
"""Every code that a server may tell, and the status it comes with."""


def status_of(error: TenureError) -> int:
    """Return the HTTP status of an error: that of the nearest class above it, or of its code where a door has it."""
    return OF_DOORS.get(error.code) or _status(type(error))


def problem_of(error: TenureError, request_id: str | None = None) -> responses.Problem:
    """Write an error as a problem document."""
    data = {name: _plain(value) for name, value in _said(error).items() if name not in ("message", "field")}
    return responses.Problem(
        type=f"urn:tenure:problem:{error.code}",
        title=TITLES.get(error.code, error.code),
        status=status_of(error),
        detail=error.message,
        code=error.code,
        field=error.field,
        data=data,
        request_id=request_id,
    )


def error_of(problem: responses.Problem) -> TenureError:
    """Read a problem document back as the error it was; one of an unknown code is still a TenureError."""
    kind = KINDS.get(problem.code, TenureError)
    # Constructors differ from class to class, so none is called: the attributes are set as they travelled.
    error = kind.__new__(kind)
    Exception.__init__(error, problem.detail)
    # Message and field are written last, so that no data of that name takes their place.
    vars(error).update(problem.data, message=problem.detail, field=problem.field)
    # The class would say `error`: a code that only a newer server knows is kept on the error itself.
    if kind is TenureError:
        error.code = problem.code
    return error


def _said(error: TenureError) -> dict[str, Any]:
    """Return what an error carries: its attributes, or its faults where a door tells those."""
    faults = getattr(error, "faults", None)
    return vars(error) if faults is None else {"faults": faults}


def _plain(value: Any) -> Any:
    if hasattr(value, "told"):
        return value.told()
    if isinstance(value, str):
        return str(value)  # an owner is a text with more to it, which the encoder does not know
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value
