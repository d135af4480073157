"""Papers of doors in a PostgreSQL ledger."""

from collections.abc import Sequence
from typing import Any

from tenure.kernel.errors import AlreadyExists
from tenure.kernel.holdings.holding_model import Paper
from tenure.stores.postgres.timed_rows import PostgresTimes
from tenure.stores.sql_files import after_prefix, paper_columns, read_paper


def paper_range(kind: str, prefix: str, after: str, limit: int) -> tuple[Any, ...]:
    """Turn what is asked for into the values of the statement ``papers``."""
    return (kind, prefix, after_prefix(prefix), after, limit)


def _columns(papers: Sequence[Paper]) -> list[list[Any]]:
    rows = [paper_columns(paper) for paper in papers]
    # Not zip(*rows): without papers it would make no columns, and the statement takes four.
    return [[row[place] for row in rows] for place in range(4)]


class PostgresPapers(PostgresTimes):
    """What a transaction does with papers."""

    async def papers_named(self, kind: str, names: Sequence[str], *, shared: bool = False) -> Sequence[Paper | None]:
        """Find and lock papers by name."""
        records = await self._all("share_papers" if shared else "lock_papers", kind, list(names))
        found = {paper.name: paper for paper in map(read_paper, records)}
        return [found.get(name) for name in names]

    async def papers(self, kind: str, *, prefix: str = "", after: str = "", limit: int = 1000) -> Sequence[Paper]:
        """Read papers of a kind, in order of name."""
        return [read_paper(record) for record in await self._all("papers", *paper_range(kind, prefix, after, limit))]

    async def add_papers(self, papers: Sequence[Paper]) -> None:
        """Write new papers, in one statement; it waits for others that write the same ones."""
        written = {(record[0], record[1]) for record in await self._all("insert_papers", *_columns(papers))}
        for paper in papers:
            if (paper.kind, paper.name) not in written:
                raise AlreadyExists(paper.kind, paper.name, field="name")

    async def put_papers(self, papers: Sequence[Paper]) -> None:
        """Write papers whole, in one statement."""
        await self._all("put_papers", *_columns(papers))

    async def remove_papers(self, kind: str, names: Sequence[str]) -> None:
        """Remove papers."""
        await self._all("delete_papers", kind, list(names))
