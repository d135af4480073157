"""Random simulation of everything that takes time: pending, cooling and waiting, under a clock that the seed drives."""

import asyncio
import random
from collections.abc import Callable, Iterable

from tenure import AsyncLedger
from tenure.stores.memory.store import MemoryStore
from tests.proof.played import Step, Weather, play, staged
from tests.proof.scheduling import Seeded, TimelessLoop
from tests.proof.simulation import ADDRESSES, POLICIES

WAITS_S = (0.2, 1.0, 3.0, 3.0)
LASTS_S = (None, 0.3, 1.0, 2.0)
COOLING_S = 1
OLD = {"192.0.2.2": "old/0", "192.0.2.3": "old/1", "192.0.2.5": "old/2", "192.0.2.6": "old/3"}
"""Who holds the pools of ``net`` when a run begins that begins with full pools."""


async def a_cooling_plan(ledger: AsyncLedger) -> None:
    """Lay out two networks over each other; half of the first cools what is released."""
    for network in ("net", "other"):
        await ledger.add_network(network, space="site")
        await ledger.add_subnet(network, "192.0.2.0/28", gateway="192.0.2.1")
    await ledger.add_pool("net", "192.0.2.5-192.0.2.6", cooling_s=COOLING_S)
    await ledger.add_pool("net", "192.0.2.2-192.0.2.3")
    await ledger.add_pool("other", "192.0.2.3-192.0.2.5")


async def a_full_plan(ledger: AsyncLedger) -> None:
    """Lay out the same, with every address of the first network held."""
    await a_cooling_plan(ledger)
    for address, owner in OLD.items():
        await ledger.allocate("net", owner=owner, address=address)


class Writer:
    """Writes what one client does."""

    def __init__(self, chance: random.Random, client: int) -> None:
        self._chance = chance
        self._client = client
        self._length = 0

    def script(self) -> list[Step]:
        """Write some steps."""
        if self._chance.random() < 0.15:
            return self._repeated()
        kinds: dict[Callable[[], Step], int] = {
            self._pick: 4, self._wait: 8, self._hold: 5, self._confirm: 4, self._cancel: 2, self._give: 6,
            self._give_old: 6, self._give_all: 1, self._transfer: 1, self._sweep: 2, self._sleep: 5, self._keyed: 3,
            self._edit: 1, self._many: 2, self._name: 1, self._claim: 2, self._withdraw: 1,
        }  # fmt: skip
        steps: list[Step] = []
        for write in self._chance.choices(list(kinds), list(kinds.values()), k=self._chance.randrange(2, 8)):
            self._length = len(steps)
            steps.append(write())
        return steps

    def _repeated(self) -> list[Step]:
        """Ask under a key, give back, and ask again, as a message that is delivered twice would."""
        ask = self._keyed()
        return [ask, ("release_owner", {"owner": ask[1]["owner"]}), ask]

    def _place(self) -> dict[str, str]:
        owner = self._chance.choice((self._client, self._client, self._chance.randrange(4)))
        return {"network": self._chance.choice(("net", "net", "other")), "owner": f"pod/{owner}"}

    def _asked(self) -> dict[str, object]:
        """Ask for something; what an owner wants is always the same, so that it keeps its place in the line."""
        place = self._place()
        policy = POLICIES[int(place["owner"][-1]) % len(POLICIES)]
        return {**place, "policy": policy, "request": f"{policy}:c{self._client}-{self._length}"}

    def _earlier(self, *, generation: bool) -> dict[str, object]:
        """Name what an earlier step was answered."""
        number = self._chance.randrange(max(self._length, 1))
        names = ("network", "address", "owner", "generation") if generation else ("network", "address", "owner")
        return {name: f"${number}.{name}" for name in names}

    def _pick(self) -> Step:
        return ("allocate", self._asked())

    def _name(self) -> Step:
        place = self._place()
        request = f"named:c{self._client}-{self._length}"
        return ("allocate", {**place, "address": self._chance.choice(ADDRESSES), "request": request})

    def _wait(self) -> Step:
        return ("allocate", {**self._asked(), "wait_s": self._chance.choice(WAITS_S)})

    def _many(self) -> Step:
        """Ask for two at once; a run of two need not be the lowest."""
        run = self._chance.random() < 0.3
        name = f"{self._client}-{self._length}"
        values: dict[str, object] = {"network": self._place()["network"], "owners": [f"pod/{name}-{n}" for n in (0, 1)]}
        request = f"{'random' if run else 'lowest'}:c{name}"
        return ("allocate_many", {**values, "contiguous": run, "request": request})

    def _hold(self) -> Step:
        values = {**self._asked(), "lasts_s": self._chance.choice(LASTS_S)}
        return ("hold", values | ({"wait_s": 1.0} if self._chance.random() < 0.3 else {}))

    def _confirm(self) -> Step:
        return ("confirm", self._earlier(generation=self._chance.random() < 0.5))

    def _cancel(self) -> Step:
        return ("cancel", self._earlier(generation=self._chance.random() < 0.5))

    def _give(self) -> Step:
        return ("release", self._earlier(generation=self._chance.random() < 0.7))

    def _give_old(self) -> Step:
        address = self._chance.choice(list(OLD))
        return ("release", {"network": "net", "address": address, "owner": OLD[address]})

    def _give_all(self) -> Step:
        return ("release_owner", {"owner": self._place()["owner"]})

    def _transfer(self) -> Step:
        return ("transfer", {**self._earlier(generation=True), "to": self._place()["owner"]})

    def _sweep(self) -> Step:
        return ("sweep", {})

    def _sleep(self) -> Step:
        return ("sleep", {"s": self._chance.choice((0.1, 0.5, 1.5))})

    def _keyed(self) -> Step:
        """Ask under a key that other clients use as well, for the same thing."""
        number = self._chance.randrange(2)
        policy = POLICIES[number]
        values = {"network": "net", "owner": f"pod/{number}", "policy": policy}
        return ("allocate", {**values, "request": f"{policy}:key-{number}", "key": f"key-{number}"})

    def _edit(self) -> Step:
        verb = self._chance.choice(("reserve", "unreserve"))
        return (verb, {"network": "net", "range": self._chance.choice(ADDRESSES)})

    def _claim(self) -> Step:
        return ("claim", {**self._asked(), "patience_s": self._chance.choice((0.5, 2.0))})

    def _withdraw(self) -> Step:
        return ("withdraw", self._place())


def weather(chance: random.Random) -> Weather:
    """Decide what goes wrong in a run; in every third nothing does."""
    if chance.random() < 0.33:
        return Weather(cancels=chance.choice((0, 1)), warm=chance.random() < 0.5)
    return Weather(
        crashes=chance.choice((0, 0, 1, 2)), faults=chance.choice((0, 0, 1, 3, 9)), cancels=chance.choice((0, 1, 2)),
        shifts=chance.choice((0, 0, 2)), calm=chance.random() < 0.5, warm=chance.random() < 0.5,
    )  # fmt: skip


async def simulate_time(stages: list[MemoryStore], seed: int) -> list[str]:
    """Play one seed and return what cannot be explained."""
    chance = random.Random(f"time-{seed}")
    stage = chance.choice(stages)
    cast = [(f"s{chance.randrange(3)}", Writer(chance, client).script()) for client in range(chance.randrange(2, 7))]
    return await play(stage, cast, Seeded(seed), weather(chance))


def first_unexplained_in_time(seeds: Iterable[int]) -> tuple[int, list[str]] | None:
    """Play seeds until one cannot be explained."""

    async def every() -> tuple[int, list[str]] | None:
        stages = [await staged(a_cooling_plan), await staged(a_full_plan)]
        for seed in seeds:
            if unexplained := await simulate_time(stages, seed):
                return seed, unexplained
        return None

    with asyncio.Runner(loop_factory=TimelessLoop) as runner:
        return runner.run(every())
