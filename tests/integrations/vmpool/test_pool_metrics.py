"""A pool's numbers have the names of vmpool.md 4.1, few labels, and zeros from the start."""

import re
from datetime import UTC, datetime

from prometheus_client.parser import text_string_to_metric_families

from tenure.integrations.vmpool.config_map_swap import StoredPool
from tenure.integrations.vmpool.pool_document import PoolDocument
from tenure.integrations.vmpool.pool_metrics import PoolMeter
from tenure.integrations.vmpool.state.pool_notes import CleanupFailure, PoolNotes
from tenure.integrations.vmpool.state.pool_state import PoolState, VMAllocation
from tenure.integrations.vmpool.state.state_repair import PoolLine

NOW = datetime(2026, 1, 1, tzinfo=UTC)

NAMES = {
    "byom_pool_ips": "gauge",
    "byom_pool_list_size": "gauge",
    "byom_pool_list_generation": "gauge",
    "byom_pool_resizes_total": "counter",
    "byom_pool_utilization_ratio": "gauge",
    "byom_allocations_total": "counter",
    "byom_deallocations_total": "counter",
    "byom_conflicts_total": "counter",
    "byom_operation_duration_seconds": "histogram",
    "byom_operation_attempts": "histogram",
    "byom_vm_cleanups_total": "counter",
    "byom_vm_cleanup_duration_seconds": "histogram",
    "byom_repairs_total": "counter",
    "byom_state_size_bytes": "gauge",
    "byom_state_last_update_timestamp_seconds": "gauge",
    "byom_recovery_duration_seconds": "histogram",
    # Of the pool as a whole, whoever allocates: what an agent can know.
    "byom_pool_allocations_total": "counter",
    "byom_pool_deallocations_total": "counter",
    "byom_pool_conflicts_total": "counter",
    "byom_pool_allocation_duration_seconds": "summary",
    "byom_node_allocations": "gauge",
    "byom_oldest_allocation_timestamp_seconds": "gauge",
}


def used_meter() -> PoolMeter:
    line = PoolLine(("10.0.0.1", "10.0.0.2", "10.0.0.3"))
    meter = PoolMeter("pool-1", line)
    meter.operation("allocate", "new", 0.004, 1)
    meter.operation("allocate", "new", 3.0, 5)
    meter.conflict("allocate")
    meter.cleaned(True, 0.2)
    meter.repaired("missing", 2)
    meter.recovered(6.0)
    allocated = {
        id: VMAllocation(id, ip, "node-1" if id == "a" else "node-2", allocated_at=NOW)
        for id, ip in {"a": "10.0.0.1", "b": "10.0.0.2", "out": "10.9.9.8", "far": "10.9.9.9"}.items()
    }
    state = PoolState(allocated, ("10.0.0.3",), NOW, 7)
    notes = PoolNotes(cleanup_failed={"10.0.0.2": CleanupFailure("b", "fire", NOW)}, draining={"10.9.9.9": NOW})
    stored = StoredPool({"metadata": {}, "data": {"allocation-state": "x" * 100}})
    meter.read(PoolDocument(state, notes, True, stored))
    return meter


def written(meter: PoolMeter) -> str:
    return meter.text()


def test_the_names_and_types_are_those_of_the_page() -> None:
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", written(used_meter()), re.MULTILINE))

    assert types == NAMES


def test_prometheus_can_read_them_and_histograms_add_up() -> None:
    families = {family.name: family for family in text_string_to_metric_families(written(used_meter()))}
    by_limit = {
        sample.labels["le"]: sample.value
        for sample in families["byom_operation_attempts"].samples
        if sample.name.endswith("_bucket")
    }

    assert by_limit["1"] == 1
    assert by_limit["4"] == 1
    assert by_limit["6"] == by_limit["+Inf"] == 2
    [ratio] = families["byom_pool_utilization_ratio"].samples
    assert (ratio.value, ratio.labels) == (0.8, {"pool": "pool-1"})


def test_every_ip_is_counted_in_one_state() -> None:
    families = {family.name: family for family in text_string_to_metric_families(written(used_meter()))}

    assert {each.labels["state"]: each.value for each in families["byom_pool_ips"].samples} == {
        "available": 1,
        "allocated": 1,
        "orphaned": 1,
        "draining": 1,
        "cleanup_failed": 1,
    }
    assert families["byom_state_size_bytes"].samples[0].value == 100
    assert families["byom_state_last_update_timestamp_seconds"].samples[0].value == NOW.timestamp()


def test_counters_are_there_before_anything_has_happened() -> None:
    text = written(PoolMeter("p", PoolLine(())))

    for result in ("new", "existing", "exhausted", "conflict", "error"):
        assert f'byom_allocations_total{{pool="p",result="{result}"}} 0\n' in text
    for result in ("released", "not_found", "conflict", "error"):
        assert f'byom_deallocations_total{{pool="p",result="{result}"}} 0\n' in text
    assert "byom_pool_ips" not in text, "an unread pool is not an empty one"


def test_labels_are_few_and_bounded() -> None:
    labels = set(re.findall(r'[{,](\w+)="', written(used_meter())))

    assert labels == {"pool", "state", "result", "operation", "kind", "le", "node", "change"}


def test_allocations_are_shown_by_node_and_by_age() -> None:
    text = written(used_meter())

    assert 'byom_node_allocations{pool="pool-1",node="node-1"} 1\n' in text
    assert 'byom_node_allocations{pool="pool-1",node="node-2"} 3\n' in text
    assert f'byom_oldest_allocation_timestamp_seconds{{pool="pool-1"}} {int(NOW.timestamp())}\n' in text


def test_nodes_are_named_up_to_a_hundred() -> None:
    """Another writer may put anything there, and every name is a series."""
    meter = PoolMeter("p", PoolLine(()))
    entries = {str(each): VMAllocation(str(each), "10.0.0.1", f"node-{each}") for each in range(250)}
    meter.read(PoolDocument(PoolState(entries, ()), PoolNotes(), True))
    shown = re.findall(r'byom_node_allocations\{pool="p",node="([^"]+)"\} (\d+)', written(meter))

    assert len(shown) == 101
    assert ("other", "150") in shown
