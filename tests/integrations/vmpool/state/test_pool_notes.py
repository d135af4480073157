"""Notes beside the state: bounded, kept by others, and never in the way of an allocation."""

from datetime import UTC, datetime, timedelta

import pytest

from tenure.integrations.vmpool.state.passed_ids import PassedIds
from tenure.integrations.vmpool.state.pool_notes import (
    CAUSES_BYTES,
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
    {"n": NodeNote("boot-2", "machine-1", AT, "boot-2", ("boot-1",), 30, "boot-3", AT, "boot-0")},
    ("m1", "m2"),
    counts={"new": 3, "milliseconds": 120},
    passed=PassedIds().with_id("a", "second"),
    unknown={"later": {"field": 1}},
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


def test_causes_of_failed_cleanups_have_so_much_room_and_no_more() -> None:
    """A thousand VMs may fail at once, each with a story: the ConfigMap has to hold their allocations as well."""
    failed = {f"10.0.{each // 250}.{each % 250}": CleanupFailure("a", "é" * 250, AT) for each in range(1000)}
    notes = PoolNotes(cleanup_failed=failed).with_write("m")
    causes = [each.cause for each in notes.cleanup_failed.values()]

    assert sum(len(cause.encode()) for cause in causes) <= CAUSES_BYTES
    assert {len(cause) for cause in causes} == {32}
    assert all(len(each.cause.encode()) <= 40 for each in notes.lightest.cleanup_failed.values())
    assert notes.lightest.history == ()


def test_results_are_counted_in() -> None:
    notes = PoolNotes(counts={"new": 1}).with_counts({"new": 2, "exhausted": 1})

    assert notes.counts == {"new": 3, "exhausted": 1}
    assert notes.with_counts({}) is notes


@pytest.mark.parametrize(
    "text", ['{"counts": {"new": "x"}}', '{"passed": 1}', '{"later": ' + "[" * 600 + "]" * 600 + "}"]
)
def test_other_parts_that_cannot_be_read_say_so_as_well(text: str) -> None:
    assert read_notes(text).problem
