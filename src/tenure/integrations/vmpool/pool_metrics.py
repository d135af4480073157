"""What a VM pool counts, and its numbers for ``/metrics``.

Numbers of this process are ``byom_allocations_total`` and so on. Those of the pool, of whatever processes, are gauges
and ``byom_pool_…_total``: every node shows the same, as it last read them, so take the maximum over nodes, not the sum.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tenure.integrations.kubernetes.runtime.process_probes import Sample, exposition
from tenure.integrations.vmpool.metering.pool_sightings import RELEASED, PoolSightings
from tenure.integrations.vmpool.metering.result_tally import CONFLICTS, MILLISECONDS, TIMED
from tenure.integrations.vmpool.pool_document import PoolDocument
from tenure.integrations.vmpool.state.held_back import is_held_back
from tenure.integrations.vmpool.state.state_repair import PoolLine

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
ATTEMPTS = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 20.0)
CLEANUP_SECONDS = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)

RESULTS = {
    "allocate": ("new", "existing", "exhausted", "conflict", "error"),
    "deallocate": ("released", "not_found", "conflict", "error"),
}
"""Results by operation that have a counter of their own, which is shown from the start: a rate needs the zero."""
REPAIRS = ("unknown", "duplicate", "missing", "double_allocated", "invalid")
CLEANUPS = ("ok", "failed")
RESIZES = ("added", "retired", "removed", "failed")
"""What a decider did with VMs: into the pool, out of the list, gone; and programs of its that failed."""
NODES_SHOWN = 100
"""So many nodes are shown by name; all others together are ``other``."""
STATES = ("available", "allocated", "orphaned", "draining", "cleanup_failed")


@dataclass(frozen=True, slots=True)
class PoolFill:
    """How many IPs of a pool are in which state; each is counted once."""

    available: int
    allocated: int
    """Without those that are counted below."""
    orphaned: int = 0
    """Allocated, no longer in the pool, and not noted as draining."""
    draining: int = 0
    """Allocated, no longer in the pool, and gone when they are released."""
    cleanup_failed: int = 0
    """Allocated to dead VMs that could not be cleaned up."""

    @property
    def total(self) -> int:
        """Return how many IPs there are, in whatever state."""
        return self.available + self.allocated + self.orphaned + self.draining + self.cleanup_failed


def fill_of(document: PoolDocument, pool: PoolLine) -> PoolFill:
    """Count the IPs of a pool by state."""
    counts: Counter[str] = Counter()
    failed, draining = document.notes.cleanup_failed, document.notes.draining
    for key, entry in document.state.allocated.items():
        if is_held_back(entry):
            continue
        if (noted := failed.get(entry.ip)) is not None and noted.allocation_id == key:
            counts["cleanup_failed"] += 1
        elif entry.ip in pool.known:
            counts["allocated"] += 1
        else:
            counts["draining" if entry.ip in draining else "orphaned"] += 1
    return PoolFill(len(document.state.available), counts["allocated"], *(counts[each] for each in STATES[2:]))


@dataclass
class Histogram:
    """How many observations were at most as large as each bound."""

    bounds: Sequence[float]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def samples(self, name: str, help: str, labels: dict[str, str]) -> Iterator[Sample]:
        """Give buckets, sum and count."""
        below = 0
        for bound, count in zip([*self.bounds, None], self.counts, strict=True):
            below += count
            limit = "+Inf" if bound is None else f"{bound:g}"
            yield Sample(name, help, "histogram", below, {**labels, "le": limit}, "_bucket")
        yield Sample(name, help, "histogram", self.total, labels, "_sum")
        yield Sample(name, help, "histogram", below, labels, "_count")


class PoolMeter:
    """Counters of one process on one pool, since it was started."""

    def __init__(self, pool: str, line: PoolLine) -> None:
        self.pool = pool
        self.line = line
        self.results: Counter[tuple[str, str]] = Counter()
        """By operation and result."""
        self.conflicts: Counter[str] = Counter()
        self.cleanups: Counter[str] = Counter()
        self.repairs: Counter[str] = Counter()
        self.resizes: Counter[str] = Counter()
        self.last_read: PoolDocument | None = None
        self._durations: dict[str, Histogram] = {}
        self._attempts: dict[str, Histogram] = {}
        self._cleanup_durations = Histogram(CLEANUP_SECONDS)
        self._recovery_durations = Histogram(CLEANUP_SECONDS)
        self._sightings = PoolSightings()

    def operation(self, operation: str, result: str, seconds: float, attempts: int) -> None:
        """Count an operation that has ended, with its result, and how often its write was tried."""
        self.results[operation, result] += 1
        self._durations.setdefault(operation, Histogram(SECONDS)).observe(seconds)
        self._attempts.setdefault(operation, Histogram(ATTEMPTS)).observe(attempts)

    def conflict(self, operation: str) -> None:
        """Count a write that another writer was faster than."""
        self.conflicts[operation] += 1

    def cleaned(self, is_clean: bool, seconds: float) -> None:
        """Count the cleanup of a VM."""
        self.cleanups["ok" if is_clean else "failed"] += 1
        self._cleanup_durations.observe(seconds)

    def repaired(self, kind: str, count: int = 1) -> None:
        """Count inconsistencies that were repaired."""
        self.repairs[kind] += count

    def recovered(self, seconds: float) -> None:
        """Count a recovery."""
        self._recovery_durations.observe(seconds)

    def resized(self, change: str, count: int = 1) -> None:
        """Count VMs that came into the pool or left it, or could not (``RESIZES``)."""
        self.resizes[change] += count

    def read(self, document: PoolDocument) -> None:
        """See what was read; the gauges are counted when they are asked for."""
        self.last_read = document
        self._sightings.see(document)

    def text(self) -> str:
        """Write all numbers as Prometheus reads them, for programs that serve them by themselves."""
        return "".join(exposition(self.samples()))

    def samples(self) -> Iterator[Sample]:
        """Give all numbers; the labels are few, and never an id, an IP or a pod."""
        yield from self._gauges()
        yield from self._sighted()
        yield from self._counters()
        yield from self._histograms()

    def _gauges(self) -> Iterator[Sample]:
        document, labels = self.last_read, {"pool": self.pool}
        if document is None:
            return
        fill = fill_of(document, self.line)
        help = "IPs of the pool by state, as last read; the same on every node."
        for state in STATES:
            yield Sample("byom_pool_ips", help, "gauge", getattr(fill, state), {**labels, "state": state})
        help = "IPs that this process knows as those of the pool."
        yield Sample("byom_pool_list_size", help, "gauge", len(self.line.ips), labels)
        help = "Generation of the list of IPs that the pool keeps itself; 0: the list is the settings'."
        yield Sample("byom_pool_list_generation", help, "gauge", self.line.generation, labels)
        help = "Share of the IPs that are not available."
        ratio = 1 - fill.available / fill.total if fill.total else 0.0
        yield Sample("byom_pool_utilization_ratio", help, "gauge", ratio, labels)
        yield Sample("byom_state_size_bytes", "Size of all values of the ConfigMap.", "gauge", document.size, labels)
        if document.state.last_updated is not None:
            at, help = document.state.last_updated.timestamp(), "When the state was last written."
            yield Sample("byom_state_last_update_timestamp_seconds", help, "gauge", at, labels)
        yield from self._ages(document)

    def _ages(self, document: PoolDocument) -> Iterator[Sample]:
        """Give how many allocations nodes have, and how old the oldest is: one that leaked grows old."""
        labels = {"pool": self.pool}
        entries = [entry for entry in document.state.allocated.values() if not is_held_back(entry)]
        by_node = Counter(entry.node_name for entry in entries)
        named = dict(by_node.most_common(NODES_SHOWN))
        if rest := by_node.total() - sum(named.values()):
            # A node may have this very name.
            named["other"] = named.get("other", 0) + rest
        help = "Allocations by the node that made them."
        for node in sorted(named):
            yield Sample("byom_node_allocations", help, "gauge", named[node], {**labels, "node": node})
        if times := [entry.allocated_at.timestamp() for entry in entries if entry.allocated_at is not None]:
            help = "When the oldest allocation was made."
            yield Sample("byom_oldest_allocation_timestamp_seconds", help, "gauge", min(times), labels)

    def _sighted(self) -> Iterator[Sample]:
        """Give what all managers of the pool did since this process first read it."""
        if self.last_read is None:
            return
        labels, totals = {"pool": self.pool}, self._sightings.totals
        help = "Allocations of all managers: new ones as seen, other results as noted in the pool."
        for result in RESULTS["allocate"]:
            by = {**labels, "result": result}
            yield Sample("byom_pool_allocations_total", help, "counter", totals[result], by)
        help = "Allocations of all managers that have ended."
        yield Sample("byom_pool_deallocations_total", help, "counter", totals[RELEASED], labels)
        help = "Writes that another writer was faster than, as noted in the pool."
        yield Sample("byom_pool_conflicts_total", help, "counter", totals[CONFLICTS], labels)
        name, help = "byom_pool_allocation_duration_seconds", "How long new allocations took, as noted in the pool."
        yield Sample(name, help, "summary", totals[MILLISECONDS] / 1000, labels, "_sum")
        yield Sample(name, help, "summary", totals[TIMED], labels, "_count")

    def _counters(self) -> Iterator[Sample]:
        labels = {"pool": self.pool}
        for operation, results in RESULTS.items():
            name, help = f"byom_{operation[:-1]}ions_total", f"Calls of {operation} by result."
            for result in results:
                count = self.results[operation, result]
                yield Sample(name, help, "counter", count, {**labels, "result": result})
        # Operations without a conflict, too: a rate needs the zero.
        for operation in sorted({*RESULTS, *self.conflicts}):
            help = "Writes that another writer was faster than."
            by = {**labels, "operation": operation}
            yield Sample("byom_conflicts_total", help, "counter", self.conflicts[operation], by)
        for result in CLEANUPS:
            by = {**labels, "result": result}
            yield Sample("byom_vm_cleanups_total", "Cleanups of VMs.", "counter", self.cleanups[result], by)
        for change in RESIZES:
            by = {**labels, "change": change}
            yield Sample(
                "byom_pool_resizes_total", "VMs by how the pool's size changed.", "counter", self.resizes[change], by
            )
        for kind in REPAIRS:
            by = {**labels, "kind": kind}
            yield Sample("byom_repairs_total", "Inconsistencies repaired.", "counter", self.repairs[kind], by)

    def _histograms(self) -> Iterator[Sample]:
        labels = {"pool": self.pool}
        for operation, durations in sorted(self._durations.items()):
            help, by = "How long operations took.", {**labels, "operation": operation}
            yield from durations.samples("byom_operation_duration_seconds", help, by)
        for operation, attempts in sorted(self._attempts.items()):
            help, by = "How often the write of an operation was tried.", {**labels, "operation": operation}
            yield from attempts.samples("byom_operation_attempts", help, by)
        help = "How long cleanups of VMs took."
        yield from self._cleanup_durations.samples("byom_vm_cleanup_duration_seconds", help, labels)
        help = "How long recoveries took, with cleanups and waits."
        yield from self._recovery_durations.samples("byom_recovery_duration_seconds", help, labels)
