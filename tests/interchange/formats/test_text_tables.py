"""Tables: delimiters, headers, line numbers, encodings, labels in a cell, and cells that a spreadsheet would run."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenure
from tenure.interchange.formats.labels_cell import labels_cell, read_labels_cell
from tenure.interchange.formats.source_items import Fault
from tenure.interchange.formats.text_tables import decoded, guarded, read_table, unguarded, written_row

ROWS = "network,address\nsite,192.0.2.1\n\nsite,192.0.2.2\n"


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_header_tells_the_delimiter(delimiter: str) -> None:
    lines = list(read_table(ROWS.replace(",", delimiter), "t"))

    assert [line.cells for line in lines] == [
        {"network": "site", "address": "192.0.2.1"},
        {"network": "site", "address": "192.0.2.2"},
    ]


def test_a_row_is_counted_by_the_line_it_begins_on() -> None:
    text = 'a,b\nx,"two\nlines"\n\ny,z\n'

    lines = list(read_table(text, "t"))

    assert [line.place.line for line in lines] == [2, 5]


def test_heads_are_compared_as_words() -> None:
    [line] = read_table("IP Address,NAT (Inside)\n192.0.2.1,x\n", "t")

    assert set(line.cells) == {"ip_address", "nat_inside"}


@pytest.mark.parametrize("content", ["\ufeffa,b\nä,ö\n".encode(), "a,b\nä,ö\n".encode()], ids=["mark", "plain"])
def test_a_byte_order_mark_makes_no_difference(content: bytes) -> None:
    [line] = read_table(decoded(content, "t"), "t")

    assert line.cells == {"a": "ä", "b": "ö"}


def test_bytes_that_are_no_utf_8_are_told_with_their_line() -> None:
    lines = list(read_table(decoded(b"a,b\n1,2\n3,\xe4\n", "t"), "t"))

    assert lines[0].fault is None
    assert lines[1].fault == Fault(lines[1].place, "b", "unreadable", "not UTF-8")
    assert lines[1].place.line == 3


def test_a_file_in_utf_16_is_refused_with_a_hint() -> None:
    with pytest.raises(tenure.Invalid, match="save it as UTF-8"):
        decoded("a,b".encode("utf-16"), "t")


@pytest.mark.parametrize(
    ("text", "line", "code"),
    [
        ("a,b\n1,2,3\n", 2, "too_many_columns"),
        ("a,A\n1,2\n", 1, "duplicate_column"),
        ('a,b\n1,"open\n2,3\n', 2, "unreadable"),
        ('a,b\n1,"x"y\n2,3\n', 2, "unreadable"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(text: str, line: int, code: str) -> None:
    faults = [each.fault for each in read_table(text, "t") if each.fault is not None]

    assert [(fault.place.line, fault.code) for fault in faults] == [(line, code)]


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@x", "\tx", "＝1", "'=1", "''"])
def test_a_cell_that_a_spreadsheet_would_run_is_written_as_text(cell: str) -> None:
    assert guarded(cell) == "'" + cell


@pytest.mark.parametrize("cell", ["", "plain", "1-2", "it's", "'tis"])
def test_other_cells_are_read_as_they_stand(cell: str) -> None:
    assert unguarded(cell) == cell


@given(st.text())
def test_a_guarded_cell_is_read_back_as_it_was(cell: str) -> None:
    assert unguarded(guarded(cell)) == cell
    assert guarded(cell)[:1] not in set("=+-@")


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1))
def test_a_written_row_is_read_back_as_it_was(cells: list[str]) -> None:
    [read] = csv.reader(io.StringIO(written_row(cells), newline=""))

    assert [unguarded(cell) for cell in read] == cells


@given(st.dictionaries(st.text(min_size=1).filter(lambda name: name == name.strip()), st.text()))
def test_labels_are_read_back_from_their_cell(labels: dict[str, str]) -> None:
    assert read_labels_cell(labels_cell(labels)) == labels


def test_labels_may_be_written_with_blanks_between_them() -> None:
    assert read_labels_cell("team=shop; rack=r1;") == {"team": "shop", "rack": "r1"}


@pytest.mark.parametrize("cell", ["team", "a=1;b", "a=1;a=2", "a=1;;b=2", "a=1\\"])
def test_what_is_no_list_of_labels_is_refused(cell: str) -> None:
    with pytest.raises(tenure.Invalid, match="labels"):
        read_labels_cell(cell)
