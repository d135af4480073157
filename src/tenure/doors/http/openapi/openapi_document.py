"""The OpenAPI document (3.1), written from the routes themselves: nothing is served that it does not tell."""

import functools
import inspect
import json
import re
from typing import Any

import msgspec

from tenure.doors.http.openapi.openapi_examples import A_CHANGE, EXAMPLES, PATH_EXAMPLES, SHAPES
from tenure.doors.http.openapi.openapi_problems import problem_responses, problems_of
from tenure.doors.http.openapi.openapi_prose import ABOUT, HEADERS, OUTSIDE, PARAMETERS, SECURITY
from tenure.doors.http.routes.route_table import SECTIONS
from tenure.doors.http.routing.endpoint import API, Endpoint, Rests
from tenure.doors.http.routing.principal import Need
from tenure.doors.http.routing.read_request import parameter_types
from tenure.wire import field_types, responses

Json = dict[str, Any]

REF = "#/components/schemas/{name}"
# msgspec writes a generic as Page[Holding] in titles, and as Page_Holding_ in references.
_OF = re.compile(r"(Page|Listing)[_\[](\w+?)[_\]]")
_PARAM = re.compile(r"\{(\w+)\}")


def _schema_of(kind: Any) -> Json:
    [schema], _ = msgspec.json.schema_components([kind])
    told: Json = schema
    return told


NAMED: Json = {
    name: _schema_of(kind)
    for name, kind in {
        "AddressText": field_types.Address,
        "CidrText": field_types.Cidr,
        "Labels": field_types.Labels,
        "Name": field_types.Name,
        "OwnerText": field_types.Owner,
        "RangeText": field_types.Span,
        "SlotText": field_types.Slot,
        "Text": field_types.Text,
        "Time": responses.Time,
    }.items()
}
"""Schemas of fields that are met so often that they have names."""


@functools.cache
def document() -> bytes:
    """Return the document, as it is served and checked in: sorted, so that a change shows as itself."""
    return (json.dumps(written(), indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def written() -> Json:
    """Write the document."""
    endpoints = [endpoint for section in SECTIONS for endpoint in section.endpoints]
    schemas = Schemas(endpoints)
    paths: Json = {path: dict(item) for path, item in OUTSIDE.items()}
    for endpoint in endpoints:
        paths.setdefault(API + endpoint.path, {})[endpoint.method.lower()] = operation(endpoint, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tenure", "version": "1", "summary": "One ledger of IP addresses.", "description": ABOUT},
        "tags": [{"name": section.name, "description": section.about} for section in SECTIONS],
        "security": SECURITY["any"],
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "parameters": {**PARAMETERS, **_path_parameters(endpoints)},
            "headers": HEADERS,
            "responses": problem_responses(),
            "securitySchemes": SECURITY["schemes"],
        },
    }


class Schemas:
    """The schemas of all that is asked and answered."""

    def __init__(self, endpoints: list[Endpoint]) -> None:
        kinds = [kind for endpoint in endpoints for kind in (endpoint.answer, endpoint.body) if kind is not None]
        kinds.append(responses.Problem)
        written, components = msgspec.json.schema_components(kinds, ref_template=REF)
        self._of = {id(kind): _renamed(schema) for kind, schema in zip(kinds, written, strict=True)}
        self.components: Json = {_plain_name(name): _named(_renamed(schema)) for name, schema in components.items()}
        self.components.update(NAMED)
        for name, example in SHAPES.items():
            self.components[name]["examples"] = [example]

    def of(self, kind: Any) -> Json:
        """Return the schema of something that is asked or answered."""
        found: Json = self._of[id(kind)]
        return found


def _plain_name(name: str) -> str:
    """Name a page or list of something as clients that are made from the document would: HoldingPage, HoldingList."""
    return _OF.sub(lambda match: match[2] + {"Page": "Page", "Listing": "List"}[match[1]], name)


def _renamed(schema: Any) -> Any:
    """Write plain names wherever a schema names others."""
    if isinstance(schema, dict):
        return {key: _plain_name(each) if _names(key, each) else _renamed(each) for key, each in schema.items()}
    return [_renamed(each) for each in schema] if isinstance(schema, list) else schema


def _names(key: str, value: object) -> bool:
    return key in ("$ref", "title") and isinstance(value, str)


def _named(schema: Any) -> Any:
    """Refer to the schemas of well-known fields by name."""
    for name, known in NAMED.items():
        if schema == known:
            return {"$ref": REF.format(name=name)}
    if isinstance(schema, dict):
        return {key: _named(each) for key, each in schema.items()}
    return [_named(each) for each in schema] if isinstance(schema, list) else schema


def operation(endpoint: Endpoint, schemas: Schemas) -> Json:
    """Write one route."""
    summary, _, more = inspect.cleandoc(endpoint.summary).partition("\n")
    told: Json = {
        "operationId": endpoint.name,
        "tags": [endpoint.section],
        "summary": summary.rstrip("."),
        "description": "\n\n".join(piece for piece in (more.strip(), _needs(endpoint)) if piece),
        "parameters": _parameters(endpoint),
        "responses": {**_good(endpoint, schemas), **problems_of(endpoint)},
    }
    if endpoint.need is Need.PUBLIC:
        told["security"] = []
    if endpoint.body is not None:
        told["requestBody"] = _request_body(endpoint, schemas)
    return told


def _needs(endpoint: Endpoint) -> str:
    return {
        Need.PUBLIC: "",
        Need.OPEN: "Needs a token.",
        Need.READ: "Needs the scope read, or allocate on the network that the path names.",
        Need.READ_OWN: "Needs the scope read, or allocate on a network: then it shows what lies in those.",
        Need.ALLOCATE: "Needs the scope allocate on the network.",
        Need.ADMIN: "Needs the scope admin.",
    }[endpoint.need]


def _parameters(endpoint: Endpoint) -> list[Json]:
    refs = [f"path_{name}" for name in _PARAM.findall(endpoint.path)]
    refs.append("request_id")
    if endpoint.method == "POST" and endpoint.keyed:
        refs.append("idempotency_key")
    if endpoint.rests is Rests.NEEDS:
        refs.append("if_match")
    elif endpoint.rests is Rests.TELLS and endpoint.method == "GET":
        refs.append("if_none_match")
    elif endpoint.rests is Rests.TELLS and "{" in endpoint.path:
        refs.append("may_match")
    if endpoint.streams:
        refs.append("last_event_id")
    return [*({"$ref": f"#/components/parameters/{name}"} for name in refs), *_query(endpoint)]


def _query(endpoint: Endpoint) -> list[Json]:
    if endpoint.query is None:
        return []
    types = parameter_types(endpoint.query)
    schemas, _ = msgspec.json.schema_components(list(types.values()))
    known = {each.name: each for each in msgspec.structs.fields(endpoint.query)}
    examples = EXAMPLES.get(endpoint.name, {}).get("query", {})
    told: list[Json] = []
    for name, schema in zip(types, schemas, strict=True):
        default = known[name].default
        about = schema.pop("description", None)
        if default not in (None, msgspec.NODEFAULT):
            schema["default"] = default
        parameter = {"name": name, "in": "query", "schema": schema, "description": about}
        if name in examples:
            parameter["example"] = examples[name]
        told.append({key: value for key, value in parameter.items() if value is not None})
    return told


def _path_parameters(endpoints: list[Endpoint]) -> Json:
    names = sorted({name for endpoint in endpoints for name in _PARAM.findall(endpoint.path)})
    return {f"path_{name}": _path_parameter(name) for name in names}


def _path_parameter(name: str) -> Json:
    schema = _schema_of(field_types.KNOWN.get(name, field_types.Name))
    about = schema.pop("description", f"The name of the {name}.")
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": f"{about} What is neither a letter, a digit nor one of -._~ must be percent-encoded.",
        "schema": {key: value for key, value in schema.items() if key != "examples"},
        "example": PATH_EXAMPLES.get(name, name),
    }


def _request_body(endpoint: Endpoint, schemas: Schemas) -> Json:
    needed = any(each.required for each in msgspec.structs.fields(endpoint.body))
    media: Json = {"schema": schemas.of(endpoint.body), "example": EXAMPLES.get(endpoint.name, {}).get("body", {})}
    return {"required": needed, "content": {"application/json": media}}


def _good(endpoint: Endpoint, schemas: Schemas) -> Json:
    """Write the answers of a request that is served."""
    head: Json = {"X-Request-Id": {"$ref": "#/components/headers/request_id"}}
    if endpoint.rests is not Rests.NOTHING and endpoint.answer is not None:
        head["ETag"] = {"$ref": "#/components/headers/etag"}
    if endpoint.answer is None and endpoint.edits and endpoint.rests is Rests.NEEDS:
        head["X-Warnings"] = {"$ref": "#/components/headers/warnings"}
    if endpoint.answer is None:
        return {"204": {"description": "Done.", "headers": head}}
    told: Json = {
        str(endpoint.status): {"description": "Done." if endpoint.method != "GET" else "Found.", "headers": head}
    }
    told[str(endpoint.status)]["content"] = _content(endpoint, schemas)
    if endpoint.method == "GET" and endpoint.rests is Rests.TELLS:
        told["304"] = {"description": "It is as If-None-Match says.", "headers": head}
    return told


def _content(endpoint: Endpoint, schemas: Schemas) -> Json:
    if not endpoint.streams:
        return {"application/json": {"schema": schemas.of(endpoint.answer)}}
    event = f"id: {A_CHANGE['seq']}\nevent: change\ndata: {json.dumps(A_CHANGE, separators=(',', ':'))}\n\n"
    return {"text/event-stream": {"schema": {"type": "string"}, "example": event}}
