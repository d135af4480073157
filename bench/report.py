"""The report: tables for people, JSON for programs."""

import dataclasses
import os
import platform
import sqlite3
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from bench.cases import P99_SHARE, Case
from bench.crew import ROOT, Sample, Sustained
from bench.kubernetes_cases import VM_POOL_WORK
from bench.measuring import Measured, median

WORKS = {
    "raw": "raw, one row a commit",
    "stream": "raw, streaming",
    "opening": "open, allocate once",
    "book": "engine",
    "keyed": "engine, with keys",
    "http-hello": "HTTP, bare hello",
    "http-allocate": "HTTP, allocate",
    "http-keyed": "HTTP, allocate with keys",
    "http-map": "HTTP, a map",
    "http-list": "HTTP, a page of holdings",
    "http-walk": "HTTP, all holdings",
    "kubernetes-ours": "Kubernetes, creates, the runtime",
    "kubernetes-bare": "Kubernetes, creates, bare aiohttp",
    "kubernetes-listed": "Kubernetes, a list into a cache",
    "kubernetes-kubernetes_asyncio": "Kubernetes, creates, kubernetes_asyncio",
    "kubernetes-lightkube": "Kubernetes, creates, lightkube",
    "kubernetes-addresses": "Kubernetes, creates of IPAddress alone",
    "kubernetes-addresses-webhooks": "Kubernetes, the same, with webhooks",
    "kubernetes-claims-ours": "Kubernetes, claims",
    "kubernetes-claims-bare": "Kubernetes, claims, no webhooks",
    "kubernetes-claims-held": "Kubernetes, claims, some held",
    "kubernetes-claims-at-once": "Kubernetes, claims, all at once",
    "kubernetes-claims-cluster-api": "Kubernetes, Cluster API's claims, at once",
    "kubernetes-claims-in-cluster": "Kubernetes, the same, in-cluster v1.1.0",
    "kubernetes-claims-metal3": "Kubernetes, claims, Metal3 v1.13.1",
    "kubernetes-claims-metal3-unthrottled": "Kubernetes, claims, Metal3, no limit",
    "kubernetes-vmpool-ours": "Kubernetes, a VM pool on a ConfigMap",
    "kubernetes-vmpool-go": "Kubernetes, the same, Go algorithm",
    "kubernetes-vmpool-plain": "Kubernetes, GET + PUT of a ConfigMap",
    "neutron-stock": "Neutron, stock driver",
    "neutron-database": "Neutron, mode database",
    "neutron-ledger": "Neutron, mode ledger",
}

SUSTAINED = [field.name for field in dataclasses.fields(Sustained)]

NOTES = [
    "Medians over rounds. Engine: tenure.open_async as shipped, log on, asyncio callers in closed loop, own process.",
    "Raw: a prepared INSERT of the columns that a grant writes, one row a commit, into a table like holding, indexes",
    "and all. PostgreSQL: 16 connections of asyncpg in one process. SQLite: WAL, synchronous FULL, the better of a",
    "bare loop on one connection and 16 callers over one writer thread. Held addresses were put there at random by",
    "SQL, with no entry in the log. CPU µs an allocation: of the callers' processes, and of the store's if it has any.",
    "HTTP: `tenure serve` in one process with token check, JSON log and metrics on; the hello reads and writes JSON on",
    "the same uvicorn. Keep-alive connections in closed loop from one other process; CPU is the server's.",
    "Neutron: a context, a writer transaction, the driver, get_subnet, allocate(AnyAddressRequest()) and the commit,",
    "on the database named under store, in processes of Neutron's; the ledger of mode ledger is on PostgreSQL. The",
    "stock driver finds the lowest addresses held, with which it is fastest; ours addresses at random.",
    "Kubernetes: ConfigMaps of 1 KB on one API server and etcd, each client in a process of its own with 32 tasks; no",
    "allocations. A list: objects a second; p50 and p99 from a write until the watch behind the list brings it; peak",
    "MB is what the cache added. Claims of one pool: they are there, then the pool comes; the time is from then until",
    "the last says which address it has, the operator's alone. Ours has its webhooks; Metal3's, which its own writes",
    "would have to pass, are left out. At once: created by a user with 32 tasks, the creation is in the time. Some",
    "held: the pool is paused while 2,000 claims come; MB is what all addresses but the first 2,000 added. Client µs",
    "and MB are the operator's, store µs those of the API server and etcd. Until named: ours writes the address on the",
    "claim when nothing waits; time and CPU until that is done, too. Peers write nothing after a claim is served.",
    "VM pools: so many nodes begin at once, each with so many allocations one after the other and connections of its",
    "own; all of ours are in one process, and all of Go's; the ConfigMap is there. Go: the algorithm of the seed's",
    "time, four tries. GET + PUT: each node on a ConfigMap of its own that is as large. Figures are of what was done;",
    "failed is the share of allocations that ended with an error.",
]


def machine() -> dict[str, Any]:
    """Tell what the figures were measured on."""
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "machine": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "asyncpg": _version("asyncpg"),
        "neutron": _version("neutron"),
        "commit": commit(),
        "load_average": round(os.getloadavg()[0], 2),
        "fdatasync_8k_per_s": round(syncs_per_second()),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def commit() -> str | None:
    """Return the commit that was measured, with a plus sign if the files have moved on."""
    try:
        found = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, check=True, text=True)
        status = ["git", "--no-optional-locks", "status", "--porcelain", "-uno"]
        changed = subprocess.run(status, cwd=ROOT, capture_output=True, check=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip() + ("+" if changed.stdout.strip() else "")


def syncs_per_second(seconds: float = 0.3) -> float:
    """Measure how often the disk under the places makes 8 KiB durable."""
    with tempfile.TemporaryFile(prefix="tenure-bench-") as file:
        number = file.fileno()
        start, done = time.perf_counter(), 0
        while (spent := time.perf_counter() - start) < seconds or not done:
            os.pwrite(number, b"\0" * 8192, 8192 * (done % 64))
            os.fdatasync(number) if hasattr(os, "fdatasync") else os.fsync(number)
            done += 1
        return done / spent


def document(facts: dict[str, Any], settings: dict[str, Any], measured: Sequence[Measured]) -> dict[str, Any]:
    """Put a whole run into JSON."""
    return {"facts": facts, "settings": settings, "pairs": [_pair_document(each) for each in measured]}


def _pair_document(each: Measured) -> dict[str, Any]:
    return {
        "name": each.pair.name,
        "title": each.pair.title,
        "base": None if each.pair.base is None else case_document(each.pair.base, each.base),
        "subject": case_document(each.pair.subject, each.subject),
        "ratio_of_rates": ratio(each, "rate"),
        "promises": [
            {
                "measure": promise.measure,
                "relative": promise.relative,
                "relation": promise.relation,
                "limit": promise.limit,
                "value": each.value(promise),
                "rounds": each.values(promise),
                "holds": promise.holds(each.value(promise)),
            }
            for promise in each.pair.promises
        ],
    }


def ratio(each: Measured, measure: str) -> float | None:
    """Return the ratio of the medians, where there is a base."""
    return median(each.subject, measure) / median(each.base, measure) if each.base else None


def sustained_ratio(each: Measured) -> float | None:
    """Return the ratio of what is kept up, where the subject has a rate of that kind; the base may have none."""
    subject = _sustained(each.subject)
    base = _sustained(each.base) or each.base
    return median(subject, "rate") / median(base, "rate") if subject and base else None


def case_document(case: Case, samples: Sequence[Sample]) -> dict[str, Any]:
    """Put a case and its samples into JSON."""
    names = [field.name for field in dataclasses.fields(Sample) if field.name != "sustained"]
    kept_up = _sustained(samples)
    of_these = {name: median(kept_up, name) for name in SUSTAINED} if kept_up else None
    return {
        **dataclasses.asdict(case),
        "family": case.family,
        "fill": round(case.fill, 4),
        "median": {name: median(samples, name) for name in names} | ({"sustained": of_these} if of_these else {}),
        "rounds": [dataclasses.asdict(sample) for sample in samples],
    }


def facts_lines(facts: dict[str, Any]) -> list[str]:
    """Tell the facts in a line or two."""
    return [", ".join(f"{name} {value}" for name, value in facts.items() if not isinstance(value, dict))] + [
        f"{name}: " + ", ".join(f"{key} {value}" for key, value in inner.items())
        for name, inner in facts.items()
        if isinstance(inner, dict)
    ]


def figures_table(measured: Sequence[Measured]) -> list[str]:
    """Lay out the figures of every case; samples of a case that was measured in several pairs are put together."""
    pooled: dict[Case, list[Sample]] = {}
    for each in measured:
        if each.pair.base is not None:
            pooled.setdefault(each.pair.base, []).extend(each.base)
        pooled.setdefault(each.pair.subject, []).extend(each.subject)
    head = [
        "store", "what", "policy", "pool", "held", "callers", "allocations/s", "min – max", "p50 ms", "p99 ms",
        "client µs", "store µs", "peak MB", "failed",
    ]  # fmt: skip
    rows = [row for case, samples in pooled.items() for row in _rows(case, samples)]
    return aligned([head, *rows], left=4)


def _rows(case: Case, samples: Sequence[Sample]) -> list[list[str]]:
    """Lay out a case; what an operator keeps up has a row of its own."""
    row = _figures(case, samples)
    kept_up = _sustained(samples)
    if not kept_up:
        return [row]
    rates = sorted(each.rate for each in kept_up)
    client_us, store_us = (f"{median(kept_up, name):.1f}" for name in ("client_us", "store_us"))
    beginning = [row[0], f"{row[1]}, until named", *row[2:6]]
    span = f"{_rate(rates[0])} – {_rate(rates[-1])}"
    return [row, [*beginning, _rate(statistics.median(rates)), span, "", "", client_us, store_us, "", ""]]


def _sustained(samples: Sequence[Sample]) -> list[Sustained]:
    return [each.sustained for each in samples if each.sustained is not None]


def _figures(case: Case, samples: Sequence[Sample]) -> list[str]:
    timed = case.work in ("opening", "stream")
    rates = sorted(sample.rate for sample in samples)
    each = case.count if case.work.startswith(VM_POOL_WORK) else case.callers  # a node has one caller after the other
    callers = f"{case.servers} × {each}" if case.servers > 1 else str(each)
    return [
        case.store,
        WORKS.get(case.work, case.work),
        "" if case.work in ("raw", "stream") else case.policy,
        f"{case.family} /{case.pool.rpartition('/')[2]}" + (f" × {case.networks}" if case.networks > 1 else ""),
        "0" if not case.held else f"{case.fill:.0%}" if case.fill > 0.01 else f"{case.held:,}",
        callers,
        f"{median(samples, 'seconds'):.2f} s" if timed else _rate(statistics.median(rates)),
        "" if timed else f"{_rate(rates[0])} – {_rate(rates[-1])}",
        "" if timed else f"{median(samples, 'p50_ms'):.2f}",
        "" if timed else f"{median(samples, 'p99_ms'):.2f}",
        "" if timed else f"{median(samples, 'client_us'):.1f}",
        "" if timed else f"{median(samples, 'store_us'):.1f}",
        f"{median(samples, 'peak_mb'):.0f}",
        f"{median(samples, 'failed_share'):.0%}" if case.work.startswith(VM_POOL_WORK) else "",
    ]


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2f}"


def promises_table(measured: Sequence[Measured]) -> list[str]:
    """Lay out the ratios and the bars."""
    rows = [["store", "promise", "value", "min – max", "bar", ""]]
    for each in measured:
        store, title = each.pair.subject.store, each.pair.title
        for promise in each.pair.promises:
            is_memory = promise.measure == "peak_mb" and not promise.relative
            is_plain = promise.measure in ("failed_share", "retries")
            value, unit = each.value(promise), "MB" if is_memory else "" if is_plain else "×"
            rounds, digits = each.values(promise), 0 if is_memory else 2
            what = {
                "rate": title,
                "seconds": f"{title}: time",
                "p50_ms": f"{title}: time",
                "cpu_us": f"{title}: CPU",
                "peak_mb": f"{title.partition(' /')[0]}: memory",
                P99_SHARE: title,
                "failed_share": f"{title.partition(' /')[0]}: failed",
                "retries": f"{title.partition(' /')[0]}: retries an allocation",
            }
            rows.append(
                [
                    store,
                    what[promise.measure],
                    f"{value:,.{digits}f} {unit}",
                    f"{min(rounds):,.{digits}f} – {max(rounds):,.{digits}f}",
                    f"{promise.relation} {promise.limit:g} {unit}",
                    "ok" if promise.holds(value) else "BELOW" if promise.relation == ">=" else "ABOVE",
                ]
            )
        if not each.pair.promises and each.base:
            rows.append([store, title, f"{ratio(each, 'rate'):,.2f} ×", "", "", ""])
        if each.base and (kept_up := sustained_ratio(each)) is not None:
            rows.append([store, f"{title}, until named", f"{kept_up:,.2f} ×", "", "", ""])
    return aligned(rows, left=2)


def aligned(rows: Sequence[Sequence[str]], *, left: int) -> list[str]:
    """Line columns up: the first ones to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return [lines[0], "-" * max(map(len, lines)), *lines[1:]]


def all_hold(measured: Sequence[Measured]) -> bool:
    """Tell whether every bar holds."""
    return all(promise.holds(each.value(promise)) for each in measured for promise in each.pair.promises)
