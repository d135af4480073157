"""The life of a holding: which state may follow which, how long it cools at its end, and what is written on it."""

from collections.abc import Mapping
from typing import Any, assert_never

from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.errors import Conflict, Invalid
from tenure.kernel.holdings.holding_model import Row, State
from tenure.kernel.names import check_labels, check_name, check_text, shown
from tenure.kernel.plan.edit_fields import LabelChange
from tenure.kernel.plan.edits import Keep

MOVES: Mapping[State, frozenset[State]] = {
    State.PENDING: frozenset({State.HELD}),
    State.HELD: frozenset({State.DRAINING, State.COOLING}),
    State.DRAINING: frozenset({State.HELD, State.COOLING}),
    State.COOLING: frozenset(),
}
"""Which state may follow which; any state may also end (the row is removed)."""

OWN_VERBS: Mapping[tuple[State, State], str] = {
    # confirm takes the deadline off the row as well: a held holding that kept it would be swept away.
    (State.PENDING, State.HELD): "confirm",
    (State.HELD, State.COOLING): "release",
    (State.DRAINING, State.COOLING): "release",
}
"""The moves that a verb of their own makes; the others are made by modifying the holding."""


def moved(row: Row, wanted: object) -> State:
    """Return the state a holding goes into, if it may."""
    if isinstance(wanted, Keep):
        return row.state
    try:
        state = State(wanted)  # type: ignore[arg-type]  # another type is no state either
    except ValueError:
        raise Invalid(f"state: {shown(wanted)} is none of {', '.join(State)}", field="state") from None
    if state is not row.state and state not in MOVES[row.state]:
        raise Conflict(f"{format_address(row.first)} is {row.state}; it cannot become {state}", field="state")
    if state is not row.state and (row.state, state) in OWN_VERBS:
        verb = OWN_VERBS[row.state, state]
        raise Invalid(f"state: a {row.state} holding becomes {state} by {verb}, not by being modified", field="state")
    return state


def confirmed(row: Row) -> Row:
    """Return a holding as it is once it is confirmed: held, without a deadline; the same row if it was held before."""
    if OWN_VERBS.get((row.state, State.HELD)) != "confirm":
        return row
    return row._replace(state=State.HELD, until_us=None)


def cooling_us(state: State, pool_us: int | None, lingers_us: int = 0) -> int:
    """Return for how many microseconds an address cools when its holding ends; 0 if it is free at once.

    ``pool_us`` is what the pool around the address says, None if no subnet of the plan has the address any more.
    ``lingers_us`` is what the caller asks for. This is the one home of the rule; PostgreSQL's ``release_to_cool``
    states it again, and a test compares the two. A release may ask twice (for the ticket as of a held one, then the
    store by the state that it finds): applied to its own result, the rule must not change it.
    """
    if pool_us is None:
        return 0  # a row may not be left where no subnet is
    match state:
        case State.HELD | State.DRAINING | State.COOLING:
            # What cools was released before: if that is ended early, the pool's time still counts, from then on.
            return max(pool_us, lingers_us)
        case State.PENDING:
            return 0  # nobody has used the address yet
        case _:
            assert_never(state)


def rewritten(details: Mapping[str, Any], labels: LabelChange, changes: Mapping[str, object]) -> dict[str, Any]:
    """Return a holding's details with what is not to be kept written again; nothing said is left out."""
    checks = {"labels": check_labels, "description": check_text, "carrier": check_name, "plan": check_name}
    new = dict(details)
    # Labels that are left as they are stay out of it: they were checked when they were written.
    relabelled = {} if labels == LabelChange() else {"labels": labels.made(details.get("labels", {}))}
    for name, value in (relabelled | dict(changes)).items():
        if isinstance(value, Keep):
            continue
        checked = None if value is None else checks[name](value, field=name)
        if checked:
            new[name] = checked
        elif value is None and name in ("labels", "description"):
            raise Invalid(f"{name}: cannot be nothing at all", field=name)
        else:
            new.pop(name, None)
    return new
