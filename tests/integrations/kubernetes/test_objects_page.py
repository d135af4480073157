"""``docs/reference/kubernetes-objects.md`` says what the definitions say, field by field."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3.objects import ipam_kinds
from tenure.integrations.kubernetes.shipped_manifests import documents_of

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "kubernetes-objects.md"
IN_CLUSTER_PAGE = PAGE.with_name("in-cluster-pools.md")
REFERENCE = ("apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid")
CONDITION = ("type", "status", "observedGeneration", "lastTransitionTime", "reason", "message")
ROW = re.compile(r"^\| `(?:spec|status)[^|]*\|.*\|$", re.MULTILINE)
DEFINITIONS = {each["spec"]["names"]["kind"]: each["spec"]["versions"][0] for each in documents_of(["crds"])}
KINDS = list(DEFINITIONS)


def section(kind: str) -> str:
    """Return what the page says of a kind."""
    return PAGE.read_text("utf-8").split(f"\n## {kind}\n")[1].split("\n## ")[0]


def rows(schema: dict[str, Any], place: str, needed: bool = False) -> Iterator[str]:
    """Write a row for each field; the fields of a reference and of a condition stand in a paragraph of the page."""
    type = type_of(schema) + (", required" if needed else "")
    yield f"| `{place}` | {type} | {home_of(schema, place)} | {schema.get('description', '')} |"
    below = schema.get("items") or schema
    fields = below.get("properties") or {}
    if set(REFERENCE) <= set(fields):
        fields = {name: field for name, field in fields.items() if name not in REFERENCE}
    elif set(CONDITION) == set(fields):
        fields = {}
    for name, field in fields.items():
        step = f"{place}{'[]' if 'items' in schema else ''}.{name}"
        yield from rows(field, step, name in (below.get("required") or ()))


def type_of(schema: dict[str, Any]) -> str:
    """Write the type of a field, with its bounds."""
    within = schema.get("items") or schema.get("additionalProperties")
    if within and "properties" not in within:
        each = type_of(within)
        return f"{'list' if 'items' in schema else 'map'} of {each}{'es' if each.endswith('s') else 's'}"
    if "enum" in schema:
        return " or ".join(f"`{each}`" for each in schema["enum"])
    if "pattern" in schema:
        return "network" if "/([0-9]" in schema["pattern"] else "IP address" if "{7,7}" in schema["pattern"] else "name"
    if "format" in schema and schema["type"] == "string":
        return "time"
    bounds = [f"{word} {schema[key]}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in schema]
    plain = {"string": "text", "integer": "number", "array": "list"}.get(schema["type"], schema["type"])
    return " ".join([plain, *bounds])


def home_of(schema: dict[str, Any], place: str) -> str:
    """Write where a field comes from."""
    if str(schema.get("description")).startswith("Deprecated"):
        return "seed"
    if place == "spec.allocationStrategy":
        return "Metal3 1.14"
    return "Tenure" if ".tenure" in place else "Metal3"


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_has_a_row_for_each_field_and_no_other(kind: str) -> None:
    schema = DEFINITIONS[kind]["schema"]["openAPIV3Schema"]["properties"]
    wanted = [row for part in ("spec", "status") for row in list(rows(schema[part], part))]

    assert ROW.findall(section(kind)) == [row for row in wanted if not row.startswith(("| `spec` |", "| `status` | o"))]


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_names_the_columns_of_lists(kind: str) -> None:
    columns = [each["name"] for each in DEFINITIONS[kind]["additionalPrinterColumns"]]

    assert f"`kubectl get` shows {', '.join(columns[:-1])} and {columns[-1]}" in section(kind)


def test_the_page_names_every_annotation_finalizer_and_label() -> None:
    text = PAGE.read_text("utf-8") + IN_CLUSTER_PAGE.read_text("utf-8")
    names = [value for name, value in vars(ipam_kinds).items() if name.isupper() and isinstance(value, str)]
    keys = [value for value in names if "/" in value or value.endswith(f".{ipam_kinds.GROUP}")]

    assert len(keys) > 8
    assert [key for key in keys if f"`{key}`" not in text] == []
