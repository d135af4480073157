"""Addresses that machines themselves have (gateways, nodes, a cluster's master), and other owners that hold them."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.holdings.deadlines import is_over
from tenure.kernel.holdings.holding_model import Paper, Row, State
from tenure.kernel.names import Owner
from tenure.kernel.plan.layout import Layout
from tenure.kernel.plan.plan_model import Configuration, KeepBack
from tenure.ports import LedgerStore
from tenure.service.apply.cluster_rules import MASTER, NODE, own_positions

PAGE = 1000

ORPHAN = "ganeti/orphan"
"""The owner of what a cluster's file marks as used without a NIC that has it."""

AT_GATEWAYS = ("router", "gateway", "port")
"""The kinds of owners that may hold a gateway's address: the router itself, or the port that a driver makes for it."""


class OwnAddress(NamedTuple):
    """An address that a machine has, what that is, and which owners are the machine: by kind, or by whole name."""

    position: int
    what: str
    owner: str
    kinds: tuple[str, ...] = ()

    def is_held_by_itself(self, owner: str) -> bool:
        """Return whether an owner of this name is the machine."""
        return owner == self.owner or Owner.trusted(owner).kind in self.kinds


async def own_addresses(store: LedgerStore) -> list[OwnAddress]:
    """Read the addresses of all nodes and of the master, as their papers say."""
    found: list[OwnAddress] = []
    for kind in (NODE, MASTER):
        after = ""
        while page := await store.papers(kind, after=after, limit=PAGE):
            after = page[-1].name
            found.extend(each for paper in page for each in _addresses_of(paper))
    return found


def _addresses_of(machine: Paper) -> list[OwnAddress]:
    if machine.kind == MASTER:
        return [OwnAddress(each, "the address of the master", "", (MASTER,)) for each in own_positions(machine)]
    what, owner = f"an address of node {machine.name}", f"{NODE}/{machine.name}"
    return [OwnAddress(each, what, owner) for each in own_positions(machine)]


class OwnAddresses:
    """What machines have in one space, in order of address."""

    def __init__(self, configuration: Configuration, machines: Sequence[OwnAddress], now_us: int) -> None:
        gateways = [
            # What a cluster's file marks as taken without a NIC may be the router.
            OwnAddress(position, f"the gateway of {subnet.cidr}", ORPHAN, AT_GATEWAYS)
            for network in configuration.networks.values()
            for subnet in network.subnets
            # A subnet that does not keep its gateway back lets any owner be the router.
            for position, why in subnet.kept_back()
            if why is KeepBack.GATEWAY
        ]
        self._own = sorted(dict.fromkeys([*machines, *gateways]))
        self._positions = [own.position for own in self._own]
        self._now_us = now_us

    def held_by(self, row: Row, layout: Layout) -> Iterator[str]:
        """Name what a row of a network that is there holds of it, unless it is the machine's own. O(log machines)."""
        place = bisect_left(self._positions, row.first)
        while place < len(self._own) and (own := self._own[place]).position <= row.last:
            place += 1
            # What cools, or whose time is over, is nobody's any more.
            if row.state is State.COOLING or is_over(row, self._now_us) or own.is_held_by_itself(row.owner):
                continue
            network = layout.name_of(row.network)
            yield f"network {network}: {format_address(own.position)} is {own.what}, and {row.owner} holds it"
