"""What /metrics tells: the counted numbers of all workers, and how the ledger stands at this moment."""

import asyncio
import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder

from tenure.doors.rest.census.spaces import SpaceCount
from tenure.doors.rest.census.tallies import added
from tenure.doors.rest.metrics import (
    BATCHES,
    CLASSES,
    CONFLICTS,
    REFUSED_BY,
    REFUSED_KINDS,
    SECONDS,
    SIZES,
    Cells,
    Meter,
)
from tenure.doors.rest.site import Site
from tenure.kernel.addresses import is_v6
from tenure.kernel.configuration import Network
from tenure.kernel.errors import StoreUnavailable
from tenure.ports import Size
from tenure.service.ledger import AsyncLedger

ANSWER_S = 2.0
"""How long the store may take to say that it is there."""

COUNTED_S = 1.0
"""How long a scrape waits for networks that are just being counted."""

ROUTE = ["method", "route"]
MOST_NETWORKS = 1000
"""Networks that have numbers of their own: a label of a metric must not grow without end."""

FAMILY = ["network", "family"]
OF_FAMILY = (
    ("held_units", "Addresses (or prefixes) that are held, pending or draining."),
    ("free_units", "Those that could be picked now."),
    ("cooling_units", "Those that were released and are not handed out yet."),
    ("reserved_units", "Those that are kept away from picking, and nobody holds."),
    ("utilisation_ratio", "The share of what can be used that is held or cooling."),
)


class Gathered:
    """Families that were gathered before: what the exposition asks for."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        """Give the families."""
        return self._families


async def store_answers(ledger: AsyncLedger) -> bool:
    """Tell whether the store is there."""
    try:
        async with asyncio.timeout(ANSWER_S):
            await ledger.last_change()
    except (TimeoutError, StoreUnavailable):
        return False
    return True


async def scrape(site: Site, accept: str) -> tuple[bytes, str]:
    """Write all numbers in the form that is asked for; return them and what they are."""
    encoder, kind = choose_encoder(accept)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Gathered([*counted(site.meter), *await standing(site)]))
    return encoder(registry), kind


def counted(meter: Meter) -> Iterator[Metric]:
    """Write what was counted, by all workers together."""
    cells, numbers = meter.cells, meter.totals()
    yield from _requests(cells, numbers)
    yield from _problems(cells, numbers)
    yield from _work(cells, numbers)


def _requests(cells: Cells, numbers: Sequence[float]) -> Iterator[Metric]:
    requests = CounterMetricFamily("tenure_http_requests", "Requests that were answered.", labels=[*ROUTE, "status"])
    seconds = HistogramMetricFamily(
        "tenure_http_request_duration_seconds", "How long answers took; streams are not in it.", labels=ROUTE
    )
    for route, place in cells.of_route.items():
        for offset, status in enumerate(CLASSES):
            if numbers[place + offset]:
                requests.add_metric([route.method or "any", route.path, status], numbers[place + offset])
        begin = place + len(CLASSES)
        if any(numbers[begin : begin + len(SECONDS) + 1]):
            _add_boxes(seconds, [route.method or "any", route.path], SECONDS, numbers[begin:])
    yield requests
    yield seconds
    yield _gauge("tenure_http_requests_in_flight", "Requests that are worked on.", numbers[cells.plain["in_flight"]])
    yield _gauge("tenure_waiting_calls", "Calls that wait (wait_s).", numbers[cells.plain["waiting"]])
    yield _gauge("tenure_event_streams", "Streams of events that are read.", numbers[cells.plain["streams"]])


def _problems(cells: Cells, numbers: Sequence[float]) -> Iterator[Metric]:
    conflicts = CounterMetricFamily(
        "tenure_conflicts", "Requests that the present state forbade, by code.", labels=["code"]
    )
    problems = CounterMetricFamily("tenure_problems", "Other requests that were refused, by code.", labels=["code"])
    for code, place in cells.codes.items():
        (conflicts if code in CONFLICTS else problems).add_metric([code], numbers[place])
    yield conflicts
    yield problems
    for name, about in (
        ("exhausted", "Requests that found nothing free."),
        ("shortcuts", "Plain allocations that were answered on the short way."),
        ("refused_connections", "Connections that were refused, because there were too many."),
        ("bad_requests", "Connections that did not speak HTTP, or too slowly, or said too much."),
    ):
        title = "pool_exhausted" if name == "exhausted" else name
        yield CounterMetricFamily(f"tenure_{title}", about, value=numbers[cells.plain[name]])
    yield _refused(cells, numbers)


def _refused(cells: Cells, numbers: Sequence[float]) -> Metric:
    refused = CounterMetricFamily(
        "tenure_refused", "Refusals of one more at a time, by kind and by whose limit.", labels=["kind", "limit"]
    )
    for kind in REFUSED_KINDS:
        for by in REFUSED_BY:
            refused.add_metric([kind, by], numbers[cells.plain[f"refused_{kind}_{by}"]])
    return refused


def _work(cells: Cells, numbers: Sequence[float]) -> Iterator[Metric]:
    allocations, releases = (numbers[cells.plain[name]] for name in ("allocations", "releases"))
    yield CounterMetricFamily("tenure_allocations", "Addresses that were given to owners.", value=allocations)
    yield CounterMetricFamily("tenure_releases", "Holdings that were ended.", value=releases)
    grants = CounterMetricFamily("tenure_grants", "What the store answered to picks, by outcome.", labels=["outcome"])
    for outcome, place in cells.outcomes.items():
        grants.add_metric([outcome], numbers[place])
    yield grants
    sizes = HistogramMetricFamily("tenure_batch_size", "How many shared one call of the store.", labels=["kind"])
    for kind in BATCHES:
        _add_boxes(sizes, [kind], SIZES, numbers[cells.batches[kind] :])
    yield sizes


def _add_boxes(
    family: HistogramMetricFamily, labels: Sequence[str], bounds: Sequence[float], numbers: Sequence[float]
) -> None:
    """Add up the boxes of a histogram: Prometheus wants each to hold all below it, too."""
    total, boxes = 0.0, []
    for bound, number in zip([*map(float, bounds), float("inf")], numbers, strict=False):
        total += number
        boxes.append(("+Inf" if bound == float("inf") else str(bound), total))
    family.add_metric(labels, boxes, sum_value=numbers[len(bounds) + 1])


def _gauge(name: str, about: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, about, value=value)


async def standing(site: Site) -> list[Metric]:
    """Read how the ledger stands; if the store is away, say that and nothing more of it."""
    up = await store_answers(site.ledger)
    families: list[Metric] = [_gauge("tenure_store_up", "Whether the store answers.", float(up))]
    if up:
        families += await _networks(site)  # which follows the log to its end
        families += await _size(site)
    families.append(_gauge("tenure_log_seq", "The number of the newest change this server saw.", site.news.seen))
    return families


async def current_size(site: Site) -> Size | None:
    """Return how large the ledger is, as it was read last if reading it anew takes long; None if it never was."""
    with contextlib.suppress(TimeoutError, StoreUnavailable):
        async with asyncio.timeout(COUNTED_S):
            return await site.size.current()
    return site.size.last


async def _size(site: Site) -> list[Metric]:
    """Write how large the ledger is; how fast it grows is for Prometheus to tell."""
    size = await current_size(site)
    if size is None:
        return []
    numbers = [
        _gauge("tenure_log_entries", "Changes in the log.", size.changes),
        _gauge("tenure_archived_entries", "Changes in the archive.", size.archived),
        _gauge("tenure_kept_replies", "Answers kept under idempotency keys.", size.replies),
    ]
    if size.bytes is not None:
        numbers.append(_gauge("tenure_ledger_bytes", "Bytes that the ledger takes where it is kept.", size.bytes))
    return [*numbers]


async def standing_of_size(site: Site) -> dict[str, Any]:
    """Say how large the ledger is and how fast it grows, as far as that is known."""
    size, growth = await current_size(site), site.size.growth()
    return {
        "size": None if size is None else dataclasses.asdict(size),
        "growth": None if growth is None else dataclasses.asdict(growth),
    }


async def _networks(site: Site) -> list[Metric]:
    """Write how full networks are, as far as they are counted; of very many, the first in order of name."""
    await site.census.current()
    await site.census.wait_until(site.census.is_settled, COUNTED_S)
    waiting = await site.census.waiting(site.ledger)
    known = sorted(site.census.networks(), key=lambda each: each[1].name)
    gauges = [GaugeMetricFamily(f"tenure_network_{name}", about, labels=FAMILY) for name, about in OF_FAMILY]
    claims = GaugeMetricFamily("tenure_network_waiting_claims", "Claims that wait for an address.", labels=["network"])
    for space, network in known[:MOST_NETWORKS]:
        claims.add_metric([network.name], waiting.get(network.name, 0))
        if not space.is_counted(network):
            continue
        for family, numbers in _numbers(space, network):
            for gauge, number in zip(gauges, numbers, strict=True):
                gauge.add_metric([network.name, family], number)
    return [_gauge("tenure_networks", "Networks of the ledger.", len(known)), *gauges, claims]


def _numbers(space: SpaceCount, network: Network) -> Iterator[tuple[str, Sequence[float]]]:
    """Count a network's IPv4 and its IPv6: one address of the one says nothing beside a /64 of the other."""
    for family, six in (("ipv4", False), ("ipv6", True)):
        blocks = [subnet for subnet in network.subnets if is_v6(subnet.cidr.first) is six]
        if blocks:
            counts = added([space.tallies[network.id, subnet.uuid].counts() for subnet in blocks])
            held = counts["held"] + counts["pending"] + counts["draining"]
            used = held + counts["cooling"]
            ratio = used / (used + counts["free"]) if used + counts["free"] else 0.0
            yield family, (held, counts["free"], counts["cooling"], counts["reserved"], ratio)
