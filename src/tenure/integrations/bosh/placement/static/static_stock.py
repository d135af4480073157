"""One network's static addresses, handed out in the order listed, once it is decided how many go to each spot."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tenure.integrations.bosh.placement.static.flow import Supply, meet


class StaticStock:
    """Hands out addresses so that those which are left always suffice for the spots that are left.

    Cost: at most one question of flow for each kind of address and hand-out; none where addresses have no choice.
    """

    def __init__(self, addresses: Iterable[tuple[int, tuple[int, ...]]], numbers: Sequence[int]) -> None:
        self._left = list(numbers)
        self._piles: dict[tuple[int, ...], deque[tuple[int, int]]] = {}
        for order, (position, spots) in enumerate(addresses):
            self._piles.setdefault(spots, deque()).append((order, position))

    def take(self, spot: int) -> int:
        """Take the first address that can stand on a spot."""
        fitting = [spots for spots in self._piles if spot in spots]
        spots = next(spots for spots in sorted(fitting, key=self._first_of) if self._may_go(spots, spot))
        return self._hand_out(spots, spot)

    def next(self, preference: Callable[[int], Any]) -> tuple[int, int]:
        """Take the first address there is; return it and the spot it goes to: of those that are left, the preferred."""
        spots = min(self._piles, key=self._first_of)
        spot = next(spot for spot in sorted(spots, key=preference) if self._left[spot] and self._may_go(spots, spot))
        return self._hand_out(spots, spot), spot

    def _first_of(self, spots: tuple[int, ...]) -> int:
        return self._piles[spots][0][0]

    def _may_go(self, spots: tuple[int, ...], spot: int) -> bool:
        """Tell whether the rest still suffices if one of these goes there."""
        if len(spots) == 1 or len(self._piles) == 1:
            return True
        supply = Counter({each: len(pile) for each, pile in self._piles.items()})
        supply[spots] -= 1
        wanted: Supply = {(each,): number - (each == spot) for each, number in enumerate(self._left)}
        return meet(supply, wanted, [0] * len(self._left))

    def _hand_out(self, spots: tuple[int, ...], spot: int) -> int:
        _, position = self._piles[spots].popleft()
        if not self._piles[spots]:
            del self._piles[spots]
        self._left[spot] -= 1
        return position
