"""The checker of answers: every kind of broken promise is found, and no kept one is."""

import pytest

from tests.proof.history import Tenancy
from tests.proof.stories import NEVER, A, B, C, Story


@pytest.fixture
def story() -> Story:
    """Begin an empty history."""
    return Story()


def test_an_address_may_pass_from_one_to_the_next(story: Story) -> None:
    first = story.grant(A, "vm/1", 1, 2)
    story.release(first, 3, 4)
    story.final = [story.grant(A, "vm/2", 5, 6)]

    assert story.judge() == []


def test_a_grant_may_overtake_the_answer_of_the_release_before_it(story: Story) -> None:
    first = story.grant(A, "vm/1", 1, 2)
    story.release(first, 3, 9)
    story.final = [story.grant(A, "vm/2", 4, 5)]

    assert story.judge() == []


@pytest.mark.parametrize("happened", [True, False])
def test_a_grant_without_an_answer_may_have_happened_or_not(story: Story, happened: bool) -> None:
    held = story.tenancy(A, "vm/1", story.ask("vm/1", 1, NEVER).request)
    story.final = [held] if happened else []
    if happened:
        story.enter("grant", held)

    assert story.judge() == []


@pytest.mark.parametrize("happened", [True, False])
@pytest.mark.parametrize("error", [None, "unknown"])
def test_a_release_without_an_answer_may_have_happened_or_not(story: Story, happened: bool, error: str | None) -> None:
    held = story.grant(A, "vm/1", 1, 2)
    late = story.release(held, 3, NEVER if error is None else 4, answered=False, error=error)
    if happened:
        story.enter("release", held, late.request)
        story.final = [story.grant(A, "vm/2", 5, 6)]
    else:
        story.final = [held]

    assert story.judge() == []


def test_a_repeated_claim_is_answered_with_what_it_holds(story: Story) -> None:
    held = story.grant(A, "vm/1", 1, 2)
    story.tell("allocate", 3, 4, held, owner="vm/1", pool="low")
    story.final = [held]

    assert story.judge() == []


def test_a_release_that_lost_its_first_answer_may_find_nobody(story: Story) -> None:
    held = story.grant(A, "vm/1", 1, 2)
    repeated = story.release(held, 3, 6, answered=False)
    story.enter("release", held, repeated.request)

    assert story.judge() == []


def test_a_pool_may_be_full_of_what_others_may_hold(story: Story) -> None:
    story.final = [story.grant(A, "vm/1", 1, 2), story.grant(B, "vm/2", 1, 2)]
    story.ask("vm/3", 3, NEVER)
    story.ask("vm/4", 4, 5, error="pool_exhausted")

    assert story.kinds() == set()


def test_two_holders_at_once_are_found(story: Story) -> None:
    story.grant(A, "vm/1", 1, 2)
    story.final = [story.grant(A, "vm/2", 3, 4)]

    assert "doubled" in story.kinds()


def test_two_holders_are_found_also_if_the_first_released_later(story: Story) -> None:
    first = story.grant(A, "vm/1", 1, 2)
    story.final = [story.grant(A, "vm/2", 3, 4)]
    story.release(first, 5, 6)

    assert "doubled" in story.kinds()


def test_one_generation_of_two_holders_is_found(story: Story) -> None:
    first = story.grant(A, "vm/1", 1, 2)
    story.release(first, 3, 4)
    second = first._replace(owner="vm/2", request="r3")
    story.tell("allocate", 5, 6, second, owner="vm/2", pool="low")
    story.final = [second]

    assert "doubled" in story.kinds()


def test_a_second_address_for_one_claim_is_found(story: Story) -> None:
    story.final = [story.grant(A, "vm/1", 1, 2), story.grant(B, "vm/1", 3, 4)]

    assert story.kinds() == {"two holdings of one claim"}


def test_a_lost_grant_is_found(story: Story) -> None:
    story.grant(A, "vm/1", 1, 2)

    assert story.kinds() == {"lost"}


@pytest.mark.parametrize("error", ["conflict", "not_owner", None])
def test_a_stale_release_that_freed_a_later_grant_is_found(story: Story, error: str | None) -> None:
    first = story.grant(A, "vm/1", 1, 2)
    story.release(first, 3, 4)
    story.grant(A, "vm/1", 5, 6)
    story.release(first, 7, 8, answered=False, error=error)

    assert "lost" in story.kinds()


def test_a_release_that_did_nothing_is_found(story: Story) -> None:
    held = story.grant(A, "vm/1", 1, 2)
    story.release(held, 3, 4)
    story.final = [held]

    assert "release lost" in story.kinds()


def test_a_holding_that_nobody_asked_for_is_found(story: Story) -> None:
    story.final = [story.tenancy(A, "vm/1", "elsewhere")]

    assert story.kinds() == {"unasked"}


def test_a_second_holding_from_one_request_is_found(story: Story) -> None:
    held = story.grant(A, "vm/1", 1, 2)
    story.final = [held, story.tenancy(B, "vm/1", held.request or "")]

    assert "unasked" in story.kinds()


@pytest.mark.parametrize("error", ["none", "pool_exhausted"])
def test_a_holding_whose_request_was_answered_with_an_error_is_found(story: Story, error: str) -> None:
    story.final = [story.tenancy(A, "vm/1", story.ask("vm/1", 1, 2, error=error).request)]

    assert "trace of an error" in story.kinds()


@pytest.mark.parametrize(
    "wrong",
    [
        Tenancy("net", A, 1, "vm/2", "", "r1"),
        Tenancy("net", A, 1, "vm/1", "nic1", "r1"),
        Tenancy("other", A, 1, "vm/1", "", "r1"),
        Tenancy("net", "10.0.0.99", 1, "vm/1", "", "r1"),
    ],
)
def test_an_answer_to_another_question_is_found(story: Story, wrong: Tenancy) -> None:
    story.tell("allocate", 1, 2, wrong, owner="vm/1", pool="low")
    story.final = [wrong]

    assert story.kinds() == {"wrong answer"}


def test_a_group_that_was_served_in_part_is_found(story: Story) -> None:
    held = story.tenancy(A, "vm/1", "r1")
    story.tell("allocate_many", 1, 2, held, owners=["vm/1", "vm/2"], pool="low")
    story.final = [held]

    assert story.kinds() == {"wrong answer"}


def test_a_pool_called_full_that_was_not_is_found(story: Story) -> None:
    story.final = [story.grant(A, "vm/1", 1, 2), story.grant(B, "vm/2", 1, 2)]
    story.ask("vm/3", 3, 4, error="pool_exhausted")

    assert story.kinds() == {"not full"}


def test_a_pool_that_was_full_only_before_and_after_is_found(story: Story) -> None:
    first, second = story.grant(A, "vm/1", 1, 2), story.grant(B, "vm/2", 1, 2)
    story.release(story.grant(C, "vm/3", 1, 2), 3, 4)
    story.ask("vm/4", 5, 6, error="pool_exhausted")
    story.final = [first, second, story.grant(C, "vm/5", 7, 8)]

    assert story.kinds() == {"not full"}


def test_one_who_holds_and_is_told_that_the_pool_is_full_is_found(story: Story) -> None:
    story.final = [story.grant(address, f"vm/{address}", 1, 2) for address in (A, B, C)]
    story.ask(f"vm/{A}", 3, 4, error="pool_exhausted")

    assert story.kinds() == {"not idempotent"}


def test_a_release_that_overlooked_the_holder_is_found(story: Story) -> None:
    held = story.grant(A, "vm/1", 1, 2)
    story.tell("release", 3, 4, address=A, owner="vm/2", generation=None)
    story.final = [held]

    assert story.kinds() == {"wrong answer"}


@pytest.mark.parametrize("error", ["conflict", "InterfaceError()"])
def test_an_error_that_no_caller_may_see_is_found(story: Story, error: str) -> None:
    story.ask("vm/1", 1, 2, error=error)

    assert story.kinds() == {"unexpected error"}
