"""What keeps addresses away from picking in a whole space: gateways, reserved ranges, pre-allocations."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from tenure.kernel.addressing.ranges import AddressRange
from tenure.kernel.errors import KeptAs
from tenure.kernel.names import Owner
from tenure.kernel.plan.plan_model import Configuration, KeepBack, Network, Places, PreAllocation, Reserved

Reach = str
"""How far a named address may go into what is kept away: ``refuse``, ``allow`` or ``force``."""


@dataclass(frozen=True, slots=True)
class Barrier:
    """Something that keeps a range away: of which network it is, and what it is there."""

    range: AddressRange
    network: str
    text: str
    kept_back: KeepBack | None = None
    reserved: Reserved | None = None
    preallocation: PreAllocation | None = None

    @property
    def kept_as(self) -> KeptAs:
        """Say as what it keeps the range away."""
        if self.kept_back is not None:
            return self.kept_back.value
        return "reserved" if self.reserved is not None else "pre-allocated"

    def spares(self, owner: Owner | None, slot: str, reach: Reach) -> bool:
        """Tell whether it lets this owner's slot pass, at this reach."""
        if self.reserved is not None:
            return reach == "allow"
        waiting = self.preallocation
        return waiting is not None and (waiting.owner, waiting.slot) == (owner, slot)


class Barriers:
    """All barriers of a space, in order of position; those over a unit are found without looking at the others."""

    def __init__(self, configuration: Configuration) -> None:
        barriers = (barrier for network in configuration.networks.values() for barrier in _of_network(network))
        self._all = sorted(barriers, key=lambda barrier: barrier.range)
        self._firsts = [barrier.range.first for barrier in self._all]
        self._reach: list[int] = []  # the highest last position up to each place
        # The highest end so far says when no earlier barrier, however long, reaches a unit.
        for barrier in self._all:
            self._reach.append(max(barrier.range.last, self._reach[-1] if self._reach else 0))

    def __iter__(self) -> Iterator[Barrier]:
        return iter(self._all)

    def over(self, unit: AddressRange) -> Iterator[Barrier]:
        """Yield the barriers that touch a unit, from the last one down. O(log barriers + answer)."""
        place = bisect_right(self._firsts, unit.last) - 1
        while place >= 0 and self._reach[place] >= unit.first:
            if self._all[place].range.last >= unit.first:
                yield self._all[place]
            place -= 1


def _of_network(network: Network) -> Iterator[Barrier]:
    for subnet in network.subnets:
        for position, why in subnet.kept_back():
            # A gateway binds the whole space. Network and broadcast addresses bind only their own subnet, so ``Layout``
            # looks at those.
            if why == KeepBack.GATEWAY:
                text = f"kept back as the gateway of {subnet.cidr}"
                yield Barrier(AddressRange(position, position), network.name, text, kept_back=why)
        for kept in subnet.reserved:
            text = f"reserved in network {network.name!r}{kept.reason and ': ' + kept.reason}"
            yield Barrier(kept.range, network.name, text, reserved=kept)
    places = Places(network.subnets)
    for wish in network.preallocations:
        around = places.around(wish.position)
        if around is None:  # between two edits of one apply; the final state will be judged
            continue
        unit = around.unit_at(wish.position)
        text = f"pre-allocated to {wish.owner}{wish.slot and f' ({wish.slot})'}"
        yield Barrier(unit, network.name, text, preallocation=wish)
