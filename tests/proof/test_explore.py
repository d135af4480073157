"""Every interleaving of a few servers with a few operations on a tiny pool."""

import asyncio

import pytest

from tenure import AsyncLedger
from tests.proof.played import Cast, Step, play, staged
from tests.proof.scheduling import every_run
from tests.scale import runs


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

BOUNDED = {"an edit between"}
"""Casts with more interleavings than ``make test`` has time for; the soak goes on longer."""


@pytest.mark.parametrize("name", CASTS)
def test_every_interleaving_of_three_servers_is_explained(name: str) -> None:
    complete = explore(CASTS[name], runs(800, 100_000))

    assert complete or name in BOUNDED


@pytest.mark.parametrize("mode", ["one server dies", "one answer is lost"])
@pytest.mark.parametrize("name", CASTS)
def test_every_interleaving_of_two_servers_with_a_fault_is_explained(name: str, mode: str) -> None:
    crashes, faults = MODES[mode]
    complete = explore(CASTS[name][:2], runs(800, 100_000), crashes=crashes, faults=faults)

    assert complete or name in BOUNDED


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASTS)
def test_three_servers_with_faults_and_cold_starts_are_explained(name: str, mode: str) -> None:
    crashes, faults = MODES[mode]
    explore(CASTS[name], runs(60, 60_000), crashes=crashes, faults=faults, warm=False)
    explore(CASTS[name], runs(60, 60_000), crashes=crashes, faults=faults)


def explore(cast: Cast, most: int, *, crashes: int = 0, faults: int = 0, warm: bool = True) -> bool:
    """Play every run there is, up to a number; tell whether that was all of them."""

    async def every() -> bool:
        stage = await staged(two_addresses)
        for chooser in every_run(most):
            unexplained = await play(stage, cast, chooser, crashes=crashes, faults=faults, warm=warm)
            assert not unexplained, (unexplained, [choice for choice, _ in chooser.trail])
        return not any(choice + 1 < options for choice, options in chooser.trail)

    return asyncio.run(every())
