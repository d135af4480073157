"""One browser and one server for all tests of the web page."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.doors.http.web.browser.scene import Scene, set_scene
from tests.infrastructure import chromium


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Run one Chromium for all tests."""
    with chromium.browser() as started:
        yield started


@pytest.fixture(scope="package")
def scene(browser: Browser) -> Iterator[Scene]:
    """Run one server for all tests; each has networks of its own."""
    with set_scene(browser) as played:
        yield played
