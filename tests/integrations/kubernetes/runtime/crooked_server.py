"""An API server that misbehaves on purpose: each answer is what a test has written down for it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from tenure.integrations.kubernetes.runtime.credentials import ClusterAccess

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class CrookedServer:
    """Gives prepared answers in turn, and remembers what was asked."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.asked: list[web.Request] = []
        self.otherwise: Answer | None = None
        self.at_once = self.most_at_once = 0
        self.url = ""
        self.tokens = ["first"]
        self.loads = 0
        self.version = 10**9
        """What a client is answered that only asks for the present version; that is not remembered."""
        self.kinds: set[str] | None = set()
        """The kinds of ``example.org/v1`` that discovery has; ``None``: a load balancer without a server answers it."""

    async def load(self) -> ClusterAccess:
        """Read the credentials: a new token each time, as long as there are some."""
        token = self.tokens[min(self.loads, len(self.tokens) - 1)]
        self.loads += 1
        return ClusterAccess(self.url, None, f"Bearer {token}")

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Give the next answer that was prepared."""
        await request.read()
        if request.query.get("limit") == "1":
            return await page(self.version)(request)
        if request.path in ("/apis", "/apis/example.org/v1"):
            return await self._discovery(request)
        self.asked.append(request)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            answer = self.answers.pop(0) if self.answers else self.otherwise
            assert answer is not None, f"nothing is prepared for {request.path_qs}"
            return await answer(request)
        finally:
            self.at_once -= 1

    async def _discovery(self, request: web.Request) -> web.StreamResponse:
        if self.kinds is None:
            return web.Response(status=404, text="no such backend")
        if request.path == "/apis":
            groups = [{"name": "example.org", "versions": [{"version": "v1"}]}] if self.kinds else []
            return web.json_response({"kind": "APIGroupList", "groups": groups})
        resources = [{"name": name, "kind": "Thing", "namespaced": True} for name in self.kinds]
        return web.json_response({"kind": "APIResourceList", "resources": resources})


@asynccontextmanager
async def crooked() -> AsyncIterator[CrookedServer]:
    """Run such a server on loopback."""
    server = CrookedServer()
    app = web.Application(client_max_size=8 << 20)
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


def responds(document: Any, status: int = 200, **headers: str) -> Answer:
    """Answer with a document."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response(document, status=status, headers=headers)

    return answer


def refuses(status: int, reason: str = "", message: str = "", **headers: str) -> Answer:
    """Answer with an error, as a server writes one."""
    document = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": status,
        "reason": reason,
        "message": message,
    }
    return responds(document, status, **headers)


def says(body: bytes, status: int = 200) -> Answer:
    """Answer with bytes that may be anything."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(body=body, status=status, content_type="application/json")

    return answer


def breaks_off(body: bytes = b'{"kind": "Li') -> Answer:
    """Begin an answer and drop the connection."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100000"})
        await response.prepare(request)
        await response.write(body)
        assert request.transport is not None
        request.transport.abort()
        return response

    return answer


def hangs(seconds: float) -> Answer:
    """Answer nothing for a time, then an empty document."""

    async def answer(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return web.json_response({})

    return answer


def watches(*events: tuple[str, Any] | bytes | asyncio.Event, then: str = "end") -> Answer:
    """Stream events, and wait where an ``asyncio.Event`` stands; ``then`` the watch ends, breaks off, or is silent."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for event in events:
            if isinstance(event, asyncio.Event):
                await event.wait()
                continue
            line = event if isinstance(event, bytes) else json.dumps({"type": event[0], "object": event[1]}).encode()
            await response.write(line + b"\n")
        if then == "silent":
            await asyncio.sleep(60)
        elif then == "break":
            assert request.transport is not None
            request.transport.abort()
        return response

    return answer


def page(version: int, *objects: Any, more: str = "") -> Answer:
    """Answer with a page of a list."""
    return responds({"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(objects)})
