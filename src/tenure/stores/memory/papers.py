"""Papers of doors in memory, and how a step is undone."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from tenure.kernel.errors import AlreadyExists
from tenure.kernel.values import Paper

if TYPE_CHECKING:
    from tenure.stores.memory.store import MemoryStore

K = TypeVar("K")
V = TypeVar("V")


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

    async def papers_named(self, kind: str, names: Sequence[str]) -> Sequence[Paper | None]:
        """Find papers by name."""
        return [self._store.papers_by_name.get((kind, name)) for name in names]

    async def papers(self, kind: str, *, prefix: str = "", after: str = "", limit: int = 1000) -> Sequence[Paper]:
        """Read papers of a kind, in order of name."""
        return await self._store.papers(kind, prefix=prefix, after=after, limit=limit)

    async def put_papers(self, papers: Sequence[Paper]) -> None:
        """Write papers whole."""
        kept = self._store.papers_by_name
        for paper in papers:
            old = kept.get((paper.kind, paper.name))
            if old is not None and paper.revision == 1:
                raise AlreadyExists(paper.kind, paper.name)
            self._undo.append(partial(put_back, kept, (paper.kind, paper.name), old))
            kept[paper.kind, paper.name] = paper

    async def remove_papers(self, kind: str, names: Sequence[str]) -> None:
        """Remove papers."""
        kept = self._store.papers_by_name
        for name in names:
            if (kind, name) in kept:
                self._undo.append(partial(put_back, kept, (kind, name), kept.pop((kind, name))))
