"""What /metrics tells: the counted numbers of all workers, and how the ledger stands at this moment."""

import asyncio
import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, assert_never

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder

from tenure.doors.http.observe.counters import COUNTED, READ, Series, SeriesType, ServerCounters
from tenure.doors.http.server_state import Site
from tenure.doors.http.utilisation.space_count import SpaceCount
from tenure.kernel.errors import StoreUnavailable
from tenure.kernel.plan.plan_model import Network
from tenure.ports import Size
from tenure.service.ledger.async_ledger import AsyncLedger

ANSWER_S = 2.0
"""How long the store may take to say that it is there."""

COUNTED_S = 1.0
"""How long a scrape waits for networks that are just being counted."""

MOST_NETWORKS = 1000
"""Networks that have numbers of their own: a label of a metric must not grow without end."""

OF_LEDGER = {series.name: series for series in READ}
OF_FAMILY = ("held", "free", "cooling", "reserved", "utilisation")
"""What is said of each network's IPv4, and of its IPv6."""


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
    # With auto_describe the registry would collect all families once more, for their names.
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Gathered([*counted(site.meter), *await standing(site)]))
    return encoder(registry), kind


def counted(meter: ServerCounters) -> Iterator[Metric]:
    """Write what was counted, by all workers together."""
    places, numbers = meter.cells.places, meter.totals()
    for series in COUNTED:
        cells = {labels: numbers[place : place + series.width] for labels, place in places[series.name].items()}
        if series.by_route:  # most routes are never asked for
            cells = {labels: each for labels, each in cells.items() if any(each)}
        yield _family(series, cells)


def _family(series: Series, cells: Mapping[tuple[str, ...], Sequence[float]]) -> Metric:
    """Write a series: the cells of each combination of labels."""
    match series.type:
        case SeriesType.COUNTER:
            counter = CounterMetricFamily(series.title, series.help, labels=series.labels)
            for labels, (number,) in cells.items():
                counter.add_metric(labels, number)
            return counter
        case SeriesType.GAUGE:
            return _gauge(series, {labels: number for labels, (number,) in cells.items()})
        case SeriesType.HISTOGRAM:
            histogram = HistogramMetricFamily(series.title, series.help, labels=series.labels)
            for labels, boxes in cells.items():
                histogram.add_metric(labels, _boxes(series.bounds, boxes), sum_value=boxes[-1])
            return histogram
        case _:
            assert_never(series.type)


def _boxes(bounds: Sequence[float], numbers: Sequence[float]) -> list[tuple[str, float]]:
    """Add up the boxes of a histogram: Prometheus wants each to hold all below it, too."""
    names = [*(str(float(bound)) for bound in bounds), "+Inf"]
    return list(zip(names, accumulate(numbers[:-1]), strict=True))


def _gauge(series: Series, numbers: Mapping[tuple[str, ...], float]) -> GaugeMetricFamily:
    gauge = GaugeMetricFamily(series.title, series.help, labels=series.labels)
    for labels, number in numbers.items():
        gauge.add_metric(labels, number)
    return gauge


def _of_ledger(name: str, number: float) -> GaugeMetricFamily:
    """Write a number of the whole ledger."""
    return _gauge(OF_LEDGER[name], {(): number})


async def standing(site: Site) -> list[Metric]:
    """Read how the ledger stands; if the store is away, say that and nothing more of it."""
    up = await store_answers(site.ledger)
    families: list[Metric] = [_of_ledger("store_up", float(up))]
    # The look above has a short limit: without it, each reading below would wait for a store that is away.
    if up:
        families += await _networks(site)  # which follows the log to its end
        families += await _size(site)
    families.append(_of_ledger("log_seq", site.news.seen))
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
        _of_ledger("log_entries", size.changes),
        _of_ledger("archived_entries", size.archived),
        _of_ledger("kept_replies", size.replies),
    ]
    if size.bytes is not None:
        numbers.append(_of_ledger("ledger_bytes", size.bytes))
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
    gauges = [_gauge(OF_LEDGER[name], {}) for name in OF_FAMILY]
    claims = _gauge(OF_LEDGER["waiting_claims"], {})
    for space, network in known[:MOST_NETWORKS]:
        claims.add_metric([network.name], waiting.get(network.name, 0))
        if not space.is_counted(network):
            continue
        for family, numbers in _numbers(space, network):
            for gauge, number in zip(gauges, numbers, strict=True):
                gauge.add_metric([network.name, family], number)
    return [_of_ledger("networks", len(known)), *gauges, claims]


def _numbers(space: SpaceCount, network: Network) -> Iterator[tuple[str, Sequence[float]]]:
    """Count a network's IPv4 and its IPv6, in the order of ``OF_FAMILY``."""
    for family, counts in space.counts(network).items():
        held = counts["held"] + counts["pending"] + counts["draining"]
        used = held + counts["cooling"]
        # Without reserved and kept-back addresses: a network that has nothing free must read as full.
        ratio = used / (used + counts["free"]) if used + counts["free"] else 0.0
        yield family, (held, counts["free"], counts["cooling"], counts["reserved"], ratio)
