"""From a holding to the books that must hear of it: those of all subnets of the space that lie there."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from tenure.doors.http.utilisation.subnet_tally import TAKEN_BY_STATE, SubnetObserver, UnitUse
from tenure.kernel.holdings.holding_model import NetworkId, State

B = TypeVar("B", bound=SubnetObserver)


class Router(Generic[B]):
    """Books by place. Blocks lie inside each other or apart, so a place has as many books as it has networks."""

    def __init__(self, books: Iterable[B]) -> None:
        self.books = list(books)
        begin: dict[int, list[B]] = {}
        end: dict[int, list[B]] = {}
        for book in self.books:
            begin.setdefault(book.terrain.first, []).append(book)
            end.setdefault(book.terrain.last + 1, []).append(book)
        self._bounds = sorted({*begin, *end})
        self._books: list[tuple[B, ...]] = []
        here: dict[int, B] = {}
        # A sweep over all bounds: blocks that end at a bound leave before blocks that begin there come in.
        for bound in self._bounds:
            for book in end.get(bound, ()):
                del here[id(book)]
            here.update((id(book), book) for book in begin.get(bound, ()))
            self._books.append(tuple(here.values()))

    def over(self, first: int, last: int) -> Iterable[B]:
        """Find the books of all blocks that share an address with a range. O(log blocks + answer)."""
        place = bisect_right(self._bounds, first) - 1
        # The usual case: no block begins or ends inside the range.
        if place + 1 >= len(self._bounds) or self._bounds[place + 1] > last:
            return self._books[place] if place >= 0 else ()
        return self._several(place, last)

    def _several(self, place: int, last: int) -> Iterator[B]:
        met: set[int] = set()
        for number in range(max(place, 0), len(self._bounds)):
            if self._bounds[number] > last:
                break
            for book in self._books[number]:
                if id(book) not in met:
                    met.add(id(book))
                    yield book


def taken_as(book: SubnetObserver, network: NetworkId, state: State | None) -> UnitUse | None:
    """Say what a holding of a network, in a state, is to a book; None if there is none."""
    if state is None:
        return None
    return TAKEN_BY_STATE[state] if network == book.network else UnitUse.ELSEWHERE


def move(
    book: SubnetObserver, network: NetworkId, first: int, last: int, states: tuple[State | None, State | None]
) -> None:
    """Tell a book that a holding went from one state to another; None is: not there."""
    before, after = taken_as(book, network, states[0]), taken_as(book, network, states[1])
    # Also where the state has changed: to the book of another network the unit stays taken elsewhere.
    if before is after:
        return
    if before is not None:
        book.lay(before, first, last, -1)
    if after is not None:
        book.lay(after, first, last, 1)
