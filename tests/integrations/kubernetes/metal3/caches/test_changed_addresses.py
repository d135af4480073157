"""What changes of address objects leave in the records of pools. No server is needed."""

from tenure.integrations.kubernetes.metal3.caches.changed_addresses import ChangedAddresses
from tenure.integrations.kubernetes.runtime.object_cache import Delta
from tests.integrations.kubernetes.metal3.pass_stage import NAMESPACE, POOL, Stage


def test_addresses_that_are_reported_twice_count_once() -> None:
    stage = Stage()
    stage.pool()
    address = stage.address("a", "10.0.0.1", "c")
    changed = ChangedAddresses(stage.caches.objects, stage.caches.records, stage.caches.departed)
    for _ in range(2):
        changed.enter(Delta(None, address))
    assert stage.caches.records.of(POOL).addresses.keys() == {f"{NAMESPACE}/a"}

    for _ in range(2):
        changed.enter(Delta(address, None))
    assert not stage.caches.records.of(POOL).addresses
