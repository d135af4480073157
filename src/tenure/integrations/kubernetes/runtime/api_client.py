"""One session with an API server: bounded requests, credentials that are renewed, answers as plain dictionaries."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import Any, Literal, Self

import aiohttp
import orjson
from aiohttp.abc import AbstractStreamWriter

from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable, WriteConflict, error_of
from tenure.integrations.kubernetes.runtime.credentials import ClusterAccess, CredentialsMissing, Loader
from tenure.integrations.kubernetes.runtime.deep_json import read_deep_json
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType, uid_of
from tenure.integrations.kubernetes.runtime.runtime_meter import RuntimeMeter
from tenure.integrations.kubernetes.runtime.tls_connector import TlsConnector

Propagation = Literal["Background", "Foreground", "Orphan"]

IN_FLIGHT = 64
TIMEOUT_S = 30.0
TRIES = 5
"""How often a request is sent that the server turns away before doing anything (401, 429)."""
LONGEST_PAUSE_S = 30.0
"""What is believed of ``Retry-After``: a server that asks for more is asked again earlier."""

LEAVES_OPEN = sys.version_info < (3, 12, 8)
"""Such a Python may leave the socket of a cancelled request over TLS open for ever (python/cpython#118960)."""

AGENT = "tenure-operator"
"""What requests call themselves by default; the server names the manager of written fields so (KP10)."""

GONE: Object = {"kind": "Status", "metadata": {}}
"""What a server answers to the deletion of an object that nothing keeps; also for one that was gone already."""

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"


Fence = Callable[[], None]


class FencedBody(aiohttp.BytesPayload):
    """The body of a write, which is not sent if the fence raises; without it the server does nothing.

    A request may wait long for its turn, for a connection, or because the process was stopped; a check before that
    says nothing about the moment at which it is sent.
    """

    def __init__(self, data: bytes, fence: Fence) -> None:
        # Not by ``BytesPayload``, which warns of bodies above 1 MiB: an object may be as large, and its JSON larger.
        super(aiohttp.BytesPayload, self).__init__(data, content_type="application/octet-stream")
        self._size = len(data)
        self._fence = fence

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """Send the body."""
        self._fence()
        await super().write_with_length(writer, content_length)


class ServerUntrusted(ApiUnreachable):
    """The server shows a certificate that the known CAs did not sign; nothing was sent to it."""


class ApiClient:
    """Requests to one API server, on one session.

    A request that the server turns away unread (401, 429) is sent again; everything else is the caller's decision,
    since a write that got no answer may have been done (``ApiUnreachable``). One request costs about 0.4 ms of CPU.
    """

    def __init__(
        self,
        load: Loader,
        *,
        in_flight: int = IN_FLIGHT,
        timeout_s: float = TIMEOUT_S,
        agent: str = AGENT,
        meter: RuntimeMeter | None = None,
    ) -> None:
        self._load = load
        self._agent = agent
        self._turns = asyncio.Semaphore(in_flight)
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._meter = meter or RuntimeMeter()
        self._session: aiohttp.ClientSession | None = None
        self._access: ClusterAccess | None = None
        self._renewing = asyncio.Lock()
        self.fence: Fence = lambda: None
        """Raises if nothing may be written any more; asked when the body of a request is about to be sent."""

    async def __aenter__(self) -> Self:
        self._access = await self._load()
        # The number of connections is bounded by the turns; watches come on top and must not wait for a connection.
        self._connector = TlsConnector(limit=0, keepalive_timeout=60, enable_cleanup_closed=LEAVES_OPEN)
        self._session = aiohttp.ClientSession(
            connector=self._connector,
            timeout=self._timeout,
            headers={"User-Agent": self._agent},
            # An API server sets no cookies; to look for some costs each request as much as its JSON.
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            # Before the session: a connection that is still being opened would be left to the garbage collector.
            await self._connector.finish()
            await self._session.close()
            await asyncio.sleep(0)  # sockets of requests that were cancelled are closed in the next turn of the loop

    async def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = "application/json") -> Object:
        """Read what is under a path."""
        return await self._ask("GET", path, query=query, accept=accept)

    async def create(self, kind: ResourceType, object: Object) -> Object:
        """Create an object and return it as it was stored."""
        namespace = object["metadata"].get("namespace", "")
        return await self._ask("POST", kind.path(namespace), object)

    async def patch(
        self,
        kind: ResourceType,
        object: Object,
        patch: object,
        *,
        content_type: str = JSON_PATCH,
        subresource: str = "",
    ) -> Object:
        """Patch an object; ``patches`` has those that name what was read (KP4). Return the object."""
        return await self._ask("PATCH", kind.path_of(object, subresource), patch, content_type=content_type)

    async def replace(self, kind: ResourceType, object: Object) -> Object:
        """Replace the object that was read, whole: if it has changed since, ``WriteConflict`` (KP4). Return it.

        For large values it costs the server half of what a patch does: it need not put the object together.
        """
        # Without a version the server would replace whatever is there.
        assert object["metadata"]["resourceVersion"], "only an object that was read can be replaced"
        return await self._ask("PUT", kind.path_of(object), object)

    async def delete(self, kind: ResourceType, object: Object, propagation: Propagation = "Background") -> Object:
        """Delete the object that was read: if it is another one by now, or has changed, ``WriteConflict`` (KP4)."""
        seen = {"uid": uid_of(object), "resourceVersion": object["metadata"]["resourceVersion"]}
        options = {"preconditions": seen, "propagationPolicy": propagation}
        return await self._ask("DELETE", kind.path_of(object), options)

    @contextlib.asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str], silent_s: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a watch and give its lines; a connection that is silent for so long raises ``ApiUnreachable``."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=TIMEOUT_S, sock_read=silent_s)
        async with self._sent("GET", path, query=query, timeout=timeout) as response:
            yield _lines(response)

    async def _ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Object:
        headers = {"Accept": accept}
        data = None
        if body is not None:
            data, headers["Content-Type"] = orjson.dumps(body), content_type
        async with self._turns, self._sent(method, path, query=query, data=data, headers=headers) as response:
            try:
                answer = read_deep_json(await response.read(), f"{method} {path}")
            except (aiohttp.ClientError, TimeoutError, OSError, orjson.JSONDecodeError) as error:
                raise ApiUnreachable(f"{method} {path}: no whole answer: {_in_words(error)}") from error
            if not isinstance(answer, dict):
                raise ApiUnreachable(f"{method} {path}: the answer is no document: {str(answer)[:200]}")
            return answer

    @contextlib.asynccontextmanager
    async def _sent(self, method: str, path: str, **words: Any) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request until the server does not turn it away, and give the answer."""
        for tried in range(1, TRIES + 1):
            # What this try shows: by the time it is refused, another request may have renewed the credentials.
            shown = self._access
            assert shown is not None, "the client is not open"
            try:
                async with self._once(shown, method, path, **words) as response:
                    if response.status < 400:
                        yield response
                        return
                    error = error_of(response.status, await _document(response), _retry_after_s(response))
            except ServerUntrusted:
                # Nothing was sent. The file with the CA may have been replaced, as the server's certificate was.
                if tried > 1:
                    raise
                await self._renew(shown)
                continue
            self._meter.conflicts += isinstance(error, WriteConflict)
            if tried == TRIES or error.status not in (401, 429):
                raise error
            if error.status == 401:
                await self._renew(shown)
            else:
                self._meter.throttled += 1
                await asyncio.sleep(min(_asked_s(error), LONGEST_PAUSE_S))

    @contextlib.asynccontextmanager
    async def _once(
        self, access: ClusterAccess, method: str, path: str, headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None, data: bytes | None = None, **words: Any,
    ) -> AsyncIterator[aiohttp.ClientResponse]:  # fmt: skip
        assert self._session is not None
        body = None if data is None else FencedBody(data, self.fence)
        shown = {"Authorization": access.authorization} if access.authorization else {}
        self._meter.requests += 1
        try:
            request = await self._session.request(
                method, access.server + path, params=query, headers={**shown, **(headers or {})}, data=body,
                ssl=access.tls or True, server_hostname=access.server_name, proxy=access.proxy, **words,
            )  # fmt: skip
        except aiohttp.ClientConnectorCertificateError as error:
            raise ServerUntrusted(f"{method} {path}: {_in_words(error)}") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiUnreachable(f"{method} {path}: {_in_words(error)}") from error
        async with request:
            yield request

    async def _renew(self, shown: ClusterAccess) -> None:
        """Read the credentials again, once for all requests that used those that do not hold any more."""
        async with self._renewing:
            if self._access is shown:
                self._meter.renewed += 1
                try:
                    self._access = await self._load()
                # A file that is being replaced, or a plug-in that is away, may be there at the next try.
                except CredentialsMissing as error:
                    raise ApiUnreachable(f"the credentials have expired and there are no others: {error}") from error


def _in_words(error: BaseException) -> str:
    """Return what an error says; some say nothing but their name."""
    return str(error) or type(error).__name__


async def _document(response: aiohttp.ClientResponse) -> object:
    """Read the document of an error; what is no JSON is returned as text."""
    try:
        body = await response.read()
    except (aiohttp.ClientError, TimeoutError, OSError):
        # An error without a whole document is an error all the same: its status is known.
        return ""
    try:
        document: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode("utf-8", "replace")[:500]
    return document


def _asked_s(error: ApiError) -> float:
    """Return how long a server asks to wait; 0 is an answer, too."""
    return 1.0 if error.retry_after_s is None else error.retry_after_s


def _retry_after_s(response: aiohttp.ClientResponse) -> float | None:
    delay = response.headers.get("Retry-After", "")
    return float(delay) if delay.isdecimal() else None


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Cut a body into lines of any length: an object may be a megabyte, which a line of aiohttp may not."""
    rest: list[bytes] = []
    try:
        async for chunk in response.content.iter_any():
            # The last part waits for the rest of its line; if that never comes, the next watch brings the event.
            first, *others = chunk.split(b"\n")
            rest.append(first)
            for line in others:
                yield b"".join(rest)
                rest = [line]
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise ApiUnreachable(f"watch: {_in_words(error)}") from error
