"""What the caches remember, and what they forget. No server is needed."""

from functools import partial

import pytest

from tenure.integrations.kubernetes.metal3.claim_decision import Leave
from tenure.integrations.kubernetes.metal3.objects.claim_reading import reference_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    IP_ADDRESS,
    IP_CLAIM,
    IP_POOL,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.pool_record import SHORT, PoolRecord
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType, uid_of
from tenure.integrations.kubernetes.runtime.work_queue import WorkQueue
from tenure.kernel.addressing.addresses import parse_address
from tests.integrations.kubernetes.metal3.pass_stage import NAMESPACE, POOL, Stage, claim_id, numbered

pytestmark = pytest.mark.usefixtures("skipped_time")


async def test_a_server_that_was_restored_has_lost_no_claim() -> None:
    """Its list is older than the cache: what is in both has not gone in between."""
    stage = Stage()
    stage.pool()
    stage.claim("c")
    await stage.settle()
    informer = stage.caches.objects.claims._informers[""]
    informer.cache.passed(10_000)
    claims = [dict(each) for each in informer.cache]
    with informer.cache.reading_list() as least:
        informer._report(informer.cache.replace(claims, 500, least=least))

    record = stage.caches.records.of(POOL)
    assert record.left_by_force == set()
    assert record.indexes == {"c": "10.0.0.1"}
    before = list(stage.writes)
    await stage.settle()
    assert [each for each in stage.writes[len(before) :] if each[1] != "ippools"] == []


async def test_a_definition_that_is_deleted_releases_nothing() -> None:
    stage = Stage()
    stage.pool()
    stage.claim("c")
    await stage.settle()
    stage.caches.objects.claims._informers[""].empty()

    assert stage.caches.records.of(POOL).left_by_force == set()


def test_claims_that_came_and_went_leave_nothing_on_a_replica_that_only_follows() -> None:
    stage = Stage()
    stage.pool()
    for name in numbered(200):
        stage.claim(name)
        stage.address(f"of-{name}", "10.0.0.1", name)
        stage.remove(IP_CLAIM, name)
        stage.remove(IP_ADDRESS, f"of-{name}")
    record = stage.caches.records.of(POOL)

    assert (record.dirty, record.unsettled, record.indexes, record.book.held) == (set(), set(), {}, 0)


def test_a_line_that_is_looked_at_again_and_again_does_not_grow() -> None:
    record = PoolRecord()
    for _ in range(50):
        for name in numbered(20):
            record.leave_line(claim_id(name))
            record.join_line(claim_id(name), ("2026", name))

    assert len(record._line) == record.waiting == 20
    assert record.next_in_line() == claim_id("c00000")


def test_kd6_only_a_claim_that_is_there_waits_for_its_moved_address() -> None:
    stage = Stage()
    stage.pool()
    stage.claim("c")
    stage.address("a", "10.0.0.1", "c", moves=True)
    stage.remove(IP_CLAIM, "c")  # the watch of claims is ahead
    stage.remove(IP_ADDRESS, "a")
    claim = stage.claim("c")
    reference = reference_of(claim)
    assert reference is not None

    assert not stage.caches.departed.is_address_moved(claim_id("c"))
    stage.address("a", "10.0.0.1", "c", moves=True)
    stage.remove(IP_ADDRESS, "a")
    assert stage.caches.departed.is_address_moved(claim_id("c"))
    assert isinstance(stage.passes._decide(stage.passes._view(POOL), stage.caches.records.of(POOL), claim), Leave)


def test_kd1_indexes_list_addresses_of_the_pool_alone() -> None:
    stage = Stage()
    stage.pool()
    stage.pool(name="other")
    stage.claim("c")
    stage.address("a", "10.0.0.1", "c")
    stage.address("b", "10.0.0.2", "c", pool="other")

    assert stage.caches.records.of(PoolId(NAMESPACE, "other")).indexes == {}
    assert stage.caches.records.of(POOL).indexes == {"c": "10.0.0.1"}


def test_claims_that_leave_a_line_behind_its_first_are_forgotten() -> None:
    record = PoolRecord()
    record.join_line(claim_id("first"), ("2025", "first"))
    for name in numbered(5000):
        record.join_line(claim_id(name), ("2026", name))
        record.leave_line(claim_id(name))

    assert len(record._line) <= 2 * record.waiting + SHORT
    assert record.next_in_line() == claim_id("first")


async def test_who_holds_an_address_is_known_before_its_object_is_there() -> None:
    stage = Stage()
    stage.pool()
    stage.claim("c", own="10.0.0.5")
    place = parse_address("10.0.0.5")

    assert stage.caches.records.claims_at(POOL, place) == [claim_id("c")]
    assert stage.caches.records.addresses_at(POOL, place) == []
    await stage.settle()
    assert [each["metadata"]["name"] for each in stage.caches.records.addresses_at(POOL, place)] == ["p-10-0-0-5"]
    assert stage.caches.records.addresses_at(PoolId(NAMESPACE, "other"), place) == []


def test_pools_that_came_and_went_leave_nothing_on_a_replica_that_only_follows() -> None:
    """Nor in the queue, which nobody works on there. Also claims that were removed by force are among them."""
    stage = Stage()
    queue: WorkQueue[PoolId] = WorkQueue()
    stage.caches.records.wake, stage.caches.records._forget = queue.add, queue.discard
    for name in numbered(50):
        stage.pool(name=name)
        claim = stage.claim(f"of-{name}", pool=name)
        stage.address(f"a-{name}", "10.0.0.1", f"of-{name}", pool=name)
        owner = {"kind": "IPClaim", "name": f"of-{name}", "uid": uid_of(claim)}
        stage.change(IP_ADDRESS, f"a-{name}", partial(_own_by, owner))
        stage.remove(IP_CLAIM, f"of-{name}")
        assert stage.caches.records.of(PoolId(NAMESPACE, name)).left_by_force == {f"m3/a-{name}"}
        stage.remove(IP_ADDRESS, f"a-{name}")
        stage.remove(IP_POOL, name)

    assert dict(stage.caches.records) == {}
    assert len(queue) == 0


def _own_by(owner: Object, address: Object) -> None:
    address["metadata"]["ownerReferences"] = [owner]


def test_an_address_that_is_seen_after_its_claim_went_by_force_is_released_as_well() -> None:
    stage = Stage()
    stage.pool()
    claim = stage.claim("c")
    stage.remove(IP_CLAIM, "c")
    stage.address("a", "10.0.0.1", "c")
    stage.change(IP_ADDRESS, "a", partial(_own_by, {"kind": "IPClaim", "name": "c", "uid": uid_of(claim)}))

    assert stage.caches.records.of(POOL).left_by_force == {"m3/a"}


async def test_a_pool_is_not_forgotten_while_a_pass_over_it_is_under_way() -> None:
    stage = Stage()
    stage.pool()
    record = stage.caches.records.of(POOL)

    def gone(method: str, kind: ResourceType, object: Object) -> None:
        if ("ippools", "p") in stage.objects:
            stage.remove(IP_POOL, "p")
            assert stage.caches.records.of(POOL) is record

    stage.before = gone
    stage.change(IP_POOL, "p", lambda each: each["metadata"].update(finalizers=[]))
    await stage.settle()

    assert POOL not in dict(stage.caches.records)
