"""Soak parts under fire: servers mistreated in every way that is known, and the mutants that must be noticed."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tests.infrastructure.postgres import THROWN_AWAY, private_postgres
from tests.proof.fire.fire_rounds import FireRound, Setting, fire_round, on_postgres, on_sqlite, with_mutant
from tests.proof.fire.server_mutants import MUTANTS

LONGER = 6
"""A round under fire lasts so many times as long as others: to start its servers takes a while."""

SHOWN = 3
"""Breaches of one rule that are told with their history, a round."""

MUTANT_SEED = 1

Figures = Mapping[str, Any]


@contextmanager
def _postgres() -> Iterator[Setting]:
    with private_postgres(THROWN_AWAY) as server:
        yield on_postgres(server)


@contextmanager
def _sqlite(servers: int) -> Iterator[Setting]:
    yield on_sqlite(servers)


SETTINGS: dict[str, Callable[[], AbstractContextManager[Setting]]] = {
    "fire-postgres": _postgres,
    "fire-sqlite-1": lambda: _sqlite(1),
    "fire-sqlite-2": lambda: _sqlite(2),
}
"""Where servers stand under fire, by the part's name."""


def under_fire(part: str, seed: int, rounds: int, seconds: float) -> Figures:
    """Run rounds under fire; each is known by its seed."""
    total: Counter[str] = Counter()
    with SETTINGS[part]() as setting:
        for number in range(1, rounds + 1):
            fired = asyncio.run(fire_round(setting, seed + number, LONGER * seconds))
            total.update(fired.figures)
            told = ", ".join(
                f"{count} {name}" for name, count in fired.figures.items() if not name.startswith("fault_")
            )
            print(f"  round {number}/{rounds} (seed {fired.seed}): {told}", flush=True)
            tell_breaches(fired)
    return {"rounds": rounds, **total}


def tell_breaches(fired: FireRound) -> None:
    """Print the first breaches of each rule, each with the shortest history that shows it."""
    known: Counter[str] = Counter()
    for breach in fired.breaches:
        known[breach.rule] += 1
        if known[breach.rule] <= SHOWN:
            print("    " + str(breach).replace("\n", "\n    "), flush=True)


def fire_mutants(seed: int, rounds: int) -> Figures:
    """Plant each fault of a server by its name; the rules must notice it, with one seed that is always the same."""
    caught: dict[str, Any] = {}
    with private_postgres(THROWN_AWAY) as server:
        for name, mutant in MUTANTS.items():
            fired = asyncio.run(fire_round(with_mutant(server, name), MUTANT_SEED, 0))
            broken = sorted({breach.rule for breach in fired.breaches} & mutant.rules)
            caught[name] = {"rules": broken, "attempts": len(fired.evidence.attempts), "seed": MUTANT_SEED}
            print(f"  {name}: {'caught by ' + ', '.join(broken) if broken else 'NOT caught'}", flush=True)
    return {"caught": caught, "failures": sum(not each["rules"] for each in caught.values())}
