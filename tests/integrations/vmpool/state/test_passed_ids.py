"""VD7: what the first pool of a list notes of ids that have a VM of another one."""

import pytest

from tenure.integrations.vmpool.state.go_json import NotReadable
from tenure.integrations.vmpool.state.passed_ids import KEPT_IDS, PassedIds, read_passed


def test_an_id_that_was_passed_on_after_a_look_is_seen() -> None:
    before = PassedIds().with_id("a", "second")
    after = before.with_id("b", "third")

    assert after.is_passed_since("b", before.count)
    assert not after.is_passed_since("a", before.count)
    assert after.is_passed_since("a", 0)
    assert (after.pool_of("a", after.count), after.pool_of("b", before.count)) == ("second", "")


def test_the_last_pool_of_an_id_counts() -> None:
    passed = PassedIds().with_id("a", "second").with_id("a", "third")

    assert (passed.pool_of("a", 1), passed.pool_of("a", 2)) == ("second", "third")


def test_only_so_many_are_kept_and_who_looked_before_them_looks_again() -> None:
    passed = PassedIds()
    for number in range(KEPT_IDS + 10):
        passed = passed.with_id(f"id-{number}", "second")

    assert len(passed.latest) == KEPT_IDS
    assert passed.is_passed_since("never", 9), "it may be among those that are not kept any more"
    assert not passed.is_passed_since("never", 10)
    assert passed.is_passed_since("never", passed.count + 1), "the notes have begun again"


def test_it_is_read_as_it_was_written() -> None:
    passed = PassedIds().with_id("a", "second").with_id("b", "third")

    assert read_passed(passed.as_json()) == passed
    assert read_passed(None) == PassedIds()
    assert not PassedIds()
    with pytest.raises(NotReadable):
        read_passed({"latest": [1]})
