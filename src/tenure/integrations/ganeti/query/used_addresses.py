"""Which addresses of a network are free, worked out on ranges: a /8 costs what its holdings and reserved ranges do."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from tenure.kernel.addressing.ranges import AddressRange, merge
from tenure.kernel.holdings.holding_model import Holding
from tenure.kernel.plan.plan_model import Network, Places, Pool, Subnet

LARGEST_MAP = 65_536
"""Above this many addresses nothing is written out address by address."""

USED, FREE = "X", "."

Span = tuple[int, int]


def external_ranges(subnet: Subnet) -> list[AddressRange]:
    """List what a subnet keeps away from picking, by an administrator's word or by itself, merged."""
    automatic = (AddressRange(position, position) for position, _ in subnet.kept_back())
    return merge([*(reserved.range for reserved in subnet.reserved), *automatic])


class Marks:
    """The addresses of a network that are not free, as sorted, disjoint spans. O(n log n) to make."""

    def __init__(self, network: Network, holdings: Iterable[Holding], neighbours: Iterable[Network] = ()) -> None:
        """Put together what is held and what is kept away; what ``neighbours`` in its space keep away binds it, too."""
        held = [(holding.row.first, holding.row.last) for holding in holdings]
        broken = [ends for subnet, pool in network.pools() for ends in _broken_units(subnet, pool)]
        kept = [span for each in (network, *neighbours) for span in _kept_away(each)]
        spans = _joined([*held, *broken, *kept])
        self._spans = spans
        self._lasts = [last for _, last in spans]

    def used(self, whole: AddressRange) -> int:
        """Count the addresses of a range that are not free."""
        return sum(last - first + 1 for first, last in self._inside(whole))

    def picture(self, whole: AddressRange) -> str | None:
        """Draw a range with one sign an address; None if it is too large."""
        if whole.size > LARGEST_MAP:
            return None
        pieces, place = [], whole.first
        for first, last in self._inside(whole):
            pieces += [FREE * (first - place), USED * (last - first + 1)]
            place = last + 1
        return "".join([*pieces, FREE * (whole.last + 1 - place)])

    def _inside(self, whole: AddressRange) -> Iterator[Span]:
        """Yield the spans that touch a range, cut to it."""
        # By their ends: a span that begins before the range may reach into it.
        for number in range(bisect_left(self._lasts, whole.first), len(self._spans)):
            first, last = self._spans[number]
            if first > whole.last:
                return
            yield max(first, whole.first), min(last, whole.last)


def _joined(spans: list[Span]) -> list[Span]:
    spans.sort()
    joined: list[Span] = []
    for first, last in spans:
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined


def _kept_away(network: Network) -> Iterator[Span]:
    """Yield what is never picked for anybody: a unit of which one address is kept away is not handed out either."""
    places = Places(network.subnets)
    for subnet in network.subnets:
        for kept in external_ranges(subnet):
            yield subnet.unit_at(kept.first).first, subnet.unit_at(kept.last).last
    for wish in network.preallocations:
        around = places.around(wish.position)
        if around is not None:
            unit = around.unit_at(wish.position)
            yield unit.first, unit.last


def _broken_units(subnet: Subnet, pool: Pool) -> Iterator[Span]:
    """Yield the ends of a pool that are no whole unit of the subnet."""
    lowest, highest = subnet.unit_at(pool.range.first), subnet.unit_at(pool.range.last)
    if lowest.first < pool.range.first:
        yield pool.range.first, min(lowest.last, pool.range.last)
    if pool.range.last < highest.last:
        yield max(highest.first, pool.range.first), pool.range.last
