"""Which VM an id gets, and what becomes of it: all published vectors, and the rules around them."""

from datetime import UTC, datetime

import pytest

from tenure.integrations.vmpool.pool_errors import VMPoolExhausted
from tenure.integrations.vmpool.state.pool_state import PoolState, VMAllocation
from tenure.integrations.vmpool.state.state_repair import PoolLine, RepairKind
from tenure.integrations.vmpool.state.state_rules import (
    Allocated,
    AllocationRequest,
    allocate,
    check_pick,
    ids_of_ip,
    pick_index,
    release,
)

AT = datetime(2026, 1, 2, 3, 4, 5, 999_999, tzinfo=UTC)

VECTORS = [
    ("", 3, 1), ("", 1, 0), ("pod-1", 6, 3), ("pod-2", 5, 2), ("pod-3", 4, 1), ("pod-4", 3, 2), ("pod-5", 2, 0),
    ("test-allocation", 2, 0), ("test-allocation-1", 2, 0), ("test-allocation-2", 10, 7), ("alloc-1", 3, 2),
    ("alloc-2", 3, 1), ("worker-0-alloc-0", 100, 97), ("worker-9-alloc-1", 250, 21), ("pre-alloc-1", 5, 0),
    ("pod1-sandbox1", 1000, 132), ("nginx-7c5ddbdf54-x2x8p-3f1c9d2e8b7a4f60", 1000, 829), ("α-pod-β", 250, 101),
    ("pod-2", 1000, 537), ("pod-1", 0, 0),
]  # fmt: skip
"""Made with the real Go function."""

SIX = PoolLine(tuple(f"192.168.3.{last}" for last in range(10, 16)))
THREE = PoolLine(("10.0.0.3", "10.0.0.1", "10.0.0.2"))


def given(state: PoolState, allocation_id: str, pool: PoolLine = THREE) -> Allocated:
    return allocate(state, pool, AllocationRequest(allocation_id, "node-1", "pod", "ns"), AT)


def held(ip: str, allocation_id: str = "a", at: datetime | None = AT) -> VMAllocation:
    return VMAllocation(allocation_id, ip, "node-1", "pod", "ns", at)


@pytest.mark.parametrize(("allocation_id", "count", "index"), VECTORS)
def test_every_hash_vector(allocation_id: str, count: int, index: int) -> None:
    assert pick_index(count, allocation_id) == index


def test_case_10_one_free_address_is_everybodys() -> None:
    assert {pick_index(1, f"id-{number}") for number in range(100)} == {0}


def test_case_11_the_sequence_of_the_go_run() -> None:
    state, ips = PoolState.fresh(SIX.ips), []
    for number in range(1, 6):
        found = given(state, f"pod-{number}", SIX)
        state = found.state
        ips.append(found.entry.ip.rpartition(".")[2])

    assert ips == ["13", "12", "11", "15", "10"]


def test_case_12_the_second_sequence_of_the_go_run_ends_with_an_empty_pool() -> None:
    state = PoolState.fresh(THREE.ips)
    ips = []
    for number in range(1, 4):
        found = given(state, f"pod-{number}")
        state = found.state.written_at(AT)
        ips.append(found.entry.ip)
    assert ips == ["10.0.0.3", "10.0.0.2", "10.0.0.1"]
    with pytest.raises(VMPoolExhausted, match=r"^no available IPs in pool$"):
        given(state, "pod-4")
    for number in (2, 1):
        state = release(state, THREE, [f"pod-{number}"]).state.written_at(AT)

    assert state.available == ("10.0.0.2", "10.0.0.3")
    assert state.version == 6


def test_case_14_the_order_of_the_others_stays() -> None:
    state = given(PoolState.fresh(SIX.ips), "pod-1", SIX).state

    assert state.available == tuple(ip for ip in SIX.ips if not ip.endswith(".13"))


def test_case_15_an_entry_says_everything() -> None:
    found = given(PoolState.fresh(THREE.ips), "a")

    assert found.entry == VMAllocation("a", found.entry.ip, "node-1", "pod", "ns", AT.replace(microsecond=0))


def test_case_9_an_id_that_has_its_vm_gets_it_again_and_nothing_changes() -> None:
    state = PoolState({"a": held("10.0.0.1")}, ("junk", "10.0.0.9"))
    found = given(state, "a")

    assert (found.entry.ip, found.is_new, found.state is state) == ("10.0.0.1", False, True)


def test_ids_that_differ_in_case_only_are_two_ids() -> None:
    first = given(PoolState.fresh(SIX.ips), "pod", SIX)
    second = given(first.state, "Pod", SIX)

    assert first.entry.ip != second.entry.ip


def test_an_allocation_puts_the_state_right_in_the_same_step() -> None:
    """Without it the doubled address, or the one outside the pool, would be given out."""
    state = PoolState({"a": held("10.0.0.1")}, ("10.0.0.9", "10.0.0.1", "10.0.0.2", "10.0.0.2"))
    found = given(state, "b")

    assert found.entry.ip in ("10.0.0.2", "10.0.0.3")
    assert {found.entry.ip, *found.state.available} == {"10.0.0.2", "10.0.0.3"}
    assert {each.kind for each in found.findings} == {RepairKind.UNKNOWN, RepairKind.DUPLICATE, RepairKind.MISSING}


def test_an_id_whose_address_an_older_entry_has_gets_another() -> None:
    older = held("10.0.0.1", "older", AT.replace(year=2025))
    state = PoolState({"a": held("10.0.0.1"), "older": older}, ("10.0.0.2", "10.0.0.3"))
    found = given(state, "a")

    assert found.entry.ip != "10.0.0.1"
    assert given(state, "older").entry == older


def test_an_id_whose_entry_is_rubbish_gets_a_vm() -> None:
    state = PoolState({"a": held("junk")}, THREE.ips)

    assert given(state, "a").entry.ip in THREE.known


def test_an_id_keeps_a_vm_that_is_not_in_the_pool_any_more() -> None:
    state = PoolState({"a": held("10.9.9.9")}, THREE.ips)

    assert given(state, "a").entry.ip == "10.9.9.9"


def test_an_entry_in_another_spelling_is_found_and_written_right() -> None:
    pool = PoolLine(("2001:db8::1", "2001:db8::2"))
    state = PoolState({"a": VMAllocation("", "2001:DB8:0::1")}, ("2001:DB8::2",))
    found = allocate(state, pool, AllocationRequest("a", "n"), AT)

    assert (found.entry.allocation_id, found.entry.ip, found.is_new) == ("a", "2001:db8::1", False)
    assert found.state.available == ("2001:db8::2",)


def test_the_last_look_before_a_write() -> None:
    state = PoolState({"a": held("10.0.0.1")}, ())
    for wrong in ("10.0.0.1", "10.9.9.9"):
        with pytest.raises(AssertionError, match="was picked"):
            check_pick(state, THREE, wrong)


def test_case_27_a_released_address_goes_to_the_end() -> None:
    state = PoolState({"a": held("10.0.0.3")}, ("10.0.0.1", "10.0.0.2"))

    assert release(state, THREE, ["a"]).state == PoolState({}, ("10.0.0.1", "10.0.0.2", "10.0.0.3"))


def test_case_29_an_unknown_id_changes_nothing_even_where_something_is_wrong() -> None:
    state = PoolState({}, ("junk",))

    assert release(state, THREE, ["a"]).state is state


def test_many_are_released_in_the_order_of_their_names() -> None:
    state = PoolState({"a": held("10.0.0.1", "a"), "b": held("10.0.0.3", "b")}, ("10.0.0.2",))
    found = release(state, THREE, ["b", "unknown", "a"])

    assert found.state.available == ("10.0.0.2", "10.0.0.3", "10.0.0.1")
    assert [entry.allocation_id for entry in found.entries] == ["b", "a"]


def test_a_vm_outside_the_pool_never_becomes_available() -> None:
    state = PoolState({"a": held("10.9.9.9")}, THREE.ips)

    assert release(state, THREE, ["a"]).state == PoolState({}, THREE.ips)


def test_a_vm_that_another_id_has_as_well_stays_that_ids() -> None:
    """Else it would be given to a third one while it is in use."""
    older = held("10.0.0.1", "older", AT.replace(year=2025))
    state = PoolState({"a": held("10.0.0.1"), "older": older}, ("10.0.0.2", "10.0.0.3"))
    for first, left in (("a", "older"), ("older", "a")):
        found = release(state, THREE, [first]).state
        assert list(found.allocated) == [left]
        assert "10.0.0.1" not in found.available


def test_an_entry_without_an_address_is_released_and_gives_nothing_back() -> None:
    found = release(PoolState({"a": held("junk")}, THREE.ips), THREE, ["a"])

    assert found.state == PoolState({}, THREE.ips)


def test_case_31_the_ids_of_an_address_are_found_in_every_spelling() -> None:
    pool = PoolLine(("2001:db8::1",))
    state = PoolState({"a": held("2001:DB8::1"), "b": held("10.0.0.1")}, ())

    assert ids_of_ip(state, pool, "2001:db8::1") == ["a"]
    assert ids_of_ip(state, pool, "2001:db8::9") == []
