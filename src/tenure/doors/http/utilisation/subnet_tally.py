"""The tally of one subnet: how many units are held, in which state and where; the rest follows from the terrain."""

import enum
from typing import Protocol

from tenure.doors.http.utilisation.subnet_terrain import NO_POOL, Terrain, UnitStatus
from tenure.kernel.holdings.holding_model import NetworkId, State


class UnitUse(enum.StrEnum):
    """How a unit is taken: by a holding of its network in some state, or by another network of the space."""

    HELD = "held"
    PENDING = "pending"
    DRAINING = "draining"
    COOLING = "cooling"
    ELSEWHERE = "elsewhere"


TAKEN_BY_STATE = {state: UnitUse(state.value) for state in State}

OF_POOLS: dict[str, str] = {
    **dict.fromkeys(TAKEN_BY_STATE.values(), "pooled_taken"),
    **dict.fromkeys(
        (UnitUse.ELSEWHERE, UnitStatus.RESERVED, UnitStatus.KEPT_BACK, UnitStatus.PREALLOCATED), "pooled_kept"
    ),
}
"""Which sum a unit inside a pool belongs to. What is missing here, free and retired, lies in pools only.

Counted here and not by readers: of a /64, a page would subtract two numbers that its language cannot tell apart.
"""

COUNTED = ("units", "pooled", "pooled_taken", "pooled_kept", *UnitUse, *UnitStatus)
"""The names of all counts."""


class SubnetObserver(Protocol):
    """Whatever is kept of one subnet, and told of every holding that comes, changes or goes there."""

    network: NetworkId
    terrain: Terrain

    def lay(self, taken: UnitUse, first: int, last: int, step: int) -> None:
        """Take a holding in (1) or out (-1)."""
        ...


class Crowd:
    """Units that several smaller holdings of another network share: taken by the first, freed by the last."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def decides(self, unit: int, step: int) -> bool:
        """Take one in or out; tell whether that changed the unit."""
        count = self._counts.get(unit, 0) + step
        if count:
            self._counts[unit] = count
        else:
            self._counts.pop(unit, None)
        return count == (1 if step > 0 else 0)


class Tally:
    """Counts of one subnet. A holding costs a look at the terrain, O(log pieces)."""

    def __init__(self, network: NetworkId, terrain: Terrain) -> None:
        self.network = network
        self.terrain = terrain
        self._counts = {taken: [0] * len(terrain.groups) for taken in UnitUse}
        self._crowd = Crowd()

    def lay(self, taken: UnitUse, first: int, last: int, step: int) -> None:
        """Take a holding in (1) or out (-1)."""
        terrain, size = self.terrain, last - first + 1
        low = terrain.unit(first)
        if size < terrain.unit_size and not self._crowd.decides(low, step):
            return
        counts = self._counts[taken]
        # The usual holding is one unit; a look at one group spares the walk over pieces.
        if size <= terrain.unit_size:
            counts[terrain.group_at(low)] += step
            return
        for group, units in terrain.groups_over(low, terrain.unit(last)):
            counts[group] += step * units

    def total(self, taken: UnitUse) -> int:
        """Count all units that are taken in one way."""
        return sum(self._counts[taken])

    def counts(self, pool: int | None = None) -> dict[str, int]:
        """Count the units of the subnet, or of one pool of it; each unit is one thing only, so they add up."""
        found: dict[str, int] = dict.fromkeys(COUNTED, 0)
        for number, (standing, where) in enumerate(self.terrain.groups):
            if pool is not None and where != pool:
                continue
            size = self.terrain.sizes[number]
            here: dict[str, int] = {taken: counts[number] for taken, counts in self._counts.items()}
            here[standing] = size - sum(here.values())
            for name, count in here.items():
                found[name] += count
                if where != NO_POOL and name in OF_POOLS:
                    found[OF_POOLS[name]] += count
            found["units"] += size
            found["pooled"] += size if where != NO_POOL else 0
        return found


def added(parts: list[dict[str, int]]) -> dict[str, int]:
    """Add counts up."""
    return {str(name): sum(part[name] for part in parts) for name in COUNTED}
