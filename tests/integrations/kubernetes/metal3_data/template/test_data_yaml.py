"""Documents are read as Kubernetes' tools read them, and written so that every reader sees the same."""

import json

import pytest
import yaml

from tenure.integrations.kubernetes.metal3_data.template.data_yaml import data_yaml, read_documents

FACE = "\U0001f600"


def test_scalars_are_read_as_kubernetes_tools_do() -> None:
    """A MAC address of digits is text, not a number to the base of sixty; a date is text, too."""
    written = "[52:54:00:12:34:56, 2020-04-02, 12, -3, 1.5, yes, null, 0x1F, 1_000]"

    assert read_documents(written) == [
        ["52:54:00:12:34:56", "2020-04-02", 12, -3, 1.5, True, None, "0x1F", "1_000"],
    ]  # fmt: skip


def test_characters_that_json_writes_in_two_halves_are_read_whole() -> None:
    assert read_documents(json.dumps({"a": FACE})) == [{"a": FACE}]
    with pytest.raises(yaml.YAMLError, match="half of a character"):
        read_documents('{"a": "\\ud83d"}')


def test_aliases_are_followed_unless_they_have_no_end() -> None:
    assert read_documents("a: &m {x: 1}\nb: *m\n") == [{"a": {"x": 1}, "b": {"x": 1}}]
    laughs = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    for endless in ("a: &a {b: *a}", "&a [*a]", laughs):
        with pytest.raises(yaml.YAMLError, match="aliases repeat too much"):
            read_documents(endless)


def test_long_texts_keys_and_odd_characters_come_back_as_they_were() -> None:
    document = {"k" * 300: "v " * 5000, "a.b/c": FACE, "n": "\x85\u2028\ufeff\x07", "é": "\u200b"}

    assert yaml.safe_load(data_yaml(document)) == document
