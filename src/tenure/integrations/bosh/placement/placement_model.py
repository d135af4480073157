"""What placing is told and what it answers."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count


@dataclass(frozen=True, slots=True)
class Present:
    """An instance that a group has now.

    ``addresses`` are the positions that it holds, by network. Of several on one network, those come first that its VM
    carries: they are kept before others.
    """

    uuid: str
    index: int
    az: str | None = None
    ignored: bool = False
    has_disk: bool = False
    has_vm: bool = False
    addresses: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Placed:
    """An instance that a group is to have. ``present`` is None if it is new; ``static`` are addresses by network."""

    present: Present | None
    index: int
    az: str | None = None
    static: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Placement:
    """Who stays or comes, and who goes; each by AZ and index."""

    placed: tuple[Placed, ...]
    obsolete: tuple[Present, ...]


def by_place(instance: Placed | Present) -> tuple[str, int]:
    """Sort by AZ, then index: the order in which addresses are given out."""
    return instance.az or "", instance.index


def by_index(instance: Present) -> tuple[int, str]:
    """Sort by index; the uuid decides only where records are wrong and an index is there twice."""
    return instance.index, instance.uuid


def unused_indexes(used: Iterable[int]) -> Iterator[int]:
    """Yield the indexes that nobody has, lowest first."""
    taken = frozenset(used)
    return (index for index in count() if index not in taken)
