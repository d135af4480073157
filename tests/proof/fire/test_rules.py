"""The rules of a round under fire: each finds what breaks it, and none is broken by what may happen."""

from typing import Any

import pytest

from tests.proof.fire.attempts import Wish
from tests.proof.fire.evidence import Excuse
from tests.proof.fire.tales import SECOND, A, B, C, Tale, X, Y, held, refused


@pytest.fixture
def tale() -> Tale:
    """Begin an empty round."""
    return Tale()


# R1: none means that nothing changed


@pytest.mark.parametrize("told", [{"status": 409, "code": "not_owner"}, {"status": 503, "said": "none"}])
def test_what_was_called_undone_must_not_have_been_done(tale: Tale, told: dict[str, Any]) -> None:
    row = tale.granted("vm/1", X, 1)
    late = tale.release(row, 2, 3, **told)
    tale.enter("release", 2.5, row, late.id)

    assert tale.broken() == {"R1"}


@pytest.mark.parametrize("told", [{"status": None}, {"status": 503, "said": "unknown"}, {"status": 200}])
def test_what_was_not_called_undone_may_have_been_done(tale: Tale, told: dict[str, Any]) -> None:
    row = tale.granted("vm/1", X, 1)
    late = tale.release(row, 2, 3, **told)
    tale.enter("release", 2.5, row, late.id)

    assert tale.broken() == set()


@pytest.mark.parametrize(("outcome", "broken"), [("none", {"R1"}), ("unknown", set())])
def test_each_of_several_wishes_has_its_own_outcome(tale: Tale, outcome: str, broken: set[str]) -> None:
    wishes = [Wish("grant", "net", owner, pool="any") for owner in ("vm/1", "vm/2")]
    first, second = held(X, 1, "vm/1"), held(Y, 2, "vm/2")
    many = tale.ask("allocate_many", 1, 2, *wishes, together=False, rows=[first])
    many.refused = refused(["vm/2"], outcome)  # type: ignore[arg-type]
    tale.enter("grant", 1.1, first, many.id)
    tale.enter("grant", 1.2, second, many.id)

    assert tale.broken() == broken


def test_a_wait_that_came_to_nothing_may_be_in_the_log(tale: Tale) -> None:
    for address in (A, B, C):
        tale.granted(f"vm/{address}", address, 1)
    tale.allocate("vm/1", 2, 3, status=409, code="pool_exhausted", wait_s=1.0)
    tale.wait(2.1, "vm/1", 1)

    assert tale.broken() == set()


# R2: one request id, one effect


def test_a_release_must_not_be_done_twice(tale: Tale) -> None:
    row = tale.granted("vm/1", X, 1)
    release = tale.release(row, 2, 9, sure=False)
    tale.enter("release", 2.1, row, release.id)
    again = tale.granted("vm/1", X, 3)
    tale.enter("release", 4, again, release.id)

    assert tale.broken() == {"R2"}


def test_all_that_an_owner_holds_must_be_ended_in_one_batch(tale: Tale) -> None:
    rows = [tale.granted("vm/1", X, 1)]
    release = tale.ask("release_owner", 2, 9, Wish("release", None, "vm/1"))
    tale.enter("release", 2.1, rows[0], release.id)
    rows.append(tale.granted("vm/1", Y, 3))
    tale.enter("release", 4, rows[1], release.id)

    assert tale.broken() == {"R2"}


def test_an_effect_must_be_what_was_asked_for(tale: Tale) -> None:
    row = held(X, 1, "vm/2")
    ask = tale.allocate("vm/1", 1, 2, status=None, pool="any")
    tale.enter("grant", 1.5, row, ask.id)

    assert tale.broken() == {"R2"}


def test_nothing_is_done_behind_an_answer(tale: Tale) -> None:
    row = tale.granted("vm/1", X, 1)
    release = tale.release(row, 2, 3)
    tale.enter("release", 4, row, release.id)

    assert tale.broken() == {"R2"}


@pytest.mark.parametrize("told", [{"status": None}, {"status": 503, "said": "unknown"}])
def test_who_hung_up_or_was_told_unknown_may_still_be_served_much_later(tale: Tale, told: dict[str, Any]) -> None:
    row = tale.granted("vm/1", X, 1)
    release = tale.release(row, 2, 3, sure=False, **told)
    tale.allocate("vm/1", 4, 5, row, pool="any")
    tale.enter("release", 60, row, release.id)

    assert tale.broken() == set()


@pytest.mark.parametrize("verb", ["release", "cancel", "release_owner"])
def test_an_end_that_was_answered_must_be_in_the_log(tale: Tale, verb: str) -> None:
    row = tale.granted("vm/1", X, 1)
    wish = Wish("cancel" if verb == "cancel" else "release", None if verb == "release_owner" else "net", "vm/1")
    tale.ask(verb, 2, 3, wish, rows=[row])

    assert tale.broken() == {"R2"}


def test_a_release_that_shows_nothing_need_not_be_in_the_log(tale: Tale) -> None:
    row = tale.granted("vm/1", X, 1)
    tale.enter("release", 2.5, row, tale.release(row, 2, 3, rows=[row]).id)
    tale.release(row, 4, 5)

    assert tale.broken() == set()


def test_an_end_that_was_answered_must_not_be_another_requests(tale: Tale) -> None:
    row = tale.granted("vm/1", X, 1)
    tale.enter("release", 2.5, row, tale.release(row, 2, 3, rows=[row]).id)
    tale.release(row, 2, 4, rows=[row])

    assert tale.broken() == {"R2"}


def test_an_end_that_was_answered_again_under_its_key_is_in_the_log_once(tale: Tale) -> None:
    row = tale.granted("vm/1", X, 1)
    tale.enter("release", 2.5, row, tale.release(row, 2, 3, key="k", status=None).id)
    tale.release(row, 4, 5, key="k", rows=[row])

    assert tale.broken() == set()


@pytest.mark.parametrize(("ends", "broken"), [(3.5, set()), (9.0, {"R2"})])
def test_what_the_clock_ended_during_a_release_may_be_called_released(
    tale: Tale, ends: float, broken: set[str]
) -> None:
    row = held(X, 1, "vm/1")
    hold = tale.ask("hold", 1, 2, Wish("grant", "net", "vm/1", pool="any"), rows=[row])
    tale.enter("grant", 1.5, row, hold.id, pending=True, until=3)
    tale.release(row, 2.5, 4, rows=[row])
    tale.enter("release", ends, row, None, because="deadline")

    assert tale.broken() == broken


def test_a_transfer_that_was_answered_must_be_in_the_log(tale: Tale) -> None:
    row = tale.granted("vm/1", X, 1)
    tale.ask("transfer", 2, 3, Wish("transfer", "net", "vm/1", X, to="vm/2"), rows=[row])

    assert tale.broken() == {"R2"}


def test_a_transfer_asked_for_again_is_in_the_log_once(tale: Tale) -> None:
    tale.granted("vm/1", X, 1)
    wish, moved = Wish("transfer", "net", "vm/1", X, to="vm/2"), held(X, 2, "vm/2")
    first = tale.ask("transfer", 2, 3, wish, status=None)
    tale.enter("transfer", 2.5, moved, first.id, former="vm/1")
    tale.ask("transfer", 4, 5, wish, rows=[moved])

    assert tale.broken() == set()


# R3: acknowledged means held


def test_what_was_acknowledged_must_not_be_given_back(tale: Tale) -> None:
    row = held(A, 1, "vm/1")
    first = tale.allocate("vm/1", 1, 2, status=None, wait_s=5.0)
    tale.enter("grant", 2.1, row, first.id)
    tale.allocate("vm/1", 2.2, 2.3, row)
    tale.enter("release", 3, row, None, because="given back")

    assert tale.broken() == {"R3"}


def test_what_nobody_was_told_of_may_be_given_back(tale: Tale) -> None:
    row = held(A, 1, "vm/1")
    first = tale.allocate("vm/1", 1, 2, status=None, wait_s=5.0)
    tale.enter("grant", 2.1, row, first.id)
    tale.enter("release", 3, row, None, because="given back")
    tale.granted("vm/2", A, 4)

    assert tale.broken() == set()


@pytest.mark.parametrize("by", ["r7", "r1", "r3"])
def test_a_holding_must_not_be_ended_by_what_nobody_sent(tale: Tale, by: str) -> None:
    row = tale.granted("vm/1", X, 1)
    tale.granted("vm/2", Y, 2)
    tale.release(held(X, 77, "vm/1"), 3, 5, status=None)  # of another generation
    tale.enter("release", 4, row, by)

    assert "R3" in tale.broken()


def test_a_holding_must_not_end_twice(tale: Tale) -> None:
    row = tale.granted("vm/1", X, 1)
    for begin in (2, 3):
        tale.enter("release", begin + 0.5, row, tale.release(row, begin, begin + 1).id)

    assert tale.broken() == {"R3"}


@pytest.mark.parametrize(("ends", "broken"), [(3.5, set()), (2.5, {"R3"})])
def test_time_ends_a_pending_holding_but_not_before_its_time(tale: Tale, ends: float, broken: set[str]) -> None:
    row = held(X, 1, "vm/1")
    hold = tale.ask("hold", 1, 2, Wish("grant", "net", "vm/1", pool="any"), rows=[row])
    tale.enter("grant", 1.5, row, hold.id, pending=True, until=3)
    tale.enter("release", ends, row, None, because="deadline")

    assert tale.broken() == broken


# R4: never two acknowledged holders


def test_an_address_must_not_be_acknowledged_to_two(tale: Tale) -> None:
    row = held(A, 1, "vm/1")
    first = tale.allocate("vm/1", 1, 2, status=None, wait_s=5.0)
    tale.enter("grant", 2.1, row, first.id)
    tale.allocate("vm/1", 2.2, 2.3, row)
    tale.enter("release", 3, row, None, because="given back")
    tale.granted("vm/2", A, 4)

    assert tale.broken() == {"R3", "R4"}
    story = str(next(breach for breach in tale.breaches() if breach.rule == "R4"))
    assert all(word in story for word in ("two acknowledged holders", "given back", "r1", "r2", "r3"))


def test_nothing_is_granted_over_what_is_held(tale: Tale) -> None:
    tale.granted("vm/1", X, 1)
    tale.granted("vm/2", X, 2)

    assert "R4" in tale.broken()


def test_an_answer_must_be_in_the_log(tale: Tale) -> None:
    tale.allocate("vm/1", 1, 2, held(X, 9, "vm/1"), pool="any")

    assert tale.broken() == {"R4"}


def test_an_answer_must_be_true_at_some_moment_of_its_call(tale: Tale) -> None:
    row = tale.granted("vm/1", X, 1)
    tale.enter("release", 2.5, row, tale.release(row, 2, 3).id)
    tale.allocate("vm/1", 5, 6, row, pool="any")

    assert tale.broken() == {"R4"}


# R5: lowest is lowest


def test_a_pick_must_be_the_lowest_free_address(tale: Tale) -> None:
    tale.granted("vm/1", B, 1)

    assert tale.broken() == {"R5"}


@pytest.mark.parametrize(("asked", "broken"), [(6.0, {"R5"}), (3.5, set())])
def test_what_has_cooled_off_counts_as_free(tale: Tale, asked: float, broken: set[str]) -> None:
    row = tale.granted("vm/1", A, 1)
    tale.enter("cool", 2.5, row, tale.release(row, 2, 3).id, until=3.6)
    tale.granted("vm/2", B, asked)

    assert tale.broken() == broken


def test_what_is_past_its_deadline_counts_as_free_also_if_it_is_swept_in_the_same_breath(tale: Tale) -> None:
    row = held(A, 1, "vm/1")
    hold = tale.ask("hold", 1, 2, Wish("grant", "net", "vm/1", pool="low"), rows=[row])
    tale.enter("grant", 1.5, row, hold.id, pending=True, until=3)
    tale.enter("release", 6.1, row, None, because="deadline")
    tale.granted("vm/2", B, 6)

    assert tale.broken() == {"R5"}


def test_what_is_kept_for_one_who_waits_is_not_free(tale: Tale) -> None:
    rows = [tale.granted(f"vm/{address}", address, 1) for address in (A, B)]
    tale.allocate("vm/1", 2, 9, status=None, wait_s=7.0)
    tale.wait(2.1, "vm/1", 1)
    tale.enter("release", 3.5, rows[0], tale.release(rows[0], 3, 4).id)
    tale.granted("vm/2", C, 5)

    assert tale.broken() == set()


# R6: one key, one effect and one answer


def test_a_key_has_one_answer(tale: Tale) -> None:
    tale.granted("vm/1", X, 1, key="k")
    tale.allocate("vm/1", 2, 3, held(Y, 9, "vm/1"), key="k", pool="any")

    assert "R6" in tale.broken()


def test_a_key_has_one_effect(tale: Tale) -> None:
    row = tale.granted("vm/1", X, 1, key="k")
    tale.enter("release", 2.5, row, tale.release(row, 2, 3).id)
    tale.granted("vm/1", X, 4, key="k")

    assert "R6" in tale.broken()


def test_a_key_may_be_answered_with_what_was_long_ago(tale: Tale) -> None:
    row = tale.granted("vm/1", X, 1, key="k")
    tale.enter("release", 2.5, row, tale.release(row, 2, 3).id)
    tale.allocate("vm/1", 5, 6, row, key="k", pool="any")

    assert tale.broken() == set()


# R7: the log, the stream, the line


def test_the_log_has_no_gap(tale: Tale) -> None:
    tale.granted("vm/1", X, 1)
    tale.granted("vm/2", Y, 2)
    tale.log[1] = tale.log[1]._replace(seq=3)

    assert tale.broken() == {"R7"}


def test_the_stream_tells_what_the_log_has(tale: Tale) -> None:
    row = tale.granted("vm/1", X, 1)
    tale.events = [(1, "grant", X, row.generation, "vm/1")]
    assert tale.broken() == set()

    tale.events = [(2, "grant", X, row.generation, "vm/1")]
    assert tale.broken() == {"R7"}


@pytest.mark.parametrize("told", [0, 1])
def test_the_stream_reaches_the_end_of_the_log(tale: Tale, told: int) -> None:
    rows = [tale.granted("vm/1", X, 1), tale.granted("vm/2", Y, 2)]
    tale.look(3)
    events = [(number, "grant", row.address, row.generation, row.owner) for number, row in enumerate(rows, 1)]
    tale.events = [*events]
    assert tale.broken() == set()

    tale.events = [*events[:told]]
    assert tale.broken() == {"R7"}


def test_the_stream_need_not_tell_what_came_after_the_last_look(tale: Tale) -> None:
    row = tale.granted("vm/1", X, 1)
    tale.look(2)
    tale.events = [(1, "grant", X, row.generation, "vm/1")]
    tale.granted("vm/2", Y, 3)

    assert tale.broken() == set()


def test_what_verify_finds_is_a_breach(tale: Tale) -> None:
    tale.verified = ["I1 is broken"]

    assert tale.broken() == {"R7"}


@pytest.mark.parametrize("status", [500, 400, 422])
def test_nobody_who_asks_in_order_sees_such_an_error(tale: Tale, status: int) -> None:
    tale.allocate("vm/1", 1, 2, status=status)

    assert tale.broken() == {"R7"}


def test_a_pool_with_room_must_not_be_called_full(tale: Tale) -> None:
    tale.granted("vm/1", X, 1)
    tale.allocate("vm/2", 3, 4, status=409, code="pool_exhausted", pool="any")

    assert tale.broken() == {"R7"}


def test_a_pool_that_was_full_at_a_moment_of_the_call_may_be_called_full(tale: Tale) -> None:
    tale.granted("vm/1", X, 1)
    row = tale.granted("vm/3", Y, 2)
    tale.allocate("vm/2", 3, 5, status=409, code="pool_exhausted", pool="any")
    tale.enter("release", 4.5, row, tale.release(row, 4, 5).id)

    assert tale.broken() == set()


def test_a_pool_in_which_all_is_past_its_time_must_not_be_called_full(tale: Tale) -> None:
    row = tale.granted("vm/1", X, 1)
    tale.granted("vm/3", Y, 2)
    tale.enter("cool", 2.5, row, tale.release(row, 2.4, 3).id, until=3)
    tale.allocate("vm/2", 5, 6, status=409, code="pool_exhausted", pool="any")

    assert tale.broken() == {"R7"}


def test_who_came_later_is_not_served_first(tale: Tale) -> None:
    rows = [tale.granted(f"vm/{address}", address, 1) for address in (X, Y, A, B, C)]
    for number, owner in enumerate(("vm/1", "vm/2"), 1):
        tale.allocate(owner, 2 + number, 9, status=None, wait_s=5.0)
        tale.wait(2.1 + number, owner, number)
    release = tale.release(rows[2], 5, 6)
    tale.enter("release", 5.5, rows[2], release.id)
    tale.enter("grant", 5.6, held(A, 50, "vm/2"), "r7")

    assert tale.broken() == {"R7"}


# R8: nobody is held up for long


def test_a_caller_must_not_be_held_up_by_another_server(tale: Tale) -> None:
    tale.allocate("vm/1", 1, 26, status=503, said="none", server=0)
    tale.excuses = [Excuse(1, 1 * SECOND, 25 * SECOND)]

    assert tale.broken() == {"R8"}


@pytest.mark.parametrize("server", [0, None])
def test_a_caller_may_be_held_up_by_what_is_done_to_his_own_server_or_to_all(tale: Tale, server: int | None) -> None:
    tale.allocate("vm/1", 1, 26, status=503, said="none", server=0)
    tale.excuses = [Excuse(server, 1 * SECOND, 20 * SECOND)]

    assert tale.broken() == set()
