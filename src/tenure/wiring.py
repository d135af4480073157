"""URL in, ledger out: the only place where stores, servers and service meet."""

import math
import os
import random
import re
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from tenure.client.server_urls import names_servers, read_servers
from tenure.kernel.errors import Invalid
from tenure.kernel.extras import how_to_install
from tenure.kernel.names import check_seconds, shown
from tenure.kernel.plan.plan_model import Configuration
from tenure.ports import LedgerStore
from tenure.service.engine.book_engine import BookEngine
from tenure.service.engine.engine import Engine
from tenure.service.engine.meter import Meter
from tenure.service.engine.reply_cleanup import MOST_KEYS
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.service.ledger.blocking.ledger_sync import Ledger
from tenure.service.ledger.blocking.loop_thread import LoopThread
from tenure.service.ledger.engine_ledger import ledger_on

if TYPE_CHECKING:
    from tenure.stores.postgres.store import PostgresStore

DEFAULT_URL = "sqlite:///tenure.db"

DAY_S = 86_400.0

TIMEOUT_S = 10.0
LEAST_TIMEOUT_S, MOST_TIMEOUT_S = 1.0, 3600.0
"""How long a server that is frozen or cut off may hold the others up, on PostgreSQL; shorter would break off work."""


async def open_store(url: str) -> LedgerStore:
    """Open the store that a URL names. Drivers are imported only when their scheme is used."""
    if not isinstance(url, str):
        raise Invalid(f"url: text such as {DEFAULT_URL!r} is needed, not {type(url).__name__}", field="url")
    scheme = url.partition(":")[0]
    if scheme == "memory" and url in ("memory:", "memory://"):
        from tenure.stores.memory.store import MemoryStore

        return MemoryStore()
    if scheme == "sqlite":
        from tenure.stores.sqlite.store import SqliteStore

        return await SqliteStore.open(_sqlite_path(url))
    if scheme in ("postgresql", "postgres") and "://" in url:
        return await _open_postgres(url)
    raise _no_store(url)


def check_url(url: str) -> None:
    """Refuse a URL that names no store, or names it wrongly; nothing is opened."""
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        _sqlite_path(url)
    elif scheme in ("postgresql", "postgres") and "://" in url:
        _postgres_parts(url)
    elif url not in ("memory:", "memory://"):
        raise _no_store(url)


def _no_store(url: str) -> Invalid:
    if url.partition(":")[0] in ("etcd", "etcds"):
        return Invalid("url: etcd keeps a book, not a ledger with its plan; see open_book", field="url")
    if names_servers(url):
        return Invalid("url: a server keeps its store to itself; name the store", field="url")
    known = "use memory:, sqlite:///file or postgresql://…"
    return Invalid(f"url: {shown(without_secrets(url))} names no store; {known}", field="url")


async def is_there(url: str) -> bool:
    """Tell whether the store that a URL names has a ledger already; asking makes none."""
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        return _sqlite_path(url).exists()
    if scheme in ("postgresql", "postgres"):
        return await _postgres_store().has_ledger(*_postgres_parts(url))
    return True


def seal_backup(path: Path) -> None:
    """Make a finished backup one that can be read anywhere, also where nothing can be written."""
    from tenure.stores.sqlite.connection import seal

    seal(path)


def without_secrets(url: str) -> str:
    """Write a URL without who logs in, and how: messages and reports are passed around."""
    # Up to the last @, since a password may have an @ in it. The query goes as well: it may name a password.
    return re.sub(r"\?.*", "", re.sub(r"//.*@", "//", url))


def _sqlite_path(url: str) -> Path:
    path = url.removeprefix("sqlite://")
    if path == url or not path.startswith("/") or path == "/":
        raise Invalid(
            f"url: {url!r} names no file; write sqlite:///file.db, or sqlite:////absolute/file.db", field="url"
        )
    return Path(path[1:])


async def _open_postgres(url: str) -> LedgerStore:
    dsn, schema, timeout_s = _postgres_parts(url)
    return await _postgres_store().open(dsn, schema=schema, timeout_s=timeout_s)


def _postgres_store() -> "type[PostgresStore]":
    try:
        from tenure.stores.postgres.store import PostgresStore
    except ModuleNotFoundError as error:
        # Another missing module is an error of ours, and must not be reported as a missing driver.
        if error.name != "asyncpg":
            raise
        raise Invalid(f"url: PostgreSQL needs a driver: {how_to_install('postgres')}", field="url") from None
    return PostgresStore


def _postgres_parts(url: str) -> tuple[str, str, float]:
    """Split a URL into what the driver takes, the name of the schema, and the time-out of locks and transactions."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # a port that is no number is noticed only when asked for
    except ValueError as error:
        raise Invalid(f"url: {shown(without_secrets(url))} is not a URL ({error})", field="url") from None
    options = dict(parse_qsl(parts.query))
    # Our own options are taken out: the driver would pass them on to the server as settings.
    schema, timeout = options.pop("schema", "tenure"), options.pop("timeout_s", str(TIMEOUT_S))
    dsn = urlunsplit(parts._replace(query=urlencode(options)))
    return dsn, schema, _timeout_s(timeout)


def _timeout_s(text: str) -> float:
    """Read how long PostgreSQL lets a server of ours hold others up."""
    try:
        seconds = float(text)
    except ValueError:
        # NaN fails the comparison below, so both mistakes get one message.
        seconds = math.nan
    if not LEAST_TIMEOUT_S <= seconds <= MOST_TIMEOUT_S:
        wanted = f"a number of seconds from {LEAST_TIMEOUT_S:g} to {MOST_TIMEOUT_S:g} is needed"
        raise Invalid(f"timeout_s: {wanted}, not {shown(text)}", field="timeout_s")
    return seconds


async def open_book(url: str, plan: Sequence[Configuration]) -> BookEngine:
    """Open a book (``etcd://host:port/root``) under a plan that the caller keeps: spaces, at the versions he gives."""
    if not isinstance(url, str) or not url.startswith(("etcd://", "etcds://")):
        raise Invalid(f"url: {shown(without_secrets(str(url)))} names no book; use etcd://host:port/root", field="url")
    from tenure.stores.etcd.store import EtcdStore

    store = await EtcdStore.open(url)
    # Before the desk is opened: until a space has its version, the store answers every grant with *again*.
    for configuration in plan:
        await store.set_version(configuration.space, configuration.version)
    return BookEngine(store, plan, name=_server_name(), chance=random.Random())


def _server_name() -> str:
    # Chance makes the name unique: containers often share a host name and a process number.
    return f"{socket.gethostname()}/{os.getpid()}/{random.getrandbits(32):08x}"


async def open_async(url: str = DEFAULT_URL, *, token: str | None = None, keys_live_s: float = DAY_S) -> AsyncLedger:
    """Open a ledger for asyncio."""
    if names_servers(url):
        if keys_live_s != DAY_S:
            raise Invalid("keys_live_s: how long keys are remembered is the server's to say", field="keys_live_s")
        return _open_remote(url, token)
    if token is not None:
        raise Invalid("token: a store takes none; tokens are for servers (http://…)", field="token")
    return await open_metered(url, None, keys_live_s=keys_live_s)


async def open_metered(
    url: str, meter: Meter | None, *, keys_live_s: float = DAY_S, most_keys: int = MOST_KEYS
) -> AsyncLedger:
    """Open a ledger whose work is counted."""
    keys_live_us = check_seconds(keys_live_s, field="keys_live_s")
    store = await open_store(url)
    server = Engine(
        store,
        name=_server_name(),
        # Not the module's own generator: a program may seed that one, and several servers would then pick alike.
        chance=random.Random(),
        keys_live_us=keys_live_us,
        most_keys=most_keys,
        meter=meter,
    )
    return ledger_on(server)


def _open_remote(url: str, token: str | None) -> AsyncLedger:
    try:
        from tenure.client.remote_ledger import RemoteLedger
        from tenure.client.transport import Transport
    except ModuleNotFoundError as error:
        if error.name not in ("aiohttp", "msgspec"):
            raise
        raise Invalid(f"url: a server needs a client: {how_to_install('client')}", field="url") from None
    return AsyncLedger(RemoteLedger(Transport(read_servers(url), token)))


def open(url: str = DEFAULT_URL, *, token: str | None = None, keys_live_s: float = DAY_S) -> Ledger:
    """Open a ledger: ``memory:``, ``sqlite:///file`` or ``postgresql://…``; or one behind a server, ``http://…``.

    A server is asked with a ``token``. Idempotency keys are remembered for ``keys_live_s`` at least, a day unless said
    otherwise.
    """
    portal = LoopThread()
    try:
        return Ledger(portal.run(open_async(url, token=token, keys_live_s=keys_live_s)), portal)
    # Also when the caller is interrupted: the thread of the loop would stay.
    except BaseException:
        portal.close()
        raise
