"""A random walk over a plan with everything that makes counting hard: units, overlaps, states, edits."""

import random
from collections.abc import Awaitable, Callable

import tenure
from tenure.kernel.holdings.holding_model import Holding, State
from tenure.service.apply.operations import EndCooling

NETWORKS = ("singles", "blocks", "blocks", "tiny", "alone")


async def build(ledger: tenure.AsyncLedger) -> None:
    """Make three networks of different units over each other, and one by itself."""
    await ledger.add_network("singles", space="site")
    await ledger.add_subnet("singles", "192.0.2.0/25", gateway="192.0.2.1")
    await ledger.add_pool("singles", "192.0.2.8-192.0.2.99", name="p", cooling_s=3600)
    await ledger.add_network("blocks", space="site")
    await ledger.add_subnet("blocks", "192.0.2.0/24", unit=29)
    await ledger.add_pool("blocks", "192.0.2.32-192.0.2.255", name="b")
    await ledger.add_network("tiny", space="site")
    for last in (200, 204, 216):  # two of them inside one unit of the blocks
        await ledger.add_subnet("tiny", f"192.0.2.{last}/30", keep_back=[])
        await ledger.add_pool("tiny", f"192.0.2.{last}/30")
    await ledger.add_network("alone")
    await ledger.add_subnet("alone", "2001:db8::/120")
    await ledger.add_pool("alone", "2001:db8::10-2001:db8::ff", policy="random", name="a")


class Walker:
    """Does one thing after the other, by chance; what the ledger refuses is no matter."""

    def __init__(self, ledger: tenure.AsyncLedger, seed: int) -> None:
        self.ledger = ledger
        self._chance = random.Random(seed)
        self._number = 0
        self._name = f"w{seed}"

    async def go(self, steps: int, *, edits: bool = True) -> None:
        """Take so many steps."""
        verbs = [self.grant] * 6 + [self.end] * 3 + [self.change] * 3 + ([self.edit] if edits else [])
        for _ in range(steps):
            try:
                await self._chance.choice(verbs)()
            except tenure.TenureError:
                continue

    async def grant(self) -> None:
        """Allocate, or hold for later."""
        self._number += 1
        owner, network = f"vm/{self._name}-{self._number}", self._chance.choice(NETWORKS)
        verb = self._chance.choice([self.ledger.allocate, self.ledger.allocate, self.ledger.hold])
        await verb(network, owner=owner)

    async def _any(self) -> Holding:
        holdings = await self.ledger.holdings(self._chance.choice(NETWORKS))
        if not holdings:
            raise tenure.NotFound("holding", "any")
        return self._chance.choice(holdings)

    async def end(self) -> None:
        """Release something, or end its cooling."""
        one = await self._any()
        if one.state is State.COOLING:
            await self.ledger.apply([EndCooling(network=one.network, address=one.address, owner=one.owner)])
        else:
            lingers_s = self._chance.choice([0, 0, 7200])
            await self.ledger.release(one.network, one.address, owner=one.owner, lingers_s=lingers_s)

    async def change(self) -> None:
        """Confirm, drain, take back, hand over."""
        one = await self._any()
        if one.state is State.PENDING:
            await self.ledger.confirm(one.network, one.address, owner=one.owner)
        elif self._chance.random() < 0.4:
            self._number += 1
            to = f"vm/{self._name}-to-{self._number}"
            await self.ledger.transfer(one.network, one.address, owner=one.owner, to=to)
        else:
            state = "draining" if one.state is State.HELD else "held"
            await self.ledger.modify_holding(one.network, one.address, owner=one.owner, state=state)

    async def edit(self) -> None:
        """Edit the plan."""
        last = self._chance.randrange(2, 120)
        place = f"192.0.2.{last}"
        self._number += 1
        edits: list[Callable[[], Awaitable[object]]] = [
            lambda: self.ledger.reserve("singles", place),
            lambda: self.ledger.unreserve("singles", place),
            lambda: self.ledger.preallocate("singles", owner=f"pre/{self._name}-{self._number}", address=place),
            lambda: self.ledger.modify_pool("singles", "p", retired=self._chance.random() < 0.5),
            lambda: self.ledger.modify_pool("blocks", "b", description=f"edit {self._number}"),
            lambda: self.ledger.add_pool("singles", f"192.0.2.{100 + last % 20}", name="q"),
            lambda: self.ledger.remove_pool("singles", "q"),
            lambda: self._add_or_remove("late"),
        ]
        await self._chance.choice(edits)()

    async def _add_or_remove(self, name: str) -> None:
        if any(network.name == name for network in await self.ledger.networks()):
            await self.ledger.remove_network(name, cascade=True)
            return
        await self.ledger.add_network(name, space="site")
        await self.ledger.add_subnet(name, "192.0.2.0/26", keep_back=[])
        await self.ledger.add_pool(name, "192.0.2.0/26")
        await self.ledger.allocate_many(name, owners=[f"late/{self._name}-{self._number}-{n}" for n in range(5)])
