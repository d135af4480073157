"""What a pool's status says, and when it says nothing."""

from typing import Any

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import STORED_INDEXES, WHOLE_AGAIN
from tenure.integrations.kubernetes.metal3.objects.pool_spec import read_pool_spec
from tenure.integrations.kubernetes.metal3.pool_record import PoolRecord
from tenure.integrations.kubernetes.metal3.pool_room import STORED_BYTES
from tenure.integrations.kubernetes.metal3.pool_status import (
    LARGEST,
    LeaderNotes,
    own_status,
    shown_indexes,
    status_changes,
    used_percent,
)

NOTES = LeaderNotes([], [], [])


def pool(**status: Any) -> dict[str, Any]:
    return {"kind": "IPPool", "metadata": {"name": "p", "namespace": "n", "generation": 3}, "status": status}


def test_kd4_indexes_are_empty_above_5000_entries_and_whole_again_below_4500() -> None:
    record = PoolRecord()
    status: dict[str, Any] = {}
    for count, is_whole in [
        (STORED_INDEXES, True), (STORED_INDEXES + 1, False), (WHOLE_AGAIN + 1, False), (WHOLE_AGAIN, True),
        (STORED_INDEXES, True),
    ]:  # fmt: skip
        record.indexes = {f"c{number}": "10.0.0.1" for number in range(count)}
        shown = dict(shown_indexes(record, pool(**status), {"conditions": []}))
        status = {"indexes": shown, "lastUpdated": "2020-01-01T00:00:00Z"}
        assert len(shown) == (count if is_whole else 0)


def test_kd4_indexes_without_room_are_empty_and_whole_again_below_nine_tenths_of_it() -> None:
    """Names of claims are as long as they like, and users write into a pool as well."""
    record, status = PoolRecord(), dict[str, Any]()
    own: dict[str, Any] = {"cooling": []}
    entry = len('"c1000":"10.0.0.1",')
    metadata = {"name": "p", "namespace": "n", "annotations": {"mine": "x" * (STORED_BYTES - 4_000 * entry)}}
    for count, is_whole in [(3_990, True), (4_000, False), (3_700, False), (3_500, True), (3_990, True)]:
        record.indexes = {f"c{1_000 + number}": "10.0.0.1" for number in range(count)}
        shown = dict(shown_indexes(record, {"metadata": metadata, "status": status}, own))
        status = {"indexes": shown, "lastUpdated": "2020-01-01T00:00:00Z"}
        assert len(shown) == (count if is_whole else 0)


def test_a_status_that_is_right_is_not_written() -> None:
    record = PoolRecord()
    record.book.lay(read_pool_spec({"namePrefix": "p", "pools": [{"subnet": "10.0.0.0/24"}]}))
    own = own_status(record, pool(), NOTES, ("", ""), [])
    record.indexes = {"c": "10.0.0.1"}
    changes = status_changes(record, pool(), own)
    assert changes["indexes"] == {"c": "10.0.0.1"}
    written = {"indexes": {"c": "10.0.0.1"}, "tenure": {name: value for name, value in own.items() if value}}
    again = own_status(record, pool(**written), NOTES, ("", ""), [])
    assert status_changes(record, pool(**written), again) == {}
    record.indexes = {}
    gone = status_changes(record, pool(**written), again)
    assert gone["indexes"] == {"c": None}
    assert gone["lastUpdated"]


def test_counts_that_no_integer_holds_are_written_as_the_largest() -> None:
    record = PoolRecord()
    record.book.lay(read_pool_spec({"namePrefix": "p", "pools": [{"subnet": "fd00::/32"}]}))
    own = own_status(record, pool(), NOTES, ("", ""), [])
    assert own["addresses"]["total"] == own["addresses"]["free"] == LARGEST
    counts = {"total": LARGEST, "free": LARGEST, "used": 0, "kept": 0, "usedPercent": 0}
    assert own["families"] == [{"family": "IPv6", **counts}]


def test_a_condition_keeps_its_time_until_it_changes() -> None:
    record = PoolRecord()
    record.book.lay(read_pool_spec({"namePrefix": "p", "pools": [{"subnet": "10.0.0.0/24"}]}))
    since = "2020-01-01T00:00:00Z"
    known = pool(tenure={"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": since}]})
    (ready,) = own_status(record, known, NOTES, ("", ""), [])["conditions"]
    assert (ready["lastTransitionTime"], ready["reason"]) == (since, "Serving")
    (waits,) = own_status(record, known, NOTES, ("Exhausted", "3 claims wait for an address"), [])["conditions"]
    assert waits["lastTransitionTime"] != since
    assert (waits["status"], waits["reason"]) == ("False", "Exhausted")


def test_6_6_a_hundred_percent_is_full_and_nothing_percent_is_empty() -> None:
    counts = [(0, 0), (0, 9), (1, 2**70), (1, 2), (999, 1), (9, 0)]

    assert [used_percent(used, free) for used, free in counts] == [0, 0, 1, 33, 99, 100]
