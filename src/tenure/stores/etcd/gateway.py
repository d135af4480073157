"""etcd's JSON gateway over plain HTTP: ask, and know whether the question left the house.

Why not the client ``etcd3gw``: it tells a refused connection and a lost answer by the same error, though the one
changed nothing and the other may have; and its watch never times out, drops the notice that the history was
compacted, and loses whatever its thread raises. What remains of it is a POST, which the standard library has.

Questions run in a few threads, each on a kept connection. Nothing is ever sent twice from here: whoever asks knows
whether repeating is safe.
"""

import asyncio
import base64
import json
import select
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Literal, TypeVar

from tenure.kernel.errors import StoreUnavailable

T = TypeVar("T")

CONNECT_S = 3.0
ANSWER_S = 10.0
THREADS = 8
LOST = (OSError, HTTPException)

OUT_OF_RANGE = 11
REFUSED = frozenset({3, 7, 8, 12, 16})
"""gRPC codes with which etcd refuses before it does anything: bad request, no right, no room, unknown, no login."""

Endpoint = tuple[str, int]


class Compacted(Exception):
    """The asked-for revision is no longer in etcd's history; ``oldest`` is the first that is, where etcd tells."""

    def __init__(self, oldest: int = 0) -> None:
        super().__init__(f"compacted up to {oldest}")
        self.oldest = oldest


class Gateway:
    """A few connections to the members of one etcd."""

    def __init__(
        self, endpoints: Sequence[Endpoint], *, tls: ssl.SSLContext | None = None, answer_s: float = ANSWER_S
    ) -> None:
        self._endpoints = deque(endpoints)
        self._tls = tls
        self._answer_s = answer_s
        self.revision = 0
        """The highest that etcd has named in an answer: whatever is written from now on has a higher one."""
        self._idle: deque[HTTPConnection] = deque()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="tenure-etcd")

    async def ask(self, path: str, question: dict[str, Any], *, changes: bool) -> dict[str, Any]:
        """Ask once. ``changes``: a lost answer may hide an effect."""
        answer = await self._in_thread(lambda: self._ask(path, question, changes))
        self.revision = max(self.revision, int(answer.get("header", {}).get("revision", 0)))
        return answer

    async def history(self, question: dict[str, Any], *, upto: int, limit: int) -> list[dict[str, Any]]:
        """Read past events in order, until the one of revision ``upto`` (which must be one) or ``limit`` are there."""
        return await self._in_thread(lambda: self._history(question, upto, limit))

    async def close(self) -> None:
        """Finish what was asked and let the connections go."""
        await asyncio.to_thread(self._threads.shutdown)
        self._drop_idle()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _ask(self, path: str, question: dict[str, Any], changes: bool) -> dict[str, Any]:
        connection = self._connection()
        try:
            response = _post(connection, path, question)
            text = response.read()
        except LOST as error:
            raise self._lost(connection, error, "unknown" if changes else "none") from error
        # Before the answer is judged: a refusal is a whole answer, too, and the connection is good for more.
        self._idle.append(connection)
        return _checked(response.status, text, changes)

    def _history(self, question: dict[str, Any], upto: int, limit: int) -> list[dict[str, Any]]:
        connection = self._connection()
        events: list[dict[str, Any]] = []
        try:
            response = _post(connection, "watch", {"create_request": question})
            while not events or (int(events[-1]["kv"]["mod_revision"]) < upto and len(events) < limit):
                events.extend(_read_events(response.readline()))
        except LOST as error:
            raise self._lost(connection, error, "none") from error
        finally:
            connection.close()  # the only way to end a watch
        return events

    def _connection(self) -> HTTPConnection:
        """Take a kept connection that is still good, or make one; not getting one changed nothing."""
        while self._idle:
            try:
                kept = self._idle.pop()
            except IndexError:  # another thread was quicker
                break
            if _is_good(kept):
                return kept
            kept.close()
        failure: OSError | None = None
        # A copy: another thread may rotate the members while this one tries them.
        for host, port in list(self._endpoints):
            try:
                return self._connect(host, port)
            except OSError as error:
                failure = error
        members = ", ".join(f"{host}:{port}" for host, port in self._endpoints)
        raise StoreUnavailable(f"cannot reach etcd at {members}: {failure}", outcome="none") from failure

    def _connect(self, host: str, port: int) -> HTTPConnection:
        if self._tls is None:
            connection = HTTPConnection(host, port, timeout=CONNECT_S)
        else:
            connection = HTTPSConnection(host, port, timeout=CONNECT_S, context=self._tls)
        try:
            connection.connect()
        except OSError:
            connection.close()
            raise
        # A member that does not accept is given up sooner than one that works at an answer.
        connection.sock.settimeout(self._answer_s)
        return connection

    def _lost(
        self, connection: HTTPConnection, error: Exception, outcome: Literal["none", "unknown"]
    ) -> StoreUnavailable:
        """Drop every connection: the others lead to the same member, and the next try should ask another."""
        connection.close()
        self._drop_idle()
        self._endpoints.rotate(-1)
        return StoreUnavailable(f"etcd was lost: {error or type(error).__name__}", outcome=outcome)

    def _drop_idle(self) -> None:
        while self._idle:
            try:
                self._idle.pop().close()
            except IndexError:
                return


def _post(connection: HTTPConnection, path: str, question: dict[str, Any]) -> HTTPResponse:
    body = json.dumps(question, separators=(",", ":")).encode()
    connection.request("POST", f"/v3/{path}", body, {"Content-Type": "application/json"})
    return connection.getresponse()


def _is_good(connection: HTTPConnection) -> bool:
    """Tell whether a kept connection still stands: a member that went away makes it readable."""
    if connection.sock is None:
        return False
    watcher = select.poll()
    watcher.register(connection.sock, select.POLLIN)
    return not watcher.poll(0)


def _checked(status: int, text: bytes, changes: bool) -> dict[str, Any]:
    """Read an answer, or raise what etcd said instead of one."""
    try:
        answer: dict[str, Any] = json.loads(text)
    except ValueError:
        answer = {"message": f"status {status} and no JSON; is this etcd 3.4 or newer?"}
        # A page of some other program with status 200 must not pass for an answer.
        status = status if status != 200 else 0
    if status == 200:
        return answer
    code, message = answer.get("code"), str(answer.get("message") or answer.get("error"))
    if code == OUT_OF_RANGE and "compacted" in message:
        raise Compacted
    outcome: Literal["none", "unknown"] = "unknown" if changes and code not in REFUSED else "none"
    raise StoreUnavailable(f"etcd answered: {message}", outcome=outcome)


def _read_events(line: bytes) -> list[dict[str, Any]]:
    """Read one message of a watch."""
    if not line:
        raise ConnectionError("the watch ended early")
    try:
        message = json.loads(line)
    except ValueError:
        raise ConnectionError("the watch answered something that is no JSON") from None
    if "error" in message:
        raise ConnectionError(str(message["error"]))
    result = message["result"]
    if result.get("canceled"):
        if "compact_revision" in result:
            raise Compacted(int(result["compact_revision"]))
        raise ConnectionError(str(result.get("cancel_reason", "the watch was cancelled")))
    events: list[dict[str, Any]] = result.get("events", [])
    return events


def encoded(value: str) -> str:
    """Write text as the gateway wants bytes."""
    return base64.b64encode(value.encode()).decode()


def decoded(value: str) -> str:
    """Read text from what the gateway makes of bytes."""
    return base64.b64decode(value).decode()


def absent(key: str) -> dict[str, Any]:
    """Demand that a key is not there."""
    return {"key": encoded(key), "target": "CREATE", "result": "EQUAL", "create_revision": "0"}


def unchanged(key: str, revision: int) -> dict[str, Any]:
    """Demand that a key was last written at a revision."""
    return {"key": encoded(key), "target": "MOD", "result": "EQUAL", "mod_revision": str(revision)}


def equals(key: str, value: str) -> dict[str, Any]:
    """Demand a value; a key that is not there equals nothing."""
    return {"key": encoded(key), "target": "VALUE", "result": "EQUAL", "value": encoded(value)}


def put(key: str, value: str) -> dict[str, Any]:
    """Write a key."""
    return {"request_put": {"key": encoded(key), "value": encoded(value)}}


def get(key: str, end: str | None = None) -> dict[str, Any]:
    """Read a key, or all from one key up to another."""
    return {"request_range": {"key": encoded(key)} | ({} if end is None else {"range_end": encoded(end)})}


def delete(key: str) -> dict[str, Any]:
    """Remove a key."""
    return {"request_delete_range": {"key": encoded(key)}}
