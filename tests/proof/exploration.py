"""Exploration: every interleaving of a few servers with a few operations on a tiny pool."""

import asyncio
from typing import NamedTuple

from tenure import AsyncLedger
from tests.proof.played import Cast, Step, Weather, play, staged
from tests.proof.scheduling import every_run


async def two_addresses(ledger: AsyncLedger) -> None:
    """Lay out a pool of two addresses."""
    await ledger.add_network("net")
    await ledger.add_subnet("net", "192.0.2.0/29")
    await ledger.add_pool("net", "192.0.2.2-192.0.2.3")


def take(owner: str, policy: str) -> Step:
    return ("allocate", {"network": "net", "owner": owner, "policy": policy, "request": f"{policy}:{owner}"})


def give(owner: str, answer: int = 0) -> Step:
    values = {"network": "net", "owner": owner, "address": f"${answer}.address", "generation": f"${answer}.generation"}
    return ("release", values)


def named(owner: str, address: str) -> Step:
    return ("allocate", {"network": "net", "owner": owner, "address": address})


CASTS: dict[str, Cast] = {
    "three take the lowest of two": [(f"s{n}", [take(f"pod/{n}", "lowest")]) for n in range(3)],
    "three take at random from two": [(f"s{n}", [take(f"pod/{n}", "random")]) for n in range(3)],
    "one claim from three servers": [(f"s{n}", [take("pod/same", "hashed")]) for n in range(3)],
    "one address named by three": [(f"s{n}", [named(f"pod/{n}", "192.0.2.2")]) for n in range(3)],
    "take, give back, take": [
        ("s0", [take("pod/0", "lowest"), give("pod/0")]),
        ("s1", [take("pod/1", "lowest")]),
        ("s2", [take("pod/2", "lowest")]),
    ],
    "an edit between": [
        ("s0", [take("pod/0", "random")]),
        ("s1", [("reserve", {"network": "net", "range": "192.0.2.2"})]),
        ("s2", [take("pod/2", "lowest")]),
    ],
    "all or none beside a single": [
        ("s0", [("allocate_many", {"network": "net", "owners": ["pod/a", "pod/b"], "request": "lowest:g"})]),
        ("s1", [take("pod/1", "lowest")]),
        ("s2", [take("pod/2", "random")]),
    ],
}


MODES = {"nothing goes wrong": (0, 0), "one server dies": (1, 0), "one answer is lost": (0, 1)}
"""How many servers die and how many answers are lost."""


class Explored(NamedTuple):
    """How many runs were played, and whether that was all there are."""

    runs: int
    complete: bool


def explore(cast: Cast, most: int, *, crashes: int = 0, faults: int = 0, warm: bool = True) -> Explored:
    """Play every run there is, up to a number; the first that cannot be explained is an error."""

    async def every() -> Explored:
        stage = await staged(two_addresses)
        played = 0
        for chooser in every_run(most):
            played += 1
            unexplained = await play(stage, cast, chooser, Weather(crashes, faults, warm=warm))
            assert not unexplained, (unexplained, [choice for choice, _ in chooser.trail])
        return Explored(played, not any(choice + 1 < options for choice, options in chooser.trail))

    return asyncio.run(every())
