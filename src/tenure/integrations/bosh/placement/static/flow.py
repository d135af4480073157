"""Whether two networks can put the same number of static addresses on each spot: a question of flow.

A *supply* counts a network's addresses by the spots on which each can stand. Two supplies meet if there are numbers
that both can reach with all their addresses, and that are nowhere below a floor. That is a flow from the first
network's addresses through the spots to the second network's addresses, with the floor as the least that goes through
a spot. Addresses that can stand on the same spots are one node, so the size of the flow does not grow with instances.
"""

from collections import deque
from collections.abc import Hashable, Mapping, Sequence

Supply = Mapping[tuple[int, ...], int]
"""How many addresses there are that can stand on just these spots."""

SOURCE, SINK = "source", "sink"


def meet(left: Supply, right: Supply, floor: Sequence[int]) -> bool:
    """Tell whether two supplies can be spread alike, with at least so many on each spot.

    Cost: O(v e²), as Edmonds and Karp have it, of v kinds of addresses and spots and e pairs of them; most often a few
    paths. First the floor alone is filled. Then the rest flows beside it, and nothing flows back out of the floor.
    """
    total, least = sum(left.values()), sum(floor)
    flow = _Flow()
    for spots, number in left.items():
        flow.join(SOURCE, ("left", spots), number)
        for spot in spots:
            flow.join(("left", spots), ("in", spot), number)
    for spots, number in right.items():
        flow.join(("right", spots), SINK, number)
        for spot in spots:
            flow.join(("out", spot), ("right", spots), number)
    for spot, number in enumerate(floor):
        flow.join(("in", spot), ("out", spot), number)
    if total != sum(right.values()) or flow.fill() < least:
        return False
    for spot in range(len(floor)):
        flow.join(("in", spot), ("out", spot), total)
    return least + flow.fill() == total


class _Flow:
    """Pipes with room for more; what flows can be pushed back."""

    def __init__(self) -> None:
        self._room: dict[Hashable, dict[Hashable, int]] = {SOURCE: {}, SINK: {}}

    def join(self, start: Hashable, end: Hashable, room: int) -> None:
        """Lay a pipe. Where there was one, what flows through it stays there for good."""
        self._room.setdefault(start, {})[end] = room
        self._room.setdefault(end, {})[start] = 0

    def fill(self) -> int:
        """Push as much as possible from source to sink; return how much more that is."""
        pushed = 0
        while path := self._path():
            amount = min(self._room[start][end] for start, end in path)
            for start, end in path:
                self._room[start][end] -= amount
                self._room[end][start] += amount
            pushed += amount
        return pushed

    def _path(self) -> list[tuple[Hashable, Hashable]]:
        """Find a shortest way with room from source to sink; empty if there is none."""
        came: dict[Hashable, Hashable] = {SOURCE: SOURCE}
        queue: deque[Hashable] = deque([SOURCE])
        while queue and SINK not in came:
            here = queue.popleft()
            for there, room in self._room[here].items():
                if room and there not in came:
                    came[there] = here
                    queue.append(there)
        path = []
        end: Hashable = SINK
        while end in came and end != SOURCE:
            path.append((came[end], end))
            end = came[end]
        return path
