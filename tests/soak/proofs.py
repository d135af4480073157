"""Soak parts that need no server: exploration, simulation, mutants, properties."""

import asyncio
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import tenure
from tests.integrations.bosh.conformance.maker import live
from tests.integrations.bosh.conformance.town import Town
from tests.proof.exploration import CASTS, MODES, explore
from tests.proof.mutants import SIMULATED, Search
from tests.proof.simulation import first_unexplained
from tests.proof.timely import first_unexplained_in_time

RUNS_A_ROUND = 50
SEEDS_A_ROUND = 250
MUTANT_SEEDS = 2000
EXAMPLES_A_ROUND = 20
MAKERS_A_ROUND = 100
ACTS_OF_A_MAKER = 60

Figures = Mapping[str, Any]


def exploration(seed: int, rounds: int) -> Figures:
    """Explore every cast of three servers in every mode, warm and cold, up to a number of runs each."""
    figures = {"casts": 0, "runs": 0, "complete": 0}
    for name, cast in CASTS.items():
        for mode, (crashes, faults) in MODES.items():
            for warm in (True, False):
                explored = explore(cast, rounds * RUNS_A_ROUND, crashes=crashes, faults=faults, warm=warm)
                figures["casts"] += 1
                figures["runs"] += explored.runs
                figures["complete"] += explored.complete
                print(f"  {name}, {mode}, {'warm' if warm else 'cold'}: {explored.runs} runs", flush=True)
    return figures


def simulation(search: Search, seed: int, rounds: int) -> Figures:
    """Play many seeds; the first that cannot be explained is named."""
    seeds = range(seed, seed + rounds * SEEDS_A_ROUND)
    began = time.monotonic()
    found = search(seeds)
    print(f"  {len(seeds)} seeds in {time.monotonic() - began:.0f} s: {found or 'all explained'}", flush=True)
    return {"seeds": len(seeds), "unexplained": 0 if found is None else 1, "found": found}


def mutants(seed: int, rounds: int) -> Figures:
    """Switch on each named fault; each must be caught."""
    caught: dict[str, int | None] = {}
    for name, (mutant, search) in SIMULATED.items():
        with mutant():
            found = search(range(MUTANT_SEEDS))
        caught[name] = None if found is None else found[0]
        print(f"  {name}: caught by seed {caught[name]}", flush=True)
    return {"caught_by_seed": caught, "failures": sum(number is None for number in caught.values())}


def properties(seed: int, rounds: int) -> Figures:
    """Run the property tests and the state machine with many more examples."""
    return _examined(rounds * EXAMPLES_A_ROUND, "tests/kernel", "tests/service/test_model.py")


def networks_machine(seed: int, rounds: int) -> Figures:
    """Run the state machine of the networks door on every store, many more times."""
    return _examined(rounds * EXAMPLES_A_ROUND, "tests/integrations/ganeti/machine")


def http_requests(seed: int, rounds: int) -> Figures:
    """Ask the HTTP door all that its OpenAPI document allows and forbids, many more times."""
    return _examined(rounds * EXAMPLES_A_ROUND, "tests/doors/http/openapi/generated_requests.py")


def vms_in_the_making(seed: int, rounds: int) -> Figures:
    """Let makers of VMs live who forget none that they were told to make; the first that meets a fault is named."""
    seeds = range(seed, seed + rounds * MAKERS_A_ROUND)
    found = next((each for each in seeds if not asyncio.run(_lives(each))), None)
    return {"makers": len(seeds), "acts": ACTS_OF_A_MAKER, "failures": int(found is not None), "found": found}


async def _lives(seed: int) -> bool:
    async with await tenure.open_async("memory:") as ledger:
        try:
            await live(Town(ledger), seed, ACTS_OF_A_MAKER)
        except Exception:
            traceback.print_exc()
            return False
    return True


def _examined(examples: int, *tests: str) -> Figures:
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", *tests]
    ran = subprocess.run(command, env={**os.environ, "TENURE_EXAMPLES": str(examples)}, check=False)
    return {"examples": examples, "failures": int(ran.returncode != 0)}


PROOFS: dict[str, Callable[[int, int], Figures]] = {
    "exploration": exploration,
    "simulation": partial(simulation, first_unexplained),
    "simulation-in-time": partial(simulation, first_unexplained_in_time),
    "mutants": mutants,
    "properties": properties,
    "networks-machine": networks_machine,
    "http-requests": http_requests,
    "vms-in-the-making": vms_in_the_making,
}
