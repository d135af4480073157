"""What the OpenAPI document says beside the routes: how to ask, how to come in, what lies outside the API."""

from typing import Any

from tenure.doors.http.routing.read_request import MOST_KEY

Json = dict[str, Any]

ABOUT = """Who holds which address, since when, on whose word.

**Names in paths** are percent-encoded: a network `a:b/c d` is `a%3Ab%2Fc%20d`, an owner `instance/web-0` is
`instance%2Fweb-0`, and a name of one or two dots is `%2E` or `%2E%2E`. A colon behind a path begins a verb:
`POST /api/v1/networks/net1:allocate`.

**Bodies** are JSON in UTF-8 with `Content-Type: application/json`. A field that nobody knows is refused, as is a query
parameter; a field that is left out is left as it is. An empty body is `{}`. A name that is there twice in one object
is refused (422). Times are RFC 3339.

**Safe to repeat**: a POST takes an `Idempotency-Key`. The answer is kept with the effect, in the same transaction,
and the same request under the same key is answered the same; another request under it is refused (`key_reused`). Keys
of one token are unknown to others. Where many wishes stand each on its own, each has a key of its own: the key, a slash
and its place in the list. `:rehearse`, `:verify`, `:sweep`, `:withdraw`, `changes:trim`,
`changes:archive`, `tokens/{token}:revoke`,
`login`, `logout` and all verbs of deployments and orphans take no notice of a key. They may be repeated as they are:
their effect is the same, their answer tells what is so now. What a report was about may be gone by then (404), or
another by now (409, if the report names its VM or its plan).

**Readings**: what can be edited is answered with an `ETag`. PATCH and DELETE need it as `If-Match` (428 without it, 412
if the thing changed since; `*` is whatever it is now). GET answers 304 to `If-None-Match`. What lies in a network has
the ETag of the network.

**Lists** come in pages: `next` of one is `after` of the next. A cursor names the last thing that was read, so it holds
whatever comes and goes meanwhile. With filters a page may be short and still have a next.

**Errors** are RFC 9457 problems. `code` is stable, `field` names what is wrong, `data` has the error's own attributes.
Of documents (`document_rejected`) and deployments (`deployment_refused`) these are `faults`: of each the `error` and
its `number`, as BOSH has them, the `message`, and the `place` (`document`, `line`, `column`, `path`) or null.

**Who sees what**: the scope read sees everything. A token that may allocate on some networks sees only those, and is
refused alike whether another network is there or not. Networks of one space share their addresses: who asks for one
that another network's owner holds is told that owner's name (`address_in_use`), and an address's reservation its
reason. Put into one space only what may know of each other.
"""

HEADERS: Json = {
    "request_id": {
        "description": "The request's name in the server's log and in the ledger's: the caller's own, or a new one.",
        "schema": {"type": "string"},
    },
    "warnings": {
        "description": "What the edit did beside what was asked: a list of texts in JSON. Absent where there is "
        "nothing to say; answers with a body have `warnings` there.",
        "schema": {"type": "string"},
    },
    "etag": {"description": "Which reading this is.", "schema": {"type": "string"}},
    "retry_after": {"description": "Seconds after which to try again.", "schema": {"type": "integer", "minimum": 1}},
}

PARAMETERS: Json = {
    "request_id": {
        "name": "X-Request-Id",
        "in": "header",
        "description": "Names the request in logs: 1 to 64 letters, digits or ._:/-. Anything else is not taken, and "
        "the server makes a name itself.",
        "schema": {"type": "string"},
        "example": "deploy-42",
    },
    "idempotency_key": {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "The same request under the same key is done once, and answered the same. Printable text.",
        "schema": {"type": "string", "minLength": 1, "maxLength": MOST_KEY},
    },
    "if_match": {
        "name": "If-Match",
        "in": "header",
        "required": True,
        "description": "The ETag of the reading that this change rests on, or * for whatever it is now.",
        "schema": {"type": "string", "minLength": 1},
        "example": "*",
    },
    "may_match": {
        "name": "If-Match",
        "in": "header",
        "description": "The ETag of the reading that this change rests on, if it does.",
        "schema": {"type": "string", "minLength": 1},
        "example": "*",
    },
    "if_none_match": {
        "name": "If-None-Match",
        "in": "header",
        "description": "ETags of readings that are at hand: if this would be one of them, the answer is 304.",
        "schema": {"type": "string"},
    },
    "last_event_id": {
        "name": "Last-Event-ID",
        "in": "header",
        "description": "The id of the last event that was read; the stream goes on behind it.",
        "schema": {"type": "integer", "minimum": 0},
    },
}

SECURITY: Json = {
    "any": [{"token": []}, {"login": []}],
    "schemes": {
        "token": {
            "type": "http",
            "scheme": "bearer",
            "description": "A token: `Authorization: Bearer tnr_…`. `tenure token add` makes one.",
        },
        "login": {
            "type": "apiKey",
            "in": "cookie",
            "name": "tenure",
            "description": "The cookie of a login (`POST /api/v1/login`; over TLS it is `__Host-tenure`). What is "
            "not a GET must carry `X-CSRF-Token` as well: the answer to the login and GET /api/v1/self tell it.",
        },
    },
}


def _served(name: str, kind: str, about: str, *problems: int) -> Json:
    schema = {"type": "string" if kind.startswith("text/") else "object"}
    told: Json = {"200": {"description": "Found.", "content": {kind: {"schema": schema}}}}
    told |= {str(status): {"$ref": f"#/components/responses/problem_{status}"} for status in problems}
    return {"get": {"operationId": name, "summary": about, "security": [], "responses": told}}


OUTSIDE: Json = {
    "/healthz": _served("get_health", "application/json", "Tell that the server is alive", 503),
    "/metrics": _served(
        "get_metrics", "text/plain", "Read the server's numbers, as Prometheus does", 401, 403, 429, 503
    ),
    "/openapi.json": _served("get_document", "application/json", "Read this document", 503),
    "/readyz": _served("get_readiness", "application/json", "Tell whether requests should be sent here", 503),
}
"""What is served outside the API, for programs."""
