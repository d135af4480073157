"""Requests to servers: each is sent until it is answered, with the same key and id, so that it takes effect once."""

import asyncio
import hashlib
import secrets
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import aiohttp
import msgspec
from yarl import URL

from tenure.client import retry_policy
from tenure.client.retry_policy import FailedTry
from tenure.client.server_urls import Servers
from tenure.kernel.errors import Conflict, Invalid, KeyReused, TenureError
from tenure.kernel.names import shown
from tenure.wire import responses
from tenure.wire.problems import error_of

API = "/api/v1"
CONNECT_S = 5.0
ANSWER_S = 30.0
"""How long an answer may let us wait for its next byte."""
AT_ONCE = 64
"""Connections for what is answered at once; others wait for one of them."""
WAITING_AT_ONCE = 1024
"""Connections for what waits."""

LONGEST_KEY = 128

CLOSED = "this ledger is closed; open it again"

T = TypeVar("T")
Query = Mapping[str, str | list[str] | None]

_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def segment(text: str) -> str:
    """Write a name as one segment of a path; one of dots only would be taken for a way up."""
    quoted = quote(text, safe="")
    return quoted if quoted.strip(".") else quoted.replace(".", "%2E")


class Transport:
    """Connections to the servers of one ledger, for as long as it is open."""

    def __init__(self, servers: Servers, token: str | None) -> None:
        self.servers = servers
        self._at = 0
        self._head = {"Accept": "application/json", "User-Agent": "tenure"}
        if token is not None:
            self._head["Authorization"] = f"Bearer {check_token(token)}"
        self._ssl = _tls(servers)
        # Requests that wait for minutes have connections of their own, so that they never keep the quick ones waiting.
        self._quick = self._session(AT_ONCE)
        self._patient = self._session(WAITING_AT_ONCE)
        self._asked = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self.closed = False

    def _session(self, limit: int) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=limit, ssl=self._ssl)
        return aiohttp.ClientSession(connector=connector, headers=self._head, cookie_jar=aiohttp.DummyCookieJar())

    async def ask(
        self,
        method: str,
        path: str,
        kind: type[T] | Any,
        *,
        body: object = None,
        query: Query | None = None,
        key: str | None = None,
        request_id: str | None = None,
        waits_s: float = 0.0,
        answer_s: float = ANSWER_S,
        changes: bool = True,
    ) -> T:
        """Ask for something and read the answer as a kind; errors of the ledger are raised as they are.

        A change goes under an idempotency key, so that it can be asked for again when its answer was lost. A POST
        without ``changes`` only asks.
        """
        # Every try has the same id and key: the log shows one request, and the server can tell a repeat.
        head = {"X-Request-Id": request_id or id_for(key)}
        under = short_key(key or secrets.token_hex(16))
        if method == "POST":
            head |= {"Content-Type": "application/json"} | ({"Idempotency-Key": under} if changes else {})
        effects = method != "GET" and changes
        request = _Request(method, _target(path, query), head, _encoded(body), kind, answer_s + waits_s, effects)
        try:
            answer: T = await (self._tried(self._patient, request) if waits_s else self._counted(request))
        except KeyReused as error:
            # The server knows the shortened key, the caller only the whole one.
            raise KeyReused(key if key is not None and error.key == under else error.key) from None
        return answer

    async def _counted(self, request: "_Request") -> Any:
        """Send what is answered at once; closing waits for it."""
        self._asked += 1
        self._idle.clear()
        try:
            return await self._tried(self._quick, request)
        finally:
            self._asked -= 1
            if not self._asked:
                self._idle.set()

    async def _tried(self, session: aiohttp.ClientSession, request: "_Request") -> Any:
        """Send a request until it is answered, or until the time for it is over."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.servers.within_s
        tries, doubtful = 0, False
        while True:
            # Closing begins with one session, and may wait long before it comes to the other.
            if self.closed or session.closed:
                raise Conflict(CLOSED)
            answer = await self._sent(session, request)
            if not isinstance(answer, FailedTry):
                return answer
            doubtful = doubtful or answer.outcome == "unknown"
            tries += 1
            pause_s = self._pause_s(tries) if answer.after_s is None else answer.after_s
            if answer.hopeless or loop.time() + pause_s > deadline:
                raise answer.told(doubtful)
            await asyncio.sleep(pause_s)

    def _pause_s(self, tries: int) -> float:
        """Go on to the next server at once; when all of them were asked, wait before the next round."""
        rounds, rest = divmod(tries, len(self.servers.bases))
        return 0.0 if rest else retry_policy.pause_s(rounds)

    async def _sent(self, session: aiohttp.ClientSession, request: "_Request") -> Any:
        """Send a request once."""
        # Kept: another call may move on before this try fails, and a second step would skip a server.
        at, base = self._at, self.servers.bases[self._at]
        # No limit on the whole: a long answer may take its time, as long as bytes keep coming.
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=request.answer_s)
        try:
            # The target is quoted already: yarl must not turn %2F in a name back into a slash.
            # A redirect is not followed, because it would make a GET of a POST.
            async with session.request(
                request.method, URL(base + request.target, encoded=True), data=request.body, headers=request.head,
                timeout=timeout, allow_redirects=False,
            ) as response:  # fmt: skip
                return _judged(response, await response.read(), base, request)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
            # These come first: they are kinds of the errors below, but prove that nothing was sent.
            failed = retry_policy.never_sent(error, base)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            failed = retry_policy.never_answered(error, base, changes=request.changes)
        except RuntimeError:
            if not session.closed:
                raise
            raise Conflict(CLOSED) from None  # the session was closed under us
        if self._at == at:
            self._at = (at + 1) % len(self.servers.bases)
        return failed

    @asynccontextmanager
    async def stream(self, path: str, query: Query, head: Mapping[str, str], *, answer_s: float) -> AsyncIterator[Any]:
        """Open a stream of lines; a server that does not give it raises what it says, and is not asked again."""
        at, base = self._at, self.servers.bases[self._at]
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=answer_s)
        target = URL(base + _target(path, query), encoded=True)
        try:
            async with self._patient.get(target, headers=head, timeout=timeout, allow_redirects=False) as response:
                if response.status != 200:
                    answer = _judged(response, await response.read(), base, READING)
                    raise answer.error if isinstance(answer, FailedTry) else _foreign(response, base)
                yield response.content.iter_any()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if self._at == at:
                self._at = (at + 1) % len(self.servers.bases)
            raise retry_policy.never_answered(error, base, changes=False).error from error
        except RuntimeError:
            if not self._patient.closed:
                raise
            raise Conflict(CLOSED) from None

    async def close(self) -> None:
        """Finish what was asked, send away whoever waits, and close all connections. Closing twice is once."""
        if self.closed:
            return
        # Waiting calls are cut off first, since they may wait for minutes; quick ones may finish.
        await self._patient.close()
        await self._idle.wait()
        self.closed = True
        await self._quick.close()


def id_for(key: str | None) -> str:
    """Return the id of a request; who asks again under his key asks the same request again."""
    return secrets.token_hex(8) if key is None else hashlib.sha256(key.encode()).hexdigest()[:16]


def short_key(key: str) -> str:
    """Return a key that servers take: they put the token's name before it, and the whole may not be too long."""
    return key if len(key) <= LONGEST_KEY else f"sha256/{hashlib.sha256(key.encode()).hexdigest()}"


class _Request(msgspec.Struct, frozen=True):
    """A request as every try sends it."""

    method: str
    target: str
    head: dict[str, str]
    body: bytes | None
    kind: Any
    answer_s: float
    changes: bool
    """Whether it may change something."""


READING = _Request("GET", "", {}, None, None, 0.0, changes=False)


def _judged(response: aiohttp.ClientResponse, content: bytes, base: str, request: _Request) -> Any:
    """Tell whether an answer is one: return it, or what failed; raise what the ledger has against the request."""
    told = response.content_type
    try:
        # Only JSON is an answer: a proxy, or some other server, may send a page with status 200.
        if response.status < 300 and (told == "application/json" or response.status == 204):
            return _read(request.kind, content)
        if told != "application/problem+json":
            if response.status >= 500:
                return retry_policy.gateway_answered(response.status, base, changes=request.changes)
            raise _foreign(response, base)
        error = error_of(_read(responses.Problem, content))
    except msgspec.DecodeError as garbled:
        return retry_policy.never_answered(garbled, base, changes=request.changes)
    failed = retry_policy.refused_for_now(error, response.headers.get("Retry-After"))
    if failed is None:
        raise error
    return failed


def _foreign(response: aiohttp.ClientResponse, base: str) -> TenureError:
    said = f"{response.status} {response.content_type}"
    return Invalid(f"url: {base} does not answer as Tenure does ({said}); is this the right server?", field="url")


def _read(kind: Any, content: bytes) -> Any:
    if kind is None:
        return None
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    return decoder.decode(content)


def _target(path: str, query: Query | None) -> str:
    said = {name: value for name, value in (query or {}).items() if value is not None}
    return API + path + ("?" + urlencode(said, doseq=True, quote_via=quote) if said else "")


def _encoded(body: object) -> bytes | None:
    if body is None:
        return None
    try:
        return msgspec.json.encode(body)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Invalid(f"body: this cannot be sent to a server ({error})", field="body") from None


def check_token(token: object) -> str:
    """Return a token that can stand in a header; what is wrong with one is told without it."""
    if (
        not isinstance(token, str)
        or not token.isascii()
        or not token.isprintable()
        or token != token.strip()
        or not token
    ):
        raise Invalid("token: text without spaces around it is needed, as `tenure token` gave it", field="token")
    return token


def _tls(servers: Servers) -> ssl.SSLContext | bool:
    if servers.ca is None:
        # aiohttp's default: certificates are checked against those that the system trusts.
        return True
    try:
        return ssl.create_default_context(cafile=str(servers.ca))
    except (OSError, ssl.SSLError) as error:
        raise Invalid(f"url: ca: {shown(str(servers.ca))} cannot be read ({error})", field="url") from None
