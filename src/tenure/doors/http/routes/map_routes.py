"""How full networks are, what a block looks like, and how that came about: counts, maps and timelines."""

import math
import time
from typing import Annotated

import msgspec
from msgspec import Meta

from tenure.doors.http.routing.endpoint import Call, RouteSection
from tenure.doors.http.routing.principal import Need
from tenure.doors.http.routing.send_response import in_turns
from tenure.doors.http.utilisation import utilisation_responses
from tenure.doors.http.utilisation.map_view import Stretch, look
from tenure.doors.http.utilisation.space_count import SpaceCount
from tenure.doors.http.utilisation.subnet_tally import Tally, UnitUse
from tenure.doors.http.utilisation.trends import FINE_S, Point, Trend
from tenure.kernel.addressing.addresses import Family
from tenure.kernel.holdings.holding_model import moment
from tenure.kernel.plan.plan_model import Network, Subnet
from tenure.wire.http_errors import Overloaded

maps = RouteSection("utilisation", "How full networks are: counts, maps and timelines.")

MOST_CELLS = 4096
MOST_HOURS = 31 * 24
MOST_POINTS = 2000
LISTED_WITHIN_S = 2.0
"""So long the list of all networks waits for those that are still being counted."""


class Looked(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which stretch of which subnet."""

    subnet: Annotated[str, Meta(max_length=255, description="Its name, block or uuid.")] | None = None
    first: Annotated[str, Meta(max_length=64, description="From this address on; else from the first.")] | None = None
    last: Annotated[str, Meta(max_length=64, description="Up to this address; else to the last.")] | None = None
    cells: Annotated[int, Meta(ge=1, le=MOST_CELLS, description="So many pieces at most.")] = 256


class TimelineQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How far back, in how many points."""

    hours: Annotated[float, Meta(gt=0, le=MOST_HOURS, description="So far back.", examples=[24])] = 24.0
    points: Annotated[int, Meta(ge=2, le=MOST_POINTS, description="So many points.")] = 120


@maps.route("GET", "/utilisation", need=Need.READ, answer=utilisation_responses.Utilisation)
async def list_utilisation(call: Call) -> utilisation_responses.Utilisation:
    """Read how full all networks are, in order of name. Cost: by networks and subnets, never by holdings."""
    census = call.site.census
    seq = await census.current()
    await census.wait_until(census.is_settled, LISTED_WITHIN_S)
    waiting = await census.waiting(call.ledger)
    items = [
        utilisation_responses.NetworkUse(
            network=network.name,
            number=network.id,
            space=space.plan.name,
            retired=network.retired,
            subnets=len(network.subnets),
            waiting=waiting.get(network.name, 0),
            counts=_network_counts(space, network) if space.is_counted(network) else None,
        )
        for space, network in census.networks()
    ]
    return utilisation_responses.Utilisation(seq=seq, items=sorted(items, key=lambda item: item.network))


@maps.route("GET", "/networks/{network}/utilisation", need=Need.READ, answer=utilisation_responses.NetworkDetail)
async def get_utilisation(call: Call) -> utilisation_responses.NetworkDetail:
    """Read how full a network, its subnets and its pools are."""
    census = call.site.census
    name = call.params["network"]
    # `waiting` looks the name up among the plans that are laid out, so this one must be.
    await census.counted(name)
    waiting = await census.waiting(call.ledger, name)
    space, network = await census.counted(name)  # whatever the plan has become meanwhile
    # Looked up before the next await: an edit in between takes subnets, and their tallies, out of the space.
    tallied = [(subnet, space.tallies[network.id, subnet.uuid]) for subnet in network.subnets]
    return utilisation_responses.NetworkDetail(
        seq=census.seen,
        network=network.name,
        number=network.id,
        space=space.plan.name,
        retired=network.retired,
        waiting=waiting.get(name, 0),
        counts=_network_counts(space, network),
        subnets=await in_turns(tallied, _subnet_use),
    )


def _network_counts(space: SpaceCount, network: Network) -> utilisation_responses.FamilyCounts:
    counts = space.counts(network)
    return utilisation_responses.FamilyCounts(
        **{family: utilisation_responses.PoolCounts(**each) for family, each in counts.items()}
    )


def _subnet_use(tallied: tuple[Subnet, Tally]) -> utilisation_responses.SubnetUse:
    subnet, tally = tallied
    pools = [
        utilisation_responses.PoolUse(
            range=str(pool.range),
            name=pool.name,
            retired=pool.retired,
            counts=utilisation_responses.PoolCounts(**tally.counts(number)),
        )
        for number, pool in enumerate(subnet.pools)
    ]
    return utilisation_responses.SubnetUse(
        cidr=str(subnet.cidr),
        uuid=subnet.uuid,
        name=subnet.name,
        unit=subnet.unit,
        retired=subnet.retired,
        counts=utilisation_responses.PoolCounts(**tally.counts()),
        pools=pools,
    )


@maps.route("GET", "/networks/{network}/map", need=Need.READ, query=Looked, answer=utilisation_responses.Map)
async def get_map(call: Call) -> utilisation_responses.Map:
    """Read a subnet, or a stretch of it, as a picture of equal cells; single units tell who holds them.

    The ends are widened to whole cells. Without subnet, the one around first is shown, or else the network's first.
    Cost: by cells, and by those of them that are held single units; the first look at a subnet reads it once.
    """
    wanted: Looked = call.query
    space, network = await call.site.census.counted(call.params["network"])
    stretch = Stretch.read(network, wanted.subnet, wanted.first, wanted.last)
    return await look(call.site.census, space, stretch, wanted.cells, call.visitor)


@maps.route(
    "GET", "/networks/{network}/timeline", need=Need.READ, query=TimelineQuery, answer=utilisation_responses.Timeline
)
async def get_timeline(call: Call) -> utilisation_responses.Timeline:
    """Read how many holdings a network had of each family at even times, up to now.

    Points are whole seconds; of more than a day, whole minutes.
    """
    census = call.site.census
    if not await census.wait_until(lambda: census.trends.read):
        raise Overloaded("the log is still being read; ask again in a moment")
    # After the last await: the network's subnets are looked up in its space, and an edit in between takes them out.
    space, network = await census.counted(call.params["network"])
    trends = {family: census.trends.of(network.id, family) for family in space.counts(network)}
    grain = 1 if call.query.hours * 3600 <= FINE_S else 60
    # The log has the times of the store's clock, which may be ahead of this machine's.
    now_s = max([math.ceil(time.time()), *(trend.last_s for trend in trends.values())])
    end = -(-now_s // grain) * grain
    step = max(grain, round(call.query.hours * 3600 / (call.query.points - 1) / grain) * grain)
    since = max([census.trends.since(now_s), *(trend.cut_s or 0 for trend in trends.values())])
    times = [at_s for number in range(call.query.points) if (at_s := end - number * step) >= since]
    lines = {family: _family_timeline(space, network, family, trend, end, times) for family, trend in trends.items()}
    return utilisation_responses.Timeline(
        seq=census.seen,
        network=network.name,
        step_s=step,
        complete_since=moment(since * 1_000_000) if since else None,
        **lines,
    )


def _family_timeline(
    space: SpaceCount, network: Network, family: Family, trend: Trend, end: int, times: list[int]
) -> utilisation_responses.FamilyTimeline:
    now = Point(
        end,
        space.total(network, family, UnitUse.HELD, UnitUse.PENDING, UnitUse.DRAINING),
        space.total(network, family, UnitUse.COOLING),
    )
    counts = space.counts(network)[family]
    return utilisation_responses.FamilyTimeline(
        capacity=counts["pooled"],
        units=counts["units"],
        points=[
            utilisation_responses.Moment(at=moment(each.at_s * 1_000_000), held=each.held, cooling=each.cooling)
            for each in trend.points(now, times)
        ],
    )
