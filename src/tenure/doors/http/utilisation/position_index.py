"""Where in a subnet its holdings are: an index that counts any stretch of it without reading them again."""

from bisect import bisect_right
from collections.abc import Sequence

from tenure.doors.http.utilisation.ranked_set import Numbers
from tenure.doors.http.utilisation.subnet_tally import Crowd, UnitUse
from tenure.doors.http.utilisation.subnet_terrain import Terrain, UnitStatus
from tenure.kernel.holdings.holding_model import NetworkId

Run = tuple[int, int]


class Spots:
    """Units that are taken, by how they are taken and what they would be otherwise. Cost: by holdings, not by units."""

    def __init__(self, network: NetworkId, terrain: Terrain) -> None:
        self.network = network
        self.terrain = terrain
        self.used_at = 0.0
        self._numbers: dict[tuple[UnitUse, int], Numbers] = {}
        self._runs: dict[tuple[UnitUse, int], _Runs] = {}
        self._crowd = Crowd()

    def __len__(self) -> int:
        return sum(map(len, self._numbers.values())) + sum(map(len, self._runs.values()))

    def lay(self, taken: UnitUse, first: int, last: int, step: int) -> None:
        """Take a holding in (1) or out (-1)."""
        terrain, size = self.terrain, last - first + 1
        low = terrain.unit(first)
        # Several smaller holdings may share a unit, which is taken once.
        if size < terrain.unit_size and not self._crowd.decides(low, step):
            return
        if size <= terrain.unit_size:
            key = (taken, terrain.group_at(low))
            numbers = self._numbers.get(key)
            if numbers is None:
                numbers = self._numbers[key] = Numbers(terrain.units)
            (numbers.add if step > 0 else numbers.discard)(low)
            return
        for group, units in terrain.groups_over(low, terrain.unit(last)):
            self._runs.setdefault((taken, group), _Runs()).lay((low, low + units - 1), step)
            low += units

    def stretches(self, bounds: Sequence[int]) -> dict[UnitUse, dict[UnitStatus, list[int]]]:
        """Count what is taken between bounds that follow each other, by how and on what. O(bounds log n)."""
        found: dict[UnitUse, dict[UnitStatus, list[int]]] = {}
        for source in (self._numbers, self._runs):
            for (taken, group), units in source.items():
                if not units:
                    continue
                standing, _ = self.terrain.groups[group]
                counts = found.setdefault(taken, {}).setdefault(standing, [0] * (len(bounds) - 1))
                below = [units.below(bound) for bound in bounds]
                for place in range(len(counts)):
                    counts[place] += below[place + 1] - below[place]
        return found


class _Runs:
    """Holdings of other networks that are larger than a unit here: few, and kept as they are."""

    def __init__(self) -> None:
        self._runs: set[Run] = set()
        self._sorted: tuple[list[int], list[int], list[int]] | None = None

    def __len__(self) -> int:
        return len(self._runs)

    def lay(self, run: Run, step: int) -> None:
        (self._runs.add if step > 0 else self._runs.discard)(run)
        self._sorted = None

    def below(self, unit: int) -> int:
        """Count the units below one that lie in runs."""
        if self._sorted is None:
            ordered = sorted(self._runs)
            before, total = [], 0
            for first, last in ordered:
                before.append(total)
                total += last - first + 1
            self._sorted = [first for first, _ in ordered], [last for _, last in ordered], before
        firsts, lasts, before = self._sorted
        place = bisect_right(firsts, unit) - 1
        return 0 if place < 0 else before[place] + min(unit, lasts[place] + 1) - firsts[place]
