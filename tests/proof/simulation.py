"""Random simulation: a seed decides the cast, the schedule, the faults and the deaths, and replays them all."""

import asyncio
import random
from collections.abc import Iterable

from tenure import AsyncLedger
from tenure.stores.memory.store import MemoryStore
from tests.proof.played import Step, Weather, play, staged
from tests.proof.scheduling import Seeded

POLICIES = ("lowest", "random", "hashed", "sticky")
KINDS = ("pick", "name", "give", "stale", "foreign", "many", "edit", "owner")
ADDRESSES = [f"192.0.2.{last}" for last in range(2, 7)]


async def two_networks_of_one_space(ledger: AsyncLedger) -> None:
    """Lay out two networks over each other, with pools written out of order."""
    for network in ("net", "other"):
        await ledger.add_network(network, space="site")
        await ledger.add_subnet(network, "192.0.2.0/28", gateway="192.0.2.1")
    await ledger.add_pool("net", "192.0.2.5-192.0.2.6")
    await ledger.add_pool("net", "192.0.2.2-192.0.2.3")
    await ledger.add_pool("other", "192.0.2.3-192.0.2.5")


def script(chance: random.Random, client: int) -> list[Step]:
    """Write what one client does."""
    if chance.random() < 0.2:
        return late_release(f"pod/{client}", chance.choice(POLICIES))
    return [_step(chance, client, index) for index in range(chance.randrange(2, 6))]


def late_release(owner: str, policy: str) -> list[Step]:
    """Take, give back, take again, then repeat the first release, as a retried message would."""
    take: Step = ("allocate", {"network": "net", "owner": owner, "policy": policy, "request": f"{policy}:{owner}"})
    values = {"network": "net", "owner": owner, "address": "$0.address", "generation": "$0.generation"}
    return [take, ("release", values), take, ("release", values)]


def _step(chance: random.Random, client: int, index: int) -> Step:
    network = chance.choice(("net", "net", "other"))
    owner = f"pod/{chance.choice((client, client, chance.randrange(4)))}"
    kind = chance.choices(KINDS, (8, 2, 5, 2, 2, 2, 2, 1))[0]
    if kind == "pick":
        policy = chance.choice(POLICIES)
        values = {"network": network, "owner": owner, "policy": policy, "request": f"{policy}:{client}"}
        return ("allocate", values)
    if kind == "name":
        return ("allocate", {"network": network, "owner": owner, "address": chance.choice(ADDRESSES)})
    if kind == "many":
        owners = [f"pod/{client}-{index}-{number}" for number in range(2)]
        return ("allocate_many", {"network": network, "owners": owners, "request": "lowest:many"})
    if kind == "edit":
        return (chance.choice(("reserve", "unreserve")), {"network": "net", "range": chance.choice(ADDRESSES)})
    if kind == "owner":
        return ("release_owner", {"owner": owner})
    return ("release", _release(chance, kind, network, owner, index))


def _release(chance: random.Random, kind: str, network: str, owner: str, index: int) -> dict[str, str]:
    earlier = f"${chance.randrange(max(index, 1))}"
    if kind == "foreign":
        return {"network": network, "owner": "pod/nobody", "address": chance.choice(ADDRESSES)}
    values = {"network": network, "owner": owner, "address": f"{earlier}.address"}
    if kind == "stale" or chance.random() < 0.5:
        values["generation"] = f"{earlier}.generation"
    return values


async def simulate(stage: MemoryStore, seed: int) -> list[str]:
    """Play one seed and return what cannot be explained."""
    chance = random.Random(seed)
    cast = [(f"s{chance.randrange(3)}", script(chance, client)) for client in range(chance.randrange(2, 6))]
    weather = Weather(
        crashes=chance.choice((0, 0, 1, 2)), faults=chance.choice((0, 0, 1, 3)), warm=chance.random() < 0.5
    )
    return await play(stage, cast, Seeded(seed), weather)


def first_unexplained(seeds: Iterable[int]) -> tuple[int, list[str]] | None:
    """Play seeds until one cannot be explained."""

    async def every() -> tuple[int, list[str]] | None:
        stage = await staged(two_networks_of_one_space)
        for seed in seeds:
            unexplained = await simulate(stage, seed)
            if unexplained:
                return seed, unexplained
        return None

    return asyncio.run(every())
