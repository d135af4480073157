"""The numbers of the controller of Metal3's kinds, for ``/metrics`` (KP14).

What is free and held is known on every replica. What waits and what is without a claim is found by the leader's passes:
a replica that does not lead would go on showing what it last knew.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

from tenure.integrations.kubernetes.metal3.caches.ipam_caches import IpamCaches
from tenure.integrations.kubernetes.metal3.ipam_meter import IpamMeter
from tenure.integrations.kubernetes.metal3.objects.claim_reading import arrival_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_POOL
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.orphan_watch import OrphanWatch
from tenure.integrations.kubernetes.metal3.pool_book import PoolBook
from tenure.integrations.kubernetes.metal3.pool_record import PoolRecord
from tenure.integrations.kubernetes.runtime.process_probes import Sample
from tenure.kernel.addressing.addresses import FAMILY_NAMES, Family


def ipam_samples(caches: IpamCaches, meter: IpamMeter, orphans: OrphanWatch, leads: bool) -> Iterator[Sample]:
    """Give what was done and what is free; on the leader also what waits, and what is without a claim."""
    results = {"served": meter.served, "adopted": meter.adopted, "released": meter.released, "refused": meter.refused}
    for result, count in results.items():
        yield Sample("tenure_operator_claims_total", "Claims by what was done.", "counter", count, {"result": result})
    help = "Picks that another object or claim had taken."
    yield Sample("tenure_operator_pick_conflicts_total", help, "counter", meter.conflicts)
    help = "Addresses without a claim that were released."
    yield Sample("tenure_operator_orphans_released_total", help, "counter", meter.orphans_released)
    yield from _pools(caches)
    if leads:
        yield Sample("tenure_operator_orphans", "Addresses without a claim.", "gauge", len(orphans.orphans))
        yield from _waiting(caches)


def _waiting(caches: IpamCaches) -> Iterator[Sample]:
    """Give the claims without an address, also of pools that are not there."""
    for pool, record in caches.records:
        if caches.objects.pools.get(pool) is None and not record.without_address:
            continue
        labels = _labels_of(pool)
        yield Sample(
            "tenure_operator_claims_waiting", "Claims without an address.", "gauge", record.without_address, labels
        )
        help = "Age of the claim that waits longest."
        yield Sample("tenure_operator_oldest_waiting_seconds", help, "gauge", _longest_s(caches, record), labels)


def _pools(caches: IpamCaches) -> Iterator[Sample]:
    for pool, record in caches.records:
        if caches.objects.pools.get(pool) is None:
            continue
        labels = _labels_of(pool)
        help = "Addresses that several objects hold."
        yield Sample("tenure_operator_doubled_addresses", help, "gauge", len(record.book.doubled), labels)
        help = "Addresses that objects hold outside of the ranges of their pool."
        yield Sample("tenure_operator_outside_addresses", help, "gauge", len(record.book.outside), labels)
        help = "Other pools of the same network that have addresses of this one."
        shared = len(caches.records.overlaps.others(pool))
        yield Sample("tenure_operator_pool_overlaps", help, "gauge", shared, labels)
        for family in Family:
            if record.book.spec.size_of(family):
                yield from _counts(record.book, family, {**labels, "family": FAMILY_NAMES[family]})


def _counts(book: PoolBook, family: Family, labels: dict[str, str]) -> Iterator[Sample]:
    """Give the numbers of one family of a pool; total is free, used and kept together."""
    for name, help, count in (
        ("total", "Addresses of the pool.", book.spec.size_of(family)),
        ("free", "Addresses that can be given.", book.free_of(family)),
        ("used", "Addresses of the pool that are held.", book.used_of(family)),
        ("kept", "Addresses that are neither held nor given: gateways, pre-allocations, drained, cooling.",
         book.kept_back_of(family)),
        ("cooling", "Released addresses that no other claim gets yet, a part of those that are kept.",
         book.cooling_of(family)),
    ):  # fmt: skip
        yield Sample(f"tenure_operator_pool_{name}", help, "gauge", count, labels)
    help = "How much of the addresses that claims can get is used, from 0 to 1."
    reachable = book.used_of(family) + book.free_of(family)
    yield Sample("tenure_operator_pool_used_ratio", help, "gauge", book.used_of(family) / (reachable or 1), labels)


def _labels_of(pool: PoolId) -> dict[str, str]:
    """Return what names a pool in the series; of Metal3's kind, no more than its namespace and its name."""
    kind = {} if pool.kind == IP_POOL.kind else {"kind": pool.kind}
    return {"namespace": pool.namespace, "pool": pool.name, **kind}


def _longest_s(caches: IpamCaches, record: PoolRecord) -> float:
    """Return how long ago the oldest claim without an address was created; 0 for none. O(n) of these claims."""
    claims = (caches.objects.claim(id) for id in record.claims_without_address)
    created = min((arrival_of(claim)[0] for claim in claims if claim is not None), default="")
    if not created:
        return 0.0
    return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(created)).total_seconds())
