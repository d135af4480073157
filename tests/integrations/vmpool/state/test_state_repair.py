"""Every rule of the repair, alone and together: always the same result, and nothing where nothing is wrong."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.integrations.vmpool.state.pool_state import PoolState, VMAllocation
from tenure.integrations.vmpool.state.state_repair import PoolLine, Repaired, RepairKind, is_consistent, repair_state

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
POOL = PoolLine(("10.0.0.1", "10.0.0.2", "10.0.0.3"))


def holds(allocation_id: str, ip: str, at: datetime | None = AT) -> VMAllocation:
    return VMAllocation(allocation_id, ip, "n", "p", "ns", at)


def state(*entries: VMAllocation, free: tuple[str, ...] = (), version: int = 3) -> PoolState:
    return PoolState({each.allocation_id: each for each in entries}, free, AT, version)


def kinds(found: Repaired) -> list[RepairKind]:
    return [each.kind for each in found.findings]


def test_case_59_a_consistent_state_is_the_same_object() -> None:
    right = state(holds("a", "10.0.0.2"), free=("10.0.0.3", "10.0.0.1"))
    found = repair_state(right, POOL)

    assert (found.state is right, found.findings, found.is_changed) == (True, (), False)


def test_case_53_an_allocation_outside_the_pool_is_kept_and_reported() -> None:
    entries = (holds("a", "10.0.0.1"), holds("x", "10.9.9.9"))
    found = repair_state(state(*entries, free=("10.0.0.2", "10.0.0.2", "10.0.0.3")), POOL)

    assert sorted(found.state.allocated) == ["a", "x"]
    assert found.state.available == ("10.0.0.2", "10.0.0.3")
    assert kinds(found) == [RepairKind.OUTSIDE_POOL, RepairKind.DUPLICATE]


def test_an_allocation_outside_the_pool_alone_is_no_reason_to_write() -> None:
    found = repair_state(state(holds("x", "10.9.9.9"), free=POOL.ips), POOL)

    assert (kinds(found), found.is_changed) == ([RepairKind.OUTSIDE_POOL], False)


def test_case_52_by_the_rules_of_the_seed_it_goes() -> None:
    entries = (holds("a", "10.0.0.1"), holds("x", "10.9.9.9"))
    found = repair_state(state(*entries, free=("10.0.0.2", "10.0.0.2", "10.0.0.3")), POOL, outside_pool="drop")

    assert (list(found.state.allocated), found.state.available) == (["a"], ("10.0.0.2", "10.0.0.3"))


def test_case_54_what_is_available_outside_the_pool_goes() -> None:
    pool = PoolLine(("10.0.0.1", "10.0.0.3"))
    entries = (holds("a", "10.0.0.1"), holds("b", "10.0.0.2"))
    found = repair_state(state(*entries, free=("10.0.0.3", "10.0.0.4")), pool)

    assert found.state.available == ("10.0.0.3",)
    assert sorted(found.state.allocated) == ["a", "b"]


def test_case_55_missing_addresses_are_added_behind_the_others_in_the_order_of_the_pool() -> None:
    pool = PoolLine(("10.0.0.4", "10.0.0.1", "10.0.0.2", "10.0.0.3"))
    found = repair_state(state(holds("a", "10.0.0.1"), free=("10.0.0.3",)), pool)

    assert found.state.available == ("10.0.0.3", "10.0.0.4", "10.0.0.2")
    assert kinds(found) == [RepairKind.MISSING] * 2


def test_case_57_what_is_allocated_is_not_available() -> None:
    found = repair_state(state(holds("a", "10.0.0.1"), free=POOL.ips), POOL)

    assert (found.state.available, kinds(found)) == (("10.0.0.2", "10.0.0.3"), [RepairKind.DUPLICATE])


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        (AT.replace(year=2025), AT, "a"),
        (AT, AT.replace(year=2025), "b"),
        (AT, AT, "a"),
        (None, AT, "b"),
        (None, None, "a"),
    ],
)
def test_of_two_ids_on_one_address_the_older_keeps_it(
    first: datetime | None, second: datetime | None, kept: str
) -> None:
    for order in ((0, 1), (1, 0)):
        entries = (holds("a", "10.0.0.1", first), holds("b", "10.0.0.1", second))
        found = repair_state(state(*[entries[each] for each in order], free=("10.0.0.2", "10.0.0.3")), POOL)
        assert list(found.state.allocated) == [kept]
        [finding] = found.findings
        assert (finding.kind, finding.ip) == (RepairKind.DOUBLE_ALLOCATED, "10.0.0.1")
        assert finding.allocation_id != kept


def test_an_entry_whose_address_is_none_goes() -> None:
    found = repair_state(state(holds("a", "junk"), holds("b", ""), free=POOL.ips), POOL)

    assert (found.state.allocated, kinds(found)) == ({}, [RepairKind.INVALID] * 2)


def test_the_key_counts_and_not_what_the_entry_says() -> None:
    entry = holds("other", "10.0.0.1")
    found = repair_state(PoolState({"key": entry}, ("10.0.0.2", "10.0.0.3")), POOL)

    assert found.state.allocated == {"key": replace(entry, allocation_id="key")}
    assert kinds(found) == [RepairKind.MISNAMED]


def test_another_spelling_is_written_right_and_is_the_same_address() -> None:
    pool = PoolLine(("2001:db8::1", "2001:db8::2"))
    found = repair_state(state(holds("a", "2001:DB8::1"), free=("2001:db8::1", "2001:DB8::2")), pool)

    assert found.state.allocated["a"].ip == "2001:db8::1"
    assert found.state.available == ("2001:db8::2",)
    assert sorted(kinds(found)) == [RepairKind.DUPLICATE, RepairKind.RESPELLED, RepairKind.RESPELLED]


def test_rubbish_among_the_available_goes() -> None:
    found = repair_state(state(free=("", "junk", "10.0.0.0/24", *POOL.ips)), POOL)

    assert (found.state.available, kinds(found)) == (POOL.ips, [RepairKind.UNKNOWN] * 3)


def test_a_finding_says_what_is_done_and_why() -> None:
    found = repair_state(state(holds("x" * 500, "junk"), free=POOL.ips), POOL)

    assert found.findings[0].message.endswith("is no IP address: the entry goes")
    assert len(found.findings[0].message) < 200


ips = st.sampled_from([*POOL.ips, "10.9.9.9", "junk", "", "2001:DB8::1"])
entries = st.builds(holds, st.sampled_from("abcdef"), ips, st.none() | st.sampled_from([AT, AT.replace(year=2025)]))
states = st.builds(
    PoolState, st.dictionaries(st.sampled_from("abcdef"), entries, max_size=6), st.lists(ips, max_size=6).map(tuple)
)


@given(states, st.sampled_from(["keep", "drop"]))
def test_whatever_the_state_was_it_is_right_afterwards(wrong: PoolState, outside: str) -> None:
    found = repair_state(wrong, POOL, outside_pool=outside)  # type: ignore[arg-type]
    state, held = found.state, [entry.ip for entry in found.state.allocated.values()]

    assert len(set(held)) == len(held)
    assert set(held) & POOL.known | set(state.available) == POOL.known
    assert set(held).isdisjoint(state.available)
    assert len(set(state.available)) == len(state.available)
    assert all(entry.allocation_id == key for key, entry in state.allocated.items())
    assert repair_state(state, POOL, outside_pool=outside).is_changed is False  # type: ignore[arg-type]
    assert found.is_changed == (state is not wrong)
    assert is_consistent(state, POOL) or any(ip not in POOL.known for ip in held)
    turned = replace(wrong, allocated=dict(reversed(list(wrong.allocated.items()))))
    assert repair_state(turned, POOL, outside_pool=outside).state == state  # type: ignore[arg-type]
