"""Papers of doors in a SQLite ledger."""

import sqlite3
from collections.abc import Sequence

from tenure.kernel.errors import AlreadyExists
from tenure.kernel.holdings.holding_model import Paper
from tenure.stores.sql_files import after_prefix, paper_columns, read_paper
from tenure.stores.sqlite.sql import SQL


def read_papers(connection: sqlite3.Connection, kind: str, prefix: str, after: str, limit: int) -> list[Paper]:
    """Read papers of a kind, in order of name."""
    values = (kind, prefix, after_prefix(prefix), after, limit)
    return [read_paper(record) for record in connection.execute(SQL["papers"], values)]


class SqlitePapers:
    """What a transaction does with papers."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def papers_named(self, kind: str, names: Sequence[str], *, shared: bool = False) -> Sequence[Paper | None]:
        """Find papers by name."""
        found = (self._connection.execute(SQL["paper"], (kind, name)).fetchone() for name in names)
        return [None if record is None else read_paper(record) for record in found]

    async def papers(self, kind: str, *, prefix: str = "", after: str = "", limit: int = 1000) -> Sequence[Paper]:
        """Read papers of a kind, in order of name."""
        return read_papers(self._connection, kind, prefix, after, limit)

    async def add_papers(self, papers: Sequence[Paper]) -> None:
        """Write new papers."""
        for paper in papers:
            if not self._connection.execute(SQL["insert_paper"], paper_columns(paper)).rowcount:
                raise AlreadyExists(paper.kind, paper.name, field="name")

    async def put_papers(self, papers: Sequence[Paper]) -> None:
        """Write papers whole."""
        self._connection.executemany(SQL["put_paper"], [paper_columns(paper) for paper in papers])

    async def remove_papers(self, kind: str, names: Sequence[str]) -> None:
        """Remove papers."""
        self._connection.executemany(SQL["delete_paper"], [(kind, name) for name in names])
