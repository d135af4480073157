"""Neutron's tool makes the driver's tables, and they are those of the models; with the real tool on real databases."""

import subprocess
import sysconfig
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

import tenure
from tenure.kernel.addressing.addresses import key, parse_address
from tests.infrastructure import mariadb, postgres
from tests.scale import in_proof

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what Neutron imports is deprecated in places
    from tenure.integrations.neutron.database.tables import AllocationRow, DeploymentRow, SubnetRow

# The databases that ``upgraded`` makes are dear.
pytestmark = [pytest.mark.one_worker("neutron-migration"), pytest.mark.halved]

VERSIONS = Path(tenure.__file__).parent / "integrations" / "neutron" / "migration" / "alembic_migrations" / "versions"
TABLES: list[sa.Table] = [row.__table__ for row in (SubnetRow, AllocationRow, DeploymentRow)]
HEADS = {(VERSIONS / name).read_text("utf-8").strip() for name in ("EXPAND_HEAD", "CONTRACT_HEAD")}

WIDE_OWNER = "🏠" * 255
LOWER, UPPER = "00c000020a", "00C000020A"


@contextmanager
def sqlite_database() -> Iterator[str]:
    """Give the URL of a new database in a file."""
    with TemporaryDirectory() as folder:
        yield f"sqlite:///{folder}/neutron.sqlite"


def manage(url: str, *words: str) -> str:
    """Run Neutron's tool for the driver's tables, with a configuration that names the database; return what it says."""
    return run_tool(url, "--subproject", "tenure", *words)


def run_tool(url: str, *words: str) -> str:
    """Run Neutron's tool as an operator does."""
    tool = Path(sysconfig.get_path("scripts")) / "neutron-db-manage"
    with TemporaryDirectory() as folder:
        configuration = Path(folder) / "neutron.conf"
        configuration.write_text(f"[database]\nconnection = {url}\n", "utf-8")
        command = [str(tool), "--config-file", str(configuration), *words]
        done = subprocess.run(command, check=False, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@contextmanager
def connected(url: str) -> Iterator[sa.Connection]:
    """Connect in a transaction, and leave no connection behind."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        yield connection


def versions(url: str) -> set[str]:
    """Read which revisions the driver's tables are at."""
    with connected(url) as connection:
        return {name for (name,) in connection.execute(sa.text("SELECT version_num FROM alembic_version_tenure"))}


def digits(address: str) -> str:
    """Write an address as the driver does."""
    return key(parse_address(address)).hex()


def differences(connection: sa.Connection) -> list[object]:
    """List what tells the tables that start with our name from the models; what the database fills in is not seen."""
    models = sa.MetaData()
    for table in TABLES:
        table.to_metadata(models)
    options = {"include_name": lambda name, kind, _: kind != "table" or name.startswith("tenure_")}
    return list(compare_metadata(MigrationContext.configure(connection, opts=options), models))


def defaults(table: sa.Table) -> list[object]:
    """List what the models have the database fill in, in the order of columns."""
    filled = [(column.type.python_type, column.server_default) for column in table.columns]
    return [kind(value.arg) for kind, value in filled if isinstance(value, sa.DefaultClause)]


def put(connection: sa.Connection, *rows: tuple[str, str]) -> None:
    """Write a subnet with these addresses and owners."""
    subnet = {"id": "s", "cidr": "192.0.2.0/24", "pools": "[]", "mark": "m"}
    connection.execute(sa.insert(SubnetRow.__table__).values(subnet))
    values = [{"subnet_id": "s", "address": address, "owner": owner} for address, owner in rows]
    if values:
        connection.execute(sa.insert(AllocationRow.__table__), values)


LAST_ON_POSTGRESQL = "ad80a9f07c5c"
"""The revision of Neutron's after which there is one that speaks to MySQL only."""

PLACES: dict[str, Callable[[], AbstractContextManager[str]]] = {
    "postgresql": postgres.fresh_database,
    "mariadb": mariadb.fresh_database,
    "sqlite": sqlite_database,
}


@pytest.fixture(scope="module", params=["mariadb", in_proof("postgresql"), in_proof("sqlite")])
def upgraded(request: pytest.FixtureRequest) -> Iterator[str]:
    """Give a database in which Neutron's tool made our tables."""
    with PLACES[request.param]() as url:
        manage(url, "upgrade", "head")
        yield url


@pytest.fixture
def rolled_back(upgraded: str) -> Iterator[sa.Connection]:
    """Give a connection whose work is undone."""
    engine = sa.create_engine(upgraded, poolclass=sa.NullPool)
    with engine.connect() as connection:
        yield connection
        connection.rollback()


def test_the_tables_are_those_of_the_models(rolled_back: sa.Connection) -> None:
    assert differences(rolled_back) == []


# Not on SQLite: Neutron's own revisions do not run there.
@pytest.mark.parametrize(("kind", "revision"), [in_proof("postgresql", LAST_ON_POSTGRESQL), ("mariadb", "heads")])
def test_the_tables_come_to_stand_beside_neutrons(kind: str, revision: str) -> None:
    with PLACES[kind]() as url:
        run_tool(url, "--subproject", "neutron", "upgrade", revision)
        with connected(url) as connection:
            neutrons = set(sa.inspect(connection).get_table_names())
        manage(url, "upgrade", "head")
        with connected(url) as connection:
            all_tables = set(sa.inspect(connection).get_table_names())
            found = differences(connection)

    assert found == []
    assert {"alembic_version", "ipallocations", "subnets"} <= neutrons
    assert all_tables - neutrons == {"alembic_version_tenure", *(table.name for table in TABLES)}


def test_what_a_row_does_not_say_is_as_the_models_have_it(rolled_back: sa.Connection) -> None:
    allocations, deployment = AllocationRow.__table__, DeploymentRow.__table__
    put(rolled_back)

    rolled_back.execute(sa.insert(allocations).values(subnet_id="s", address="01"))
    rolled_back.execute(sa.insert(deployment).values(id=1, mode="database", realm="neutron"))

    assert rolled_back.execute(sa.select(allocations)).all() == [("s", "01", *defaults(allocations), None)]
    assert rolled_back.execute(sa.select(deployment)).all() == [(1, "database", "neutron", *defaults(deployment))]


def test_all_revisions_are_noted_in_a_table_of_our_own(upgraded: str) -> None:
    assert versions(upgraded) == HEADS


def test_addresses_compare_and_sort_by_their_bytes(rolled_back: sa.Connection) -> None:
    texts = [digits(address) for address in ("2001:db8::a", "2001:db8::9", "2001:db8::10")]
    column = AllocationRow.__table__.c.address
    put(rolled_back, *((text, "") for text in (LOWER, UPPER, *texts)))

    found = list(rolled_back.execute(sa.select(column).order_by(column)).scalars())
    one = list(rolled_back.execute(sa.select(column).where(column == UPPER)).scalars())

    assert found == sorted([LOWER, UPPER, *texts])
    assert one == [UPPER]


def test_an_owner_is_up_to_255_characters_of_any_kind_and_compares_by_them(rolled_back: sa.Connection) -> None:
    columns = AllocationRow.__table__.c
    put(rolled_back, ("01", WIDE_OWNER), ("02", "port/a"), ("03", "port/A"), ("04", "port/ä"))

    found = list(rolled_back.execute(sa.select(columns.owner).order_by(columns.address)).scalars())
    one = list(rolled_back.execute(sa.select(columns.address).where(columns.owner == "port/A")).scalars())

    assert found == [WIDE_OWNER, "port/a", "port/A", "port/ä"]
    assert one == ["03"]


def test_what_is_held_in_a_subnet_goes_with_it(rolled_back: sa.Connection) -> None:
    if rolled_back.dialect.name == "sqlite":
        rolled_back.exec_driver_sql("PRAGMA foreign_keys = ON")
    put(rolled_back, ("01", ""))

    rolled_back.execute(sa.delete(SubnetRow.__table__))

    assert rolled_back.execute(sa.select(AllocationRow.__table__)).all() == []


def test_an_owner_has_any_characters_also_where_neutrons_database_has_few() -> None:
    with mariadb.fresh_database() as url:
        with connected(url) as connection:
            connection.exec_driver_sql("ALTER DATABASE CHARACTER SET latin1 COLLATE latin1_swedish_ci")
        manage(url, "upgrade", "head")
        with connected(url) as connection:
            put(connection, (LOWER, WIDE_OWNER), (UPPER, ""))
            found = list(connection.execute(sa.select(AllocationRow.__table__.c.owner)).scalars())

    assert sorted(found) == ["", WIDE_OWNER]


def test_a_search_for_addresses_uses_the_key_on_mariadb_too() -> None:
    with mariadb.fresh_database() as url:
        manage(url, "upgrade", "head")
        with connected(url) as connection:
            put(connection, *((digits(f"192.0.2.{number}"), "") for number in range(200)))
            statement = "EXPLAIN SELECT * FROM tenure_allocations WHERE subnet_id = %s AND address BETWEEN %s AND %s"
            ends = ("s", digits("192.0.2.7"), digits("192.0.2.9"))
            [step] = connection.exec_driver_sql(statement, ends).mappings()

    assert (step["type"], step["key"]) == ("range", "PRIMARY")


def test_expand_makes_the_tables_while_servers_work_and_contract_brings_the_rest() -> None:
    with sqlite_database() as url:
        manage(url, "upgrade", "--expand")
        after_expand = versions(url)
        with connected(url) as connection:
            made = set(sa.inspect(connection).get_table_names())
        manage(url, "upgrade", "--contract")

        assert after_expand < HEADS
        assert {table.name for table in TABLES} <= made
        assert versions(url) == HEADS


def test_upgrading_again_changes_nothing(upgraded: str) -> None:
    with connected(upgraded) as connection:
        before = set(sa.inspect(connection).get_table_names())

    manage(upgraded, "upgrade", "head")

    with connected(upgraded) as connection:
        assert set(sa.inspect(connection).get_table_names()) == before
    assert versions(upgraded) == HEADS


def test_neutrons_tool_finds_the_branches_and_the_files_of_heads_in_order() -> None:
    with sqlite_database() as url:
        said = manage(url, "check_migration")

    assert "tenure_start (branchpoint)" in said


@pytest.mark.parametrize("kind", ["mysql+pymysql", in_proof("postgresql+psycopg2")])
def test_the_statements_are_written_out_without_a_database(kind: str) -> None:
    said = manage(f"{kind}://nobody@localhost/nothing", "upgrade", "head", "--sql")

    assert [table.name for table in TABLES if f"CREATE TABLE {table.name} " not in said] == []
    assert "INSERT INTO alembic_version_tenure" in said
    assert ("ENGINE=InnoDB" in said) == kind.startswith("mysql")
