"""The operator's numbers as samples for ``/metrics``: of the runtime, of queues and of webhooks (KP14)."""

from collections.abc import Iterator
from typing import Any

from tenure.integrations.kubernetes.runtime.process_probes import Sample
from tenure.integrations.kubernetes.runtime.runtime_meter import RuntimeMeter
from tenure.integrations.kubernetes.runtime.webhooks.webhook_host import WebhookHost
from tenure.integrations.kubernetes.runtime.work_queue import WorkQueue


def runtime_samples(meter: RuntimeMeter, leads: bool) -> Iterator[Sample]:
    """Give what the runtime counts."""
    yield Sample("tenure_operator_leader", "1 on the replica that leads.", "gauge", int(leads))
    yield Sample("tenure_operator_requests_total", "Requests to the API server.", "counter", meter.requests)
    yield Sample("tenure_operator_throttled_total", "Requests answered with 429.", "counter", meter.throttled)
    yield Sample("tenure_operator_conflicts_total", "Writes to objects that had changed.", "counter", meter.conflicts)
    yield Sample("tenure_operator_credentials_renewed_total", "Credentials read again.", "counter", meter.renewed)
    yield Sample("tenure_operator_events_dropped_total", "Events not written.", "counter", meter.events_dropped)
    for kind, count in sorted(meter.relists.items()):
        yield Sample("tenure_operator_relists_total", "Whole lists read.", "counter", count, {"kind": kind})
    # With zeros: a counter that begins with the first drift has no rise to be alarmed by.
    for kind in sorted(meter.relists | meter.drift):
        help = "Objects in which a cache differed from a list."
        yield Sample("tenure_operator_cache_drift_total", help, "counter", meter.drift.get(kind, 0), {"kind": kind})


def queue_samples(controller: str, queue: WorkQueue[Any]) -> Iterator[Sample]:
    """Give how many keys wait in a controller's queue, and for how long the oldest of them has."""
    labels = {"controller": controller}
    yield Sample("tenure_operator_queue_depth", "Keys that wait for a worker.", "gauge", len(queue), labels)
    help = "For how long the oldest key has waited."
    yield Sample("tenure_operator_queue_oldest_seconds", help, "gauge", queue.oldest_s, labels)


def webhook_samples(controller: str, host: WebhookHost) -> Iterator[Sample]:
    """Give how many admissions a controller's webhooks decided, and how long that took together."""
    labels = {"controller": controller}
    yield Sample("tenure_operator_webhook_requests_total", "Admissions decided.", "counter", host.asked, labels)
    help = "How long the decisions took together."
    yield Sample("tenure_operator_webhook_seconds_total", help, "counter", host.took_s, labels)
