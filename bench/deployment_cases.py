"""What is measured of the deployments door: planning is linear in instances, and does not care what is held."""

from collections.abc import Mapping
from dataclasses import replace

from bench.cases import SMALLER, USUAL, Case, Pair, Promise
from bench.filling import usable

WORK = "plan"
MANY = 4000


def is_deployment(pair: Pair) -> bool:
    """Tell whether a pair is one of these."""
    return pair.subject.work == WORK


def deployment_pairs(tiers: Mapping[str, str], *, quick: bool) -> list[Pair]:
    """List what is compared on the stores that deployments share."""
    stores = [store for store in ("sqlite", "postgres") if store in tiers]
    return [pair for store in stores for pair in _pairs(store, MANY // 10 if quick else MANY)]


def _pairs(store: str, many: int) -> list[Pair]:
    most = Case(store, WORK, "lowest", USUAL, callers=1, count=many)
    half = replace(most, count=many // 2)
    full = replace(half, held=usable(USUAL) * 90 // 100)
    return [
        Pair(f"deployments-{store}-linear", f"planning {many:,} instances / {many // 2:,}", most, half, _time(2.3)),
        Pair(f"deployments-{store}-full", f"planning {many // 2:,}, /16 90 % held / empty", full, half, _time(1.3)),
    ]


def _time(limit: float) -> tuple[Promise, ...]:
    return (Promise("p50_ms", SMALLER, limit),)
