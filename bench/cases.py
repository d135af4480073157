"""What is measured and what it must hold: cases, the pairs that are compared, and the bars of the promises."""

import ipaddress
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from bench.filling import usable
from bench.jobs import Plan

WIDE = "10.0.0.0/12"
"""A million addresses: no run fills it, and picks still come from a view of what is free."""

USUAL = "10.0.0.0/16"
SPARSE = "2001:db8::/64"

FILLS = (0, 25, 50, 75, 90, 95, 99)
BURST = 2000
BURST_NETWORKS = 6
MILLION = 1_000_000

SMALLER, LESS, AT_LEAST = "<=", "<", ">="
P99_SHARE = "p99_share"
"""The one measure that is made of two: the waiting times of the subject, and the rate of the base."""
RELATIONS: Mapping[str, Callable[[float, float], bool]] = {
    SMALLER: operator.le,
    LESS: operator.lt,
    AT_LEAST: operator.ge,
}


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to measure."""

    store: str
    work: str
    policy: str = "random"
    pool: str = WIDE
    callers: int = 16
    servers: int = 1
    held: int = 0
    networks: int = 1
    count: int | None = None
    """Allocations in each network; without it, the time decides."""

    kept: bool = False
    """Measured on one ground over and over, because making it takes long."""

    @property
    def plan(self) -> Plan:
        """Return the plan of the ground."""
        return Plan(self.pool, self.policy, tuple(f"net{number}" for number in range(self.networks)))

    @property
    def fill(self) -> float:
        """Return which share of each pool is held at the start."""
        return self.held / usable(self.pool)

    @property
    def family(self) -> str:
        """Name the family."""
        return f"IPv{ipaddress.ip_network(self.pool).version}"


@dataclass(frozen=True, slots=True)
class Promise:
    """A bar: a measure of a pair's subject, by itself or relative to the base."""

    measure: str
    relation: str
    limit: float
    relative: bool = True

    def holds(self, value: float) -> bool:
        """Tell whether a value is on the right side."""
        return RELATIONS[self.relation](value, self.limit)


@dataclass(frozen=True, slots=True)
class Pair:
    """A subject and what it is compared with, measured one right after the other in every round."""

    name: str
    title: str
    subject: Case
    base: Case | None = None
    promises: tuple[Promise, ...] = ()


@dataclass(frozen=True, slots=True)
class Scale:
    """How big the run is."""

    held: int = MILLION
    burst: int = BURST
    networks: int = BURST_NETWORKS


def burst_case(policy: str, percent: int, scale: Scale) -> Case:
    """Make the case of a pool that is so full: bursts that take at most half of what is left of it."""
    held = usable(USUAL) * percent // 100
    count = min(scale.burst, (usable(USUAL) - held) // 2)
    return Case("postgres", "engine", policy, USUAL, held=held, networks=scale.networks, count=count)


def nic_pair(store: str, scale: Scale) -> Pair:
    """Compare instances with three addresses of two pools in a /16 that is 90 % full with those in an empty one."""
    full = Case(store, "nics", "lowest", USUAL, 4, held=usable(USUAL) * 90 // 100, count=scale.burst // 4)
    return Pair("nics", "a NIC with three IPs of two pools, 90 % full / empty", full, replace(full, held=0), rate(0.8))


def rate(limit: float) -> tuple[Promise, ...]:
    """Promise a rate of at least so many times the base's."""
    return (Promise("rate", AT_LEAST, limit),)


def postgres_pairs(scale: Scale) -> list[Pair]:
    """List what is compared on PostgreSQL."""
    raw = Case("postgres", "raw")
    engine, keyed = Case("postgres", "engine"), Case("postgres", "keyed")
    lowest = replace(engine, policy="lowest")
    full = burst_case("random", 95, scale)
    sparse = replace(engine, pool=SPARSE)
    many = f"{scale.held:,} held in an IPv6 /64"
    return [
        Pair("random-16", "random, 16 callers / raw", engine, raw, rate(1.0)),
        Pair("random-256", "random, 256 callers / raw", replace(engine, callers=256), raw, rate(2.0)),
        Pair("keyed-16", "random with keys, 16 callers / raw", keyed, raw, rate(1.0)),
        Pair("keyed-256", "random with keys, 256 callers / raw", replace(keyed, callers=256), raw, rate(1.5)),
        Pair("lowest-16", "lowest, 16 callers / raw", lowest, raw, rate(1.0)),
        Pair("lowest-4x16", "lowest, 4 servers × 16 callers / raw", replace(lowest, servers=4), raw, rate(0.5)),
        Pair("random-4x16", "random, 4 servers × 16 callers / raw", replace(engine, servers=4), raw),
        Pair("full", "random, 95 % full / empty", full, replace(full, held=0), rate(0.8)),
        Pair("million", f"random, {many} / none", replace(sparse, held=scale.held, kept=True), sparse, rate(0.85)),
    ]


def sqlite_pairs() -> list[Pair]:
    """List what is compared on SQLite."""
    raw, engine = Case("sqlite", "raw"), Case("sqlite", "engine")
    lowest, keyed = replace(engine, policy="lowest"), replace(engine, work="keyed")
    return [
        Pair("random-16", "random, 16 callers / raw", engine, raw, rate(1.0)),
        Pair("keyed-16", "random with keys, 16 callers / raw", keyed, raw, rate(1.0)),
        Pair("keyed-256", "random with keys, 256 callers / raw", replace(keyed, callers=256), raw, rate(1.5)),
        Pair("lowest-16", "lowest, 16 callers / raw", lowest, raw, rate(1.0)),
    ]


def opening_pairs(store: str, scale: Scale) -> list[Pair]:
    """List what is compared when a big ledger is opened."""
    promises = (Promise("seconds", SMALLER, 10.0), Promise("peak_mb", LESS, 500.0, relative=False))
    pairs = []
    for policy in ("lowest", "random"):
        opening = Case(store, "opening", policy, SPARSE, callers=1, held=scale.held, kept=True)
        title = f"open with {scale.held:,} held, {policy} / streaming them"
        pairs.append(Pair(f"open-{policy}", title, opening, replace(opening, work="stream", policy="random"), promises))
    return pairs


def pairs_for(tiers: Mapping[str, str], scale: Scale) -> list[Pair]:
    """List what is measured on the stores of the list; a store without bars is measured for information."""
    barred = {
        "postgres": [*postgres_pairs(scale), nic_pair("postgres", scale), *opening_pairs("postgres", scale)],
        "sqlite": [*sqlite_pairs(), nic_pair("sqlite", scale), *opening_pairs("sqlite", scale)],
    }
    return [
        replace(pair, name=f"{store}-{pair.name}")
        for store, tier in tiers.items()
        for pair in barred.get(store) or informative_pairs(store, tier)
    ]


def informative_pairs(store: str, tier: str) -> list[Pair]:
    """List what is measured on a store that has no bars."""
    case = Case(store, "engine" if tier == "ledger" else "book")
    return [
        Pair("random-16", "random, 16 callers", case),
        Pair("random-256", "random, 256 callers", replace(case, callers=256)),
    ]


def selected(pairs: Sequence[Pair], wanted: Sequence[str]) -> list[Pair]:
    """Keep the pairs whose name holds one of the words."""
    return [pair for pair in pairs if not wanted or any(word in pair.name for word in wanted)]
