"""The command line as a process of its own: with pipes, with a terminal, and with signals."""

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.infrastructure.forked_tenure import ForkedTenure, run_forked

TENURE = [sys.executable, "-m", "tenure.doors.cli"]
PATIENCE_S = 30


def surroundings(url: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment that names the store and a locale, and nothing else that matters."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "NO_COLOR"))}
    return {**kept, "TENURE_STORE": url, "LC_ALL": "C.UTF-8", "TERM": "xterm", "COLUMNS": "100", **(more or {})}


def piped(
    url: str, *words: str, env: Mapping[str, str] | None = None, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command with pipes for its output."""
    return run_forked(words, env=surroundings(url, env), cwd=folder, errors="replace", timeout=PATIENCE_S)


def started(url: str, *words: str) -> ForkedTenure[str]:
    """Start a command that will be stopped."""
    # Whoever runs the tests in the background has them ignore interrupts, and what they start inherits that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return ForkedTenure[str](
        words, env=surroundings(url), stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    )


def on_terminal(url: str, *words: str, env: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Run a command on a terminal of its own; return its exit code and all that it showed."""
    controller, terminal = pty.openpty()
    process = ForkedTenure[bytes](words, env=surroundings(url, env), stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    shown = b""
    try:
        while piece := os.read(controller, 65536):
            shown += piece
    except OSError:
        pass  # that is how a terminal ends when nobody is left on it
    finally:
        os.close(controller)
    return process.wait(PATIENCE_S), shown.decode("utf-8").replace("\r\n", "\n")


def eventually(true: Callable[[], bool]) -> bool:
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not (done := true()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return done
