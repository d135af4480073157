"""A real MariaDB for tests, one for a whole run: the database under most Neutrons, with its REPEATABLE READ.

The programs come from the system's packages (``tools/install_servers.sh``). The run's server is started by the first
process that needs one and found by the others through the run's folder; whoever made the folder stops it. Where there
is none, what needs one fails; ``TENURE_WITHOUT_MARIADB=1`` has it skipped instead.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
import unittest
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pymysql

from tests.infrastructure.postgres import RUN_FOLDER, once_a_run

WITHOUT = "TENURE_WITHOUT_MARIADB"
START_S = 60
SETTINGS = (
    "--skip-networking",
    "--skip-name-resolve",
    "--max-connections=500",
    "--character-set-server=utf8mb4",
    "--collation-server=utf8mb4_general_ci",
    "--innodb-buffer-pool-size=64M",
    "--innodb-lock-wait-timeout=50",
)
THROWN_AWAY = ("--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=OFF", "--innodb-fast-shutdown=2")
"""For a server that is never killed: nothing waits for the disk."""

HOW_TO_HAVE_IT = f"run tools/install_servers.sh, or leave out what needs MariaDB with {WITHOUT}=1"


class MissingMariadb(RuntimeError):
    """Raised where a program of MariaDB is not installed."""


def left_out() -> bool:
    """Tell whether whoever runs the tests wants them without MariaDB."""
    return os.environ.get(WITHOUT) == "1"


def missing() -> list[str]:
    """List the programs that are not installed."""
    return [name for name in ("mariadbd", "mariadb-install-db") if _find(name) is None]


def headline() -> str:
    """Say in a line which databases run under Neutron in this run."""
    if left_out():
        return f"Neutron's databases: PostgreSQL, SQLite; MARIADB IS LEFT OUT, ITS TESTS ARE SKIPPED ({WITHOUT}=1)"
    if missing():
        return f"Neutron's databases: PostgreSQL, SQLite; MARIADB IS MISSING, ITS TESTS WILL FAIL: {HOW_TO_HAVE_IT}"
    return "Neutron's databases: PostgreSQL, SQLite, MariaDB"


class MariadbServer:
    """A MariaDB in a folder of its own, reached by a socket in that folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "socket"
        self._data = folder / "data"
        self._pid_file = folder / "pid"
        self._log = folder / "log"

    def create(self) -> None:
        """Make an empty data directory, whose root has no password."""
        self.folder.mkdir(parents=True)
        command = [
            _program("mariadb-install-db"), "--no-defaults", f"--datadir={self._data}", *_account(),
            "--auth-root-authentication-method=normal", "--skip-test-db",
        ]  # fmt: skip
        done = subprocess.run(command, check=False, capture_output=True, encoding="utf-8", stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise RuntimeError(f"mariadb-install-db failed: {done.stdout}{done.stderr}")

    def start(self) -> None:
        """Start the server, which outlives this process, and wait until it answers."""
        command = [
            _program("mariadbd"), "--no-defaults", *_account(), f"--datadir={self._data}", f"--socket={self.socket}",
            f"--pid-file={self._pid_file}", f"--log-error={self._log}", *SETTINGS, *THROWN_AWAY,
        ]  # fmt: skip
        quiet = subprocess.DEVNULL
        aside = ["sh", "-c", '"$@" &', "sh", *command]  # it is the child of no process of the run
        subprocess.run(aside, check=True, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
        deadline = time.monotonic() + START_S
        while not self._answers():
            if time.monotonic() > deadline:
                raise RuntimeError(self._log.read_text("utf-8") if self._log.exists() else "mariadbd did not start")
            time.sleep(0.05)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.socket)) == 0

    def connect(self) -> pymysql.Connection:
        """Connect as root, each statement a transaction of its own."""
        return pymysql.connect(unix_socket=str(self.socket), user="root", autocommit=True)

    def stop(self) -> None:
        """Stop the server, if it runs, and wait until it is gone."""
        if not self._pid_file.exists():
            return
        pid = int(self._pid_file.read_text("utf-8"))
        if _alive(pid):
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + START_S
        while _alive(pid):
            if time.monotonic() > deadline:
                raise RuntimeError(f"mariadbd {pid} did not stop")
            time.sleep(0.05)


def shared_mariadb() -> MariadbServer:
    """Return the run's server; the first to ask starts it."""
    if left_out():
        raise unittest.SkipTest(f"MariaDB is left out: {WITHOUT}=1")  # pytest takes it as a skip, a soak as a failure
    server = MariadbServer(Path(os.environ[RUN_FOLDER]) / "mariadb")
    with once_a_run("mariadb") as first:
        if first:
            server.create()
            server.start()
    return server


@contextmanager
def fresh_database() -> Iterator[str]:
    """Give the URL, in SQLAlchemy's words, of an empty database that nobody used before, and drop it afterwards."""
    server = shared_mariadb()
    name = f"t_{secrets.token_hex(6)}"
    _execute(server, f"CREATE DATABASE {name}")
    try:
        yield f"mysql+pymysql://root@localhost/{name}?unix_socket={server.socket}"
    finally:
        for connection in _execute(server, f"SELECT id FROM information_schema.processlist WHERE db = '{name}'"):
            _execute(server, f"KILL {connection[0]}")  # an open transaction would hold the tables for ever
        _execute(server, f"DROP DATABASE {name}")


def _execute(server: MariadbServer, statement: str) -> Sequence[tuple[Any, ...]]:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return tuple(cursor.fetchall())


def _account() -> list[str]:
    return ["--user=root"] if os.geteuid() == 0 else []


def _find(name: str) -> str | None:
    # Debian leaves the folders of daemons out of the path of ordinary users.
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin")


def _program(name: str) -> str:
    found = _find(name)
    if found is None:
        raise MissingMariadb(f"{name} is not installed; {HOW_TO_HAVE_IT}")
    return found


def _alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)  # where nobody buries the dead
    except psutil.NoSuchProcess:
        return False
