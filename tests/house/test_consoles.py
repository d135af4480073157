"""Pages that show a terminal are played in one: every command runs, and prints what the page says."""

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [
    path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if BLOCK.search(path.read_text("utf-8"))
]
MARK = "-- end of what a command printed --"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

SOON_S = 3
"""How long a reader looks at a command in the background before he types the next one."""


def commands_of(page: str) -> list[tuple[str, str]]:
    """Return every command of a page and what it prints."""
    found: list[tuple[str, str]] = []
    for line in "".join(BLOCK.findall(page)).splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:].rstrip("\n"), ""))
        else:
            command, printed = found.pop()
            found.append((command, printed + line))
    return found


def play(commands: list[str], folder: Path) -> list[str]:
    """Type commands into one shell, and return what each printed."""
    script = "".join(
        f"{command}\n" + (f"sleep {SOON_S}\n" if command.endswith("&") else "") + f"echo {shlex.quote(MARK)}\n"
        for command in commands
    )
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8"}
    run = subprocess.run(
        ["bash"],
        input=script,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    return run.stdout.split(MARK + "\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_print_what_the_page_says(page: Path, tmp_path: Path) -> None:
    expected = commands_of(page.read_text("utf-8"))

    printed = play([command for command, _ in expected], tmp_path)

    checker = doctest.OutputChecker()
    wrong = [
        f"$ {command}\n{was}"
        for (command, says), was in zip(expected, printed, strict=False)
        if not checker.check_output(says, was, FLAGS)
    ]
    assert wrong == []


def test_the_tutorial_is_among_the_pages() -> None:
    assert ROOT / "docs" / "tutorial" / "shared-site.md" in PAGES
