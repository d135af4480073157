"""Addresses that have left the pool are held back, in the pool's own rules too (VS9)."""

from datetime import UTC, datetime

import pytest

from tenure.integrations.vmpool.state.allocation_names import check_allocation_id
from tenure.integrations.vmpool.state.held_back import held_back, is_held_back
from tenure.integrations.vmpool.state.pool_state import PoolState
from tenure.integrations.vmpool.state.state_repair import OUTSIDE_RULES, PoolLine, repair_state
from tenure.kernel.errors import Invalid

NOW = datetime(2026, 11, 18, 12, 0, 0, tzinfo=UTC)


def test_what_is_held_back_is_neither_wrong_nor_available() -> None:
    entry = held_back("10.0.0.9", NOW)
    state = PoolState({entry.allocation_id: entry}, ("10.0.0.1",))

    for pool, free in ((PoolLine(("10.0.0.1",)), ("10.0.0.1",)), (PoolLine(("10.0.0.1", "10.0.0.9")), ("10.0.0.1",))):
        for rule in OUTSIDE_RULES:
            found = repair_state(state, pool, outside_pool=rule)
            assert (found.findings, found.state.available) == ((), free)
    assert is_held_back(entry)


@pytest.mark.parametrize("id", ["drained-10.0.0.9", "drained-2001:db8::1", "moved-to-per-ip-10.0.0.9"])
def test_no_pod_has_an_id_of_tenures_own(id: str) -> None:
    with pytest.raises(Invalid, match="Tenure's own"):
        check_allocation_id(id)


def test_a_pod_may_have_a_name_that_begins_alike() -> None:
    for id in ("drained-web-0-3f1c9d2e", "moved-to-prod-77aa", "drained-"):
        assert check_allocation_id(id) == id


def test_an_older_list_is_not_followed() -> None:
    line = PoolLine(("10.0.0.1",))

    assert line.follow(("10.0.0.2",), 3)
    assert not line.follow(("10.0.0.1",), 2)
    assert not line.follow(("10.0.0.1",), 3)
    assert (line.ips, line.known, line.generation) == (("10.0.0.2",), frozenset(["10.0.0.2"]), 3)
