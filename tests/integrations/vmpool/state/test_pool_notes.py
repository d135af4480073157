"""Notes beside the state: bounded, kept by others, and never in the way of an allocation."""

from datetime import UTC, datetime, timedelta

import pytest

from tenure.integrations.vmpool.state.pool_notes import (
    HISTORY_BYTES,
    NODES,
    WRITES,
    CleanupFailure,
    HistoryLine,
    NodeNote,
    PoolNotes,
    read_notes,
    write_notes,
)

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FULL = PoolNotes(
    (HistoryLine(AT, "allocate", "a", "10.0.0.1", "n"),),
    {"10.0.0.1": CleanupFailure("a", "no route", AT, 3)},
    {"10.9.9.9": AT},
    {"n": NodeNote("boot-2", "machine-1", AT, "boot-2", ("boot-1",))},
    ("m1", "m2"),
    {"later": {"field": 1}},
)


def test_notes_are_read_as_they_were_written() -> None:
    assert read_notes(write_notes(FULL)) == FULL
    assert read_notes(None) == PoolNotes() == read_notes("{}") == read_notes(write_notes(PoolNotes()))


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"history": {}}', '{"history": [{"at": null}]}', '{"nodes": []}', '{"writes": [1]}', "x",
     '{"nodes": {"n": {"seenAt": null}}}',
     '{"cleanupFailed": {"10.0.0.1": {"tries": "x", "at": "2026-01-02T03:04:05Z"}}}', '{"draining": {"10.0.0.1": 5}}'],
)  # fmt: skip
def test_notes_that_cannot_be_read_say_nothing_but_why(text: str) -> None:
    notes = read_notes(text)

    assert notes.problem.startswith("the notes cannot be read: ")
    assert notes == PoolNotes(problem=notes.problem)


def test_the_history_is_bounded_in_lines() -> None:
    notes = PoolNotes()
    for number in range(100):
        notes = notes.with_line(HistoryLine(AT, "allocate", f"id-{number}", "10.0.0.1", "n")).with_write("m", history=5)

    assert [line.allocation_id for line in notes.history] == [f"id-{number}" for number in range(95, 100)]
    assert notes.with_write("m", history=0).history == ()


def test_nodes_that_were_not_seen_for_long_are_forgotten() -> None:
    notes = PoolNotes()
    for number in range(NODES + 10):
        notes = notes.with_node(f"n{number}", NodeNote("boot", "", AT + timedelta(minutes=number)))

    assert len(notes.nodes) == NODES
    assert "n9" not in notes.nodes
    assert "n10" in notes.nodes


def test_the_history_is_bounded_in_bytes_whatever_the_ids_are() -> None:
    notes = PoolNotes()
    for number in range(100):
        notes = notes.with_line(HistoryLine(AT, "allocate", "<" * 512 + str(number), "10.0.0.1", "n"))
    notes = notes.with_write("m", history=100)

    assert 0 < len(write_notes(notes)) < HISTORY_BYTES * 1.2
    assert notes.history[-1].allocation_id.endswith("99")


def test_marks_of_writes_are_bounded() -> None:
    notes = PoolNotes()
    for number in range(100):
        notes = notes.with_write(str(number))

    assert notes.writes == tuple(str(number) for number in range(100 - WRITES, 100))
