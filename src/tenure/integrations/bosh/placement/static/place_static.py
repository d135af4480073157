"""Places instances by the static addresses that their group lists.

Who holds a listed address keeps it, where it stands. Others stay if all networks have an address for them in their AZ.
The rest are new: they take addresses in the order listed, and the address tells the AZ.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tenure.integrations.bosh.model.document_model import InstanceGroup
from tenure.integrations.bosh.placement.ignored_instances import static_ip_removed
from tenure.integrations.bosh.placement.placement_model import Placed, Present
from tenure.integrations.bosh.placement.static.held_statics import claim_held
from tenure.integrations.bosh.placement.static.spot_counts import SpotCounts, settle
from tenure.integrations.bosh.placement.static.spread import Stock
from tenure.integrations.bosh.placement.static.static_lists import StaticNetwork
from tenure.integrations.bosh.placement.static.static_stock import StaticStock


def place_static(
    group: InstanceGroup, networks: Sequence[StaticNetwork], present: Sequence[Present], new: Iterator[int]
) -> tuple[list[Placed], list[Present]]:
    """Place a group's instances; return them and those that go. ``new`` are the indexes of new ones."""
    settled = settle(group, networks, claim_held(group, networks, present))
    stays = {claim.present.uuid for claim, _ in settled.kept}
    obsolete = [instance for instance in present if instance.uuid not in stays]
    if any(instance.ignored for instance in obsolete):
        raise static_ip_removed(group)
    return [
        Placed(row.present, next(new) if row.present is None else row.present.index, row.az, row.static)
        for row in _hand_out(settled)
    ], obsolete


@dataclass(slots=True)
class _Row:
    """An instance that has its spot and gets its addresses."""

    present: Present | None
    az: str | None
    spot: int
    static: dict[str, int]


def _hand_out(settled: SpotCounts) -> list[_Row]:
    """Give every instance its addresses: first those that stay, by index, then new ones.

    The list of the first network decides where new ones stand, and their order; further networks follow.
    """
    spots = settled.ground.spots
    rows = [_Row(claim.present, spots[spot].az, spot, dict(claim.held)) for claim, spot in settled.kept]
    first, *others = settled.stocks
    shelf = _serve(first, settled.numbers, rows)
    filled = Counter(row.az for row in rows)
    for _ in range(sum(settled.numbers) - len(rows)):
        position, spot = shelf.next(lambda spot: (filled[spots[spot].az], spot))
        rows.append(_Row(None, spots[spot].az, spot, {first.network.name: position}))
        filled[spots[spot].az] += 1
    for stock in others:
        _serve(stock, settled.numbers, rows)
    return rows


def _serve(stock: Stock, numbers: Sequence[int], rows: Iterable[_Row]) -> StaticStock:
    """Give an address of a network to each that has none there; return what is left."""
    name = stock.network.name
    held = {row.static[name]: row.spot for row in rows if name in row.static}
    pinned = Counter(held.values())
    left = [number - pinned[spot] for spot, number in enumerate(numbers)]
    shelf = StaticStock(((position, spots) for position, spots in stock.spots.items() if position not in held), left)
    for row in rows:
        if name not in row.static:
            row.static[name] = shelf.take(row.spot)
    return shelf
