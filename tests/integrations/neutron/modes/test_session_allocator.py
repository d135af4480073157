"""Mode database: the lowest address costs what any address costs, and is the lowest as far as that can be known."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from sqlalchemy import event, orm

from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.errors import PoolExhausted
from tests.integrations.neutron.local_site import pools

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what Neutron imports is deprecated in places
    from tenure.integrations.neutron.address_requests import WantedAddress
    from tenure.integrations.neutron.database import subnet_records
    from tenure.integrations.neutron.database.allocation_rows import HeldAddress, SessionBook, digits_of
    from tenure.integrations.neutron.database.subnet_records import SubnetRecord
    from tenure.integrations.neutron.database.tables import AllocationRow, SubnetRow
    from tenure.integrations.neutron.modes import shared_views
    from tenure.integrations.neutron.modes.database_mode import DatabaseKeeper
    from tenure.integrations.neutron.modes.shared_views import SubnetViews

FIRST = parse_address("10.0.0.2")
NEXT, ANY = WantedAddress("port/a", lowest=True), WantedAddress("port/a")


class Rows:
    """A subnet in a database of its own, which other servers may change as well."""

    def __init__(self, engine: sa.Engine, subnet: SubnetRecord) -> None:
        self.engine = engine
        self.subnet = subnet

    def take(self, wanted: WantedAddress = NEXT) -> str:
        """Allocate one address in a transaction of its own."""
        with orm.Session(self.engine) as session, session.begin():
            return format_address(DatabaseKeeper().allocate(session, self.subnet, wanted))

    def drop(self, address: str) -> None:
        """Release an address by this process."""
        with orm.Session(self.engine) as session, session.begin():
            DatabaseKeeper().release(session, self.subnet, HeldAddress(parse_address(address), "port/a", 0))

    def drop_elsewhere(self, address: str) -> None:
        """Release an address by another process: the views of this one are not told."""
        with orm.Session(self.engine) as session, session.begin():
            SessionBook(session, self.subnet.id).end(parse_address(address))

    def fill(self, count: int) -> None:
        """Let other servers hold the lowest addresses."""
        rows = [
            {"subnet_id": self.subnet.id, "address": digits_of(FIRST + each), "owner": "o"} for each in range(count)
        ]
        with self.engine.begin() as connection:
            connection.execute(sa.insert(AllocationRow.__table__), rows)

    @contextmanager
    def statements(self) -> Iterator[list[str]]:
        """Note the statements that the database is asked."""
        asked: list[str] = []

        def note(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
            asked.append(statement.split()[0])

        event.listen(self.engine, "before_cursor_execute", note)
        try:
            yield asked
        finally:
            event.remove(self.engine, "before_cursor_execute", note)


@contextmanager
def subnet(folder: Path, monkeypatch: pytest.MonkeyPatch, cidr: str, *ranges: str) -> Iterator[Rows]:
    monkeypatch.setattr("tenure.integrations.neutron.modes.database_mode.KEPT", SubnetViews())
    engine = sa.create_engine(f"sqlite:///{folder}/neutron.db")
    for table in (SubnetRow.__table__, AllocationRow.__table__):
        table.create(engine)
    number = str(uuid4())
    record = SubnetRecord(number, number, None, cidr, None, pools(*ranges), None, "m")
    with orm.Session(engine) as session, session.begin():
        subnet_records.put(session, record)
    yield Rows(engine, record)
    engine.dispose()


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rows]:
    with subnet(tmp_path, monkeypatch, "10.0.0.0/20", "10.0.0.2-10.0.15.254") as made:
        yield made


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rows]:
    with subnet(tmp_path, monkeypatch, "10.0.0.0/28", "10.0.0.10-10.0.0.12", "10.0.0.2-10.0.0.4") as made:
        yield made


@pytest.mark.parametrize("percent", [50, 90])
def test_the_lowest_address_costs_as_many_statements_as_any_address(large: Rows, percent: int) -> None:
    large.fill(4093 * percent // 100)
    asked = {}
    for wanted in (ANY, NEXT):
        large.take(wanted)  # reads the subnet, once a process
        with large.statements() as asked[wanted]:
            for _ in range(10):
                large.take(wanted)

    assert asked[NEXT] == asked[ANY] == ["INSERT"] * 10


def test_the_lowest_addresses_are_given_in_order_behind_those_of_others(large: Rows) -> None:
    large.fill(2000)

    assert [parse_address(large.take()) - FIRST for _ in range(3)] == [2000, 2001, 2002]


def test_what_this_process_let_go_of_is_the_lowest_at_once(large: Rows) -> None:
    large.fill(2000)
    given = [large.take() for _ in range(3)]
    large.drop(given[1])

    assert large.take() == given[1]


def test_what_another_process_let_go_of_is_found_after_a_hundredth_of_the_rows(large: Rows) -> None:
    large.fill(2000)
    large.take()
    large.drop_elsewhere("10.0.0.7")

    later = [large.take() for _ in range(2000 // shared_views.ROWS_A_PICK + 1)]

    assert later.count("10.0.0.7") == 1


def test_what_others_took_meanwhile_is_passed_over(large: Rows) -> None:
    large.fill(200)
    large.take()
    with orm.Session(large.engine) as session, session.begin():
        for each in range(201, 230):
            SessionBook(session, large.subnet.id).grant(FIRST + each, "o")

    assert parse_address(large.take()) - FIRST == 230


def test_a_small_subnet_is_read_for_each_so_the_lowest_is_exact_in_the_order_of_its_pools(small: Rows) -> None:
    given = [small.take() for _ in range(5)]
    small.drop_elsewhere("10.0.0.12")
    small.drop_elsewhere("10.0.0.2")

    assert given == ["10.0.0.10", "10.0.0.11", "10.0.0.12", "10.0.0.2", "10.0.0.3"]
    assert [small.take() for _ in range(3)] == ["10.0.0.12", "10.0.0.2", "10.0.0.4"]
    with pytest.raises(PoolExhausted):
        small.take()
