"""The machine's bench: a ledger, a clock, and commands done on it one after the other."""

import asyncio
import random
import time
from collections.abc import Awaitable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant

import tenure
from tenure.integrations.ganeti.cluster import Cluster
from tenure.integrations.ganeti.instance.plan_instance import InstanceOptions
from tenure.integrations.ganeti.instances import Instances
from tenure.integrations.ganeti.networks import NetworkOptions, Networks
from tenure.kernel.plan.edits import AddNetwork
from tenure.kernel.plan.plan_model import Network
from tenure.service.engine.engine import Engine
from tenure.service.ledger.engine_ledger import ledger_on
from tenure.stores.memory.store import MemoryStore
from tests.integrations.ganeti.files.documents import breaches
from tests.integrations.ganeti.machine.judged import ALWAYS, check_care
from tests.integrations.ganeti.machine.sight import Sight, look
from tests.integrations.ganeti.machine.told import Told

T = TypeVar("T")
MEMORY = "memory:"
SECOND_US = 1_000_000
SOON_S, LATE_S = 0.03, 1000.0
"""A deadline that passes in a run, and one that does not."""


@dataclass(frozen=True)
class Answer(Generic[T]):
    """What a command answered, or why it was refused."""

    value: T | None = None
    error: tenure.TenureError | None = None

    @property
    def done(self) -> bool:
        """Tell whether it was done."""
        return self.error is None


class Bench(RuleBasedStateMachine):
    """A fresh ledger with a small cluster, and what must be true of it after every rule."""

    url = MEMORY

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.clock_us = 1_000 * SECOND_US
        self.told = Told(lambda: self.now_us)
        self.careful = False
        place = self.place()
        self.ledger = self.wait_for(self._open(place))

    async def _open(self, place: str) -> tenure.AsyncLedger:
        if self.url != MEMORY:
            return await tenure.open_async(place)
        store = MemoryStore(clock=lambda: self.clock_us)
        return ledger_on(Engine(store, name="machine", chance=random.Random(1)))

    def place(self) -> str:
        """Return the URL of a ledger that nobody used before."""
        return self.url

    def teardown(self) -> None:
        """Close the ledger and its loop."""
        try:
            self.wait_for(self.ledger.close())
        finally:
            self.runner.close()

    def wait_for(self, what: Coroutine[Any, Any, T]) -> T:
        """Run something on the machine's loop."""
        return self.runner.get_loop().run_until_complete(what)

    @property
    def now_us(self) -> int:
        """Read the store's clock."""
        return self.clock_us if self.url == MEMORY else time.time_ns() // 1000

    @initialize(careful=st.booleans())
    def begin(self, careful: bool) -> None:
        """Make a cluster: two groups with a node each, two networks connected to both, and an instance."""
        self.careful = careful
        self.wait_for(self._furnish())
        self.sight = self.wait_for(look(self.ledger))

    async def _furnish(self) -> None:
        cluster, networks = Cluster(self.ledger), Networks(self.ledger)
        await cluster.add_group("default")
        await cluster.add_node("node1", primary_ip="10.0.0.5")
        await cluster.add_group("rack")
        await cluster.add_node("node2", group="rack", primary_ip="10.0.0.9", secondary_ip="2001:db8::9")
        subnets = ["add:cidr=10.0.0.0/28,gateway=10.0.0.1,dhcp,name=s1", "add:cidr=2001:db8::/124,dhcp,name=s2"]
        pools = ["add:10.0.0.2-10.0.0.4,name=p1", "add:10.0.0.8-10.0.0.9,name=p2", "add:2001:db8::8/126,name=p2"]
        await networks.add(AddNetwork(network="net1"), NetworkOptions(subnets=subnets, pools=pools))
        await networks.add(AddNetwork(network="net2"), NetworkOptions(subnets=["add:cidr=10.0.0.0/29,pool"]))
        for network, link in (("net1", "br1"), ("net2", "br2")):
            await networks.connect(network, mode="bridged", link=link)
        nets = ["0:ip0=pool,ip1=2001:db8::5,network=net1", "1:ip=pool,network=net2"]
        self.told.instance("a", (await Instances(self.ledger).add("a", nets, InstanceOptions())).instance)

    def do(self, told: str, command: Awaitable[T]) -> Answer[T]:
        """Do a command; if it is refused, find nothing changed."""
        before, answer = self.sight, Answer[T]()

        async def doing() -> T:
            return await command

        try:
            answer = Answer(self.wait_for(doing()))
        except tenure.TenureError as error:
            answer = Answer(error=error)
        note(f"{told}: {answer.error or 'done'}")
        self.sight = self.wait_for(look(self.ledger))
        if not answer.done:
            self._check_unchanged(before)
        return answer

    def _check_unchanged(self, before: Sight) -> None:
        """Find everything as it was; what was overdue is not shown any more, and may have been swept."""
        left = [holding for _, holding in self.sight.rows]
        gone = [holding for _, holding in before.rows if holding not in left]
        assert all(self.overdue(until_us=holding.row.until_us) for holding in gone), gone
        logged = self.wait_for(self._logged(before.last_change))
        assert set(logged) <= {"deadline", "cooled off"}, f"logged though nothing was done: {logged}"
        assert before.without(gone, len(logged)).text() == self.sight.text()

    async def _logged(self, after: int) -> list[str | None]:
        """Read why what was logged behind a number happened."""
        return [change.details.get("because") async for change in self.ledger.changes(after)]

    def overdue(self, *, until_us: int | None) -> bool:
        """Tell whether a deadline has passed."""
        return until_us is not None and until_us <= self.now_us

    def networks(self) -> list[Network]:
        """List the networks there are."""
        return list(self.sight.networks)

    def options(self, force: bool, check: bool, node: str | None = None) -> InstanceOptions:
        """Return options of an instance; a careful run neither forces nor looks away."""
        return InstanceOptions(node=node, force=force and not self.careful, check=check or self.careful)

    @invariant()
    def is_what_was_told(self) -> None:
        """Find who has what just as the answers said."""
        self.told.check(self.sight)

    @invariant()
    def is_sound(self) -> None:
        """Find the plan, the maps, the papers and the places in order."""
        for check in ALWAYS:
            check(self.sight)
        if self.careful:
            check_care(self.sight)

    @invariant()
    def reads_and_verifies(self) -> None:
        """Read instances as the door does, all at once and each alone; let the ledger check its own invariants."""
        self.wait_for(self._read_and_verify())

    async def _read_and_verify(self) -> None:
        instances = Instances(self.ledger)
        every = await instances.every()
        assert every == self.sight.instances
        assert [await instances.find(each.name) for each in every] == every
        assert await breaches(self.ledger) == []  # unchecked commands may put an instance on a node's address
