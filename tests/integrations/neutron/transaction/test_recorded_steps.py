"""A COMMIT of which no answer came leaves doubt, whatever else the session did in between."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event, orm

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what Neutron imports is deprecated in places
    from tenure.integrations.neutron.transaction.recorded_steps import Removed, Step, settlement_of

STEP: Any = Removed(subnet=None)  # type: ignore[arg-type]  # what it is about is not looked at here


class Base(orm.DeclarativeBase):
    """The tables of this module."""


class Note(Base):
    """Anything that a session may change."""

    __tablename__ = "note"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)


class AnswerLost(Exception):
    """The connection broke while COMMIT was under way."""


@dataclass
class NotedEnds:
    """What was made of the steps of each transaction."""

    ends: list[str] = field(default_factory=list)

    def commit(self, steps: list[Step], engine: Any) -> None:
        self.ends.append("commit")

    def undo(self, steps: list[Step], engine: Any) -> None:
        self.ends.append("undo")

    def go_back(self, steps: list[Step]) -> None:
        self.ends.append("go back")

    def doubt(self, steps: list[Step], engine: Any) -> None:
        self.ends.append("doubt")


@pytest.fixture
def engine() -> Iterator[sa.Engine]:
    engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
    Base.metadata.create_all(engine)
    yield engine
    engine.dispose()


def with_change(session: orm.Session) -> None:
    """Let another listener change something when the commit has begun, so that a flush is a part of it."""
    event.listen(session, "before_commit", lambda session: session.add(Note()))


def with_savepoint(session: orm.Session) -> None:
    """Let another listener open and release a savepoint after ours has seen that the commit begins."""

    def opens(session: orm.Session) -> None:
        if session.get_nested_transaction() is None:
            session.begin_nested().commit()

    event.listen(session, "before_commit", opens)


def with_both(session: orm.Session) -> None:
    with_savepoint(session)
    with_change(session)


BETWEEN = pytest.mark.parametrize("does", [lambda session: None, with_change, with_savepoint, with_both])


@BETWEEN
def test_a_commit_without_an_answer_leaves_doubt(engine: sa.Engine, does: Callable[[orm.Session], None]) -> None:
    def breaks(connection: sa.Connection) -> None:
        raise AnswerLost

    noted = NotedEnds()
    with orm.Session(engine) as session:
        session.execute(sa.select(Note))
        settlement_of(session, noted).note(STEP)
        does(session)
        event.listen(engine, "commit", breaks)
        with pytest.raises(AnswerLost):
            session.commit()

    assert noted.ends == ["doubt"]


@BETWEEN
def test_the_next_transaction_of_a_session_is_undone_without_doubt(
    engine: sa.Engine, does: Callable[[orm.Session], None]
) -> None:
    noted = NotedEnds()
    with orm.Session(engine) as session:
        session.execute(sa.select(Note))
        settlement_of(session, noted).note(STEP)
        does(session)
        session.commit()
        session.execute(sa.select(Note))
        settlement_of(session, noted).note(STEP)
        session.rollback()

    assert noted.ends == ["commit", "undo"]
