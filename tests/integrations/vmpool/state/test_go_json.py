"""JSON as Go spells it: what the encoder and the decoder of Go do, seen in runs of real Go code."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tenure.integrations.vmpool.state.go_json import (
    DEEPEST,
    NotReadable,
    NumberText,
    check_depth,
    in_byte_order,
    read_integer,
    read_json,
    read_time,
    split_fields,
    time_text,
    write_json,
    write_line,
    write_text,
    write_time,
)


def test_the_byte_vector_of_go() -> None:
    assert write_text("b<&>é\u2028") == r'"b\u003c\u0026\u003eé\u2028"'


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("\u2029", r'"\u2029"'),
        ('"\\/', r'"\"\\/"'),
        ("\n\r\t\b\f", r'"\n\r\t\b\f"'),
        ("\x00\x1f", r'"\u0000\u001f"'),
        ("\x7f日本😀", '"\x7f日本😀"'),
        ("half \ud800 of one", '"half \ufffd of one"'),
    ],
)
def test_characters_are_escaped_as_in_go(text: str, written: str) -> None:
    assert write_text(text) == written


def test_blocks_are_indented_by_two_and_empty_ones_are_short() -> None:
    value: dict[str, Any] = {"a": [], "b": {}, "c": None, "d": [1, {"e": True}], "f": False}

    lines = ["{", '  "a": [],', '  "b": {},', '  "c": null,', '  "d": [', "    1,", "    {", '      "e": true', "    }"]
    assert write_json(value).split("\n") == [*lines, "  ],", '  "f": false', "}"]


@pytest.mark.parametrize("is_ascii", [False, True])
def test_one_line_is_what_python_writes_but_for_numbers_which_keep_their_spelling(is_ascii: bool) -> None:
    value: dict[str, Any] = {"a": [], "é": {}, "c": None, "d": [1, {"日 😀": True}, "x"], "f": False}

    assert write_line(value, is_ascii=is_ascii) == json.dumps(value, ensure_ascii=is_ascii)
    assert write_line(read_json('{"a": [1.50, -0, 1e400]}'), is_ascii=is_ascii) == '{"a": [1.50, -0, 1e400]}'


def test_keys_of_maps_are_in_the_order_of_their_bytes() -> None:
    assert in_byte_order(["é", "z", "Z", "a", "\uffff", "😀", ""]) == ["", "Z", "a", "z", "é", "\uffff", "😀"]


@pytest.mark.parametrize("text", ["1.50", "1e400", "-0", "-0.0", "123456789012345678901234567890", "1E+2"])
def test_numbers_that_nobody_knows_keep_their_spelling(text: str) -> None:
    assert write_json(read_json(f"[{text}]")) == f"[\n  {text}\n]"


@pytest.mark.parametrize("text", ["", "{", "[1,]", "NaN", "Infinity", "{'a': 1}", '{"a": 1} x', "[" * 100_000])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(NotReadable):
        read_json(text)


def test_a_name_that_an_object_has_twice_is_refused() -> None:
    """Go would take the last, or a mixture of both; an allocation could get lost on the way."""
    with pytest.raises(NotReadable, match="'a' twice"):
        read_json('{"x": {"a": 1, "a": 2}}')


@pytest.mark.parametrize("name", ["version", "Version", "VERSION", "ver\u017fion"])
def test_case_65_names_of_fields_are_read_in_any_case(name: str) -> None:
    assert split_fields({name: 3, "other": 4}, {"version": "version"}, "state") == ({"version": 3}, {"other": 4})


def test_a_field_in_two_spellings_is_refused() -> None:
    with pytest.raises(NotReadable, match="version is there twice"):
        split_fields({"version": 3, "Version": 4}, {"version": "version"}, "state")


@pytest.mark.parametrize("value", ["3", True, 1 << 63, -(1 << 63) - 1, NumberText("3.0"), [], {}])
def test_an_integer_is_an_integer_of_64_bits(value: Any) -> None:
    with pytest.raises(NotReadable, match="version: an integer"):
        read_integer(value, "version")


def test_the_largest_and_smallest_integers_are_read() -> None:
    assert [read_integer(each, "v") for each in (None, (1 << 63) - 1, -(1 << 63))] == [0, (1 << 63) - 1, -(1 << 63)]


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2023-11-14T22:13:20Z", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        ("2023-11-14T22:13:20.999999999Z", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        ("2023-11-15T00:13:20+02:00", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        ("2023-11-14T12:43:20-09:30", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", None),
        (None, None),
    ],
)
def test_times_are_read_in_any_offset_and_cut_to_seconds(text: str | None, time: datetime | None) -> None:
    assert read_time(text, "at") == time


@pytest.mark.parametrize(
    "text",
    [
        "", "2023-11-14", "2023-11-14 22:13:20Z", "2023-11-14T22:13:20", "2023-02-30T22:13:20Z", "2023-11-14T24:00:00Z",
        "2023-11-14T22:13:60Z", "2023-11-14T22:13:20+25:00", "0001-01-01T00:00:00+05:00", "٢٠٢٣-11-14T22:13:20Z", 5,
    ],
)  # fmt: skip
def test_other_times_are_refused(text: Any) -> None:
    with pytest.raises(NotReadable, match=r"^at: "):
        read_time(text, "at")


def test_times_are_written_in_utc_and_cut_not_rounded() -> None:
    time = datetime.fromtimestamp(1700000000.999, UTC)

    assert (time_text(time), write_time(None)) == ("2023-11-14T22:13:20Z", "null")


def nested(depth: int) -> str:
    return '{"n":' * depth + "[1.50]" + "}" * depth


@pytest.mark.parametrize("depth", [1, 300, DEEPEST - 1])
def test_what_lies_deep_is_written_as_it_was_read(depth: int) -> None:
    value = read_json(nested(depth))
    check_depth(value, "field")

    assert write_json(value).replace("\n", "").replace(" ", "") == nested(depth)


def test_what_lies_too_deep_to_be_compared_is_refused() -> None:
    with pytest.raises(NotReadable, match="field: objects lie too deep in each other"):
        check_depth(read_json(nested(DEEPEST)), "field")
    with pytest.raises(NotReadable, match="too deep"):
        read_json(nested(100_000))


def test_blocks_are_indented_from_where_they_stand() -> None:
    value = {"a": [1, {"b": None, "c": []}, {}], "x": True}

    assert write_json(value, "    ") == json.dumps(value, indent=2).replace("\n", "\n    ")
