"""One process that serves: opens the ledger, listens, and stops without losing what it accepted."""

import asyncio
import contextlib
import fcntl
import gc
import logging
import os
import resource
import signal
import socket
import ssl
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

import uvicorn
import uvloop

from tenure.doors.http.access.bootstrap_token import first_token
from tenure.doors.http.access.bound_scopes import bind_all
from tenure.doors.http.access.peer import check_anonymous, is_loopback
from tenure.doors.http.app import Application
from tenure.doors.http.connection.fast_allocate import Shortcut
from tenure.doors.http.connection.fast_protocol import FastProtocol
from tenure.doors.http.connection.limits_protocol import GuardedProtocol
from tenure.doors.http.observe.counters import CounterRows, ServerCounters
from tenure.doors.http.observe.request_log import Journal
from tenure.doors.http.routes.route_table import ENDPOINTS
from tenure.doors.http.server_state import Site
from tenure.doors.http.settings import Settings
from tenure.kernel.errors import Invalid
from tenure.wiring import check_url, without_secrets

BACKLOG = 2048
COLLECTED_AFTER = (20_000, 20, 50)
"""New things after which the youngest are looked at, and after how many such looks the older ones."""

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class Ready:
    """What a server says once it answers: where, on which ledger, and the first token if it made one."""

    url: str
    store: str
    token: str | None = None
    token_file: str | None = None


class Server(uvicorn.Server):
    """Serves until it is told to stop; told twice, it stops at once."""

    def __init__(self, config: uvicorn.Config, site: Site, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._site = site
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and say so."""
        await super().startup(sockets)
        try:
            self._ready()
        except BaseException:  # a loop whose servers are open never closes
            for server in self.servers:
                server.close()
            raise

    async def on_tick(self, counter: int) -> bool:
        """Look at all connections once a second; ten ticks are one."""
        if counter % 10 == 0:
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, GuardedProtocol):
                    connection.look(now)
        return await super().on_tick(counter)

    def stop(self) -> None:
        """Take no more requests, end what waits for something to happen, finish the rest."""
        if not self.should_exit:
            self._site.journal.note("stopping")
        self.should_exit = True
        self._site.stopping.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop when asked to; having done so is a good end, not one by a signal."""
        loop = asyncio.get_running_loop()
        before = {number: signal.getsignal(number) for number in SIGNALS}
        for number in SIGNALS:
            # Workers ignore SIGINT, which a terminal sends to the whole group; the supervisor stops them.
            if before[number] is not signal.SIG_IGN:
                loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; at the second signal at once, whatever is left undone."""
        if self.should_exit:
            self._site.journal.note("stopped at once", "warning", signal=signal.Signals(sig).name)
            # os._exit runs no timer and no `finally`: lines that wait for others would be lost.
            self._site.journal.sink.flush()
            # Not sys.exit: the loop would finish what it began, and the second signal says that this takes too long.
            os._exit(128 + sig)
        self.stop()


def listen(settings: Settings) -> socket.socket:
    """Bind the address that is listened on; whoever serves begins to listen."""
    try:
        [(family, *_, address), *_] = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        bound = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise Invalid(f"host: {settings.host!r}: {error.strerror or error}", field="host") from None
    try:
        # Connections of the process before keep the port for a minute; a restart must not wait for them.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.set_inheritable(True)
    except OSError as error:
        bound.close()
        raise Invalid(f"port: {settings.host} port {settings.port}: {error.strerror}", field="port") from None
    return bound


def check(settings: Settings) -> None:
    """Refuse settings that cannot work, before anything is opened."""
    check_anonymous(settings)
    check_url(settings.store)
    if settings.certificate is not None:
        for name in ("certificate", "certificate_key"):
            file = Path(getattr(settings, name))
            try:
                # Read here, because OpenSSL's own error does not say which of the two files is missing.
                file.read_bytes()
            except OSError as error:
                raise Invalid(f"{name}: {file}: {error.strerror}", field=name) from None
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            # With no password at all, OpenSSL would ask for one on the terminal.
            context.load_cert_chain(settings.certificate, settings.certificate_key, password="")
        except (ssl.SSLError, ValueError) as error:
            told = getattr(error, "reason", None) or error
            raise Invalid(f"certificate: no certificate with its key, in PEM, without a password ({told})") from None


def url_of(settings: Settings, bound: socket.socket) -> str:
    """Return where a browser finds the server."""
    host, port = bound.getsockname()[:2]
    scheme = "http" if settings.certificate is None else "https"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def serve(
    settings: Settings, bound: socket.socket, ready: Callable[[Ready], None], place: CounterRows | None = None
) -> None:
    """Serve until told to stop; then finish what was accepted, and let go of the ledger."""
    more_files()
    _collect_less()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings, bound, ready, place))


def _collect_less() -> None:
    """Look for garbage in circles less often, and never again among what is there from the start.

    A request leaves none; looking for it took a tenth of its time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTED_AFTER)


async def _serve(
    settings: Settings, bound: socket.socket, ready: Callable[[Ready], None], place: CounterRows | None
) -> None:
    site = Site(settings, ServerCounters(place))
    # Before the site opens: the application lays the counters out anew for its routes, and earlier counts are dropped.
    application = Application(site, ENDPOINTS)
    log_to(site.journal)
    try:
        await site.open()
        try:
            token = await _first_token(site, settings)
            await bind_all(site.ledger)
            said = Ready(url_of(settings, bound), without_secrets(settings.store), token, settings.first_token_file)
            shortcut = Shortcut(site, ENDPOINTS)
            config = _config(settings, application, partial(FastProtocol, site, shortcut))
            server = Server(config, site, partial(_begun, site, settings, said, ready))
            with _while_parent_lives(server):
                await server.serve([bound])
            shortcut.give_up()  # the server has cancelled what else it could wait for no longer
        finally:
            await site.close()
            site.journal.note("stopped")
    finally:
        site.journal.sink.flush()


def _begun(site: Site, settings: Settings, said: Ready, ready: Callable[[Ready], None]) -> None:
    site.journal.note("serving", url=said.url, store=said.store, pid=os.getpid())
    if settings.certificate is None and not is_loopback(settings.host):
        told = "tokens travel in the clear: set certificate and certificate_key, or put a proxy with TLS before it"
        site.journal.note("no TLS", "warning", advice=told)
    site.journal.sink.flush()
    ready(said)


def _config(settings: Settings, application: Application, protocol: Any) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http=protocol,
        loop="uvloop",
        ws="none",
        interface="asgi3",
        # The site is open before the server listens, and is closed behind it.
        lifespan="off",
        # Lines are the journal's: `log_to` passes on what libraries log, and each request has a line of its own.
        log_config=None,
        access_log=False,
        server_header=False,
        # Every client can send X-Forwarded-For; failures are counted by the address of the socket.
        proxy_headers=False,
        backlog=BACKLOG,
        # The supervisor starts the workers; each of them is a server of its own.
        workers=1,
        timeout_graceful_shutdown=settings.grace_s,  # type: ignore[arg-type]
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.certificate_key,
    )


async def _first_token(site: Site, settings: Settings) -> str | None:
    """Make the first admin token, if there is none; where a file is named, it goes there and nowhere else."""
    name = settings.first_token_file
    if name is None:
        return await first_token(site.ledger)
    with _private_file(name) as file:  # opened first: a token that cannot be written down would be lost
        token = await first_token(site.ledger)
        if token is not None:
            # Only now: without a new token, an older one in the file must stay.
            file.truncate(0)
            file.write(f"{token}\n")
    return None


@contextlib.contextmanager
def _private_file(name: str) -> Iterator[TextIO]:
    """Open a file that only its owner can read; if nothing is written to a new one, it goes again.

    Servers of one machine may name the same file. Each has it alone: while it is empty, another would take it away, and
    a token that is written into it would be lost.
    """
    # `w` truncates nothing where a descriptor is given: an older token stays until a new token is written.
    with os.fdopen(_alone(name), "w") as file:
        try:
            yield file
        finally:
            # Text that is still in the buffer has no size yet.
            file.flush()
            if not os.fstat(file.fileno()).st_size:
                os.unlink(name)


def _alone(name: str) -> int:
    """Open a file, and lock it until it is closed; one that went while its lock was waited for is opened again."""
    own = stat.S_IRUSR | stat.S_IWUSR
    while True:
        with _told_of(name):
            # A symbolic link could lead the token into a file that others read.
            descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, own)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if _is_file(descriptor, name):
            break
        os.close(descriptor)
    try:
        with _told_of(name):
            # The mode above counts for a new file only.
            os.fchmod(descriptor, own)
    except Invalid:
        # A file that was only just made must not stay behind empty.
        if not os.fstat(descriptor).st_size:
            os.unlink(name)
        os.close(descriptor)
        raise
    return descriptor


def _is_file(descriptor: int, name: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(name, follow_symlinks=False))
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def _told_of(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Invalid(f"first_token_file: {name}: {error.strerror}", field="first_token_file") from None


class _ToJournal(logging.Handler):
    """Passes on what libraries have to say."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(logging.WARNING)
        self._journal = journal

    def emit(self, record: logging.LogRecord) -> None:
        """Write it down."""
        trace = {} if record.exc_info is None else {"traceback": logging.Formatter().formatException(record.exc_info)}
        self._journal.note(record.getMessage(), record.levelname.lower(), logger=record.name, **trace)


def log_to(journal: Journal) -> None:
    """Have warnings of all libraries written to the journal, as lines like all others."""
    root = logging.getLogger()
    root.handlers[:] = [_ToJournal(journal)]
    root.setLevel(logging.WARNING)
    for name in ("asyncio", "asyncpg"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # what it warns of, connections have told already


@contextlib.contextmanager
def _while_parent_lives(server: Server) -> Iterator[None]:
    """Stop when the process that started this worker is gone: nobody else would stop it."""
    from multiprocessing import parent_process

    parent, loop = parent_process(), asyncio.get_running_loop()
    if parent is None:
        yield
        return

    def orphaned() -> None:
        # A closed pipe stays readable: without this the loop would call for ever.
        loop.remove_reader(parent.sentinel)
        server.stop()

    loop.add_reader(parent.sentinel, orphaned)
    try:
        yield
    finally:
        loop.remove_reader(parent.sentinel)


def more_files() -> None:
    """Let the process have as many open connections as the system allows it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
