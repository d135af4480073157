"""Pages that show a terminal are played in one, from top to bottom in one folder, as a reader would paste them.

Every command runs, and prints what the page says; so does Python in between. A YAML block that begins with a
comment of nothing but a file's name is that file: a reader saves it where it stands.
"""

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAVED = re.compile(r"# ([\w.-]+)\n")
PAGES = [
    path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "```console\n" in path.read_text("utf-8")
]
MARK = "-- end of what a command printed --"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

SOON_S = 3
"""How long a reader looks at a command in the background before he types the next one."""


def commands_of(page: str) -> list[tuple[str, str]]:
    """Return every command of a page and what it prints."""
    found: list[tuple[str, str]] = []
    before = ""
    for kind, text in BLOCK.findall(page):
        saved = SAVED.match(text)
        if kind == "yaml" and saved:
            found.append((f"cat > {saved[1]} <<'END'\n{text}END", ""))
        elif kind == "python":
            found.append((f"python <<'END'\n{text}END", ""))
        elif (before, kind) == ("python", "text"):
            found.append((found.pop()[0], text))
        elif kind == "console":
            found += typed(text)
        before = kind
    return found


def typed(text: str) -> list[tuple[str, str]]:
    """Return the commands of one block, and what each prints."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:].rstrip("\n"), ""))
        else:
            command, printed = found.pop()
            found.append((command, printed + line))
    return found


def _looked_at(command: str) -> str:
    """Write how a reader looks at a command in the background; at a server until it says that it serves."""
    written = re.search(r"^tenure serve .*?> (\S+)", command)
    if written is None:
        return f"sleep {SOON_S}\n"
    return f"for turn in $(seq 600); do test -s {written[1]} && break; sleep 0.1; done; sleep 1\n"


def play(commands: list[str], folder: Path, **more: str) -> list[str]:
    """Type commands into one shell, and return what each printed; ``more`` is in its environment."""
    script = "".join(
        f"{command}\n" + (_looked_at(command) if command.endswith("&") else "") + f"echo {shlex.quote(MARK)}\n"
        for command in commands
    )
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8", **more}
    run = subprocess.run(
        ["bash"],
        input=script,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    return run.stdout.split(MARK + "\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_print_what_the_page_says(page: Path, tmp_path: Path) -> None:
    expected = commands_of(page.read_text("utf-8"))

    printed = play([command for command, _ in expected], tmp_path)

    assert wrongs(expected, printed) == []


def wrongs(expected: list[tuple[str, str]], printed: list[str]) -> list[str]:
    """Return the commands that printed something else than the page says."""
    checker = doctest.OutputChecker()
    return [
        f"$ {command}\n{was}"
        for (command, says), was in zip(expected, printed, strict=False)
        if not checker.check_output(says, was, FLAGS)
    ]


def test_the_tutorials_are_among_the_pages() -> None:
    tutorials = ROOT / "docs" / "tutorial"

    assert {tutorials / "shared-site.md", tutorials / "networks.md", tutorials / "deployments.md"} <= set(PAGES)


def test_a_file_that_a_page_shows_is_saved_where_it_stands(tmp_path: Path) -> None:
    show, file = "```console\n$ cat a.yml\n{}```\n\n", "# a.yml\nx: $HOME\n"
    page = show.format("") + f"```yaml\n{file}```\n\n" + show.format(file)
    expected = commands_of(page)

    missing, _, shown, _ = play([command for command, _ in expected], tmp_path)

    assert "No such file" in missing
    assert shown == expected[-1][1] == file
