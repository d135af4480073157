"""What an API server refuses, and what becomes of a request that gets no answer."""

from collections.abc import Mapping
from typing import Any


class ApiError(Exception):
    """The API server answered with an error."""

    def __init__(self, status: int, reason: str, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(f"{status} {reason}: {message}" if reason else f"{status}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s
        self.is_namespace_going = False
        """Whether the request was refused because its namespace is being deleted: it takes no new objects."""


class ObjectMissing(ApiError):
    """The object, or its whole kind, is not there (404 with a ``Status`` of reason NotFound).

    A 404 without it is an ``ApiError``: whatever stands before the API server may have answered.
    """


class ObjectExists(ApiError):
    """An object of that name is there already (409 AlreadyExists)."""


class WriteConflict(ApiError):
    """The object has changed since it was read, or a precondition does not hold (409, or 422 of a failed ``test``)."""


class VersionExpired(ApiError):
    """The server has forgotten the resource version, or the page of a list (410)."""


class ApiUnreachable(Exception):
    """No whole answer came. A write may have been done or not; read before it is repeated."""


_BY_STATUS = {404: ObjectMissing, 409: WriteConflict, 410: VersionExpired}


def error_of(status: int, document: object, retry_after_s: float | None = None) -> ApiError:
    """Make an error of a ``Status`` document, or of whatever came in its place."""
    fields: Mapping[str, Any] = document if isinstance(document, Mapping) else {}
    reason = str(fields.get("reason") or "")
    message = str(fields.get("message") or document or "")
    kind = _BY_STATUS.get(status, ApiError)
    if kind is ObjectMissing and (fields.get("kind"), reason) != ("Status", "NotFound"):
        kind = ApiError
    elif reason == "AlreadyExists":
        kind = ObjectExists
    elif reason == "Expired":
        kind = VersionExpired
    elif status == 422 and is_failed_test(message):
        kind = WriteConflict
    error = kind(status, reason, message, retry_after_s)
    error.is_namespace_going = status == 403 and NAMESPACE_GOING in _causes(fields)
    return error


NAMESPACE_GOING = "NamespaceTerminating"
FAILED_TEST = "the server rejected our request due to an error in our request"
"""All that a server says of a JSON patch whose ``test`` did not hold; of a wrong object it says what is wrong."""


def _causes(fields: Mapping[str, Any]) -> list[object]:
    """Return the reasons of the causes that a ``Status`` names."""
    details = fields.get("details")
    causes = details.get("causes") if isinstance(details, Mapping) else None
    return [each.get("reason") for each in causes or () if isinstance(each, Mapping)]


def is_failed_test(message: str) -> bool:
    """Say whether a JSON patch was refused because its ``test`` did not hold."""
    return message.startswith(FAILED_TEST)
