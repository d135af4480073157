"""What the browser tests play on: one server, people with tokens, and pages in a real browser."""

import asyncio
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.doors.http.stage import LOOSE, Server, running

API = "/api/v1"
WAIT_MS = 15_000
ASKS_EVERY_MS = 3500
"""Longer than a page without a stream lets pass between two questions."""

NASTY = "<img src=x onerror=document.title='owned'>"


@dataclass
class Scene:
    """A running server, spoken with from the outside: by requests, and by pages that are logged in."""

    server: Server
    browser: Browser
    loop: asyncio.AbstractEventLoop
    admin: str = ""

    def __post_init__(self) -> None:
        self.admin = self.token("anna", "admin")

    @property
    def url(self) -> str:
        """Return where the server is."""
        return self.server.url

    def crash(self) -> None:
        """Kill the server."""
        self.server.kill()

    def restart(self) -> None:
        """Start the server again, at the same place."""
        asyncio.run_coroutine_threadsafe(self.server.restart(), self.loop).result(60)

    def token(self, name: str, *scopes: str) -> str:
        """Make a token."""
        return asyncio.run_coroutine_threadsafe(self.server.token(name, *scopes), self.loop).result(60)

    def ask(self, method: str, path: str, body: object = None, *, token: str | None = None) -> Any:
        """Send one request as another client would, and expect it to succeed."""
        head = {"authorization": f"Bearer {token or self.admin}", "content-type": "application/json"}
        if method == "DELETE":
            head["if-match"] = "*"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + API + path, data, head, method=method)  # noqa: S310  # our own server
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            text = answer.read()
        return json.loads(text) if text else None

    def plan(self, network: str, *blocks: str, **pools: str) -> None:
        """Add a network with blocks and pools."""
        self.ask("POST", "/networks", {"name": network})
        for block in blocks:
            self.ask("POST", f"/networks/{network}/subnets", {"cidr": block})
        for name, span in pools.items():
            self.ask("POST", f"/networks/{network}/pools", {"range": span, "name": name})

    def allocate(self, network: str, owner: str, **more: Any) -> str:
        """Give an owner an address, and return it."""
        return str(self.ask("POST", f"/networks/{network}:allocate", {"owner": owner, **more})["address"])

    @contextmanager
    def visit(self, place: str = "", *, token: str | None = None, live: bool = True, **how: Any) -> Iterator[Page]:
        """Open a page that is logged in; with an empty token it is not. Nothing may go wrong inside it unseen."""
        context = self.browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **how})
        context.set_default_timeout(WAIT_MS)
        try:
            page = self._open(context, self.admin if token is None else token, place, live)
            faults: list[str] = []
            page.on("pageerror", lambda error: faults.append(str(error)))
            yield page
            assert not faults, faults
        finally:
            context.close()

    def _open(self, context: BrowserContext, token: str, place: str, live: bool) -> Page:
        if token:
            answer = context.request.post(f"{self.url}{API}/login", data={"token": token})
            assert answer.ok, answer.text()
        page = context.new_page()
        page.goto(f"{self.url}/{place}")
        expect(page.locator("main h1")).to_be_visible(timeout=WAIT_MS)
        if token and live:
            expect(page.locator("#live")).to_have_text("live", timeout=WAIT_MS)
        return page


@contextmanager
def set_scene(browser: Browser) -> Iterator[Scene]:
    """Run a server beside the browser: its loop has a thread of its own, for the browser's driver has ours."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def do(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(120)

    running_server = running(limits=LOOSE)
    try:
        server = do(running_server.__aenter__())
        try:
            yield Scene(server, browser, loop)
        finally:
            do(running_server.__aexit__(None, None, None))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def cell(page: Page, address: str) -> Any:
    """Find the square of an address or a block on the map."""
    return page.locator(f'.map .cell[data-range="{address}"]')
