"""What lies outside the API: health, metrics, the OpenAPI document, the web page."""

from collections.abc import Awaitable, Callable

from tenure.doors.http.non_api.prometheus import scrape, standing_of_size
from tenure.doors.http.non_api.web_files import Pages
from tenure.doors.http.openapi.openapi_document import document
from tenure.doors.http.routing.read_request import Receive, Scope, Send
from tenure.doors.http.routing.send_response import JSON, send_bytes, send_json
from tenure.doors.http.server_state import Site
from tenure.kernel.errors import StoreUnavailable
from tenure.wire.http_errors import MethodNotAllowed, NoSuchRoute, Overloaded

Headers = dict[bytes, bytes]
Answer = Callable[[Scope, Headers, Send, str], Awaitable[None]]
READS = ("GET", "HEAD")


class Outside:
    """Serves what is not the API. A path is looked up whole, as it was sent."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._pages = Pages()
        self._answers: dict[bytes, Answer] = {
            b"/healthz": self._healthz,
            b"/readyz": self._readyz,
            b"/metrics": self._scraped,
            b"/openapi.json": self._openapi,
        }

    async def __call__(self, scope: Scope, headers: Headers, receive: Receive, send: Send, request_id: str) -> None:
        """Serve one path."""
        path = bytes(scope["raw_path"])
        answer = self._answers.get(path)
        if answer is not None:
            if scope["method"] not in READS:
                raise MethodNotAllowed(scope["method"], list(READS))
            await answer(scope, headers, send, request_id)
        elif not await self._pages.serve(scope, headers, send, request_id):
            raise NoSuchRoute(f"nothing lies at {path.decode('latin-1')[:80]!r}")

    async def _healthz(self, scope: Scope, headers: Headers, send: Send, request_id: str) -> None:
        """Tell that the process is alive: it answers."""
        await send_json(send, 200, {"status": "ok"}, {}, request_id)

    async def _readyz(self, scope: Scope, headers: Headers, send: Send, request_id: str) -> None:
        """Tell whether requests should be sent here: the store takes writes, and the server is not stopping."""
        if self._site.stopping.is_set():
            raise Overloaded("the server is stopping")
        if not await self._site.readiness.is_ready():
            raise StoreUnavailable("nothing can be written to the store", outcome="none")
        await send_json(send, 200, {"status": "ready", **await standing_of_size(self._site)}, {}, request_id)

    async def _openapi(self, scope: Scope, headers: Headers, send: Send, request_id: str) -> None:
        """Send the document that tells all routes."""
        await send_bytes(send, 200, document(), [JSON], request_id)

    async def _scraped(self, scope: Scope, headers: Headers, send: Send, request_id: str) -> None:
        """Tell the numbers, to whoever may read: they name networks."""
        await self._site.access.admit_monitor(scope, headers)
        body, kind = await scrape(self._site, headers.get(b"accept", b"").decode("latin-1"))
        await send_bytes(send, 200, body, [(b"content-type", kind.encode())], request_id)
