"""Names, owners and labels: what is accepted is kept as it is, what is wrong is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.kernel.errors import Invalid
from tenure.kernel.names import (
    MAX_LABELS,
    MAX_NAME,
    MAX_TEXT,
    Owner,
    check_labels,
    check_name,
    check_slot,
    check_text,
    shown,
)
from tests.kernel.strategies import names, owners, texts


@given(names)
def test_a_name_is_kept_as_it_is(name: str) -> None:
    assert check_name(name, field="name") == name


@given(st.text())
def test_a_name_that_is_accepted_can_be_written_down_anywhere(text: str) -> None:
    try:
        name = check_name(text, field="name")
    except Invalid:
        return

    assert name.encode().decode() == name
    assert name.isprintable()
    assert 0 < len(name) <= MAX_NAME


@pytest.mark.parametrize(
    "wrong",
    ["", " a", "a ", "a\0b", "a\nb", "\x7f", "\u202eabc", "\ud800", "x" * (MAX_NAME + 1), None, 1, True, b"a", []],
    ids=shown,
)
def test_a_wrong_name_is_refused_with_its_field(wrong: object) -> None:
    with pytest.raises(Invalid, match="zones") as refusal:
        check_name(wrong, field="zones")

    assert refusal.value.field == "zones"


def test_the_empty_slot_is_a_slot() -> None:
    assert check_slot("") == ""
    assert check_slot("nic0/ip1") == "nic0/ip1"


@pytest.mark.parametrize("wrong", [None, 0, False, b"", " ", "a\n"], ids=shown)
def test_a_wrong_slot_is_refused(wrong: object) -> None:
    with pytest.raises(Invalid) as refusal:
        check_slot(wrong)

    assert refusal.value.field == "slot"


@given(texts)
def test_text_keeps_its_line_breaks(text: str) -> None:
    assert check_text(text, field="description") == text


@pytest.mark.parametrize("wrong", ["\0", "a\rb", "\x1b[31m", "\udfff", "x" * (MAX_TEXT + 1), None, 1, b"x"], ids=shown)
def test_wrong_text_is_refused(wrong: object) -> None:
    with pytest.raises(Invalid) as refusal:
        check_text(wrong, field="description")

    assert refusal.value.field == "description"


@given(st.dictionaries(names, texts, max_size=5))
def test_labels_are_kept_and_sorted(labels: dict[str, str]) -> None:
    checked = check_labels(labels)

    assert checked == labels
    assert list(checked) == sorted(checked)


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        "a=b",
        [("a", "b")],
        {1: "a"},
        {"b": "x", 1: "a"},
        {None: "a", "b": "c"},
        {"a": 1},
        {"a": None},
        {"": "x"},
        {"a": "\0"},
        {"a": {"b": "c"}},
        {f"n{i}": "" for i in range(MAX_LABELS + 1)},
    ],
    ids=shown,
)
def test_wrong_labels_are_refused(wrong: object) -> None:
    with pytest.raises(Invalid, match="labels") as refusal:
        check_labels(wrong)

    assert str(refusal.value.field).startswith("labels")


@given(owners)
def test_an_owner_is_its_text(owner: Owner) -> None:
    assert owner == str(owner)
    assert Owner(str(owner)) == owner
    assert f"{owner.kind}/{owner.id}" == owner
    assert owner.realm == "local"


def test_the_realm_stands_before_the_kind() -> None:
    owner = Owner("cluster-7:ipclaim/ns/name:x")

    assert (owner.realm, owner.kind, owner.id) == ("cluster-7", "ipclaim", "ns/name:x")


def test_the_local_realm_need_not_be_written() -> None:
    assert Owner("local:instance/web-0") == Owner("instance/web-0") == "instance/web-0"


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "web-0",
        "instance/",
        "/web-0",
        "1nst/x",
        "a b/x",
        ":instance/x",
        "a:b:instance/x",
        "instance/a\n",
        " instance/a",
        "instance/\0",
        "instance/\ud800",
        "instance/" + "x" * 1000,
        None,
        5,
        b"instance/x",
        ("instance", "x"),
        [],
    ],
    ids=shown,
)
def test_a_wrong_owner_is_refused(wrong: object) -> None:
    with pytest.raises(Invalid, match="owner") as refusal:
        Owner(wrong)  # type: ignore[arg-type]

    assert refusal.value.field == "owner"


@pytest.mark.parametrize("wrong", [10**5000, "x" * 10_000, "\ud800", [[[1]]], None], ids=shown)
def test_a_wrong_value_is_shown_short_whatever_it_is(wrong: object) -> None:
    text = shown(wrong)

    assert 0 < len(text) <= 80
    assert text.isprintable()
