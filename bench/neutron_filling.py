"""Subnets of Neutron's that are filled in bulk, behind the driver's back.

Each driver finds what its own picks would have left: the stock driver the lowest addresses, which is also what it is
fastest with; ours addresses all over the pool.
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import Any

import asyncpg
from neutron.ipam.drivers.neutrondb_ipam import db_models as stock_models

from bench.filling import RAW_COLUMNS, SEED, first_position, scattered, split_url
from bench.neutron_jobs import LEDGER, STOCK, Site
from tenure.integrations.neutron.database.allocation_rows import digits_of
from tenure.integrations.neutron.database.tables import AllocationRow
from tenure.kernel.addressing.addresses import format_address, key
from tenure.kernel.holdings.holding_model import State
from tenure.stores.sql_files import STATE_NUMBER
from tenure.wiring import open_store

REALM = "neutron"
"""The realm that the driver has unless it is configured."""

FIRST = 2
"""The first address of the pool that Neutron makes: the network's own and the gateway lie before it."""

PAGE = 5000


def allocations(driver: str) -> Any:
    """Return the table in which a driver notes what is held."""
    return (stock_models.IpamAllocation if driver == STOCK else AllocationRow).__table__


def fill(engine: Any, site: Site, subnet: str) -> None:
    """Hold so many addresses of the site's subnet."""
    places = lowest_places(site) if site.driver == STOCK else scattered_places(site)
    if site.driver == STOCK:
        with engine.connect() as connection:
            number = connection.execute(stock_models.IpamSubnet.__table__.select()).mappings().one()["id"]
        rows = [{"ip_address": format_address(place), "ipam_subnet_id": number} for place in places]
        rows = [{**row, "status": "ALLOCATED"} for row in rows]
    else:
        rows = [
            {"subnet_id": subnet, "address": digits_of(place), "owner": _owner(turn), "generation": turn}
            for turn, place in enumerate(places, 1)
        ]
    with engine.begin() as connection:
        for start in range(0, len(rows), PAGE):
            connection.execute(allocations(site.driver).insert(), rows[start : start + PAGE])
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        _settle(connection, allocations(site.driver).name)
    if site.driver == LEDGER and places:
        assert site.ledger is not None
        asyncio.run(_fill_ledger(site.ledger, f"{REALM}-{subnet}", places))


def _settle(connection: Any, table: str) -> None:
    """Have the server do now what it would otherwise do while something is measured."""
    statement = {"postgresql": f"VACUUM ANALYZE {table}", "sqlite": "ANALYZE"}
    connection.exec_driver_sql(statement.get(connection.dialect.name, f"ANALYZE TABLE {table}"))


def lowest_places(site: Site) -> Sequence[int]:
    """Return the lowest places of the pool."""
    start = first_position(site.pool) + FIRST
    return range(start, start + site.held)


def scattered_places(site: Site) -> Sequence[int]:
    """Return places all over the pool, in the order of chance."""
    gateway = first_position(site.pool) + FIRST - 1
    return [place for place in scattered(site.pool, site.held + 1, SEED) if place != gateway][: site.held]


def _owner(turn: int) -> str:
    return f"unnamed/former.{turn}"


async def _fill_ledger(url: str, name: str, places: Sequence[int]) -> None:
    """Put holdings into the ledger, as the rows in Neutron's database tell of them."""
    store = await open_store(url)
    try:
        space = (await store.locate([name]))[name]
        configuration = await store.configuration(space)
        assert configuration is not None
        network = configuration.network(name).id
    finally:
        await store.close()
    dsn, schema = split_url(url)
    connection = await asyncpg.connect(dsn, server_settings={"search_path": schema})
    try:
        records = _holdings(space, network, places)
        await connection.copy_records_to_table("holding", records=records, columns=RAW_COLUMNS, schema_name=schema)
        await connection.execute("SELECT setval('holding_generation', $1)", len(places))
        await connection.execute("VACUUM ANALYZE holding")
    finally:
        await connection.close()


def _holdings(space: int, network: int, places: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    state, now = STATE_NUMBER[State.HELD], time.time_ns() // 1000
    for turn, place in enumerate(places, 1):
        first = key(place)
        yield (space, network, turn, now, state, first, first, f"{REALM}:{_owner(turn)}", "0")
