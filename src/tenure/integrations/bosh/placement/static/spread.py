"""How many instances stand on each spot, so that every static network has an address for each of them."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from tenure.integrations.bosh.placement.static.flow import Supply, meet
from tenure.integrations.bosh.placement.static.spots import GroupSpots
from tenure.integrations.bosh.placement.static.static_lists import StaticNetwork


class Stock:
    """The static addresses of one network: on which spots each can stand, in the order listed."""

    def __init__(self, ground: GroupSpots, network: StaticNetwork) -> None:
        self.network = network
        serving = {home: ground.serving(network, home) for home in network.homes.values()}
        self.spots = {position: serving[home] for position, home in network.homes.items()}
        self.supply = Counter(self.spots.values())

    def pin(self, position: int, spots: tuple[int, ...]) -> None:
        """Let an address stand only here."""
        before = self.spots[position]
        self.supply[before] -= 1
        if not self.supply[before]:
            del self.supply[before]
        self.spots[position] = spots
        self.supply[spots] += 1


class Spread:
    """The number of instances on each spot, as far as it is decided.

    Whether the rest can be decided too is asked of every two networks (``meet``), and what some network cannot put
    elsewhere counts as decided. This is exact for one and two networks, and for three spots; for more it is exact
    wherever addresses belong to one AZ or to all. Beyond that the question is as hard as a matching in three
    dimensions, and a spread may be missed that exists, but never is a wrong one found.

    Cost: one question for each pair of networks and each instance, and one more for each spot.
    """

    def __init__(self, ground: GroupSpots, stocks: Sequence[Stock], instances: int) -> None:
        self._ground = ground
        self._stocks = stocks
        self._instances = instances
        self._full: set[int] = set()
        self.numbers = [0] * len(ground.spots)

    def is_possible(self) -> bool:
        """Tell whether all networks can come to the same numbers from here."""
        return self._reaches(self.numbers)

    def add(self, spot: int) -> bool:
        """Put one more instance on a spot, if the rest can still be placed."""
        # A spot that is full stays full: numbers only grow.
        if spot in self._full:
            return False
        self.numbers[spot] += 1
        if self._reaches(self.numbers):
            return True
        self.numbers[spot] -= 1
        self._full.add(spot)
        return False

    def complete(self) -> bool:
        """Put all that are left where they fit: always to the AZ that has the fewest, then by name."""
        self.numbers = self._floor(self.numbers)
        if not self.is_possible():
            return False
        filled = Counter[str | None]()
        for spot, number in zip(self._ground.spots, self.numbers, strict=True):
            filled[spot.az] += number
        for _ in range(self._instances - sum(self.numbers)):
            by_need = sorted(range(len(self.numbers)), key=lambda spot: (filled[self._ground.spots[spot].az], spot))
            chosen = next((spot for spot in by_need if self.add(spot)), None)
            if chosen is None:
                return False
            filled[self._ground.spots[chosen].az] += 1
        return True

    def _reaches(self, numbers: Sequence[int]) -> bool:
        floor = self._floor(numbers)
        return all(meet(one, other, floor) for one, other in self._pairs())

    def _floor(self, numbers: Sequence[int]) -> list[int]:
        """Raise numbers to what some network cannot put anywhere else."""
        return [max(number, *(stock.supply[(spot,)] for stock in self._stocks)) for spot, number in enumerate(numbers)]

    def _pairs(self) -> list[tuple[Supply, Supply]]:
        distinct: list[Supply] = []
        for stock in self._stocks:
            # Equal supplies give equal answers, and every question is a flow.
            if stock.supply not in distinct:
                distinct.append(stock.supply)
        # A single supply meets itself: the question is then whether it reaches the floor.
        return list(combinations(distinct, 2)) or [(distinct[0], distinct[0])]
