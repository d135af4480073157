"""Everything that a ledger holds, as values: what a backup keeps and what a copy carries over.

A store streams its contents as sections, in the order of ``Kind``, and within a kind in the order of its key; two
ledgers that hold the same stream the same. Waiting claims belong to living processes and are no part of it: a space
that had a queue is told one version higher, as it will be when the queue is gone.
"""

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

from tenure.kernel.errors import Conflict, Invalid
from tenure.kernel.holdings.holding_model import NetworkId, SpaceId
from tenure.kernel.plan.plan_model import Network


class Kind(enum.StrEnum):
    """What a section consists of."""

    COUNTERS = "counters"
    SPACES = "spaces"
    NETWORKS = "networks"
    HOLDINGS = "holdings"
    FORMERS = "formers"
    REPLIES = "replies"
    PAPERS = "papers"
    ARCHIVE_PAGES = "archive_pages"
    CHANGES = "changes"


ORDER = {kind: number for number, kind in enumerate(Kind)}

LARGE = {Kind.ARCHIVE_PAGES: 16}
"""How many items of a kind a section has, where one of them is as large as a section of the others."""


class Counters(NamedTuple):
    """The ledger's own numbers, and how many holdings, changes and pages of the archive follow."""

    seq: int
    oldest: int
    generation: int
    next_network: NetworkId
    next_space: SpaceId
    holdings: int
    changes: int
    archive_pages: int = 0


class Space(NamedTuple):
    """A space without its networks."""

    id: SpaceId
    name: str
    version: int


class PlacedNetwork(NamedTuple):
    """A network and the space it is in."""

    space: SpaceId
    network: Network


class Former(NamedTuple):
    """Where an owner's slot was, for the sticky policy."""

    network: NetworkId
    owner: str
    slot: str
    first: int


class Section(NamedTuple):
    """Contents of one kind: counters, spaces, networks, rows, formers, replies, papers, archived pages or changes."""

    kind: Kind
    items: Sequence[Any]


class Inventory:
    """Counts what passes; whoever writes contents asks it before the commit whether all of it came."""

    def __init__(self) -> None:
        self.counters: Counters | None = None
        self.counts: dict[Kind, int] = dict.fromkeys(Kind, 0)
        self._latest = Kind.COUNTERS

    def add(self, section: Section) -> None:
        """Take note of a section; Invalid if it comes out of order."""
        late = ORDER[section.kind] < ORDER[self._latest]
        # The counters come first, and only once.
        if late or (section.kind is Kind.COUNTERS) != (self.counters is None):
            raise Invalid(f"sections: {section.kind} do not come after {self._latest}", field="sections")
        if section.kind is Kind.COUNTERS:
            [self.counters] = section.items
        self._latest = section.kind
        self.counts[section.kind] += len(section.items)

    def complete(self) -> Counters:
        """Return the counters; Invalid if the stream broke off."""
        counters = self.counters
        # A stream that breaks off between two sections looks complete: only the counts differ.
        told = None if counters is None else (counters.holdings, counters.changes, counters.archive_pages)
        came = (self.counts[Kind.HOLDINGS], self.counts[Kind.CHANGES], self.counts[Kind.ARCHIVE_PAGES])
        if counters is None or told != came:
            text = f"sections: {came} holdings, changes and pages of the archive came, {told} were told"
            raise Invalid(text, field="sections")
        return counters


def not_empty() -> Conflict:
    """Say why contents are not written here."""
    return Conflict("the ledger is not empty; contents go only into an empty one: name a new file or another schema")
