"""Running servers for tests: ``tenure serve`` on free ports, each with a ledger of its own unless one is named.

``async with running() as server`` gives a server, an admin's token, and a client that speaks with it.
"""

import asyncio
import json
import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from yarl import URL

import tenure
from tenure.doors.http.access.token_store import Made, TokenRequest, add_token
from tests.infrastructure.forked_tenure import ForkedTenure

API = "/api/v1"
STOPS_WITHIN_S = 30
LOOSE = {"failures": 100_000}
"""Limits for tests that are wrong often, all from one address."""


@dataclass(slots=True)
class Answer:
    """What a server said."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    cookies: Mapping[str, Any] = field(default_factory=dict)

    @property
    def json(self) -> Any:
        """Return the body as JSON."""
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """Return the code of a problem."""
        assert self.headers["content-type"] == "application/problem+json", self.body
        return str(self.json["code"])


class Client:
    """Speaks HTTP with one server; keeps no cookies and follows nothing by itself."""

    def __init__(self, session: aiohttp.ClientSession, url: str, token: str | None) -> None:
        self._session = session
        self.url = url
        self.token = token

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        below: str = API,
        whole: bool = True,
    ) -> Answer:
        """Send one request and read its answer: ``whole``, or only its head. Paths are below /api/v1 unless said."""
        said = dict(headers or {})
        given = self.token if token is None else token
        if given and "Authorization" not in said:
            said["Authorization"] = f"Bearer {given}"
        where = URL(self.url + below + path, encoded=True)
        async with self._session.request(method, where, json=body, headers=said, allow_redirects=False) as answer:
            said_back = await answer.read() if whole or answer.status >= 400 else b""
            return Answer(answer.status, answer.headers, said_back, answer.cookies)

    async def get(self, path: str, **more: Any) -> Any:
        """Read something that is there."""
        answer = await self.ask("GET", path, **more)
        assert answer.status == 200, answer.body
        return answer.json

    async def post(self, path: str, body: object = None, **more: Any) -> Any:
        """Do something that succeeds."""
        answer = await self.ask("POST", path, {} if body is None else body, **more)
        assert answer.status in (200, 201, 204), answer.body
        return answer.json if answer.body else None


@dataclass
class Server:
    """A server that runs: where, on which store, who may do everything there, and what it wrote to its log."""

    url: str
    store: str
    admin: str
    folder: Path
    process: ForkedTenure[str]
    settings: dict[str, Any]
    starts: int = 0

    @property
    def port(self) -> int:
        """Return the port it listens on."""
        return int(self.url.rpartition(":")[2])

    @property
    def log(self) -> str:
        """Return all that it wrote so far, on both outputs."""
        return "".join(path.read_text("utf-8") for path in sorted(self.folder.glob("*.log")))

    def kill(self) -> None:
        """Kill it, as a loss of power would."""
        self.process.kill()

    async def stop(self) -> int:
        """Ask it to stop, and return its exit code."""
        self.process.terminate()
        return await self._ended()

    async def _ended(self) -> int:
        code = await asyncio.to_thread(self.process.wait, STOPS_WITHIN_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    async def restart(self) -> None:
        """Start it again where it was."""
        await self._ended()
        self.starts += 1
        log = self.folder / f"{self.starts:03}.log"
        self.process, _ = await _start(log, {**self.settings, "port": self.port})

    async def token(self, name: str, *scopes: str, **more: Any) -> str:
        """Make a token by hand, in the ledger itself."""
        return await token_in(self.store, name, *scopes, **more)

    @asynccontextmanager
    async def client(self, token: str | None = None) -> AsyncIterator[Client]:
        """Give a client with the admin's token, or another; an empty one is none."""
        jar = aiohttp.DummyCookieJar()
        async with aiohttp.ClientSession(cookie_jar=jar) as session:
            yield Client(session, self.url, self.admin if token is None else token)


async def token_in(store: str, name: str, *scopes: str, **more: Any) -> str:
    """Make a token in a ledger."""
    async with await tenure.open_async(store) as ledger:
        made: Made = await add_token(ledger, TokenRequest(name, scopes, **more), by="tests")
        assert made.text is not None
        return made.text


@asynccontextmanager
async def running(store: str | None = None, *, admin: str | None = None, **settings: Any) -> AsyncIterator[Server]:
    """Run a server in a process of its own: on a new SQLite file unless a store is named.

    ``settings`` are those of the server; ``limits`` may be a dictionary of some of them. Servers that share a store
    share the admin's token, too: pass ``admin``.
    """
    with tempfile.TemporaryDirectory(prefix="tenure-rest-") as name:
        folder = Path(name)
        where = store or f"sqlite:///{folder / 'ledger.db'}"
        token = admin or await token_in(where, f"stage-{folder.name}", "admin")
        said = {"store": where, "host": "127.0.0.1", "port": 0, **settings}
        process, url = await _start(folder / "000.log", said)
        server = Server(url, where, token, folder, process, said)
        try:
            yield server
        finally:
            await server.stop()


async def _start(log: Path, settings: dict[str, Any]) -> tuple[ForkedTenure[str], str]:
    """Start ``tenure serve`` and wait until it says where it is."""
    return await asyncio.to_thread(_started, log, settings)


def _started(log: Path, settings: dict[str, Any]) -> tuple[ForkedTenure[str], str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TENURE_S")}
    with log.open("wb") as errors:
        process = ForkedTenure[str](
            ["serve", "--json", *_flags(settings)], strict=True, encoding="utf-8", env=kept,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
        )  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        process.communicate(timeout=STOPS_WITHIN_S)
        raise RuntimeError(f"the server did not start:\n{log.read_text('utf-8')}")
    return process, str(json.loads(line)["url"])


def _flags(settings: dict[str, Any]) -> list[str]:
    """Write settings as flags."""
    flags: list[str] = []
    for name, value in {**settings, **settings.get("limits", {})}.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            flags.append(f"--{flag}" if value else f"--no-{flag}")
        elif name != "limits":
            flags += [f"--{flag}", str(value)]
    return flags
