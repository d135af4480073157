"""What a server refuses before the ledger is asked. They are errors like all others: a code, a message, a field."""

from tenure.kernel.errors import Invalid, TenureError


class Unauthorised(TenureError):
    """Nobody is known by this token, or it is no longer good."""

    code = "unauthorised"


class Forbidden(TenureError):
    """The token is good, but not for this."""

    code = "forbidden"


class RateLimited(TenureError):
    """Too many requests by one token; ``after_s`` says when to try again."""

    code = "rate_limited"

    def __init__(self, message: str, *, after_s: float) -> None:
        super().__init__(message)
        self.after_s = after_s


class ShareUsedUp(RateLimited):
    """One token has as many requests, waiting calls or streams (``kind``) at a time as it may have (``most``)."""

    code = "share_used_up"

    def __init__(self, message: str, *, kind: str, most: int, after_s: float) -> None:
        super().__init__(message, after_s=after_s)
        self.kind = kind
        self.most = most


class PreconditionFailed(TenureError):
    """The thing is no longer as it was read."""

    code = "precondition_failed"


class PreconditionRequired(TenureError):
    """A change must say which reading it rests on."""

    code = "precondition_required"


class NoSuchRoute(TenureError):
    """Nothing lies at this path."""

    code = "no_such_route"


class MethodNotAllowed(TenureError):
    """The path is there, but not for this method."""

    code = "method_not_allowed"

    def __init__(self, method: str, allowed: list[str]) -> None:
        super().__init__(f"{method} is not for this path; it takes {', '.join(allowed)}")
        self.allowed = allowed


class TooLarge(TenureError):
    """The request is larger than the server takes."""

    code = "too_large"


class Malformed(Invalid):
    """The request is not even JSON, or its headers contradict each other."""

    code = "malformed"


class NotJson(TenureError):
    """The body is of another kind than JSON."""

    code = "not_json"


class VersionNotSupported(TenureError):
    """The request speaks another major version of HTTP."""

    code = "version_not_supported"


class TooSlow(TenureError):
    """The body did not come in time."""

    code = "too_slow"


class NotInstalled(TenureError):
    """The server was installed without what this needs."""

    code = "not_installed"


class Overloaded(TenureError):
    """So many requests wait already that another one would only wait for nothing."""

    code = "overloaded"


class Fault(TenureError):
    """The server met a fault of its own; what it was is in its log, under the request's id."""

    code = "internal"


FOR_NOW = (RateLimited, Overloaded, TooSlow)
"""What passes: the same request may be taken a moment later. Nothing was changed."""

OF_PERSONS = (Unauthorised, Forbidden)
"""What is about who asks."""

OF_CLIENTS = (NoSuchRoute, MethodNotAllowed, NotJson, PreconditionRequired, VersionNotSupported)
"""What only a client hears that speaks otherwise than the server: another release, or none of ours."""
