"""Neutron's database as whoever tends it needs it: read in one piece, written with bounded patience."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import enginefacade
from sqlalchemy import exc as sa_exc
from sqlalchemy import orm

from tenure.integrations.neutron.database.allocation_rows import MYSQL, dialect_of
from tenure.integrations.neutron.database.tables import AllocationRow, DeploymentRow, SubnetRow
from tenure.integrations.neutron.maintenance.neutron_tables import NEUTRONS
from tenure.kernel.errors import Conflict, Invalid, NotFound, StoreUnavailable
from tenure.wiring import without_secrets

T = TypeVar("T")

PATIENCE_S = 2
"""For how long an open transaction of somebody else's is waited for; then it is left alone, and told as in flight."""

DATABASE_ERRORS = (db_exc.DBError, sa_exc.DBAPIError)
OURS = [row.__tablename__ for row in (SubnetRow, AllocationRow, DeploymentRow)]
LOCK_NOT_AVAILABLE = "55P03"
PACKAGES = {"MySQLdb": "mysqlclient", "psycopg2": "psycopg2-binary"}
"""Where a driver is not called as what is installed."""

UPGRADE = "run `neutron-db-manage --subproject tenure upgrade head`"


class InFlight(Conflict):
    """Somebody has a transaction open behind what is looked at."""

    code = "in_flight"

    def __init__(self) -> None:
        super().__init__("somebody has a transaction open in Neutron's database that is in the way")


class Database:
    """Neutron's database."""

    def __init__(self, url: str) -> None:
        self._url = url
        with self._in_our_words():
            self._look()
            self.engine = _engine(url)
            self._check_tables()

    def _look(self) -> None:
        """Refuse a file that is not there: opening it would make an empty one."""
        url = sa.engine.make_url(self._url)
        if url.get_backend_name() == "sqlite" and url.database and not Path(url.database).exists():
            raise NotFound("database", without_secrets(self._url), hint="there is no such file", field="database")

    def _check_tables(self) -> None:
        """Refuse a database that is not Neutron's, or that has not got our tables yet."""
        there = sa.inspect(self.engine).get_table_names()
        for tables, hint in ((NEUTRONS, "is this Neutron's database?"), (OURS, UPGRADE)):
            for missing in sorted(set(tables) - set(there)):
                raise NotFound("table", missing, hint=hint, field="database")

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """Give a session in which everything is read as of one moment, and that changes nothing."""
        with self._in_our_words(), orm.Session(self.engine) as session:
            if self.engine.dialect.name != "sqlite":
                session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
            yield session
            session.rollback()

    @contextmanager
    def writing(self, *, keep: bool = True) -> Iterator[Any]:
        """Give a session that is committed (unless it is not to ``keep``); InFlight where it has to wait too long.

        What is read here without a lock may be old: MariaDB goes on seeing the first moment it read anything.
        """
        with self._in_our_words(), orm.Session(self.engine) as session:
            be_impatient(session)
            yield session
            if keep:
                session.commit()
            else:
                session.rollback()

    def close(self) -> None:
        """Let go of all connections."""
        self.engine.dispose()

    @contextmanager
    def _in_our_words(self) -> Iterator[None]:
        """Turn what the database has against it into errors of ours. None names who logs in, and how."""
        try:
            yield
        except DATABASE_ERRORS as error:
            if waited(error):
                raise InFlight from error
            message = f"Neutron's database {without_secrets(self._url)}: {reason_of(error)}"
            raise StoreUnavailable(message, outcome="none") from error
        except (sa_exc.ArgumentError, sa_exc.NoSuchModuleError) as error:
            raise Invalid(f"database: {without_secrets(self._url)} is not a URL of a database", field="database") from (
                error
            )


def _engine(url: str) -> Any:
    """Make what connects; Invalid if the driver is not installed."""
    manager = enginefacade.transaction_context()
    # A command reports at once that the database is away, where a server would try again.
    manager.configure(connection=url, max_retries=0, sqlite_fk=True)
    try:
        return manager.writer.get_engine()
    except ModuleNotFoundError as error:
        name = error.name or ""
        missing = f"the driver {name} that this URL needs is missing: pip install {PACKAGES.get(name, name)}"
        raise Invalid(f"database: {missing}", field="database") from error


def reason_of(error: BaseException) -> str:
    """Say in a line what a database has against it: the words of its driver, without the layers around them."""
    # oslo.db wraps SQLAlchemy's error, which wraps the driver's; the outer texts hold statements and parameters.
    while inner := getattr(error, "inner_exception", None) or getattr(error, "orig", None):
        error = inner
    words = [word for word in error.args if isinstance(word, str)] or [str(error)]
    lines = words[-1].strip().splitlines() or [type(error).__name__]
    return lines[0]


def be_impatient(session: Any) -> None:
    """Bound how long statements of a session wait for locks."""
    dialect = dialect_of(session)
    if dialect == "postgresql":
        # Behind a lock that was waited for, the session must see what the other transaction has committed.
        session.connection(execution_options={"isolation_level": "READ COMMITTED"})
        session.execute(sa.text(f"SET LOCAL lock_timeout = '{PATIENCE_S}s'"))
    elif dialect in MYSQL:
        # MySQL has no SET LOCAL for it. The engine is this command's own: no server gets this connection.
        session.execute(sa.text(f"SET SESSION innodb_lock_wait_timeout = {PATIENCE_S}"))


def waited(error: Exception) -> bool:
    """Tell whether an error says that somebody else was in the way for too long, or both in each other's."""
    if isinstance(error, db_exc.DBDeadlock | db_exc.DBConsistencyError):
        return True
    chain: list[BaseException | None] = [error, error.__cause__, getattr(error, "inner_exception", None)]
    # oslo.db has no error of its own for PostgreSQL's lock_timeout: the code stands on one of the layers below.
    origins = [getattr(each, "orig", None) for each in chain]
    return any(getattr(each, "pgcode", None) == LOCK_NOT_AVAILABLE for each in [*chain, *origins])


def by_halves(places: Sequence[int], work: Callable[[Sequence[int]], T]) -> Iterator[tuple[Sequence[int], T | None]]:
    """Do work on places; those behind which a transaction is open are found by halves, and yielded with None."""
    try:
        yield places, work(places)
    except InFlight:
        if len(places) == 1:
            yield places, None
            return
        middle = len(places) // 2
        yield from by_halves(places[:middle], work)
        yield from by_halves(places[middle:], work)


def chunks(places: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """Cut places into pieces."""
    return (places[start : start + size] for start in range(0, len(places), size))
