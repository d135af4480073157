"""Many tabs of one browser: it opens six connections to a server at most, so all tabs share one stream of events."""

import re
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.doors.http.web.browser.scene import API, ASKS_EVERY_MS, WAIT_MS, Scene, cell
from tests.scale import PROOF

pytestmark = [pytest.mark.one_worker("web"), pytest.mark.halved]

MANY = 8
"""More tabs than a browser opens connections to one server."""

HEIRS, LATER = (MANY, 4) if PROOF else (3, 1)
"""Tabs of which each leads once, and tabs that come later."""


@contextmanager
def tabs(scene: Scene, network: str, many: int) -> Iterator[list[Page]]:
    """Open a network in so many tabs of one browser, and wait until all of them are live."""
    context = scene.browser.new_context()
    context.set_default_timeout(WAIT_MS)
    faults: list[str] = []
    try:
        answer = context.request.post(f"{scene.url}{API}/login", data={"token": scene.admin})
        assert answer.ok, answer.text()
        yield [open_tab(scene, context, network, faults) for _ in range(many)]
        assert not faults, faults
    finally:
        context.close()


def open_tab(scene: Scene, context: BrowserContext, network: str, faults: list[str], badge: str = "live") -> Page:
    """Open one more tab, and wait until it follows the log."""
    page = context.new_page()
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(f"{scene.url}/#/networks/{network}")
    expect(page.locator("main h1")).to_have_text(network, timeout=WAIT_MS)
    expect(page.locator("#live")).to_have_text(badge, timeout=WAIT_MS)
    return page


def leading(pages: list[Page]) -> list[Page]:
    """Return the tabs that read a stream of their own."""
    return [page for page in pages if page.evaluate("import('/web/tabs.js').then((tabs) => tabs.leads())")]


def streams(scene: Scene) -> float:
    """Return how many streams the server feeds."""
    head = {"authorization": f"Bearer {scene.admin}"}
    with urllib.request.urlopen(urllib.request.Request(f"{scene.url}/metrics", headers=head)) as answer:  # noqa: S310
        text = answer.read().decode()
    found = re.search(r"^tenure_event_streams (\S+)$", text, re.MULTILINE)
    assert found is not None
    return float(found[1])


def expect_streams(scene: Scene, many: int) -> None:
    """Wait until the server feeds so many streams: it may notice a moment later that a tab was closed."""
    deadline = time.monotonic() + WAIT_MS / 1000
    while streams(scene) != many:
        assert time.monotonic() < deadline, streams(scene)
        time.sleep(0.05)


def expect_held(pages: list[Page], address: str) -> None:
    """Wait until every tab shows an address as held."""
    for page in pages:
        expect(cell(page, address)).to_have_class(re.compile("is-held"), timeout=WAIT_MS)


def test_eight_tabs_load_share_one_stream_and_all_show_every_change(scene: Scene) -> None:
    scene.plan("tabs", "10.30.0.0/24", pool="10.30.0.10-10.30.0.99")

    with tabs(scene, "tabs", MANY) as pages:
        expect_held(pages, scene.allocate("tabs", "instance/seen-by-all"))

        assert len(leading(pages)) == 1
        expect_streams(scene, 1)


def test_when_the_leading_tab_is_closed_another_leads_and_nothing_is_missed(scene: Scene) -> None:
    scene.plan("heirs", "10.31.0.0/24", pool="10.31.0.10-10.31.0.99")

    with tabs(scene, "heirs", HEIRS) as pages:
        for number in range(HEIRS - 1):
            [leader] = leading(pages)
            pages.remove(leader)
            leader.close()
            expect_held(pages, scene.allocate("heirs", f"instance/after-{number}"))
            for page in pages:
                expect(page.locator("#live")).to_have_text("live", timeout=WAIT_MS)

        assert leading(pages) == pages
        expect_streams(scene, 1)


def test_a_tab_that_is_opened_later_shows_what_comes_then(scene: Scene) -> None:
    scene.plan("later", "10.32.0.0/24", pool="10.32.0.10-10.32.0.99")

    with tabs(scene, "later", 1) as pages:
        for number in range(LATER):
            pages.append(open_tab(scene, pages[0].context, "later", []))
            expect_held(pages, scene.allocate("later", f"instance/{number}"))

        assert leading(pages) == pages[:1]


def test_tabs_that_cannot_share_a_stream_ask_instead_and_all_of_them_load(scene: Scene) -> None:
    """So it is on plain HTTP beyond loopback, where browsers have no locks."""
    scene.plan("alone", "10.33.0.0/24", pool="10.33.0.10-10.33.0.99")
    context, faults = scene.browser.new_context(), list[str]()
    context.set_default_timeout(WAIT_MS)
    try:
        context.clock.install()
        context.add_init_script("Object.defineProperty(Navigator.prototype, 'locks', { value: undefined })")
        context.request.post(f"{scene.url}{API}/login", data={"token": scene.admin})
        pages = [open_tab(scene, context, "alone", faults, "polling") for _ in range(MANY)]
        for number in range(2):  # also after the first question
            address = scene.allocate("alone", f"instance/seen-{number}")
            context.clock.run_for(ASKS_EVERY_MS)
            expect_held(pages, address)

        assert leading(pages) == []
        expect_streams(scene, 0)
        for page in pages:
            expect(page.locator("#live")).to_have_text("polling")
        assert not faults, faults
    finally:
        context.close()
