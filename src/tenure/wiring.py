"""URL in, ledger out: the only place where stores and service meet."""

import os
import random
import socket
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from tenure.kernel.errors import Invalid
from tenure.ports import LedgerStore
from tenure.service.blocking import Ledger
from tenure.service.ledger import AsyncLedger
from tenure.service.portal import Portal
from tenure.service.server import Server

DEFAULT_URL = "sqlite:///tenure.db"


async def open_store(url: str) -> LedgerStore:
    """Open the store that a URL names. Drivers are imported only when their scheme is used."""
    if not isinstance(url, str):
        raise Invalid(f"url: text such as {DEFAULT_URL!r} is needed, not {type(url).__name__}", field="url")
    scheme = url.partition(":")[0]
    if scheme == "memory":
        from tenure.stores.memory.store import MemoryStore

        return MemoryStore()
    if scheme == "sqlite":
        from tenure.stores.sqlite.store import SqliteStore

        return await SqliteStore.open(_sqlite_path(url))
    if scheme in ("postgresql", "postgres"):
        return await _open_postgres(url)
    raise Invalid(f"url: {url!r} names no store; use memory:, sqlite:///file or postgresql://…", field="url")


def _sqlite_path(url: str) -> Path:
    path = url.removeprefix("sqlite://")
    if path == url or not path.startswith("/") or path == "/":
        raise Invalid(
            f"url: {url!r} names no file; write sqlite:///file.db, or sqlite:////absolute/file.db", field="url"
        )
    return Path(path[1:])


async def _open_postgres(url: str) -> LedgerStore:
    try:
        from tenure.stores.postgres.store import PostgresStore
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise Invalid("url: PostgreSQL needs a driver: pip install 'tenure[postgres]'", field="url") from None
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    schema = options.pop("schema", "tenure")
    return await PostgresStore.open(urlunsplit(parts._replace(query=urlencode(options))), schema=schema)


async def open_async(url: str = DEFAULT_URL) -> AsyncLedger:
    """Open a ledger for asyncio."""
    store = await open_store(url)
    name = f"{socket.gethostname()}/{os.getpid()}/{random.getrandbits(32):08x}"
    at_once = 2 if store.abilities.parallel_writes else 1
    return AsyncLedger(Server(store, name=name, chance=random.Random(), at_once=at_once))


def open(url: str = DEFAULT_URL) -> Ledger:
    """Open a ledger: ``memory:``, ``sqlite:///file`` or ``postgresql://…``."""
    portal = Portal()
    try:
        return Ledger(portal.run(open_async(url)), portal)
    except BaseException:
        portal.close()
        raise
