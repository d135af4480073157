"""The census done by hand: every unit of a small plan looked at by itself, from what the store holds now."""

from collections import Counter

import tenure
from tenure.doors.http.utilisation.census import Census
from tenure.kernel.addressing.ranges import AddressRange
from tenure.kernel.holdings.holding_model import Holding
from tenure.kernel.plan.plan_model import Configuration, KeepBack, Network, Subnet

Counts = dict[str, int]
NAMES = (
    "units", "pooled", "pooled_taken", "pooled_kept", "held", "pending", "draining", "cooling", "elsewhere", "reserved",
    "kept_back", "preallocated", "retired", "outside", "free",
)  # fmt: skip
SUMS = {
    "pooled_taken": {"held", "pending", "draining", "cooling"},
    "pooled_kept": {"elsewhere", "reserved", "kept_back", "preallocated"},
}


async def recount(ledger: tenure.AsyncLedger) -> dict[str, list[tuple[str, Counts, list[Counts]]]]:
    """Count every network: its subnets, each with its pools."""
    found: dict[str, list[tuple[str, Counts, list[Counts]]]] = {}
    for space in await ledger.spaces():
        held = [holding for name in space.networks for holding in await ledger.holdings(name)]
        for network in space.networks.values():
            found[network.name] = [(str(s.cidr), *_subnet(space, network, s, held)) for s in network.subnets]
    return found


def counted(census: Census) -> dict[str, list[tuple[str, Counts, list[Counts]]]]:
    """Write what a census has in the same form."""
    return {
        network.name: [
            (
                str(subnet.cidr),
                _plain(space.tallies[network.id, subnet.uuid].counts()),
                [_plain(space.tallies[network.id, subnet.uuid].counts(n)) for n, _ in enumerate(subnet.pools)],
            )
            for subnet in network.subnets
        ]
        for space, network in census.networks()
    }


def _plain(counts: Counts) -> Counts:
    return {name: counts[name] for name in NAMES}


def _subnet(space: Configuration, network: Network, subnet: Subnet, held: list[Holding]) -> tuple[Counts, list[Counts]]:
    pools = [Counter[str]() for _ in subnet.pools]
    whole = Counter[str]()
    nearby = [each for each in held if each.row.last >= subnet.cidr.first and each.row.first <= subnet.cidr.last]
    for first in range(subnet.cidr.first, subnet.cidr.last + 1, subnet.unit_size):
        unit = subnet.unit_at(first)
        around = next((n for n, pool in enumerate(subnet.pools) if pool.range.covers(unit)), None)
        kind = _taken(network, unit, nearby) or _barred(space, subnet, unit) or _idle(network, subnet, around)
        whole.update([kind, "units"])
        if around is not None:
            names = ["pooled", *(name for name, kinds in SUMS.items() if kind in kinds)]
            whole.update(names)
            pools[around].update([kind, "units", *names])
    return {name: whole[name] for name in NAMES}, [{name: pool[name] for name in NAMES} for pool in pools]


def _taken(network: Network, unit: AddressRange, held: list[Holding]) -> str | None:
    for holding in held:
        if unit.first <= holding.row.last and holding.row.first <= unit.last:
            return str(holding.state) if holding.network == network.name else "elsewhere"
    return None


def _barred(space: Configuration, subnet: Subnet, unit: AddressRange) -> str | None:
    everywhere = [other for network in space.networks.values() for other in network.subnets]
    gateways = {place for other in everywhere for place, why in other.kept_back() if why is KeepBack.GATEWAY}
    if any(place in unit for place in (*gateways, *(place for place, _ in subnet.kept_back()))):
        return "kept_back"
    if any(kept.range.overlaps(unit) for other in everywhere for kept in other.reserved):
        return "reserved"
    for network in space.networks.values():
        for wish in network.preallocations:
            if any(s.unit_at(wish.position).overlaps(unit) for s in network.subnets if wish.position in s.cidr.range):
                return "preallocated"
    return None


def _idle(network: Network, subnet: Subnet, around: int | None) -> str:
    if around is None:
        return "outside"
    return "retired" if network.retired or subnet.retired or subnet.pools[around].retired else "free"
