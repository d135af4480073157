"""A ledger on a real PostgreSQL that pools of real clusters are bound to, reached by its store or by a server."""

import contextlib
import json
import secrets
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tenure
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_POOL
from tenure.integrations.kubernetes.runtime.resource_types import SECRET, Object
from tests.infrastructure.free_port import free_port
from tests.infrastructure.postgres import schema_in_thread
from tests.integrations.kubernetes.metal3.serving import Namespace, until
from tests.proof.http_pair import wait_until_ready

ROOT = Path(__file__).parents[5]
SPACE, NETWORK, SECRET_NAME = "site", "machines", "tenure-ledger"
BLOCK, FIRST, LAST = "10.9.0.0/24", "10.9.0.10", "10.9.0.19"
"""Ten addresses to pick from."""


@contextlib.contextmanager
def planned_ledger(last: str = LAST) -> Iterator[str]:
    """Give the URL of a ledger with a network of one pool."""
    with schema_in_thread() as url:
        with tenure.open(url) as ledger:
            ledger.add_network(NETWORK, space=SPACE)
            ledger.add_subnet(NETWORK, BLOCK, gateway="10.9.0.1", dns=["10.9.0.53"])
            ledger.add_pool(NETWORK, f"{FIRST}-{last}")
        yield url


def say_where(place: Namespace, url: str, token: str = "") -> None:
    """Write the Secret that says where the ledger is, or write it again."""
    said = {"url": url, **({"token": token} if token else {})}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET_NAME}, "stringData": said}
    if place.get(SECRET, SECRET_NAME) is None:
        place.ask("POST", SECRET.path(place.name), body)
    else:
        place.ask("PATCH", SECRET.path(place.name, SECRET_NAME), {"stringData": said})


def bound_pool(
    place: Namespace, realm: str, *ranges: str, name: str = "p", network: str = NETWORK, **spec: Any
) -> Object:
    """Create a pool that is bound to a network; without ranges it gives what the network has."""
    entries = [dict(zip(("start", "end"), each.split("-"), strict=True)) for each in ranges]
    bound = {"network": network, "realm": realm, "secretName": SECRET_NAME}
    fields = {"namePrefix": name, "tenure": {"ledger": bound}, **({"pools": entries} if entries else {}), **spec}
    return place.create(IP_POOL, name, fields)


def owner(realm: str, place: Namespace, claim: str) -> str:
    """Return a claim as the ledger names it."""
    return f"{realm}:ipclaim/{place.name}/{claim}"


def held(ledger: tenure.Ledger) -> dict[str, str]:
    """Return who holds what in the network: addresses by owner."""
    return {str(each.owner): each.address for each in ledger.holdings(NETWORK) if each.state == "held"}


def until_held(ledger: tenure.Ledger, expected: dict[str, str]) -> None:
    """Wait until the ledger holds exactly this."""
    with contextlib.suppress(AssertionError):
        until(lambda: held(ledger) == expected, within_s=40)
    assert held(ledger) == expected


class LedgerServer:
    """A server of a ledger as a process of its own, to be killed and started again where it was."""

    def __init__(self, store: str, folder: Path) -> None:
        self._store = store
        self._folder = folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Return where it serves."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def token(self) -> str:
        """Return a token that may do all."""
        return (self._folder / "token").read_text("ascii").strip()

    def token_for(self, name: str, *scopes: str) -> str:
        """Return a new token that may do some things."""
        body = json.dumps({"name": name, "scopes": scopes}).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        asked = urllib.request.Request(f"{self.url}/api/v1/tokens", body, headers)  # noqa: S310 - ours
        with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310
            return str(json.load(answer)["token"])

    def start(self) -> None:
        """Start it, and wait until it serves."""
        words = ["serve", "--store", self._store, "--port", str(self.port), "--log", "json", "--grace-s", "2"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tenure.doors.cli", *words, "--first-token-file", str(self._folder / "token")],
                cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        wait_until_ready(self.port)

    def kill(self) -> None:
        """Kill it (``kill -9``), and wait until it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)


@contextlib.contextmanager
def ledger_server(store: str) -> Iterator[LedgerServer]:
    """Serve a ledger for as long as the block."""
    with TemporaryDirectory(prefix="tenure-ledger-") as folder:
        server = LedgerServer(store, Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.kill()


@contextlib.contextmanager
def hanging_server() -> Iterator[tuple[int, Callable[[], None]]]:
    """Give a port whose connections are taken and never answered, and what ends that for new connections."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = listener.getsockname()[1]

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    stack.enter_context(listener.accept()[0])

        def end() -> None:
            listener.shutdown(socket.SHUT_RDWR)  # which ends the thread's waiting; what was taken stays open
            listener.close()
            taking.join(10)

        taking = threading.Thread(target=accept)
        taking.start()
        stack.callback(lambda: end() if listener.fileno() >= 0 else None)
        yield port, end


def some_realm() -> str:
    """Return a name of a cluster that no other test has."""
    return f"east-{secrets.token_hex(3)}"
