"""The parts of a soak. A part is a function of a seed and a scale that returns figures; a new one is a line in PARTS.

Figures are whatever tells how much was done. Those named in FAULTS must be zero, or the soak has failed; a part that
raises has failed as well.
"""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tenure.integrations.vmpool.vm_pool_settings import MODES as VM_POOL_MODES
from tenure.integrations.vmpool.vm_pool_settings import PoolMode
from tests.infrastructure.postgres import run_folder
from tests.integrations.bosh.kills.grid import killed_once
from tests.integrations.kubernetes.metal3.claim_pairs import pair_rounds
from tests.integrations.kubernetes.metal3.claim_storms import storms
from tests.integrations.kubernetes.metal3.fire_rounds import fire_rounds
from tests.integrations.kubernetes.metal3.fleet_day import live_day
from tests.integrations.kubernetes.metal3.ledger.shared_plan_rounds import shared_plan_rounds
from tests.integrations.kubernetes.runtime.toy_rounds import toy_rounds
from tests.integrations.neutron.stage.deployment import DATABASES, MODES
from tests.integrations.neutron.stage.judging import crowd_rounds
from tests.integrations.neutron.suites.running import run_all as run_suites
from tests.integrations.vmpool.modes.crowd_rounds import crowd_rounds as vm_pool_rounds
from tests.interchange.million import run as copy_a_million
from tests.proof.http_pair import fragile_http
from tests.proof.moved_clocks import clock_round
from tests.proof.rounds import FRAGILE, Reckoning, kill_round
from tests.proof.waiting_rounds import TWO_HUNDRED, waiting_round
from tests.soak.fire import SETTINGS, fire_mutants, under_fire
from tests.soak.proofs import PROOFS

FAULTS = ("lost", "doubled", "breaches", "unexplained", "failures")
"""Figures that must be zero. ``failures`` is for parts that count what went wrong in no other way."""


LEDGERS = ("sqlite", "postgres")
"""Stores in which claims wait and holdings take time."""


CROWD_ROUNDS = 10
"""At most so many rounds of the crowd on Neutron: one takes as long as several of the others."""
PAIRS_A_ROUND, LIVES_A_ROUND = 50, 2500
"""In twenty rounds 1,000 pairs of claims, and a day of 50,000."""


@dataclass(frozen=True)
class Scale:
    """How much to do: rounds, about so many seconds each."""

    rounds: int = 20
    seconds: float = 5.0


Figures = Mapping[str, Any]
Part = Callable[[int, Scale], Figures]


BREAKABLE = {**FRAGILE, "http": fragile_http}


def kills(store: str, seed: int, scale: Scale) -> Figures:
    """Run rounds of kill and restart on one store; each round is known by its seed."""
    total: Counter[str] = Counter()
    with BREAKABLE[store]() as fragile:
        for number in range(1, scale.rounds + 1):
            reckoning = asyncio.run(kill_round(fragile, seed + number, seconds=scale.seconds))
            total.update(reckoning.figures)
            tell(number, scale.rounds, reckoning)
    return {"rounds": scale.rounds, **total}


def tell(number: int, rounds: int, reckoning: Reckoning) -> None:
    """Print a line a round, and whatever must not be."""
    told = ", ".join(f"{count} {name}" for name, count in reckoning.figures.items() if count or name in FAULTS)
    print(f"  round {number}/{rounds} (seed {reckoning.seed}): {told}", flush=True)
    for breach in reckoning.breaches:
        print(f"    breach: {breach}", flush=True)
    for finding in reckoning.findings:
        print(f"    {finding.kind}: {finding.text}", flush=True)


def deployment_kills(store: str, seed: int, scale: Scale) -> Figures:
    """Kill a story of deployments at every call of the store, either side of it, each in a ledger of its own; once."""
    with run_folder():
        return killed_once(store, tell=lambda told: print(f"  {told}", flush=True))


def waiting(store: str, seed: int, scale: Scale) -> Figures:
    """Let two hundred wait in four processes, again and again."""
    total: Counter[str] = Counter()
    with BREAKABLE[store]() as fragile:
        for number in range(1, scale.rounds + 1):
            with tempfile.TemporaryDirectory(prefix="tenure-round-") as folder:
                played = asyncio.run(waiting_round(fragile.place(Path(folder)), seed + number, TWO_HUNDRED))
            total.update(played.figures)
            total["unexplained"] += len(played.findings)
            print(f"  round {number}/{scale.rounds} (seed {seed + number}): {dict(played.figures)}", flush=True)
            for finding in played.findings:
                print(f"    {finding}", flush=True)
    return {"rounds": scale.rounds, **total}


def clock(store: str, seed: int, scale: Scale) -> Figures:
    """Move the clock of one server, again and again."""
    total: Counter[str] = Counter()
    with BREAKABLE[store]() as fragile:
        for number in range(1, scale.rounds + 1):
            with tempfile.TemporaryDirectory(prefix="tenure-round-") as name:
                folder = Path(name)
                round_ = clock_round(fragile.place(folder), folder, seed + number, seconds=scale.seconds)
                reckoning = asyncio.run(round_)
            total.update(entry.because or entry.verb for entry in reckoning.history.log or ())
            total.update(unexplained=len(reckoning.findings), breaches=len(reckoning.breaches))
            print(f"  round {number}/{scale.rounds} (seed {seed + number})", flush=True)
            for told in (*reckoning.breaches, *reckoning.findings):
                print(f"    {told}", flush=True)
    return {"rounds": scale.rounds, **total}


def million(seed: int, scale: Scale) -> Figures:
    """Copy a million holdings from SQLite to PostgreSQL and back, once."""
    return copy_a_million()


def neutron_suites(seed: int, scale: Scale) -> Figures:
    """Run Neutron's own suites against the driver in both modes, once."""
    outcomes = run_suites()
    suites = {name: outcome.figures for name, outcome in outcomes.items()}
    return {"failures": sum(len(outcome.failures) for outcome in outcomes.values()), "suites": suites}


def neutron_crowd(mode: str, database: str, seed: int, scale: Scale) -> Figures:
    """Let eight processes of a Neutron fill a /24 and empty it, again and again; chance is theirs, not the seed's."""
    with run_folder():
        return crowd_rounds(mode, database, min(scale.rounds, CROWD_ROUNDS))


def kubernetes_kills(seed: int, scale: Scale) -> Figures:
    """Kill, freeze and starve two replicas of a controller, its API server and its store, again and again."""
    return {"rounds": scale.rounds, **asyncio.run(toy_rounds(seed, scale.rounds))}


def short_claims(seed: int, scale: Scale) -> Figures:
    """Create IPClaims and delete each within 50 ms, fifty a round; nothing is left, settled within 10 s."""
    return {"storms": scale.rounds, **asyncio.run(storms(seed, scale.rounds))}


def claim_fire(seed: int, scale: Scale) -> Figures:
    """Kill and freeze replicas of the operator, and restart the API server, under 500 claims of both kinds a round."""
    return {"rounds": scale.rounds, **asyncio.run(fire_rounds(seed, scale.rounds))}


def claim_pairs(seed: int, scale: Scale) -> Figures:
    """Claim an address by each kind of claims at the same moment, fifty times a round; never one address for both."""
    return dict(asyncio.run(pair_rounds(PAIRS_A_ROUND * scale.rounds)))


def fleet_day(seed: int, scale: Scale) -> Figures:
    """Live a day of a fleet, 2,500 claims a round: nothing is left over, and the operator's memory is flat."""
    return dict(asyncio.run(live_day(seed, LIVES_A_ROUND * scale.rounds)))


def vm_pool_crowd(mode: PoolMode, seed: int, scale: Scale) -> Figures:
    """Let 50 processes allocate and release VMs in a mode, and kill 5 of them, again and again."""
    with run_folder():
        return {"rounds": scale.rounds, **vm_pool_rounds(mode, seed, scale.rounds)}


def shared_plan(seed: int, scale: Scale) -> Figures:
    """Fill a network of a ledger from two clusters and a script; both operators and the ledger's server are killed."""
    return dict(shared_plan_rounds(seed, scale.rounds))


def proof(name: str, seed: int, scale: Scale) -> Figures:
    """Run a part that needs no server, to the same number of rounds."""
    return PROOFS[name](seed, scale.rounds)


def fire(part: str, seed: int, scale: Scale) -> Figures:
    """Mistreat servers in every way that is known, under callers who hang up and ask elsewhere."""
    return under_fire(part, seed, scale.rounds, scale.seconds)


PARTS: dict[str, Part] = {
    **{f"kills-{store}": partial(kills, store) for store in BREAKABLE},
    **{f"kills-deployments-{store}": partial(deployment_kills, store) for store in LEDGERS},
    **{name: partial(fire, name) for name in SETTINGS},
    "fire-mutants": lambda seed, scale: fire_mutants(seed, scale.rounds),
    **{f"waiting-{store}": partial(waiting, store) for store in LEDGERS},
    **{f"clock-{store}": partial(clock, store) for store in LEDGERS},
    **{name: partial(proof, name) for name in PROOFS},
    "million": million,
    "neutron-suites": neutron_suites,
    **{f"neutron-crowd-{mode}-{base}": partial(neutron_crowd, mode, base) for mode in MODES for base in DATABASES},
    "kills-kubernetes": kubernetes_kills,
    "short-claims-kubernetes": short_claims,
    "fire-kubernetes": claim_fire,
    "pairs-kubernetes": claim_pairs,
    "fleet-day-kubernetes": fleet_day,
    **{f"vm-pool-{mode}": partial(vm_pool_crowd, mode) for mode in VM_POOL_MODES},
    "shared-plan-kubernetes": shared_plan,
}
"""The parts by name, in the order they run."""
