"""What an agent sees of a pool that others write: Go managers, commands, programs, in whatever mode."""

from dataclasses import replace
from datetime import UTC, datetime

from tenure.integrations.vmpool.metering.pool_sightings import RELEASED, PoolSightings
from tenure.integrations.vmpool.metering.result_tally import CONFLICTS, MILLISECONDS, NEW, TIMED
from tenure.integrations.vmpool.pool_document import PoolDocument
from tenure.integrations.vmpool.state.pool_notes import PoolNotes, PoolPlacement
from tenure.integrations.vmpool.state.pool_state import PoolState, VMAllocation

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def pool(*ids: str, notes: PoolNotes | None = None, **counts: int) -> PoolDocument:
    entries = {id: VMAllocation(id, f"192.0.2.{ord(id[-1])}", allocated_at=NOW) for id in ids}
    return PoolDocument(PoolState(entries, ()), notes or PoolNotes(counts=counts), True)


def seen(*documents: PoolDocument) -> PoolSightings:
    sightings = PoolSightings()
    for document in documents:
        sightings.see(document)
    return sightings


def test_the_first_look_counts_nothing() -> None:
    assert seen(pool("a", "b", new=7)).totals == {}


def test_what_a_manager_without_notes_does_is_seen() -> None:
    totals = seen(pool("a"), pool("a", "b", "c"), pool("c")).totals

    assert (totals[NEW], totals[RELEASED], totals[TIMED]) == (2, 2, 0)


def test_what_came_and_went_between_two_looks_is_known_from_the_notes() -> None:
    totals = seen(pool("a", new=10), pool("a", "b", new=15)).totals

    assert (totals[NEW], totals[RELEASED], totals[TIMED]) == (5, 4, 5)


def test_failures_conflicts_and_times_are_those_of_the_notes() -> None:
    first = pool("a", exhausted=1, conflicts=2, milliseconds=100, new=1)
    last = pool("a", exhausted=3, conflicts=7, milliseconds=350, new=2, error=1)
    totals = seen(first, last).totals

    assert {name: totals[name] for name in ("exhausted", "error", CONFLICTS, MILLISECONDS, TIMED)} == {
        "exhausted": 2, "error": 1, CONFLICTS: 5, MILLISECONDS: 250, TIMED: 1,
    }  # fmt: skip


def test_notes_that_were_begun_again_never_count_backwards() -> None:
    totals = seen(pool("a", exhausted=9), pool("a", exhausted=2), pool("a", exhausted=3)).totals

    assert totals["exhausted"] == 3


def test_notes_that_cannot_be_read_meanwhile_count_nothing_twice() -> None:
    broken = pool("a", notes=PoolNotes(problem="broken"))

    assert seen(pool("a", exhausted=9), broken, pool("a", exhausted=10)).totals["exhausted"] == 1


def test_a_pool_that_is_being_moved_has_not_lost_its_allocations() -> None:
    moving = PoolNotes(placement=PoolPlacement("configmap", "per-ip"))
    arrived = PoolNotes(placement=PoolPlacement("per-ip", "", 1))
    totals = seen(pool("a", "b"), pool("moved-to-per-ip-192.0.2.0", notes=moving), pool("a", "b", notes=arrived)).totals

    assert (totals[NEW], totals[RELEASED]) == (0, 0)


def test_an_id_that_gets_its_vm_again_is_a_new_allocation() -> None:
    again = replace(pool("a"), state=PoolState({"a": VMAllocation("a", "192.0.2.97", allocated_at=None)}, ()))
    totals = seen(pool("a"), again).totals

    assert (totals[NEW], totals[RELEASED]) == (1, 1)


def test_in_other_modes_what_is_seen_is_counted_and_what_is_noted_only_timed() -> None:
    totals = seen(pool("a", timed=3, milliseconds=30), pool("a", "b", timed=5, milliseconds=80)).totals

    assert (totals[NEW], totals[TIMED], totals[MILLISECONDS]) == (1, 2, 50)
