"""What is still held where a cloud config has no subnet any more, or hands out units of another size.

It lies in *remnants*: retired blocks, picked from by nobody. The next upload that finds one empty takes it away. So
such an address is released like every other: BOSH has a dummy network and a dummy subnet for that.

Subnets of a network lie beside each other, each with units of one size. So a subnet gives way to held units that do not
fit into it: it is split around them, until an upload finds them gone.
"""

import ipaddress
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tenure.integrations.bosh.cloud_config.ledger_networks import Block
from tenure.kernel.addressing.addresses import V4_BASE, V6_BASE, is_v6, width
from tenure.kernel.addressing.ranges import AddressRange, Cidr, merge, subtract


@dataclass(frozen=True, slots=True)
class Left:
    """The blocks that are wanted, split where they must give way to ``strays``; and the remnants beside them."""

    wanted: Sequence[Block]
    remnants: Sequence[Block] = ()
    strays: Sequence[Cidr] = ()


def uncovered(wanted: Sequence[Block], present: Sequence[Block]) -> list[AddressRange]:
    """Return what the ledger has now, and no block that is wanted has in units of the same size; sorted."""
    covers = {unit: merge(each.cidr.range for each in wanted if each.unit == unit) for unit in _units(present)}
    return merge(piece for block in present for piece in subtract(block.cidr.range, covers[block.unit]))


def _units(blocks: Iterable[Block]) -> set[int]:
    return {block.unit for block in blocks}


def leave(wanted: Sequence[Block], present: Sequence[Block], held: Sequence[Cidr]) -> Left:
    """Tell what is left of the ledger's blocks, given all units that are held in what is ``uncovered``.

    Cost: O(n log n) of n units and blocks.
    """
    strays = _strays(wanted, held)
    # Strays are blocks of their own by now, so what is left of the ledger's blocks is cut around them, too.
    taken = merge([*(block.cidr.range for block in wanted), *(each.cidr.range for each in strays)])
    positions = sorted(unit.first for unit in held)
    outside = ((block.unit, piece) for block in present for piece in subtract(block.cidr.range, taken))
    cidrs = ((unit, cidr) for unit, piece in outside for cidr in _cidrs(piece))
    others = [Block(cidr, unit=unit, retired=True) for unit, cidr in cidrs if _is_any(positions, cidr)]
    kept = [each.cidr for each in strays]
    return Left([piece for block in wanted for piece in _beside(block, kept)], [*strays, *others], kept)


def is_within(position: int, ranges: Sequence[AddressRange]) -> bool:
    """Tell whether a position is in one of some ranges, which are sorted and disjoint."""
    number = bisect_left(ranges, position, key=lambda each: each.last)
    return number < len(ranges) and ranges[number].first <= position


def _strays(wanted: Sequence[Block], held: Iterable[Cidr]) -> list[Block]:
    """Find held units that lie over a block that is wanted, as few retired blocks: the block cannot have them."""
    covers = sorted(block.cidr.range for block in wanted)
    by_unit: dict[int, list[AddressRange]] = {}
    for unit in held:
        number = bisect_left(covers, unit.first, key=lambda each: each.last)
        if number < len(covers) and covers[number].first <= unit.last:
            by_unit.setdefault(unit.prefix, []).append(unit.range)
    return [
        Block(cidr, unit=unit, retired=True)
        for unit, ranges in sorted(by_unit.items())
        for piece in merge(ranges)
        for cidr in _cidrs(piece)
    ]


def _beside(block: Block, kept: Iterable[Cidr]) -> list[Block]:
    """Return what is left of a block beside what is kept, in whole units of its own."""
    over = [each for each in kept if each.range.overlaps(block.cidr.range)]
    if not over:
        return [block]
    size = 1 << (width(block.cidr.first) - block.unit)
    taken = merge(AddressRange(each.first // size * size, each.last | (size - 1)) for each in over)
    return [_part(block, cidr) for piece in subtract(block.cidr.range, taken) for cidr in _cidrs(piece)]


def _part(block: Block, cidr: Cidr) -> Block:
    pools = (shared(each, cidr.range) for each in block.pools)
    gateway = block.gateway if block.gateway is not None and block.gateway in cidr.range else None
    return replace(block, cidr=cidr, gateway=gateway, pools=tuple(each for each in pools if each is not None))


def _is_any(positions: Sequence[int], cidr: Cidr) -> bool:
    number = bisect_left(positions, cidr.first)
    return number < len(positions) and positions[number] <= cidr.last


def _cidrs(piece: AddressRange) -> Iterator[Cidr]:
    base, kind = (V6_BASE, ipaddress.IPv6Address) if is_v6(piece.first) else (V4_BASE, ipaddress.IPv4Address)
    for block in ipaddress.summarize_address_range(kind(piece.first - base), kind(piece.last - base)):
        yield Cidr(base + int(block.network_address), block.prefixlen)


def shared(one: AddressRange, other: AddressRange) -> AddressRange | None:
    """Return what two ranges have in common, if anything."""
    return AddressRange(max(one.first, other.first), min(one.last, other.last)) if one.overlaps(other) else None
