"""Choosing from VIP pools: the first address in the order written that nobody of the space has.

A VIP network of the ledger takes any address and has no pools of its own, so the door looks what is free. What it
chose may be taken in that moment: then another is chosen, see ``Overtaken``.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tenure.integrations.bosh.model.document_model import VIP, CloudConfig, CloudNetwork
from tenure.integrations.bosh.planning.hand_over import Offers
from tenure.integrations.bosh.planning.step_operations import Work
from tenure.integrations.bosh.planning.steps import Step
from tenure.integrations.bosh.planning.translate_errors import no_room
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.addressing.ranges import AddressRange, merge, subtract
from tenure.kernel.errors import AddressInUse, AddressReserved
from tenure.kernel.plan.layout import Layout
from tenure.kernel.plan.plan_model import Configuration
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.service.read.search import ObjectKind

NEAR = 1024
"""Ranges of a pool that lie so near to each other are looked up together."""

Chosen = Mapping[tuple[str, str], int]
"""Addresses chosen from VIP pools, by uuid and network."""


class Overtaken(Exception):
    """An address that was chosen from a VIP pool cannot be had: somebody was faster. Another may do as well."""

    def __init__(self, error: AddressInUse | AddressReserved, work: Work, config: CloudConfig) -> None:
        super().__init__(error.message)
        self.error = error
        self.work = work
        self.config = config

    @property
    def position(self) -> int:
        """Return the address that is to be passed over."""
        return parse_address(self.error.address)


def was_picked(error: AddressInUse | AddressReserved, vips: Chosen) -> bool:
    """Tell whether an address that cannot be had was chosen from a pool, and not named by anybody."""
    return parse_address(error.address) in vips.values()


async def choose_vips(
    ledger: AsyncLedger,
    config: CloudConfig,
    steps: Sequence[Step],
    offers: Offers,
    *,
    passed_over: Collection[int] = (),
) -> dict[tuple[str, str], int]:
    """Choose addresses from VIP pools: the first in the order written that nobody has, in a subnet of the AZ.

    Where there is none, the first that the plan itself gives up. ``passed_over`` are those that could not be had.
    Costs one look at what is held in each pool, however much is held elsewhere.
    """
    picks = dict.fromkeys(wish.network for step in steps for wish in step.bound.new if wish.address is None)
    networks = [config.networks[name] for name in picks if config.networks[name].kind == VIP]
    spaces = await ledger.spaces() if networks else []
    present = {has.position for step in steps if step.before is not None for has in step.before.has}
    taken = present | set(passed_over)  # also what comes in with this very plan
    chosen: dict[tuple[str, str], int] = {}
    for network in networks:
        pool = await _open(ledger, network, spaces, taken, offers.positions(network.name))
        for step in steps:
            if not any(wish.network == network.name and wish.address is None for wish in step.bound.new):
                continue
            found = pool.pick(step.instance.az)
            if found is None:
                raise no_room(step.instance.long_name, network, step.instance.az)
            chosen[step.instance.uuid, network.name] = found
    return chosen


@dataclass(slots=True)
class _Pool:
    """A VIP network's pools while addresses are chosen from them. ``layout`` is None if the ledger has no such network.

    ``taken`` is shared by all pools of a plan: they may lie over each other.
    """

    network: CloudNetwork
    layout: Layout | None
    held: list[AddressRange]
    taken: set[int]
    offered: set[int]
    _free: dict[str | None, Iterator[int]] = field(default_factory=dict)

    def pick(self, az: str | None) -> int | None:
        """Take the next free address for an AZ, or else one that is given up; None if there is neither."""
        # The walk goes on where it stopped, so that a plan of thousands goes through the pool once.
        if az not in self._free:
            self._free[az] = self._walk(az)
        found = next(self._free[az], None)
        if found is None:
            ranges = list(_ranges(self.network, az))
            found = next((place for place in sorted(self.offered) if any(place in each for each in ranges)), None)
        if found is not None:
            self.taken.add(found)
            self.offered.discard(found)
        return found

    def _walk(self, az: str | None) -> Iterator[int]:
        for each in _ranges(self.network, az):
            for piece in subtract(each, self.held):
                yield from self._within(piece)

    def _within(self, piece: AddressRange) -> Iterator[int]:
        position = piece.first
        while position <= piece.last:
            # A range that is kept back is skipped whole: it may have millions of addresses.
            barrier = self._kept_back_until(position)
            if barrier is None and position not in self.taken:
                yield position
            position = position + 1 if barrier is None else barrier + 1

    def _kept_back_until(self, position: int) -> int | None:
        """Find the last address of what keeps this one back, if anything does."""
        if self.layout is None:
            return None
        barrier = self.layout.barrier_over(self.network.name, AddressRange(position, position), None, "", "refuse")
        return None if barrier is None else barrier.range.last


def _ranges(network: CloudNetwork, az: str | None) -> Iterator[AddressRange]:
    return (each for subnet in network.subnets if subnet.serves(az) for each in subnet.static)


async def _open(
    ledger: AsyncLedger, network: CloudNetwork, spaces: Sequence[Configuration], taken: set[int], offered: set[int]
) -> _Pool:
    """Look what is held in a network's pools, in whichever network of its space."""
    home = next((each for each in spaces if network.name in each.networks), None)
    if home is None:  # it is of an older cloud config: whoever reserves there is refused
        return _Pool(network, None, [], taken, offered)
    held: list[AddressRange] = []
    for place in _nearby(each for subnet in network.subnets for each in subnet.static):
        where = f"{format_address(place.first)}-{format_address(place.last)}"
        rows = [found.holding.row for found in await ledger.search(where, kind=ObjectKind.HOLDING) if found.holding]
        # search looks into every space, and holdings of other spaces are not in the way.
        held += [AddressRange(row.first, row.last) for row in rows if row.space == home.space]
    return _Pool(network, Layout(home), merge(held), taken, offered)


def _nearby(ranges: Iterator[AddressRange]) -> list[AddressRange]:
    """Join ranges that lie near to each other."""
    joined: list[AddressRange] = []
    for each in sorted(ranges, key=lambda one: one.first):
        if joined and each.first - joined[-1].last <= NEAR:
            joined[-1] = AddressRange(joined[-1].first, max(joined[-1].last, each.last))
        else:
            joined.append(each)
    return joined
