"""The checker on what takes time: pending, cooling and waiting."""

import pytest

from tests.proof.stories import A, Story, X, Y


@pytest.fixture
def story() -> Story:
    """Begin an empty history."""
    return Story()


def test_what_was_confirmed_is_held(story: Story) -> None:
    held = story.hold(X, "vm/1", 1, 2)
    story.enter("confirm", held, story.settle("confirm", held, 3, 4).request)
    story.final = [held]

    assert story.judge() == []


def test_what_was_not_confirmed_may_go_with_its_deadline(story: Story) -> None:
    held = story.hold(X, "vm/1", 1, 2)
    story.expire(held)
    story.settle("confirm", held, 3, 4, error="not_found")

    assert story.judge() == []


def test_a_confirmation_of_what_its_deadline_removed_is_found(story: Story) -> None:
    held = story.hold(X, "vm/1", 1, 2)
    story.expire(held)
    story.enter("confirm", held, story.settle("confirm", held, 3, 4).request)

    assert "wrong effect" in story.log_kinds()


def test_a_confirmation_that_the_log_does_not_know_is_found(story: Story) -> None:
    held = story.hold(X, "vm/1", 1, 2)
    story.settle("confirm", held, 3, 4)
    story.final = [held]

    assert story.log_kinds() == {"lost from the log"}


def test_what_was_confirmed_and_is_not_there_is_found(story: Story) -> None:
    held = story.hold(X, "vm/1", 1, 2)
    story.settle("confirm", held, 3, 4)

    assert story.kinds() == {"lost"}


def test_a_holding_without_deadline_that_is_not_there_is_found(story: Story) -> None:
    story.hold(X, "vm/1", 1, 2, lasts_s=None)

    assert story.kinds() == {"lost"}


def test_a_confirmation_that_is_refused_while_the_holding_is_there_is_found(story: Story) -> None:
    held = story.hold(X, "vm/1", 1, 2, lasts_s=None)
    story.settle("confirm", held, 3, 4, error="not_found")
    story.final = [held]

    assert story.kinds() == {"wrong answer"}


@pytest.mark.parametrize("because", ["deadline", "cooled off"])
def test_a_deadline_that_ends_what_is_held_is_found(story: Story, because: str) -> None:
    story.expire(story.grant(A, "vm/1", 1, 2), because)

    assert story.log_kinds() == {"wrong effect"}


def test_a_held_address_that_was_cancelled_is_found(story: Story) -> None:
    held = story.grant(A, "vm/1", 1, 2)
    story.enter("release", held, story.settle("cancel", held, 3, 4).request, because="cancelled")

    assert story.log_kinds() == {"wrong effect"}


def test_a_cancel_that_did_nothing_is_found(story: Story) -> None:
    held = story.hold(X, "vm/1", 1, 2, lasts_s=None)
    story.settle("cancel", held, 3, 4)
    story.final = [held]

    assert story.kinds() == {"release lost"}


def test_an_address_that_cooled_off_may_be_granted_again(story: Story) -> None:
    held = story.grant(X, "vm/1", 1, 2, pool="cool")
    story.enter("cool", held, story.release(held, 3, 4, answered=False).request)
    story.expire(held, "cooled off")
    story.final = [story.grant(X, "vm/2", 5, 6, pool="cool")]

    assert story.judge() == []


def test_a_grant_of_what_still_cools_is_found(story: Story) -> None:
    held = story.grant(X, "vm/1", 1, 2, pool="cool")
    story.enter("cool", held, story.release(held, 3, 4, answered=False).request)
    story.final = [story.grant(X, "vm/2", 5, 6, pool="cool")]

    assert story.log_kinds() == {"doubled"}


def test_an_address_that_was_to_cool_and_did_not_is_found(story: Story) -> None:
    story.release(story.grant(X, "vm/1", 1, 2, pool="cool"), 3, 4)

    assert story.log_kinds() == {"not cooled"}


def test_what_cools_and_is_not_in_the_way_is_found(story: Story) -> None:
    held = story.grant(X, "vm/1", 1, 2, pool="cool")
    story.enter("cool", held, story.release(held, 3, 4, answered=False).request)

    assert story.log_kinds() == {"log and holdings differ"}
    story.cooling = [held]
    assert story.log_kinds() == set()


def test_a_younger_one_who_got_the_last_address_is_found(story: Story) -> None:
    story.final = [story.grant(X, "vm/0", 1, 2, pool="cool")]
    story.wait("vm/1", 1)
    story.wait("vm/2", 2)
    story.final.append(story.grant(Y, "vm/2", 3, 4, pool="cool", slot="cool"))

    assert story.log_kinds() == {"passed over"}


def test_a_younger_one_may_be_served_if_the_older_can_be_too(story: Story) -> None:
    story.wait("vm/1", 1)
    story.wait("vm/2", 2)
    story.final = [story.grant(Y, "vm/2", 1, 2, pool="cool", slot="cool")]

    assert story.log_kinds() == set()


def test_one_who_went_away_may_be_passed(story: Story) -> None:
    story.wait("vm/1", 1)
    story.wait("vm/1", 1, "leave")
    story.final = [story.grant(X, "vm/2", 1, 2, pool="cool"), story.grant(Y, "vm/3", 3, 4, pool="cool")]

    assert story.log_kinds() == set()
