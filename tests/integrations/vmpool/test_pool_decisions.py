"""What is decided on a pool that was read. No server is needed."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tenure.integrations.vmpool.config_map_swap import StoredPool
from tenure.integrations.vmpool.pool_decisions import decide_allocation, decide_release
from tenure.integrations.vmpool.pool_document import PoolDocument, read_document
from tenure.integrations.vmpool.pool_errors import VMNotReady
from tenure.integrations.vmpool.state.pool_notes import CleanupFailure
from tenure.integrations.vmpool.state.state_rules import AllocationRequest
from tenure.integrations.vmpool.vm_pool_settings import VMPoolSettings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LINE = VMPoolSettings(pool_ips=["10.0.0.1", "10.0.0.2"]).line


def asked(id: str) -> AllocationRequest:
    return AllocationRequest(id, "n1", "", "")


def with_failed_cleanup(id: str) -> PoolDocument:
    """Return a pool in which an id has a VM whose cleanup failed."""
    empty = read_document(StoredPool(), LINE)
    change = decide_allocation(empty, LINE, asked(id), NOW)
    assert change.state is not None
    failed = {change.result.ip: CleanupFailure(id, "no route", NOW)}
    return replace(empty, state=change.state, notes=replace(empty.notes, cleanup_failed=failed))


def test_a_vm_whose_cleanup_failed_is_not_given_to_its_id_again() -> None:
    document = with_failed_cleanup("a")

    with pytest.raises(VMNotReady, match="no route"):
        decide_allocation(document, LINE, asked("a"), NOW)
    assert decide_allocation(document, LINE, asked("b"), NOW).word == "new"


def test_a_vm_that_was_given_back_after_its_cleanup_failed_is_free_for_all() -> None:
    document = with_failed_cleanup("a")
    given_back = decide_release(document, LINE, ["a"], "n1", NOW)
    assert given_back.state is not None
    assert given_back.notes is not None

    after = replace(document, state=given_back.state, notes=given_back.notes)
    assert decide_allocation(after, LINE, asked("a"), NOW).word == "new"
