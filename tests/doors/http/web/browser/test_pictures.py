"""The pictures in the docs, taken from the page itself. ``TENURE_PICTURES=1`` puts them into ``docs/pictures``."""

import base64
import io
import os
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from tests.doors.http.web.browser.scene import Scene, cell, set_scene

pytestmark = [pytest.mark.one_worker("web"), pytest.mark.proof]

PICTURES = Path(__file__).parents[5] / "docs" / "pictures"
MOST_BYTES = 60_000
COLOURS = 256

WRAPPED = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
    '<image width="{width}" height="{height}" href="data:image/webp;base64,\n{data}"/>\n</svg>\n'
)
"""A picture as text: the repository holds no binaries."""


SHELVES = {"backup": 41, "build-farm": 180, "cameras": 96, "guests": 7, "hamburg-office": 120, "phones": 150}
"""Networks of a /24 each, and how many of their 180 addresses are held."""


@pytest.fixture
def company(browser: Browser) -> Iterator[Scene]:
    """Lay out the plan of a small company, in which something goes on."""
    with set_scene(browser) as scene:
        for number, (network, held) in enumerate(SHELVES.items()):
            scene.plan(network, f"10.{40 + number}.0.0/24", pool=f"10.{40 + number}.0.20-10.{40 + number}.0.199")
            _fill(scene, network, "instance", held)
        scene.plan("shop-web", "203.0.113.0/26", frontends="203.0.113.8-203.0.113.59")
        scene.plan("shop-db", "10.30.0.0/16", primary="10.30.4.0-10.30.31.255")
        scene.plan("lab", "2001:db8:77::/64", hosts="2001:db8:77::10-2001:db8:77::ffff")
        scene.plan("berlin-office", "10.20.0.0/24", desks="10.20.0.20-10.20.0.199")
        _fill(scene, "shop-db", "instance", 3000)
        _fill(scene, "shop-web", "instance", 31)
        _fill(scene, "lab", "probe", 12)
        scene.ask("POST", "/networks/build-farm:claim", {"owner": "instance/builder-180", "patience_s": 3600})
        _fill_office(scene)
        yield scene


def _fill(scene: Scene, network: str, kind: str, held: int) -> None:
    wishes = [{"owner": f"{kind}/{network}-{number}"} for number in range(held)]
    scene.ask("POST", f"/networks/{network}:allocate_many", {"wishes": wishes})


def _fill_office(scene: Scene) -> None:
    office = "/networks/berlin-office"
    for number in range(64):
        scene.allocate("berlin-office", f"instance/desk-{number:02}", description="a desk", labels={"floor": "2"})
    scene.allocate("berlin-office", "instance/nas", address="10.20.0.5", description="files of everybody")
    scene.ask("POST", f"{office}/reserved", {"range": "10.20.0.120-10.20.0.139", "reason": "the new printers"})
    for number in (30, 41, 52):
        held = scene.ask("GET", f"{office}/holdings/10.20.0.{number}")
        gone = {"address": held["address"], "owner": held["owner"]}
        scene.ask("POST", f"{office}:release", {**gone, "lingers_s": 3600 if number == 41 else None})
    for number in (60, 61):
        held = scene.ask("GET", f"{office}/holdings/10.20.0.{number}")
        scene.ask("POST", f"{office}/holdings/10.20.0.{number}:modify", {"owner": held["owner"], "state": "draining"})
    scene.ask("POST", f"{office}:allocate", {"owner": "instance/desk-new", "pending": True, "lasts_s": 600})


def take(page: Page, name: str, folder: Path) -> None:
    """Take a picture, small enough to be kept."""
    page.mouse.move(2, 2)
    page.evaluate("document.activeElement.blur()")
    page.locator("#toasts").evaluate("element => element.replaceChildren()")
    with Image.open(io.BytesIO(page.screenshot(animations="disabled"))) as taken:
        (folder / f"web-{name}.svg").write_text(wrapped(taken), "ascii")


def wrapped(taken: Image.Image) -> str:
    """Write a picture as an SVG that carries it."""
    packed = io.BytesIO()
    few = taken.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).convert("RGB")
    few.save(packed, "WEBP", lossless=True, quality=100, method=6)
    data = "\n".join(textwrap.wrap(base64.b64encode(packed.getvalue()).decode(), 120))
    return WRAPPED.format(width=taken.width, height=taken.height, data=data)


def test_the_pictures_of_the_docs_can_be_taken_and_are_small(company: Scene, tmp_path: Path) -> None:
    folder = PICTURES if os.environ.get("TENURE_PICTURES") == "1" else tmp_path

    with company.visit(viewport={"width": 1180, "height": 760}) as page:
        expect(page.locator(".network")).not_to_have_count(0)
        take(page, "networks", folder)
        page.goto(f"{company.url}/#/networks/berlin-office")
        cell(page, "10.20.0.37").click()
        expect(page.locator(".panel.address")).to_contain_text("instance/desk-17")
        page.locator("section[aria-labelledby=map]").evaluate("element => element.scrollIntoView()")
        take(page, "map", folder)
        page.goto(f"{company.url}/#/networks/shop-db")
        expect(cell(page, "10.30.4.0/24")).to_have_attribute("aria-label", re.compile("256 held"))
        page.locator("section[aria-labelledby=map]").evaluate("element => element.scrollIntoView()")
        take(page, "blocks", folder)
    with company.visit(viewport={"width": 1180, "height": 640}, color_scheme="dark") as page:
        page.goto(f"{company.url}/#/addresses/10.20.0.30")
        expect(page.locator("main h1")).to_have_text("10.20.0.30")
        take(page, "address", folder)
    with company.visit("#/networks/berlin-office", viewport={"width": 360, "height": 740}) as page:
        cell(page, "10.20.0.37").click()
        page.locator("section[aria-labelledby=map]").evaluate("element => element.scrollIntoView()")
        take(page, "phone", folder)

    sizes = {path.name: path.stat().st_size for path in folder.glob("web-*.svg")}
    assert sorted(sizes) == [f"web-{name}.svg" for name in ("address", "blocks", "map", "networks", "phone")]
    assert {name: size for name, size in sizes.items() if size > MOST_BYTES} == {}
