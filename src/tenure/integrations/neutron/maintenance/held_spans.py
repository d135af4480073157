"""What is held by others, as spans of addresses: a holding may be a whole prefix, which nobody wants to count out."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tenure.kernel.addressing.ranges import AddressRange
from tenure.kernel.holdings.holding_model import Holding


class HeldSpan(NamedTuple):
    """Addresses from first to last, and who holds them."""

    first: int
    last: int
    owner: str


def span_of(holding: Holding) -> HeldSpan:
    """Say where a holding is, and whose."""
    return HeldSpan(holding.row.first, holding.row.last, str(holding.owner))


class HeldSpans:
    """Spans that do not lie over each other, in order."""

    def __init__(self, spans: Iterable[HeldSpan] = ()) -> None:
        self._spans = sorted(spans)
        self._firsts = [span.first for span in self._spans]

    def at(self, place: int) -> str | None:
        """Tell who holds an address, if anybody does. O(log n)."""
        index = bisect_right(self._firsts, place) - 1
        span = self._spans[index] if index >= 0 else None
        return span.owner if span is not None and place <= span.last else None

    def within(self, piece: AddressRange) -> Iterator[HeldSpan]:
        """Yield the spans that lie in a range, or over an end of it."""
        start = max(0, bisect_right(self._firsts, piece.first) - 1)
        end = bisect_right(self._firsts, piece.last)
        return (span for span in self._spans[start:end] if span.last >= piece.first)


NOBODY = HeldSpans()
