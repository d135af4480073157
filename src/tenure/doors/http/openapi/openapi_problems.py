"""Which refusals a route can meet, as the OpenAPI document tells them."""

from typing import Any

from tenure.doors.http.routing.endpoint import Endpoint, Rests
from tenure.doors.http.routing.principal import Need
from tenure.wire.http_errors import TooLarge
from tenure.wire.problems import CODES, TITLES

Json = dict[str, Any]

ALWAYS = (400, 401, 403, 413, 422, 429, 431, 500, 503, 505)
WITH_A_BODY = (408, 415)
OF_THE_LOG = ("changes", "events")
NEEDS_MORE = ("deployments",)
"""Sections that a server may have been installed without."""
INTERNAL = 500
HEAD_TOO_LARGE = 431
TRY_LATER = (429, 503)

REASONS = {
    400: "The request cannot be read.",
    401: "A good token is needed.",
    403: "The token is not good for this, or a page of another host asks.",
    404: "Nothing goes by that name.",
    408: "The body came too slowly.",
    409: "The present state of the ledger forbids it.",
    410: "The log no longer reaches back that far.",
    412: "It changed since it was read; read it again.",
    413: "The request is too large.",
    415: "The body is not JSON.",
    422: "The request says something wrong; field names what.",
    428: "If-Match is needed: say which reading this rests on.",
    429: "Too many requests, a second or at a time, by one token; Retry-After says when to try again.",
    431: "The head of the request is too large.",
    500: "A fault of the server's own; its log tells more under the request id.",
    501: "The server was installed without what this needs; detail says what.",
    503: "The store does not answer, or there is too much to do; try again.",
    505: "Another major version of HTTP.",
}


def codes_of(status: int) -> list[str]:
    """List the codes that come with a status."""
    if status == INTERNAL:
        return ["internal"]
    if status == HEAD_TOO_LARGE:
        return [TooLarge.code]
    return sorted(code for code, known in CODES.items() if known == status)


def problem_responses() -> Json:
    """Write every refusal once: its reason, its codes, its shape."""
    return {f"problem_{status}": _response(status, reason) for status, reason in REASONS.items()}


def _response(status: int, reason: str) -> Json:
    codes = codes_of(status)
    head: Json = {"X-Request-Id": {"$ref": "#/components/headers/request_id"}}
    if status in TRY_LATER:
        head["Retry-After"] = {"$ref": "#/components/headers/retry_after"}
    schema = {
        "allOf": [{"$ref": "#/components/schemas/Problem"}],
        "properties": {"status": {"const": status}, "code": {"enum": codes}},
    }
    example = {
        "type": f"urn:tenure:problem:{codes[0]}",
        "title": TITLES[codes[0]],
        "status": status,
        "detail": reason,
        "code": codes[0],
        "request_id": "6c1f6a5fb3e1a0d2",
    }
    told = ", ".join(f"`{code}`" for code in codes)
    return {
        "description": f"{reason} Codes: {told}.",
        "headers": head,
        "content": {"application/problem+json": {"schema": schema, "example": example}},
    }


def problems_of(endpoint: Endpoint) -> Json:
    """Return the refusals that a route can meet."""
    statuses = set(ALWAYS)
    changes = endpoint.method != "GET"
    if "{" in endpoint.path or changes or "network" in _query_fields(endpoint):
        statuses.add(404)
    if endpoint.body is not None:
        statuses.update(WITH_A_BODY)
    if changes and endpoint.need is not Need.PUBLIC:
        statuses.add(409)
    if endpoint.section in OF_THE_LOG:
        statuses.add(410)
    if endpoint.section in NEEDS_MORE:
        statuses.add(501)
    if changes and endpoint.rests is not Rests.NOTHING:
        statuses.add(412)
    if endpoint.rests is Rests.NEEDS:
        statuses.add(428)
    return {str(status): {"$ref": f"#/components/responses/problem_{status}"} for status in sorted(statuses)}


def _query_fields(endpoint: Endpoint) -> tuple[str, ...]:
    return () if endpoint.query is None else endpoint.query.__struct_fields__
