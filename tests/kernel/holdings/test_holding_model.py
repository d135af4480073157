"""Holdings, tickets and changes, as users see them."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.kernel.addressing.addresses import parse_address
from tenure.kernel.holdings.holding_model import OWNED, Change, Holding, Row, State, Ticket, Wish, moment
from tenure.kernel.holdings.log_entries import grant_entry, release_entry
from tests.kernel.strategies import cidrs


def row(first: str = "192.0.2.10", size: int = 1, **more: object) -> Row:
    place = parse_address(first)
    usual = {"owner": "instance/a", "slot": "", "state": State.HELD, "generation": 7, "since_us": 1_000_000}
    return Row(1, 2, place, place + size - 1, **(usual | more))  # type: ignore[arg-type]


def test_a_holding_tells_who_what_and_since_when() -> None:
    details = {"labels": {"team": "shop"}, "description": "d", "carrier": "vm-1", "plan": "p"}
    held = Holding("net1", row(slot="nic0", until_us=2_500_000, request="r", details=details), 24, "192.0.2.1")

    assert (held.address, held.last_address, held.prefix, held.unit) == ("192.0.2.10", "192.0.2.10", 24, 32)
    assert (held.owner, held.owner.kind, held.slot, held.state) == ("instance/a", "instance", "nic0", "held")
    assert (held.labels, held.description, held.carrier, held.plan) == ({"team": "shop"}, "d", "vm-1", "p")
    assert (held.generation, held.request) == (7, "r")
    assert held.since == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert held.until == moment(2_500_000)
    assert str(held) == "192.0.2.10 held by instance/a nic0 in net1"


def test_a_plain_holding_has_no_labels_and_no_deadline() -> None:
    held = Holding("net1", row(), 24)

    assert (held.labels, held.description, held.carrier, held.plan, held.until) == ({}, "", None, None, None)


def test_changing_the_labels_one_was_given_changes_nothing() -> None:
    held = Holding("net1", row(details={"labels": {"a": "b"}}), 24)

    held.labels.clear()

    assert held.labels == {"a": "b"}


def test_a_held_prefix_is_written_with_its_length() -> None:
    held = Holding("net1", row("2001:db8::", 1 << 64), 48)

    assert held.unit == 64
    assert str(held).startswith("2001:db8::/64 held")
    assert held.last_address == "2001:db8::ffff:ffff:ffff:ffff"


@given(cidrs())
def test_the_unit_of_a_held_block_is_its_prefix_length(block: object) -> None:
    first, last = block.first, block.last  # type: ignore[attr-defined]

    held = Holding("n", Row(1, 2, first, last, "instance/a", "", State.HELD, 1, 0), 0)

    assert held.unit == block.prefix  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("ticket", "names"),
    [
        (Ticket(2, 0, "instance/a"), True),
        (Ticket(2, 0, "instance/a", generation=7), True),
        (Ticket(2, 0, "instance/a", generation=6), False),
        (Ticket(2, 0, "instance/b"), False),
        (Ticket(3, 0, "instance/a"), False),
    ],
)
def test_a_ticket_names_a_row_by_network_owner_and_generation(ticket: Ticket, names: bool) -> None:
    assert ticket.names(row()) is names


def test_a_wish_claims_network_owner_and_slot() -> None:
    assert Wish(2, 5, 5, "instance/a", "nic0").claim == (2, "instance/a", "nic0")


def test_pending_and_held_occupy_an_owners_slot() -> None:
    assert {State.PENDING, State.HELD} == OWNED


@given(st.integers(0, 4 * 10**15))
def test_a_moment_keeps_its_microseconds(microseconds: int) -> None:
    assert round(moment(microseconds).timestamp() * 1_000_000) == microseconds


def test_entries_tell_of_grants_and_releases() -> None:
    pending = row(state=State.PENDING, until_us=5, request="r", details={"labels": {"a": "b"}})
    granted, released = grant_entry(pending), release_entry(pending, "r2")

    assert (granted.verb, granted.first, granted.owner, granted.generation) == ("grant", pending.first, "instance/a", 7)
    assert granted.details == {"labels": {"a": "b"}, "state": "pending", "until_us": 5}
    assert grant_entry(row()).details == {}
    assert (released.verb, released.request, released.generation, released.details) == (
        "release",
        "r2",
        7,
        {"since_us": pending.since_us, "request": "r"},
    )


def test_a_change_tells_its_address_and_time() -> None:
    change = Change(1, 1_000_000, "grant", 1, 2, parse_address("::1"), None, None, None, None, None)

    assert (change.address, change.at) == ("::1", moment(1_000_000))
    assert Change(1, 0, "network.add", 1, 2, None, None, None, None, None, None).address is None
