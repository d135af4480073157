"""Asking again: the same answer, whatever happened to the plan in between (invariant I6)."""

import pytest

import tenure


@pytest.mark.parametrize("edit", ["reserve", "retire", "preallocate"])
def test_the_same_request_again_answers_the_same_whatever_was_planned_since(edit: str) -> None:
    with tenure.open("memory:") as ledger:
        ledger.add_network("n1")
        ledger.add_subnet("n1", "10.0.0.0/29", name="low")
        first = ledger.allocate("n1", owner="pod/a", address="10.0.0.5")
        if edit == "reserve":
            ledger.reserve("n1", "10.0.0.5")
        elif edit == "retire":
            ledger.retire_network("n1")
        else:
            ledger.preallocate("n1", "pod/b", "10.0.0.5")

        before = ledger.last_change()

        assert ledger.allocate("n1", owner="pod/a", address="10.0.0.5") == first
        assert ledger.last_change() == before
