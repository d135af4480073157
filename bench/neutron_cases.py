"""What is measured of the Neutron door, and what it must hold beside the stock driver."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bench.cases import SMALLER, USUAL, Case, Pair, Promise, rate
from bench.filling import usable
from bench.neutron_jobs import DATABASE, LEDGER, STOCK

WORK = "neutron-"
"""Begins the works of these cases; the driver or the mode follows."""

SERVERS = 4


@dataclass(frozen=True, slots=True)
class NeutronScale:
    """How many addresses one measurement allocates; the stock driver takes seconds for each when the pool is full."""

    ours: int = 200
    stock_empty: int = 100
    stock_full: int = 3
    pool: str = USUAL


QUICK = NeutronScale(ours=50, stock_empty=20, stock_full=1)


def is_neutron(pair: Pair) -> bool:
    """Tell whether a pair is one of these."""
    return pair.subject.work.startswith(WORK)


def needs_ledger(pair: Pair) -> bool:
    """Tell whether a pair is measured with a ledger beside Neutron's database."""
    return pair.subject.work == f"{WORK}{LEDGER}"


def neutron_pairs(databases: Sequence[str], tiers: Mapping[str, str], scale: NeutronScale) -> list[Pair]:
    """List what is compared: on each of Neutron's databases, each mode with the stock driver and with itself."""
    modes = [DATABASE, LEDGER] if "postgres" in tiers else [DATABASE]
    return [
        replace(pair, name=f"neutron-{database}-{mode}-{pair.name}")
        for database in databases
        for number in range(len(mode_pairs(database, DATABASE, scale)))
        for mode in modes
        for pair in [mode_pairs(database, mode, scale)[number]]
    ]


def mode_pairs(database: str, mode: str, scale: NeutronScale) -> list[Pair]:
    """List what is compared for one mode; what is compared with the same stands together."""
    name = f"Neutron, mode {mode}"
    empty, half, full = (case(database, mode, percent, scale) for percent in (0, 50, 90))
    stock_empty, stock_half, stock_full = (case(database, STOCK, percent, scale) for percent in (0, 50, 90))
    next_half, stock_next = replace(half, policy="lowest"), replace(stock_half, policy="lowest")
    pairs = [
        Pair("0", f"{name}, empty / stock", empty, stock_empty, rate(1.0)),
        Pair("fill", f"{name}, 90 % full / empty", full, empty, rate(0.8)),
        Pair("90", f"{name}, 90 % full / stock", full, stock_full, rate(60.0)),
        Pair("50", f"{name}, 50 % full / stock", half, stock_half, rate(60.0)),
        Pair("next", f"{name}, prefer next, 50 % full / stock", next_half, stock_next),
    ]
    if database != "sqlite":  # one writer at a time: nobody runs several servers on it
        promises = (Promise("cpu_us", SMALLER, 1.25),)
        crowd = Pair("4", f"{name}, {SERVERS} processes / one", replace(full, servers=SERVERS), full, promises)
        pairs.insert(2, crowd)
    return pairs


def case(database: str, driver: str, percent: int, scale: NeutronScale) -> Case:
    """Make the case of a driver and a subnet that is so full."""
    count = scale.ours if driver != STOCK else scale.stock_full if percent else scale.stock_empty
    held = usable(scale.pool) * percent // 100
    return Case(database, f"{WORK}{driver}", pool=scale.pool, callers=1, held=held, count=count, kept=True)
