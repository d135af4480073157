"""The numbers of the controller of Metal3's kinds, for ``/metrics`` (KP14)."""

from collections.abc import Iterator
from datetime import UTC, datetime

from tenure.integrations.kubernetes.metal3.ipam_caches import IpamCaches
from tenure.integrations.kubernetes.metal3.ipam_meter import IpamMeter
from tenure.integrations.kubernetes.metal3.orphan_watch import OrphanWatch
from tenure.integrations.kubernetes.runtime.process_probes import Sample
from tenure.kernel.addressing.addresses import FAMILY_NAMES, Family


def ipam_samples(caches: IpamCaches, meter: IpamMeter, orphans: OrphanWatch) -> Iterator[Sample]:
    """Give what is free, what waits, and what was done."""
    results = {"served": meter.served, "adopted": meter.adopted, "released": meter.released, "refused": meter.refused}
    for result, count in results.items():
        yield Sample("tenure_operator_claims_total", "Claims by what was done.", "counter", count, {"result": result})
    help = "Picks that another object or claim had taken."
    yield Sample("tenure_operator_pick_conflicts_total", help, "counter", meter.conflicts)
    yield Sample("tenure_operator_orphans", "Addresses without a claim.", "gauge", len(orphans.orphans))
    help = "Addresses without a claim that were released."
    yield Sample("tenure_operator_orphans_released_total", help, "counter", meter.orphans_released)
    yield from _pools(caches)


def _pools(caches: IpamCaches) -> Iterator[Sample]:
    for (namespace, name), record in caches.records():
        if caches.pools.get((namespace, name)) is None:
            continue
        labels = {"namespace": namespace, "pool": name}
        yield Sample(
            "tenure_operator_claims_waiting", "Claims without an address.", "gauge", record.without_address, labels
        )
        help = "Age of the claim that waits longest."
        yield Sample("tenure_operator_oldest_waiting_seconds", help, "gauge", _age_s(record.oldest_waiting), labels)
        help = "Addresses that several objects hold."
        yield Sample("tenure_operator_doubled_addresses", help, "gauge", len(record.book.doubled), labels)
        for family in Family:
            if record.book.spec.size_of(family):
                by = {**labels, "family": FAMILY_NAMES[family]}
                free, total = record.book.free_of(family), record.book.spec.size_of(family)
                yield Sample("tenure_operator_pool_free", "Addresses that can be given.", "gauge", free, by)
                yield Sample("tenure_operator_pool_total", "Addresses of the pool.", "gauge", total, by)


def _age_s(created: str) -> float:
    """Return the seconds since a time that the server has written; 0 for none."""
    if not created:
        return 0.0
    return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(created)).total_seconds())
