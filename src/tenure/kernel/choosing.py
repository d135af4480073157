"""How a free number of a line is picked. Chance and names come in as values; the same input gives the same pick.

Every pick is O(log n) of the free set. A *point* is a number to look from: the pick is the first free number at or
after it, around the end of the line if need be. ``lowest`` looks from 0.
"""

from hashlib import blake2b

from tenure.kernel.freeset import FreeSet

STRIPE = 256
"""Numbers that one server prefers to fill before it goes elsewhere, so servers seldom meet."""

FEW = 16 * STRIPE
"""Lines shorter than this are picked from all over: stripes would make neighbours of everything."""


def first_free(free: FreeSet) -> int | None:
    """Pick the lowest free number."""
    return free.at_or_after(0)


def from_point(free: FreeSet, point: int) -> int | None:
    """Pick the free number at or after a point, around the end if need be."""
    found = free.at_or_after(point)
    return free.at_or_after(0) if found is None and point else found


def hashed_point(size: int, owner: str, slot: str, attempt: int = 0) -> int:
    """Return the point that an owner's slot always looks from."""
    digest = blake2b(f"{owner}\0{slot}\0{attempt}".encode(), digest_size=16).digest()
    return int.from_bytes(digest, "big") % size


class Stripes:
    """One server's own order of stripes over a line, for *random*.

    The server fills its current stripe, then moves to the next of an order that only its name decides. Two servers
    meet only where their orders do. ``chance`` gives numbers from 0 up to a bound.
    """

    __slots__ = ("_server", "_start", "_turn", "size")

    def __init__(self, size: int, server: str) -> None:
        self.size = size
        self._server = server
        self._turn = 0
        self._start = self._stripe(0)

    def _stripe(self, turn: int) -> int:
        stripes = max(self.size // STRIPE, 1)
        return hashed_point(stripes, self._server, "stripe", turn) * STRIPE

    def pick(self, free: FreeSet, offset: int) -> int | None:
        """Pick from the current stripe, from a chance offset below ``STRIPE``; a full stripe is left behind.

        After a few full stripes in a row the line is nearly full: any free number will do.
        """
        for _ in range(8):
            found = free.at_or_after(self._start + offset)
            if found is None or found >= self._start + STRIPE:
                found = free.at_or_after(self._start)
            if found is not None and found < self._start + STRIPE:
                return found
            self.leave()
        return from_point(free, self._start)

    def leave(self) -> None:
        """Go to the next stripe: this one is full, or somebody else fills it."""
        self._turn += 1
        self._start = self._stripe(self._turn)
