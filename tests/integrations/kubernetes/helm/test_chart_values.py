"""The values of the Helm chart, without Helm: every option has one, each is tried once, wrong ones are refused.

That chart and page are what the manifests make of them is checked by ``tools/make_helm_chart.py --check`` in the lint.
"""

import json
from typing import Any

import click
import jsonschema
import pytest
import tools.make_helm_chart as chart
import yaml
from tools.helm_values import NOT_VALUES, VALUES
from tools.make_helm_chart import CHART, ManifestChanged, manifest_files, template_of

from tenure.doors.cli.commands.operator.run_operator import operator
from tenure.integrations.kubernetes.shipped_manifests import PARTS
from tests.integrations.kubernetes.helm.helm_cases import CASES, WRONG, nested

SCHEMA = json.loads((CHART / "values.schema.json").read_text("utf-8"))
DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))


def merged(values: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Return values with others in their place, as Helm merges them."""
    return values | {
        name: merged(values[name], value) if isinstance(value, dict) and isinstance(values.get(name), dict) else value
        for name, value in over.items()
    }


def errors_of(values: dict[str, Any]) -> list[str]:
    """Return what the schema has against values."""
    found = jsonschema.Draft7Validator(SCHEMA).iter_errors(merged(DEFAULTS, values))
    return [f"{each.json_path.removeprefix('$.')}: {each.message}" for each in found]


def test_every_option_of_the_operator_has_a_value_or_a_reason_why_not() -> None:
    options = {each.opts[0] for each in operator.params if isinstance(each, click.Option)} - {"--help"}
    set_by_values = {value.option for value in VALUES if value.option}

    assert not set_by_values & set(NOT_VALUES)
    assert options == set_by_values | set(NOT_VALUES)


def test_every_value_is_used_by_a_template_and_tried_once() -> None:
    templates = "".join(path.read_text("utf-8") for path in (CHART / "templates").rglob("*") if path.is_file())

    assert [value.path for value in VALUES if f".Values.{value.path}" not in templates] == []
    assert list(CASES) == [value.path for value in VALUES]
    assert [value.path for value in VALUES if CASES[value.path].value == value.default] == []


def test_the_schema_takes_the_defaults_and_what_is_tried() -> None:
    assert errors_of({}) == []
    for path, case in CASES.items():
        assert errors_of(nested({**case.needs, path: case.value})) == []


@pytest.mark.parametrize("path", WRONG)
def test_a_wrong_value_is_refused_by_its_name(path: str) -> None:
    [error] = errors_of(nested({path: WRONG[path]}))

    group, _, name = path.rpartition(".")
    assert error.startswith(path) or (error.startswith(group or "$") and f"'{name}' was unexpected" in error)


def test_a_value_that_is_set_to_nothing_is_refused() -> None:
    [error] = jsonschema.Draft7Validator(SCHEMA).iter_errors({k: v for k, v in DEFAULTS.items() if k != "replicas"})

    assert error.message == "'replicas' is a required property"


def test_a_manifest_that_changed_under_an_edit_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A template would otherwise keep what was shipped, whatever the value says."""
    monkeypatch.setitem(chart.EDITS, "user_roles.yaml", (chart.Edit("not there", ""),))

    with pytest.raises(ManifestChanged, match=r"user_roles\.yaml has 0 times, and not 1"):
        template_of("user_roles.yaml")


def test_a_part_that_is_not_usual_depends_on_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PARTS, "more", ("more.yaml",))

    with pytest.raises(ManifestChanged, match="the part more"):
        manifest_files()


def test_kp15_definitions_stay_when_a_release_goes() -> None:
    for path in (CHART / "templates" / "crds").iterdir():
        assert "annotations: {helm.sh/resource-policy: keep}" in path.read_text("utf-8")
