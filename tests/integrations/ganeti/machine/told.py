"""What the door's answers said, kept in dictionaries, and held against what the ledger shows."""

from collections.abc import Callable, Iterable, Mapping

from tenure.integrations.ganeti.instance.job import JobAddress
from tenure.integrations.ganeti.machine_model import Instance
from tenure.kernel.holdings.holding_model import State
from tests.integrations.ganeti.machine.sight import Sight

Place = tuple[str, str]
"""A network's uuid and an address."""


class Told:
    """Who has which address, which are pending for a job, and which cool until one ends, with their deadlines."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self.clock = clock
        self.held: dict[Place, str] = {}
        self.pending: dict[Place, int | None] = {}
        self.picked: set[Place] = set()
        self.cooling: dict[Place, int | None] = {}

    def instance(self, name: str, instance: Instance | None) -> None:
        """Note how an instance looks now."""
        self.held = {place: owner for place, owner in self.held.items() if owner != name}
        for nic in () if instance is None else instance.nics:
            for ip in nic.ips:
                assert ip.address is not None, f"{name} was answered without an address: {nic}"
                if nic.network is not None:
                    assert (nic.network, ip.address) not in self.held, f"{ip.address} was somebody's"
                    self.held[nic.network, ip.address] = name

    def wait(self, taken: Iterable[JobAddress], sight: Sight) -> None:
        """Note what a job took until it ends."""
        places = list(taken)
        self._put(self.pending, places, sight, State.PENDING)
        self.picked |= {(each.network, each.address) for each in places} & pooled(sight)

    def cool(self, given: Iterable[JobAddress], sight: Sight) -> None:
        """Note what a job gave back until it ends."""
        self._put(self.cooling, given, sight, State.COOLING)

    def _put(self, where: dict[Place, int | None], taken: Iterable[JobAddress], sight: Sight, state: State) -> None:
        shown = deadlines(sight, state)
        for each in taken:
            place = (each.network, each.address)
            assert place not in self.held, each
            assert place in shown, f"{each} is not {state}"
            for known in (self.pending, self.cooling):
                assert self._overdue(known.pop(place, 0)), f"{each} was another job's"
            where[place] = shown[place]

    def _overdue(self, until_us: int | None) -> bool:
        return until_us is not None and until_us <= self.clock()

    def settle(self, taken: Iterable[JobAddress]) -> None:
        """Forget what a job took or gave back: it is over."""
        for each in taken:
            self.pending.pop((each.network, each.address), None)
            self.cooling.pop((each.network, each.address), None)

    def forget_network(self, uuid: str) -> None:
        """Forget a network that went with all its holdings."""
        for places in (self.held, self.pending, self.cooling):
            for place in [place for place in places if place[0] == uuid]:
                del places[place]

    def check(self, sight: Sight) -> None:
        """Find in the ledger just what was told; of jobs, what is overdue may be gone."""
        shown = {(network.uuid, h.address): str(h.owner) for network, h in sight.of_state(State.HELD, State.DRAINING)}
        assert shown == {place: f"instance/{name}" for place, name in self.held.items()}
        for told, state in ((self.pending, State.PENDING), (self.cooling, State.COOLING)):
            found = deadlines(sight, state)
            assert found.keys() <= told.keys(), f"{state} for no job: {found.keys() - told.keys()}"
            for place in told.keys() - found.keys():
                assert self._overdue(told.pop(place)), f"{place} is not {state} any more, before its time"
        self.picked &= self.pending.keys()
        assert self.picked <= pooled(sight), f"a pool went from under a job: {self.picked - pooled(sight)}"


def deadlines(sight: Sight, state: State) -> Mapping[Place, int | None]:
    """Read the addresses in a state with their deadlines."""
    return {(network.uuid, h.address): h.row.until_us for network, h in sight.of_state(state)}


def pooled(sight: Sight) -> set[Place]:
    """List the addresses that are somebody's and lie in pools."""
    return {
        (network.uuid, holding.address)
        for network, holding in sight.rows
        if any(holding.row.first in pool.range for _, pool in network.pools())
    }
