"""Whose turn it was: no grant passes over somebody who waited longer and could have used the address."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

A = TypeVar("A")
"""An address, written or as a position."""


def passed_over(address: A, free: Sequence[A], older: Mapping[int, Sequence[A]]) -> tuple[int, ...]:
    """Return the tickets of those who waited longer and have nothing left, now that an address went to another.

    ``older``: where each of those who waited longer may be served from. Everyone of them who could have used the
    address must be left with another one, and no two with the same.
    """
    rest = [each for each in free if each != address]
    wanting = {ticket: [each for each in rest if each in line] for ticket, line in older.items() if address in line}
    given: dict[A, int] = {}
    return tuple(ticket for ticket in sorted(wanting) if not _finds(ticket, wanting, given, set()))


def _finds(ticket: int, wanting: Mapping[int, Sequence[A]], given: dict[A, int], tried: set[A]) -> bool:
    """Find an address for somebody, moving others to another one where that makes room."""
    for address in wanting[ticket]:
        if address not in tried:
            tried.add(address)
            if address not in given or _finds(given[address], wanting, given, tried):
                given[address] = ticket
                return True
    return False
