"""Papers of doors in a PostgreSQL ledger."""

from collections.abc import Sequence
from typing import Any

from tenure.kernel.errors import AlreadyExists
from tenure.kernel.values import Paper
from tenure.stores.postgres.times import PostgresTimes
from tenure.stores.statements import after_prefix, paper_columns, read_paper


def paper_range(kind: str, prefix: str, after: str, limit: int) -> tuple[Any, ...]:
    """Turn what is asked for into the values of the statement ``papers``."""
    return (kind, prefix, after_prefix(prefix), after, limit)


class PostgresPapers(PostgresTimes):
    """What a transaction does with papers."""

    async def papers_named(self, kind: str, names: Sequence[str]) -> Sequence[Paper | None]:
        """Find and lock papers by name."""
        found = {paper.name: paper for paper in map(read_paper, await self._all("lock_papers", kind, list(names)))}
        return [found.get(name) for name in names]

    async def papers(self, kind: str, *, prefix: str = "", after: str = "", limit: int = 1000) -> Sequence[Paper]:
        """Read papers of a kind, in order of name."""
        return [read_paper(record) for record in await self._all("papers", *paper_range(kind, prefix, after, limit))]

    async def put_papers(self, papers: Sequence[Paper]) -> None:
        """Write papers whole."""
        for paper in papers:
            statement = "insert_paper" if paper.revision == 1 else "put_paper"
            if not await self._all(statement, *paper_columns(paper)):
                raise AlreadyExists(paper.kind, paper.name)

    async def remove_papers(self, kind: str, names: Sequence[str]) -> None:
        """Remove papers."""
        await self._all("delete_papers", kind, list(names))
