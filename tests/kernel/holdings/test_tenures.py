"""Tenures: what the log's entries about an address tell of those who held it."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from tenure.kernel.addressing.addresses import parse_address
from tenure.kernel.holdings.holding_model import Change, Row, State, moment
from tenure.kernel.holdings.tenures import Ending, History, Tenure, held_at, tenures_of

PLACE = parse_address("192.0.2.10")
OTHER_SPACE = 9


def entry(
    seq: int,
    verb: str,
    owner: str,
    details: Mapping[str, Any] | None = None,
    *,
    generation: int = 1,
    request: str | None = None,
    space: int = 1,
) -> Change:
    """Write an entry of the log; it is of the second that its number says."""
    at_us = seq * 1_000_000
    return Change(seq, at_us, verb, space, 2, PLACE, PLACE, owner, "", generation, request, details or {})


def row(owner: str = "vm/now", state: State = State.HELD, **more: Any) -> Row:
    values = {"generation": 99, "since_us": 90_000_000, "until_us": None, "request": "begins", **more}
    return Row(1, 2, PLACE, PLACE, owner, "", state, details={}, **values)


def seconds(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()


def shape(tenure: Tenure) -> tuple[str, float | None, float | None, str]:
    return (tenure.owner, seconds(tenure.since), seconds(tenure.until), str(tenure.ending))


@pytest.mark.parametrize(
    ("because", "ending"),
    [
        ({}, Ending.RELEASED),
        ({"because": "deadline"}, Ending.DEADLINE),
        ({"because": "cancelled"}, Ending.CANCELLED),
    ],
)
def test_a_release_ends_a_tenure_that_began_when_the_entry_says(because: dict[str, str], ending: Ending) -> None:
    [tenure] = tenures_of([entry(7, "release", "vm/a", {"since_us": 3_000_000, **because}, request="ends")], [])

    assert shape(tenure) == ("vm/a", 3, 7, ending)
    assert (tenure.ended_by, tenure.generation, tenure.state, tenure.address) == ("ends", 1, None, "192.0.2.10")


def test_an_entry_from_before_beginnings_were_noted_has_an_unknown_one() -> None:
    [tenure] = tenures_of([entry(7, "release", "vm/a")], [])

    assert shape(tenure) == ("vm/a", None, 7, "released")
    assert "from an unknown time until" in str(tenure)


def test_who_holds_it_now_comes_last_with_the_request_that_began_it() -> None:
    tenures = tenures_of([entry(7, "release", "vm/a", {"since_us": 3_000_000})], [row()])

    assert [shape(tenure) for tenure in tenures] == [
        ("vm/a", 3, 7, "released"), ("vm/now", 90, None, "still held"),
    ]  # fmt: skip
    assert (tenures[1].request, tenures[1].state, tenures[1].generation) == ("begins", State.HELD, 99)


def test_a_transfer_ends_one_tenure_and_begins_the_next_at_the_same_moment() -> None:
    handed = {"from": "vm/a", "from_slot": "nic0", "since_us": 1_000_000}
    log = [
        entry(5, "transfer", "vm/b", handed, generation=2, request="r1"),
        entry(8, "release", "vm/b", {"since_us": 4_999_990}, generation=2, request="r2"),
    ]

    first, second = tenures_of(log, [])

    assert shape(first) == ("vm/a", 1, 4.99999, "transferred")
    assert (first.slot, first.to, first.ended_by, first.generation) == ("nic0", "vm/b", "r1", None)
    assert shape(second) == ("vm/b", 4.99999, 8, "released")
    assert (second.request, second.ended_by, second.generation) == ("r1", "r2", 2)


def test_a_tenure_that_came_and_went_by_transfer_knows_its_generation() -> None:
    log = [
        entry(5, "transfer", "vm/b", {"from": "vm/a", "from_slot": "", "since_us": 1}, generation=2, request="r1"),
        entry(6, "transfer", "vm/c", {"from": "vm/b", "from_slot": "", "since_us": 2}, generation=3, request="r2"),
    ]

    _, second = tenures_of(log, [])

    assert (second.owner, second.to, second.generation, second.request) == ("vm/b", "vm/c", 2, "r1")


def test_cooling_comes_after_the_tenure() -> None:
    cool = entry(5, "cool", "vm/a", {"since_us": 1_000_000, "until_us": 65_000_000})
    still = row("vm/a", State.COOLING, generation=1, since_us=1_000_000, until_us=65_000_000)

    [cooling] = tenures_of([cool], [still])
    [cooled] = tenures_of([cool, entry(70, "release", "vm/a", {"because": "cooled off", "since_us": 1_000_000})], [])

    assert shape(cooling) == ("vm/a", 1, 5, "cooling")
    assert seconds(cooling.deadline) == 65
    assert shape(cooled) == ("vm/a", 1, 5, "released")
    assert seconds(cooled.deadline) == 70


def test_what_cooled_before_the_log_began_is_shown_while_it_is_there_and_not_made_up_later() -> None:
    still = row("vm/a", State.COOLING, generation=1, since_us=1_000_000, until_us=65_000_000)

    [cooling] = tenures_of([], [still])
    afterwards = tenures_of([entry(70, "release", "vm/a", {"because": "cooled off", "since_us": 1_000_000})], [])

    assert shape(cooling) == ("vm/a", 1, None, "cooling")
    assert held_at([cooling], moment(2_000_000)) == []
    assert afterwards == []


def test_pending_is_part_of_the_tenure_and_the_confirmation_is_told() -> None:
    log = [entry(3, "confirm", "vm/a"), entry(8, "release", "vm/a", {"since_us": 1_000_000})]

    [ended] = tenures_of(log, [])
    [lasting] = tenures_of(log[:1], [row("vm/a")])

    assert shape(ended) == ("vm/a", 1, 8, "released")
    assert seconds(ended.confirmed) == seconds(lasting.confirmed) == 3


def test_a_confirmation_is_not_carried_over_to_the_next_tenure() -> None:
    log = [entry(3, "confirm", "vm/a"), entry(8, "release", "vm/a", {"since_us": 1_000_000})]

    assert [seconds(tenure.confirmed) for tenure in tenures_of(log, [row()])] == [3, None]


def test_spaces_do_not_disturb_each_other() -> None:
    log = [
        entry(3, "confirm", "vm/x", space=OTHER_SPACE),
        entry(4, "transfer", "vm/b", {"from": "vm/a", "from_slot": "", "since_us": 1}, request="r1"),
        entry(5, "release", "vm/x", {"since_us": 2_000_000}, space=OTHER_SPACE),
        entry(6, "release", "vm/b", {"since_us": 4_000_000}),
    ]

    tenures = tenures_of(log, [])

    assert [(t.owner, t.space, t.request, seconds(t.confirmed)) for t in tenures] == [
        ("vm/a", 1, None, None), ("vm/x", OTHER_SPACE, None, 3), ("vm/b", 1, "r1", None),
    ]  # fmt: skip


def test_a_holding_that_ended_while_it_was_read_is_told_once() -> None:
    ending = entry(95, "release", "vm/now", {"since_us": 90_000_000}, generation=99)

    assert [shape(tenure) for tenure in tenures_of([ending], [row()])] == [("vm/now", 90, 95, "released")]


def test_what_is_only_written_on_a_holding_ends_nothing() -> None:
    assert tenures_of([entry(3, "modify", "vm/a"), entry(4, "grant", "vm/a")], []) == []


@pytest.mark.parametrize(
    ("second", "owners"),
    [(0, []), (1, ["vm/a"]), (4.5, ["vm/a"]), (5, ["vm/b"]), (8, []), (89, []), (90, ["vm/now"]), (1000, ["vm/now"])],
)
def test_a_tenure_lasts_from_its_beginning_to_just_before_its_end(second: float, owners: list[str]) -> None:
    log = [
        entry(5, "transfer", "vm/b", {"from": "vm/a", "from_slot": "", "since_us": 1_000_000}),
        entry(8, "release", "vm/b", {"since_us": 5_000_000}),
    ]

    found = held_at(tenures_of(log, [row()]), moment(round(second * 1_000_000)))

    assert [tenure.owner for tenure in found] == owners


def test_a_tenure_with_an_unknown_beginning_did_not_begin_before_the_one_before_it_ended() -> None:
    log = [entry(5, "release", "vm/a", {"since_us": 1_000_000}), entry(8, "release", "vm/b")]
    tenures = tenures_of(log, [])

    assert [tenure.owner for tenure in held_at(tenures, moment(3_000_000))] == ["vm/a"]
    assert [tenure.owner for tenure in held_at(tenures, moment(6_000_000))] == ["vm/b"]


def test_a_history_is_printed_a_line_a_tenure_and_says_what_it_does_not_know() -> None:
    log = [
        entry(5, "transfer", "vm/b", {"from": "vm/a", "from_slot": "nic0", "since_us": 1_000_000}, request="r1"),
        entry(8, "cool", "vm/b", {"since_us": 5_000_000, "until_us": 68_000_000}, request="r2"),
    ]
    tenures = tuple(tenures_of(log, [row("vm/c", State.PENDING, until_us=95_000_000)]))

    text = str(History("192.0.2.10", tenures, trimmed=True, complete_since=moment(2_000_000)))

    day, where = "1970-01-01 00", "in network no. 2, which is gone:"
    handed, cooling, pending, trimmed = text.splitlines()
    assert handed.startswith(f"192.0.2.10 vm/a (nic0) {where} from {day}:00:01 UTC until {day}:00:05 UTC, ")
    assert handed.endswith(" transferred to vm/b (request r1)")
    assert cooling.startswith(f"192.0.2.10 vm/b {where} from {day}:00:05 UTC (request r1) until {day}:00:08 UTC, ")
    assert cooling.endswith(f" cooling until {day}:01:08 UTC (request r2)")
    assert pending.startswith(f"192.0.2.10 vm/c {where} from {day}:01:30 UTC (request begins) on, ")
    assert pending.endswith(f" pending until {day}:01:35 UTC")
    assert trimmed == f"the log was trimmed: complete since {day}:00:02 UTC"
    assert str(History("192.0.2.11", ())) == "192.0.2.11: no holder is known"


def test_a_long_history_is_read_in_one_pass() -> None:
    log: list[Change] = []
    for turn in range(3000):
        told = {"since_us": 10 * turn}
        log.append(entry(2 * turn + 1, "cool", f"vm/{turn}", told, generation=turn))
        log.append(entry(2 * turn + 2, "release", f"vm/{turn}", {**told, "because": "cooled off"}, generation=turn))

    tenures = tenures_of(log, [])

    assert len(tenures) == 3000
    assert {tenure.ending for tenure in tenures} == {Ending.RELEASED}
    assert all(tenure.deadline == (tenure.until or moment(0)) + timedelta(seconds=1) for tenure in tenures)
