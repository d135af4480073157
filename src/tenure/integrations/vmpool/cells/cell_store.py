"""CellStore: small texts with names, each read and swapped by itself; where they lie is up to the store.

No text is ever written twice: each has a number of its own in it. So a writer whose answer was lost finds out by
reading whether it was done, and a text that was seen is compared instead of a version.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tenure.integrations.kubernetes.runtime.resource_types import Object

CLAIM, ADDRESS = "c-", "a-"
"""How names of claims and of addresses begin."""
FREE_TEXT = '{"free": true'
"""How the text of an address begins that nobody has: a store has to find the others without reading them."""


@dataclass(frozen=True, slots=True)
class StoredCell:
    """A cell as it was read."""

    name: str
    text: str
    object: Object = field(default_factory=dict, repr=False, compare=False)
    """The object that it is, or lies in."""


@dataclass(frozen=True, slots=True)
class CellChange:
    """A cell that is to be written: created where none was seen, removed where there is no text."""

    name: str
    seen: StoredCell | None
    text: str | None
    is_read: bool = True
    """Whether the cell that is found instead is to be read, where that is a request more."""


@dataclass(frozen=True, slots=True)
class CellSnapshot:
    """All cells at one moment, where the store can say so, and the number of that moment."""

    cells: Mapping[str, StoredCell]
    revision: int


@dataclass(frozen=True, slots=True)
class CellEvent:
    """What became of a cell, in the order of revisions."""

    revision: int
    name: str
    before: str | None
    """What it was; none if it was not there, or the store does not say."""
    text: str | None
    """What it is; none if it was removed."""


class CellTaken(Exception):
    """A cell is not as it was seen; nothing was written of the whole swap."""

    def __init__(self, name: str, found: StoredCell | None = None) -> None:
        super().__init__(f"{name} has changed")
        self.name = name
        self.found = found
        """The cell as it is, where the store has read it; a hint, since it may have changed again."""


@dataclass(frozen=True, slots=True)
class AddressLook:
    """The names of the cells of held addresses, and the cells of free addresses."""

    held: frozenset[str]
    free: Mapping[str, StoredCell]


class CellStore(Protocol):
    """A place for cells."""

    newest: int
    """The highest revision that any answer has named."""
    has_neighbours: bool
    """Whether any two cells can be changed in one swap."""

    def together(self, first: str, second: str) -> bool:
        """Return whether two cells can be changed in one swap."""

    async def read(self, names: Sequence[str]) -> dict[str, StoredCell]:
        """Read some cells; those that are not there are left out."""

    async def swap(self, changes: Sequence[CellChange]) -> dict[str, StoredCell]:
        """Write all changes or, if a cell is not as it was seen, none: then raise ``CellTaken``.

        Return what was written. More than one change only where all are ``together``.
        """

    async def check_room(self, texts: Mapping[str, str]) -> None:
        """Raise ``PoolTooLarge`` if these cells, beside all others, had no room."""

    async def all(self, group: str = "") -> CellSnapshot:
        """Read all cells, or the claims of one group."""

    async def look(self, *, with_free: bool) -> AddressLook:
        """Read which addresses are held, and those cells that are free, if they are asked for; not of one moment."""

    async def events(self, after: int, limit: int) -> list[CellEvent]:
        """Read what has become of cells behind a revision, in order; those of one revision together.

        More than the limit may come. Raise ``CursorExpired`` if the store has forgotten.
        """


def is_free_text(text: str) -> bool:
    """Return whether a cell of an address says that nobody has it."""
    return text.startswith(FREE_TEXT)


def digest(*words: str, length: int = 40) -> str:
    """Return a name for words that have any length and any characters."""
    whole = hashlib.sha256("\0".join(words).encode()).hexdigest()
    return whole[:length]


def claim_name(group: str, *words: str) -> str:
    """Return the name of the cell of a claim; claims of a group are found together."""
    return f"{CLAIM}{digest(group)}-{digest(*words, length=16)}"


def group_of(name: str) -> str:
    """Return the group in the name of a claim; nothing for another cell."""
    return name.removeprefix(CLAIM).partition("-")[0] if name.startswith(CLAIM) else ""
