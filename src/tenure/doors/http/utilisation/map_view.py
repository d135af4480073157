"""A look at a stretch of a subnet: its cells and, where they are single units, who holds them or what bars them."""

from collections.abc import Sequence
from typing import NamedTuple

from tenure.doors.http.routing.principal import Need, Visitor
from tenure.doors.http.utilisation import utilisation_responses
from tenure.doors.http.utilisation.census import Census
from tenure.doors.http.utilisation.map_cells_of import Counts, Cut, cut, draw
from tenure.doors.http.utilisation.position_index import Spots
from tenure.doors.http.utilisation.space_count import SpaceCount
from tenure.doors.http.utilisation.subnet_tally import UnitUse
from tenure.doors.http.utilisation.subnet_terrain import Terrain, UnitStatus
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.addressing.ranges import AddressRange
from tenure.kernel.errors import AddressOutsideSubnet, Invalid, NotFound
from tenure.kernel.holdings.holding_model import Row, moment
from tenure.kernel.plan.plan_model import Network, Places, Subnet

BARRED = frozenset(map(str, (UnitStatus.KEPT_BACK, UnitStatus.RESERVED, UnitStatus.PREALLOCATED)))
TAKEN = frozenset(map(str, UnitUse))
NOTHING = dict.fromkeys(map(str, (*UnitUse, *UnitStatus, "pooled")), 0)


class Stretch(NamedTuple):
    """What is looked at: addresses of one subnet."""

    network: Network
    subnet: Subnet
    first: int
    last: int

    @classmethod
    def read(cls, network: Network, subnet: str | None, first: str | None, last: str | None) -> "Stretch":
        """Read what a caller wants to see."""
        low = None if first is None else parse_address(first, field="first")
        high = None if last is None else parse_address(last, field="last")
        around = next((position for position in (low, high) if position is not None), None)
        block = _subnet(network, subnet, around)
        ends = (block.cidr.first if low is None else low, block.cidr.last if high is None else high)
        for field, position in zip(("first", "last"), ends, strict=True):
            if position not in block.cidr.range:
                raise Invalid(f"{field}: {format_address(position)} lies outside {block.cidr}", field=field)
        if ends[0] > ends[1]:
            raise Invalid(f"first: {format_address(ends[0])} lies above last, {format_address(ends[1])}", field="first")
        return cls(network, block, *ends)


def _subnet(network: Network, ident: str | None, position: int | None) -> Subnet:
    if ident is not None:
        return network.subnet(ident)
    if position is not None:
        around = Places(network.subnets).around(position)
        if around is None:
            raise AddressOutsideSubnet(format_address(position), network.name)
        return around
    if not network.subnets:
        raise NotFound("subnet", "", network=network.name, hint="add one with add_subnet", field="subnet")
    return network.subnets[0]


async def look(
    census: Census, space: SpaceCount, stretch: Stretch, most: int, visitor: Visitor
) -> utilisation_responses.Map:
    """Draw a stretch in at most so many cells."""
    network, subnet = stretch.network, stretch.subnet
    spots = await census.atlas.spots(space, (network.id, subnet.uuid))
    terrain = spots.terrain
    wanted = cut(terrain.unit(stretch.first), terrain.unit(stretch.last), most)
    first, last = terrain.position(wanted.start), terrain.position(wanted.end + 1) - 1
    held: dict[int, utilisation_responses.Spot] = {}
    # Only single units have a holder to show, and where nothing is taken nothing is read.
    if wanted.cell == 1 and not TAKEN.isdisjoint(draw(spots, wanted.whole)[0]):
        rows = await census.survey.current_rows(space.number, first, last, limit=most)
        held = _holdings(space, _Window(terrain, wanted), rows, visitor)
    # Drawn after the reading, and together: the index moves with every await, and the counts must agree with the cells.
    [whole], drawn = draw(spots, wanted.whole), draw(spots, wanted)
    return utilisation_responses.Map(
        seq=census.seen,
        network=network.name,
        subnet=str(subnet.cidr),
        name=subnet.name,
        unit=subnet.unit,
        first=format_address(first),
        last=format_address(last),
        cell_units=wanted.cell,
        cell_prefix=subnet.unit - (wanted.cell.bit_length() - 1),
        counts=utilisation_responses.Counts(**{**NOTHING, **whole, "units": wanted.whole.cell}),
        cells=_cells(space, stretch, spots, wanted, drawn, held),
    )


def _cells(
    space: SpaceCount,
    stretch: Stretch,
    spots: Spots,
    wanted: Cut,
    drawn: list[Counts],
    held: dict[int, utilisation_responses.Spot],
) -> list[utilisation_responses.Cell]:
    cells: list[utilisation_responses.Cell] = []
    single = wanted.cell == 1
    for unit, counts in zip(wanted.bounds, drawn, strict=False):
        position = spots.terrain.position(unit)
        barrier = _barrier(space, stretch.subnet, position) if single and not BARRED.isdisjoint(counts) else None
        holder = held.get(unit) if held and not TAKEN.isdisjoint(counts) else None
        cells.append(
            utilisation_responses.Cell(first=format_address(position), holding=holder, barrier=barrier, **counts)
        )
    return cells


def _barrier(space: SpaceCount, subnet: Subnet, position: int) -> str | None:
    """Say what keeps a unit away from picking."""
    unit = subnet.unit_at(position)
    for kept, why in subnet.kept_back():
        if kept in unit:
            return f"kept back as the {why} address of {subnet.cidr}"
    assert space.barriers is not None
    return next((barrier.text for barrier in space.barriers.over(AddressRange(unit.first, unit.last))), None)


def _holdings(
    space: SpaceCount, window: "_Window", rows: Sequence[Row], visitor: Visitor
) -> dict[int, utilisation_responses.Spot]:
    """Tell who holds each unit; who holds what in a network that the visitor may not read stays untold."""
    assert space.plan is not None
    open_to = {each.id: each.name for each in space.plan.networks.values() if visitor.may(Need.READ, each.name)}
    found: dict[int, utilisation_responses.Spot] = {}
    for row in rows:
        name = open_to.get(row.network)
        if name is not None:
            spot = _spot(row, name)
            for unit in window.units(row):
                # Several smaller holdings may share a unit; the cell shows the first of them.
                found.setdefault(unit, spot)
    return found


class _Window(NamedTuple):
    """The units that are shown."""

    terrain: Terrain
    cut: Cut

    def units(self, row: Row) -> range:
        """Return the units that a holding has there: one that is as large as half the world has no more than these."""
        low, high = self.terrain.unit(row.first), self.terrain.unit(row.last)
        return range(max(low, self.cut.start), min(high, self.cut.end) + 1)


def _spot(row: Row, network: str) -> utilisation_responses.Spot:
    return utilisation_responses.Spot(
        address=format_address(row.first),
        owner=str(row.owner),
        slot=row.slot,
        state=row.state.value,
        since=moment(row.since_us),
        until=None if row.until_us is None else moment(row.until_us),
        network=network,
        labels=row.details.get("labels", {}),
        description=row.details.get("description", ""),
    )
