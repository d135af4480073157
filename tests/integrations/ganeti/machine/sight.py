"""All that the door's commands can change, read at one moment."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import tenure
from tenure.integrations.ganeti.machine_model import (
    CLUSTER,
    GROUP,
    IDENTITY,
    INSTANCE,
    MAC,
    NIC,
    NODE,
    PLACEMENT,
    Instance,
    read_instance,
)
from tenure.integrations.ganeti.query.network_fields import FIELDS, NetworkFacts
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.holdings.holding_model import Holding, Paper, State
from tenure.kernel.plan.document import network_document
from tenure.kernel.plan.plan_model import Network, Pool, Subnet

KINDS = (CLUSTER, GROUP, NODE, INSTANCE, NIC, MAC, PLACEMENT, IDENTITY)
FAR = 200
"""How far a pool is read that is too large for a map."""


@dataclass(frozen=True)
class Sight:
    """The networks, the holdings of each, the papers of each kind, and the number of the newest change."""

    networks: Sequence[Network]
    holdings: Mapping[str, Sequence[Holding]]
    papers: Mapping[str, Sequence[Paper]]
    last_change: int

    def text(self) -> str:
        """Write everything down: what is equal is written equally."""
        written = [
            self.last_change,
            [[network.name, network_document(network)] for network in self.networks],
            [[network, [holding.row for holding in held]] for network, held in self.holdings.items()],
            [[kind, papers] for kind, papers in self.papers.items()],
        ]
        return json.dumps(written, sort_keys=True, default=str)

    def without(self, gone: Sequence[Holding], swept: int) -> "Sight":
        """Return how it would look if these holdings had ended, some of them with an entry in the log."""
        left = {network: [each for each in held if each not in gone] for network, held in self.holdings.items()}
        return replace(self, holdings=left, last_change=self.last_change + swept)

    @cached_property
    def rows(self) -> list[tuple[Network, Holding]]:
        """List all holdings with their networks."""
        return [(network, holding) for network in self.networks for holding in self.holdings[network.name]]

    def of_state(self, *states: State) -> Iterator[tuple[Network, Holding]]:
        """Yield the holdings in these states."""
        return ((network, holding) for network, holding in self.rows if holding.state in states)

    @cached_property
    def instances(self) -> list[Instance]:
        """Put the instances together from papers and held addresses, as simply as can be."""
        held = list(self.of_state(State.HELD))
        return [
            read_instance(paper, {(n.uuid, h.slot): h.address for n, h in held if h.owner == f"instance/{paper.name}"})
            for paper in self.papers[INSTANCE]
        ]

    def instance(self, name: str) -> Instance | None:
        """Find an instance."""
        return next((each for each in self.instances if each.name == name), None)

    def network(self, ident: str | None) -> Network | None:
        """Find a network by name or uuid."""
        return next((each for each in self.networks if ident in (each.name, each.uuid)), None)

    def names(self, kind: str) -> list[str]:
        """List the names of the papers of a kind."""
        return [paper.name for paper in self.papers[kind]]

    def facts(self, network: Network) -> NetworkFacts:
        """Return what queries are answered from."""
        return NetworkFacts(network, self.holdings[network.name], self.instances)

    def line(self, network: Network, pool: str | None) -> list[str]:
        """List the free addresses of all pools, or of those of a name, in written order: as the query's maps say."""
        told = FIELDS["subnets"].read(self.facts(network))
        shown = (pool["map"] for subnet in told for pool in subnet["pools"])
        return [
            format_address(position)
            for (subnet, each), picture in zip(network.pools(), shown, strict=True)
            if pool in (None, each.name)
            for position in self._free(network, subnet, each, picture)
        ]

    def _free(self, network: Network, subnet: Subnet, pool: Pool, picture: str | None) -> Iterable[int]:
        if picture is not None:
            return (pool.range.first + place for place, sign in enumerate(picture) if sign == ".")
        taken = {holding.row.first for holding in self.holdings[network.name]}
        every = range(pool.range.first, min(pool.range.last, pool.range.first + FAR) + 1)
        return islice((p for p in every if p not in taken and not kept_away(subnet, p)), FAR)


def kept_away(subnet: Subnet, position: int) -> bool:
    """Tell whether a subnet keeps an address away from picking."""
    return any(position in kept.range for kept in subnet.reserved) or position in {p for p, _ in subnet.kept_back()}


async def look(ledger: tenure.AsyncLedger) -> Sight:
    """Read it all."""
    networks = await ledger.networks()
    return Sight(
        networks,
        {network.name: await ledger.holdings(network.name) for network in networks},
        {kind: await ledger.papers(kind) for kind in KINDS},
        await ledger.last_change(),
    )
