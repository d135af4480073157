"""Where a run of units that follow each other fits on a line."""

from tenure.kernel.picking.free_set import FreeSet
from tenure.kernel.plan.pool_line import Line


def run_at_or_after(line: Line, free: FreeSet, point: int, length: int, *, below: int | None = None) -> int | None:
    """Find the lowest number from a point on where so many free units follow each other, also as addresses.

    It is below a limit, if there is one; the units that follow it need not be. Linear in the free intervals it passes
    over: a line has as many as it has gaps, not as it has addresses.
    """
    start = free.at_or_after(point)
    while start is not None and (below is None or start < below):
        end = min(free.end_of(start), line.end_of_run(start))
        if end - start + 1 >= length:
            return start
        start = free.at_or_after(end + 1)
    return None
