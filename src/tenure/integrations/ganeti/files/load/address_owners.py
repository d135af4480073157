"""Which address of a file is whose, and who of the ledger stands in his way."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tenure.integrations.ganeti.files.ledger_snapshot import holdings_in
from tenure.integrations.ganeti.files.read.merge_marks import MergedConfiguration
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.errors import TenureError
from tenure.kernel.holdings.holding_model import Holding, State
from tenure.kernel.names import Owner
from tenure.kernel.plan.layout import Layout
from tenure.kernel.plan.plan_model import Configuration
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.service.read.own_addresses import ORPHAN


class Grant(NamedTuple):
    """An address of a network of the file, with the owner and the slot that are to hold it."""

    position: int
    owner: str
    slot: str

    @property
    def address(self) -> str:
        """Write the address."""
        return format_address(self.position)

    def __str__(self) -> str:
        instance = self.owner.partition("/")[2]
        whose = "marked as used" if self.owner == ORPHAN else f"of instance {instance!r}"
        return f"address {self.address} {whose}"


def grants_of(settled: MergedConfiguration) -> dict[str, list[Grant]]:
    """List every address that is to be held, by the uuid of its network: those of NICs, then those that no NIC has."""
    found: dict[str, list[Grant]] = {network.uuid: [] for network in settled.cluster.networks}
    for instance in settled.cluster.instances:
        for nic in instance.nics:
            if nic.network is not None:
                held = ((ip.slot, ip.address) for ip in nic.ips if ip.address is not None)
                found[nic.network].extend(Grant(parse_address(ip), instance.owner, slot) for slot, ip in held)
    for uuid, grants in found.items():
        grants.extend(Grant(parse_address(ip), ORPHAN, ip) for ip in settled.orphan_addresses(uuid))
    return found


class Tenants:
    """Who holds what in the space of a network that the ledger has."""

    def __init__(self, network: str, layout: Layout, holdings: Iterable[Holding]) -> None:
        self._network = network
        self._layout = layout
        self._rows = sorted(holdings, key=lambda holding: holding.row.first)
        self._firsts = [holding.row.first for holding in self._rows]
        # A draining or cooling holding may have left its slot to another.
        settled = (State.PENDING, State.HELD)
        own = (holding for holding in self._rows if holding.network == network and holding.state in settled)
        self._own = {(holding.owner, holding.slot): holding for holding in own}

    @classmethod
    async def read(cls, ledger: AsyncLedger, space: Configuration, network: str) -> "Tenants":
        """Read them. Costs all holdings of the space."""
        found = [holding for name in space.networks async for holding in holdings_in(ledger, name)]
        return cls(network, Layout(space), found)

    def has(self, grant: Grant) -> bool:
        """Return whether the address is held as it is to be."""
        held = self._own.get((Owner.trusted(grant.owner), grant.slot))
        return held is not None and held.state is State.HELD and held.row.first == held.row.last == grant.position

    def conflicts(self, grants: Iterable[Grant]) -> Iterator[str]:
        """List what stands in the way of addresses that are not held as they are to be."""
        return (text for grant in grants if not self.has(grant) for text in self._conflicts(grant))

    def _conflicts(self, grant: Grant) -> Iterator[str]:
        other, own = self.holder_at(grant.position), self._own.get((Owner.trusted(grant.owner), grant.slot))
        where = f"in network {self._network!r}"
        if other is not None:
            state = "" if other.state is State.HELD else f" ({other.state})"
            yield f"{grant} {where} is held by {other.owner}{state}"
        elif own is not None:
            yield f"{grant} {where}: {own.owner} holds {own.address} instead"
        else:
            try:
                self._layout.check_wanted(self._network, grant.position, Owner(grant.owner), grant.slot, "force")
            except TenureError as error:
                yield f"{grant} {where} cannot be had: {error.message}"

    def holder_at(self, position: int) -> Holding | None:
        """Return the holding that an address lies in, whichever network of the space it is of."""
        place = bisect_right(self._firsts, position) - 1
        return self._rows[place] if place >= 0 and self._rows[place].row.last >= position else None
