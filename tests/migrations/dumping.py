"""Write down a small ledger as this release keeps it: ``python -m tests.migrations.dumping``.

Run it once for a release, and never again for the same one: later code must open what earlier code wrote.
"""

import argparse
import asyncio
import re
import sqlite3
import subprocess
import tempfile
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import tenure
from tests.infrastructure.postgres import fresh_schema, program, run_folder

DUMPS = Path(__file__).parent / "dumps"
SCHEMA = "a_release"
"""What the schema of PostgreSQL is called in a dump; whoever reads it puts its own name there."""


async def furnish(url: str) -> None:
    """Let every kind of thing be there: each state of a holding, each object of a plan, keys, papers, a line."""
    async with await tenure.open_async(url) as opened:
        ledger = opened.asked_by("token/ops", request_id="release")
        await ledger.add_network(
            "net", tags=["t"], labels={"site": "north"}, description="first", mac_prefix="aa:00:01"
        )
        await ledger.add_subnet(
            "net", "192.0.2.0/24", gateway="192.0.2.1", name="four", dns=["192.0.2.2"], zones=["z1"]
        )
        await ledger.add_subnet("net", "2001:db8::/56", name="six", unit=64)
        await ledger.add_pool("net", "192.0.2.10-192.0.2.14", name="small")
        await ledger.add_pool("net", "192.0.2.100-192.0.2.200", name="big", policy="sticky", cooling_s=3600)
        await ledger.add_pool("net", "2001:db8::/60", name="blocks", policy="random")
        await ledger.reserve("net", "192.0.2.150-192.0.2.159", reason="printers", labels={"by": "hand"})
        await ledger.preallocate("net", "vm/awaited", "192.0.2.110")
        await ledger.add_network("twin", space="site")
        await ledger.add_network("other", space="site", kind="vip")
        await ledger.apply([tenure.Connect(network="net", group="racks", mode="bridged", link="br0")])
        await ledger.allocate_many("net", owner="vm/full", count=5, pool="small", key="many")
        await ledger.allocate(
            "net", owner="vm/kept", pool="big", labels={"a": "b"}, carrier="host-1", plan="p", key="one"
        )
        await ledger.hold("net", owner="vm/pending", pool="big", lasts_s=3600)
        cooled = await ledger.allocate("net", owner="vm/cooled", pool="big", request="deploy-1")
        await ledger.release("net", cooled.address, owner="vm/cooled", request="deploy-2")
        moved = await ledger.allocate("net", owner="vm/before", pool="big", slot="nic0")
        await ledger.transfer("net", moved.address, owner="vm/before", to="vm/after", to_slot="nic1")
        draining = await ledger.allocate("net", owner="vm/draining", pool="big")
        await ledger.modify_holding("net", draining.address, owner="vm/draining", state="draining")
        await ledger.allocate("net", owner="pod/six", pool="blocks")
        await ledger.claim("net", owner="vm/waiting", pool="small", patience_s=86_400 * 30)
        await ledger.apply([tenure.WritePaper(kind="instance", name="vm", document={"nics": []})])


async def sqlite_dump() -> str:
    """Write the ledger as SQLite keeps it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        await furnish(f"sqlite:///{path}")
        with closing(sqlite3.connect(path)) as connection:
            [number] = connection.execute("PRAGMA user_version").fetchone()
            return "\n".join([*connection.iterdump(), f"PRAGMA user_version = {number};"])


async def postgres_dump() -> str:
    """Write the ledger as PostgreSQL keeps it."""
    async with fresh_schema() as url:
        await furnish(url)
        server, _, schema = url.partition("&schema=")
        options = ["--schema", schema, "--inserts", "--no-owner", "--no-privileges", "--no-comments"]
        command = [program("pg_dump"), *options, "--dbname", server]
        done = await asyncio.to_thread(subprocess.run, command, check=True, stdout=subprocess.PIPE, text=True)
        dumped = done.stdout
    lines = [line for line in dumped.replace(schema, SCHEMA).splitlines() if line and not line.startswith(("--", "\\"))]
    return "\n".join(line for line in lines if not re.match(r"SET |SELECT pg_catalog.set_config|CREATE SCHEMA ", line))


def main() -> None:
    """Write both dumps of the installed version."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--again", action="store_true", help="write over dumps of the same version, before it is released"
    )
    again = parser.parse_args().again
    for store, dump in (("sqlite", sqlite_dump), ("postgres", postgres_dump)):
        place = DUMPS / f"{version('tenure')}-{store}.sql"
        if place.exists() and not again:
            raise SystemExit(f"{place.name} is there: a release's dump is never written again")
        place.parent.mkdir(exist_ok=True)
        with run_folder():
            place.write_text(asyncio.run(dump()) + "\n", "utf-8")


if __name__ == "__main__":
    main()
