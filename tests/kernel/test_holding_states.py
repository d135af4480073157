"""Which state follows which, and how long an address cools at the end; the contract suite tries the stores."""

from itertools import product

import pytest

from tenure.kernel.holding_states import MOVES, confirmed, cooling_us
from tenure.kernel.holdings.holding_model import Row, State

USED = (State.HELD, State.DRAINING, State.COOLING)


@pytest.mark.parametrize("state", USED)
@pytest.mark.parametrize(
    ("pool_us", "lingers_us", "cools_us"), [(0, 0, 0), (60, 0, 60), (0, 30, 30), (60, 30, 60), (60, 90, 90)]
)
def test_the_longer_of_what_pool_and_caller_say_counts(
    state: State, pool_us: int, lingers_us: int, cools_us: int
) -> None:
    assert cooling_us(state, pool_us, lingers_us) == cools_us


@pytest.mark.parametrize("pool_us", [None, 0, 60])
@pytest.mark.parametrize("lingers_us", [0, 30])
def test_what_was_only_pending_is_free_at_once(pool_us: int | None, lingers_us: int) -> None:
    assert cooling_us(State.PENDING, pool_us, lingers_us) == 0


@pytest.mark.parametrize("state", State)
def test_nothing_cools_where_no_subnet_is(state: State) -> None:
    assert cooling_us(state, None, 30) == 0


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("pool_us", [0, 60])
@pytest.mark.parametrize("lingers_us", [0, 30, 90])
def test_a_store_may_apply_the_rule_to_what_it_gave_for_a_held_one(state: State, pool_us: int, lingers_us: int) -> None:
    held_us = cooling_us(State.HELD, pool_us, lingers_us)

    assert cooling_us(state, held_us) == cooling_us(state, pool_us, lingers_us)


@pytest.mark.parametrize(("before", "after"), list(product(State, State)))
def test_states_follow_each_other_only_as_written_down(before: State, after: State) -> None:
    allowed = {
        ("pending", "held"),
        ("held", "draining"),
        ("held", "cooling"),
        ("draining", "held"),
        ("draining", "cooling"),
    }

    assert (after in MOVES[before]) == ((before, after) in allowed)


@pytest.mark.parametrize("state", State)
def test_only_what_is_pending_is_changed_by_a_confirmation(state: State) -> None:
    row = Row(1, 1, 5, 5, "vm/a", "", state, 7, 100, 200, "r", {"labels": {"a": "b"}})

    held = confirmed(row)

    assert held == (row._replace(state=State.HELD, until_us=None) if state is State.PENDING else row)
    assert held.state is row.state or held.state in MOVES[row.state]
