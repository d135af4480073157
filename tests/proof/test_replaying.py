"""The checker of the log: every kind of wrong entry is found, and no right one is."""

import pytest

from tests.proof.stories import NEVER, A, B, C, S, Story, T


@pytest.fixture
def story() -> Story:
    """Begin an empty history."""
    return Story()


def test_a_log_that_tells_what_happened_is_believed(story: Story) -> None:
    first, second = story.grant(A, "vm/1", 1, 3), story.grant(B, "vm/2", 1, 3)
    third = story.grant(C, "vm/3", 2, 4)
    story.release(first, 5, 6)
    story.final = [second, third, story.grant(A, "vm/4", 7, 8)]

    assert story.judge() == []


def test_a_transfer_keeps_the_address_taken(story: Story) -> None:
    first = story.grant(A, "vm/1", 1, 2)
    handed = story.tenancy(A, "vm/2", "r2")
    story.tell("transfer", 3, 4, handed, address=A, owner="vm/1", to="vm/2", generation=first.generation)
    story.enter("transfer", handed)
    story.log[-1] = story.log[-1]._replace(former=("vm/1", ""))
    story.final = [handed]

    assert story.judge() == []
    story.log[-1] = story.log[-1]._replace(former=("vm/3", ""))
    assert story.log_kinds() == {"wrong effect"}


def test_a_gap_is_found_where_the_log_is_exact(story: Story) -> None:
    story.final = [story.grant(A, "vm/1", 1, 2)]
    story.log[0] = story.log[0]._replace(seq=2)

    assert story.log_kinds() == {"log order"}
    assert story.log_kinds(exact=False) == set()


def test_a_number_that_comes_twice_is_found(story: Story) -> None:
    story.final = [story.grant(A, "vm/1", 1, 2), story.grant(B, "vm/2", 1, 2)]
    story.log[1] = story.log[1]._replace(seq=1)

    assert story.log_kinds(exact=False) == {"log order"}


def test_an_order_that_clients_saw_otherwise_is_found(story: Story) -> None:
    story.final = [story.grant(A, "vm/1", 5, 6), story.grant(B, "vm/2", 1, 2)]

    assert story.log_kinds() == {"log order"}


def test_a_grant_over_a_holding_is_found(story: Story) -> None:
    story.grant(A, "vm/1", 1, 2)
    story.final = [story.grant(A, "vm/2", 3, 4)]

    assert "doubled" in story.log_kinds()


def test_the_lowest_goes_by_written_order_not_by_number(story: Story) -> None:
    story.final = [story.grant(C, "vm/1", 1, 2)]

    assert story.log_kinds() == {"not the lowest"}
    assert story.log_kinds(exact=False) == set()


def test_a_lowest_that_passed_over_what_was_just_freed_is_found(story: Story) -> None:
    first, second = story.grant(A, "vm/1", 1, 2), story.grant(B, "vm/2", 1, 2)
    story.release(first, 3, 4)
    story.final = [second, story.grant(C, "vm/3", 5, 6)]

    assert story.log_kinds() == {"not the lowest"}


def test_other_policies_and_named_addresses_need_not_be_lowest(story: Story) -> None:
    story.final = [
        story.grant(B, "vm/1", 1, 2, policy="random"),
        story.grant(C, "vm/2", 3, 4, named=True),
    ]

    assert story.judge() == []


def test_a_sticky_owner_that_did_not_come_home_is_found(story: Story) -> None:
    story.release(story.grant(S, "vm/1", 1, 2, pool="stick"), 3, 4)
    story.final = [story.grant(T, "vm/1", 5, 6, pool="stick")]

    assert story.log_kinds() == {"not sticky"}


def test_a_sticky_owner_whose_place_is_taken_may_go_elsewhere(story: Story) -> None:
    story.release(story.grant(S, "vm/1", 1, 2, pool="stick"), 3, 4)
    story.final = [story.grant(S, "vm/2", 5, 6, pool="stick"), story.grant(T, "vm/1", 7, 8, pool="stick")]

    assert story.judge() == []


def test_a_sticky_owner_that_came_while_its_place_was_freed_may_go_elsewhere(story: Story) -> None:
    story.release(story.grant(S, "vm/1", 1, 2, pool="stick"), 3, 6)
    story.final = [story.grant(T, "vm/1", 5, 7, pool="stick")]

    assert story.judge() == []


def test_a_release_of_another_generation_is_found(story: Story) -> None:
    first = story.grant(A, "vm/1", 1, 2)
    story.release(first, 3, 4)
    second = story.grant(A, "vm/1", 5, 6)
    late = story.release(first, 7, 8, answered=False, error="conflict")
    story.enter("release", second, late.request)

    assert "wrong effect" in story.log_kinds()


def test_a_release_of_what_is_not_held_is_found(story: Story) -> None:
    first = story.grant(A, "vm/1", 1, 2)
    story.release(first, 3, 4)
    story.enter("release", first, "r2")

    assert "wrong effect" in story.log_kinds()


def test_an_entry_that_nobody_asked_for_is_found(story: Story) -> None:
    held = story.tenancy(A, "vm/1", "elsewhere")
    story.enter("grant", held)
    story.final = [held]

    assert story.log_kinds() == {"unasked"}


@pytest.mark.parametrize("error", ["none", "pool_exhausted", "address_in_use"])
def test_an_entry_of_a_call_that_was_answered_with_an_error_is_found(story: Story, error: str) -> None:
    held = story.tenancy(A, "vm/1", story.ask("vm/1", 1, 2, error=error).request)
    story.enter("grant", held)
    story.final = [held]

    assert story.log_kinds() == {"trace of an error"}


@pytest.mark.parametrize(("end", "error"), [(NEVER, None), (2, "unknown")])
def test_an_entry_of_a_call_of_unknown_outcome_is_explained(story: Story, end: float, error: str | None) -> None:
    held = story.tenancy(A, "vm/1", story.ask("vm/1", 1, end, error=error).request)
    story.enter("grant", held)
    story.final = [held]

    assert story.judge() == []


def test_an_acknowledged_grant_that_is_not_in_the_log_is_found(story: Story) -> None:
    story.final = [story.grant(A, "vm/1", 1, 2)]
    story.log.clear()

    assert story.log_kinds() == {"lost from the log", "log and holdings differ"}


def test_an_acknowledged_release_that_is_not_in_the_log_is_found(story: Story) -> None:
    story.release(story.grant(A, "vm/1", 1, 2), 3, 4)
    story.log.pop()

    assert story.log_kinds() == {"lost from the log", "log and holdings differ"}


def test_a_release_that_was_answered_but_done_by_another_is_found(story: Story) -> None:
    held = story.grant(A, "vm/1", 1, 2)
    story.release(held, 3, 4)
    story.log.pop()
    story.release(held, 5, 6)

    assert story.log_kinds() == {"lost from the log"}


def test_a_grant_that_is_in_the_log_twice_is_found(story: Story) -> None:
    held = story.grant(A, "vm/1", 1, 2)
    story.enter("grant", held)
    story.final = [held]

    assert story.log_kinds() == {"lost from the log", "doubled"}


def test_a_holding_that_the_log_does_not_know_is_found(story: Story) -> None:
    held = story.grant(A, "vm/1", 1, 2)
    story.final = [held, story.tenancy(B, "vm/2", story.ask("vm/2", 1, NEVER).request)]

    assert story.log_kinds() == {"log and holdings differ"}
