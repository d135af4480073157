"""Papers of doors in memory, and how a step is undone."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from tenure.kernel.errors import AlreadyExists
from tenure.kernel.holdings.holding_model import Paper

if TYPE_CHECKING:
    from tenure.stores.memory.store import MemoryStore

K = TypeVar("K")
V = TypeVar("V")


def copied(paper: Paper) -> Paper:
    """Copy a paper with its document: what a caller does to his must not reach the ledger's."""
    return paper._replace(document=deepcopy(paper.document))


def put_back(kept: dict[K, V], name: K, value: V | None) -> None:
    """Give a name the value it had before, or none."""
    if value is None:
        kept.pop(name, None)
    else:
        kept[name] = value


class MemoryPapers:
    """What a transaction does with papers."""

    def __init__(self, store: "MemoryStore") -> None:
        self._store = store
        self._undo: list[Callable[[], object]] = []

    async def papers_named(self, kind: str, names: Sequence[str], *, shared: bool = False) -> Sequence[Paper | None]:
        """Find papers by name."""
        found = (self._store.papers_by_name.get((kind, name)) for name in names)
        return [None if paper is None else copied(paper) for paper in found]

    async def papers(self, kind: str, *, prefix: str = "", after: str = "", limit: int = 1000) -> Sequence[Paper]:
        """Read papers of a kind, in order of name."""
        return await self._store.papers(kind, prefix=prefix, after=after, limit=limit)

    async def add_papers(self, papers: Sequence[Paper]) -> None:
        """Write new papers."""
        for paper in papers:
            if (paper.kind, paper.name) in self._store.papers_by_name:
                raise AlreadyExists(paper.kind, paper.name, field="name")
            await self.put_papers([paper])

    async def put_papers(self, papers: Sequence[Paper]) -> None:
        """Write papers whole."""
        kept = self._store.papers_by_name
        for paper in papers:
            place = (paper.kind, paper.name)
            self._undo.append(partial(put_back, kept, place, kept.get(place)))
            kept[place] = copied(paper)

    async def remove_papers(self, kind: str, names: Sequence[str]) -> None:
        """Remove papers."""
        kept = self._store.papers_by_name
        for name in names:
            if (kind, name) in kept:
                self._undo.append(partial(put_back, kept, (kind, name), kept.pop((kind, name))))
