"""YAML as people write it, and as nobody should: it is read, or refused at once with its place."""

from collections.abc import Callable
from typing import Any

import pytest

from tenure.integrations.bosh.documents import yaml_tree
from tenure.integrations.bosh.documents.yaml_tree import DEEPEST, MOST_VALUES, read_tree
from tenure.integrations.bosh.model.bosh_errors import Rejected
from tests.scale import in_proof


@pytest.fixture
def at_most(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Give a limit to what reading may look at: every value, mapping and merged mapping has its place noted once."""
    noted, place = 0, yaml_tree._place

    def limit(most: int) -> None:
        def counted(*words: Any) -> Any:
            nonlocal noted
            noted += 1
            # Raised at once: what blows up would not end.
            assert noted <= most, f"more than {most} values were looked at"
            return place(*words)

        monkeypatch.setattr(yaml_tree, "_place", counted)

    return limit


def refused(text: str) -> str:
    """Return why a document is refused."""
    with pytest.raises(Rejected) as caught:
        read_tree(text, "doc.yml")
    [fault] = caught.value.faults
    return str(fault).removesuffix(" [DirectorError 100]").replace("The document cannot be read: ", "")


def laughs(levels: int, line: str) -> str:
    """Write a document whose every line holds the one before nine times."""
    return "l0: &l0 {k: 1}\n" + "".join(
        line.format(number=number, before=", ".join([f"*l{number - 1}"] * 9)) for number in range(1, levels)
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("networks:\n\t- name: lab", "doc.yml:2:1: found character that cannot start any token"),
        ("a: 1\nb: {c: 1, c: 2}", "doc.yml:2:11 (b): the key 'c' is there twice"),
        ("\x00\x01", "doc.yml:1:1: unacceptable character #x0000: control characters are not allowed"),
        ("", "doc.yml:1:1: the document is empty"),
        ("# nothing\n", "doc.yml:1:1: the document is empty"),
        ("- a\n", "doc.yml:1:1: a mapping is needed"),
        ("just words", "doc.yml:1:1: a mapping is needed"),
        ("a: 1\n---\nb: 1\n", "doc.yml:2:1: but found another document"),
        ("1: 2", "doc.yml:1:1: a key must be text, not a whole number"),
        ("on: 2", "doc.yml:1:1: a key must be text, not true or false"),
        ("~: 2", "doc.yml:1:1: a key must be text, not null"),
        ("[a]: 2", "doc.yml:1:1: a key must be text, not a list"),
        ('a: "\\ud800"', "doc.yml:1:7: found invalid Unicode character escape code"),
        ("a: *b", "doc.yml:1:4: found undefined alias"),
        ("a: {<<: 5}", "doc.yml:1:9 (a): a merge key (<<) needs a mapping, or a list of mappings"),
        ("a: {<<: [[]]}", "doc.yml:1:10 (a): a merge key (<<) needs a mapping, or a list of mappings"),
        ("a: &a {<<: [*a, *a]}", "doc.yml:1:4 (a): a merge key (<<) brings a mapping into itself"),
        ("a: 1.0e999", "doc.yml:1:4 (a): the number 1.0e999 is too large"),
        ("a: !!float .nan", "doc.yml:1:4 (a): the number .nan is too large"),
        ("a: !!bool perhaps", "doc.yml:1:4 (a): 'perhaps' is not what its tag says"),
        ("a: !!int x", "doc.yml:1:4 (a): 'x' is not what its tag says"),
        ('a: !!int ""', "doc.yml:1:4 (a): '' is not what its tag says"),
        ('a: !!int "-"', "doc.yml:1:4 (a): '-' is not what its tag says"),
        ('a: !!int "_"', "doc.yml:1:4 (a): '_' is not what its tag says"),
        ('a: !!float ""', "doc.yml:1:4 (a): '' is not what its tag says"),
        ('a: !!float "_"', "doc.yml:1:4 (a): '_' is not what its tag says"),
        ('a: !!float "+"', "doc.yml:1:4 (a): '+' is not what its tag says"),
        ("a: !!binary aGk=", "doc.yml:1:4 (a): the tag 'tag:yaml.org,2002:binary' is not read"),
        ("a: !!timestamp 2020-01-01", "doc.yml:1:4 (a): the tag 'tag:yaml.org,2002:timestamp' is not read"),
        ("a: !!set {b}", "doc.yml:1:4 (a): the tag 'tag:yaml.org,2002:set' is not read"),
        ("a: !shell [ls]", "doc.yml:1:4 (a): the tag '!shell' is not read"),
        ("a: !shell ls", "doc.yml:1:4 (a): the tag '!shell' is not read"),
    ],
)
def test_what_is_no_plain_yaml_is_refused_with_its_place(text: str, why: str) -> None:
    assert refused(text) == why


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("off", False),
        ("2020-01-01", "2020-01-01"),
        ("1:30", "1:30"),
        (".nan", ".nan"),
        (".inf", ".inf"),
        ("0x20", "0x20"),
        ("010", "010"),
        ("9" * 5000, "9" * 5000),
        ("7", 7),
        ("1.5", 1.5),
        ("=", "="),
        ("<<", "<<"),
        ("zürich-\N{GRINNING FACE}", "zürich-\N{GRINNING FACE}"),
        ("!!str 5", "5"),
        ("!!int '5'", 5),
        ("~", None),
    ],
)
def test_scalars_are_read_as_people_mean_them(text: str, value: object) -> None:
    assert read_tree(f"a: {text}", "doc.yml").plain() == {"a": value}


def test_of_what_merge_keys_bring_in_the_first_counts_and_the_mapping_itself_before_it() -> None:
    text = "x: &x {n: 1, m: 2}\ny: &y {n: 3, o: 4, p: 5}\nz: {<<: [*x, *y], o: 6}\nw: {p: 7, <<: *y, <<: *x}"

    read = read_tree(text, "doc.yml").plain()

    assert read["z"] == {"n": 1, "m": 2, "o": 6, "p": 5}
    assert read["w"] == {"n": 3, "m": 2, "o": 4, "p": 7}


def test_what_is_brought_in_stands_where_it_was_written_and_is_called_by_where_it_is_used() -> None:
    tree = read_tree("x: &x {n: 1}\nz: {<<: *x}", "doc.yml")

    assert str(tree.value["z"].value["n"].place) == "doc.yml:1:11 (z.n)"


@pytest.mark.parametrize(
    "line", ["l{number}: &l{number} [{before}]\n", in_proof("l{number}: &l{number} {{a: [{before}]}}\n")]
)
def test_anchors_cannot_blow_a_document_up(at_most: Callable[[int], None], line: str) -> None:
    at_most(2 * MOST_VALUES)

    assert f": more than {MOST_VALUES} values" in refused(laughs(12, line))


def test_merge_keys_cannot_blow_a_document_up(at_most: Callable[[int], None]) -> None:
    inner = "&l0 {k: 1}"
    for number in range(1, 20):
        inner = f"&l{number} {{<<: [{inner}, {', '.join([f'*l{number - 1}'] * 8)}]}}"
    at_most(1000)

    assert read_tree(f"a: {inner}", "doc.yml").plain() == {"a": {"k": 1}}
    assert read_tree(laughs(20, "l{number}: &l{number} {{<<: [{before}]}}\n"), "doc.yml").plain()["l19"] == {"k": 1}


@pytest.mark.parametrize("text", ["a: &a [*a]", "&a {b: *a}", "a: " + "[" * 1000 + "]" * 1000, "a: &a {b: {<<: *a}}"])
def test_what_has_no_end_is_refused(text: str) -> None:
    assert refused(text).endswith(f": more than {DEEPEST} things inside each other")


@pytest.mark.parametrize("inside", ["[" * 500_000, "{a: " * 200_000, "- " * 400_000, "? " * 400_000])
def test_what_lies_too_deep_is_refused_and_ends_no_process(inside: str) -> None:
    assert refused(f"a:\n {inside}").endswith(f": more than {DEEPEST} things inside each other")


@pytest.mark.parametrize(
    "text", ["a: [" + "1," * MOST_VALUES + "1]", "x: &x [" + "1," * 999 + "1]\na: [" + "*x," * 300 + "]"]
)
def test_a_document_of_too_many_values_is_refused_with_their_number(text: str) -> None:
    assert f"more than {MOST_VALUES} values, with aliases counted each time" in refused(text)


def test_an_anchor_may_be_used_as_often_as_people_do() -> None:
    text = "x: &x {range: 10.0.0.0/24, gateway: 10.0.0.1}\nlist:\n" + "- *x\n" * 10_000

    assert len(read_tree(text, "doc.yml").value["list"].value) == 10_000
