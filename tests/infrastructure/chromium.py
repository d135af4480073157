"""A real browser for tests: Debian's Chromium, without a window, driven from the outside.

It comes from the system's packages (``tools/install_servers.sh``). Where there is none, what needs one fails;
``TENURE_WITHOUT_CHROMIUM=1`` has it skipped instead.
"""

import os
import shutil
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

WITHOUT = "TENURE_WITHOUT_CHROMIUM"
PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first one here is taken: a browser that has no windows needs half of the time of a whole one that shows none."""
FLAGS = ("--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars", "--font-render-hinting=none")
"""Tests run as root and in containers, where the sandbox and the shared memory that it wants are not to be had."""


HOW_TO_HAVE_IT = f"run tools/install_servers.sh, or leave out what needs Chromium with {WITHOUT}=1"


def left_out() -> bool:
    """Tell whether whoever runs the tests wants them without a browser."""
    return os.environ.get(WITHOUT) == "1"


def find() -> str | None:
    """Return where the browser is, if there is one."""
    return next((place for name in PROGRAMS if (place := shutil.which(name))), None)


def headline() -> str:
    """Say in a line which browser the web page is tried in."""
    if left_out():
        return f"browser: CHROMIUM IS LEFT OUT, ITS TESTS ARE SKIPPED ({WITHOUT}=1)"
    found = find()
    return (
        f"browser: CHROMIUM IS MISSING, ITS TESTS WILL FAIL: {HOW_TO_HAVE_IT}" if found is None else f"browser: {found}"
    )


@contextmanager
def browser() -> "Iterator[Browser]":
    """Give a running browser, and end it."""
    from playwright.sync_api import sync_playwright  # only where a browser is wanted: it takes a while to load

    if left_out():
        raise unittest.SkipTest(f"Chromium is left out: {WITHOUT}=1")  # pytest takes it as a skip
    program = find()
    if program is None:
        raise RuntimeError(f"no Chromium: {HOW_TO_HAVE_IT}")
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=list(FLAGS))
        try:
            yield started
        finally:
            started.close()
