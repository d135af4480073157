"""Pages as a reader pastes them: every command of a page typed into one shell, in one folder, from top to bottom."""

import doctest
import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^( *)```([\w-]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
SAVED = re.compile(r"# ([\w.-]+)\n")
MARK = "-- end of what a command printed, with"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
ENDED = 128 + signal.SIGTERM

PASTED = {"sh", "console"}
"""The kinds of blocks that a reader pastes into a shell."""

SOON_S = 3
"""How long a reader looks at a command in the background before typing the next command."""

CURL = "fail-with-body\nsilent\nshow-error\n"
"""What `curl` reads in the home of every page: an answer that is an error fails the command."""


class Command(NamedTuple):
    """A command of a page, and what the page says it prints; None where it does not: then it must end well."""

    text: str
    prints: str | None = None


class Played(NamedTuple):
    """What a command printed, and its exit code."""

    printed: str
    code: int


def blocks_of(page: str) -> list[tuple[str, str]]:
    """Return kind and text of every block, also of those that stand in a list."""
    return [(kind, textwrap.dedent(text)) for _, kind, text in BLOCK.findall(page)]


def has_commands(page: Path) -> bool:
    """Return whether a page has something to paste."""
    return any(kind in PASTED for kind, _ in blocks_of(page.read_text("utf-8")))


def commands_of(page: str) -> list[Command]:
    """Return every command of a page.

    A YAML block that begins with a comment of nothing but a file's name is that file; a block that begins as a script
    does is the file `script`: a reader saves them. Python is run where a page has a console, because it is part of what
    happens there; on other pages it stands for itself, and ``test_docs`` runs it.
    """
    found: list[Command] = []
    blocks, before = blocks_of(page), ""
    story = any(kind == "console" for kind, _ in blocks)
    for kind, text in blocks:
        saved = SAVED.match(text)
        if kind == "yaml" and saved:
            found.append(Command(f"cat > {saved[1]} <<'END'\n{text}END"))
        elif kind == "sh" and text.startswith("#!"):
            found.append(Command(f"cat > script <<'END'\n{text}END\nchmod +x script"))
        elif kind == "python" and story:
            found.append(Command(f"python <<'END'\n{text}END", ""))
        elif (before, kind) == ("python", "text") and story:
            found.append(Command(found.pop().text, text))
        elif kind == "console":
            found += typed(text)
        elif kind == "sh":
            found += [Command(line) for line in lines_of(text)]
        before = kind
    return found


def typed(text: str) -> list[Command]:
    """Return the commands of one console, and what each prints."""
    found: list[Command] = []
    for line in text.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append(Command(line[2:].rstrip("\n"), ""))
        else:
            command, printed = found.pop()
            found.append(Command(command, (printed or "") + line))
    return found


def lines_of(text: str) -> list[str]:
    """Return the commands of a block that shows nothing of what they print."""
    return [line for line in re.split(r"(?<!\\)\n", text) if line.strip()]


def goes_on(command: str) -> bool:
    """Return whether a reader ends a command by Ctrl-C: a server, a stream."""
    words = shlex.split(command, comments=True)
    serves = words[:2] == ["tenure", "serve"] and not {"--check", "&"} & set(words)
    return serves or "--no-buffer" in words


def _line(command: str) -> str:
    """Write a command as it is typed, with what a reader does before typing the next command."""
    if goes_on(command):
        # Ctrl-C does not reach what a shell without a terminal has in the background; a server stops alike for both.
        ended = f"{_until('out.going')}kill $!; wait $!; ended=$?; cat out.going\n"
        return f"{command.split(' #')[0]} > out.going 2>&1 &\n{ended}"
    look = ""
    if command.endswith("&"):
        written = re.search(r"^tenure serve .*?> (\S+)", command)
        look = f"sleep {SOON_S}\n" if written is None else _until(written[1])
    return f"{command}\nended=$?\n{look}"


def _until(file: str) -> str:
    """Write how a reader looks at what goes on until it says something."""
    return f"for turn in $(seq 600); do test -s {file} && break; sleep 0.1; done; sleep 1\n"


def play(commands: Iterable[str], folder: Path, *fronts: Path, **more: str) -> list[Played]:
    """Type commands into one shell, and return what came of each; programs of ``fronts`` come before the real ones."""
    script = "".join(f"{_line(command)}echo {shlex.quote(MARK)} $ended\n" for command in commands)
    (folder / ".curlrc").write_text(CURL, "utf-8")
    path = os.pathsep.join([*map(str, fronts), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8", **more}
    shell = subprocess.Popen(
        ["bash"],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )
    try:
        printed, _ = shell.communicate(script, timeout=300)
    finally:
        end_session(shell)
    return [Played(text, int(code)) for text, code in re.findall(rf"(.*?){MARK} (\d+)\n", printed, re.DOTALL)]


def end_session(shell: "subprocess.Popen[str]") -> None:
    """End what a shell left behind: a server that a page did not stop, or a test that failed."""
    try:
        os.killpg(shell.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        shell.wait(30)


def wrongs(expected: Sequence[Command], played: Sequence[Played], findings: Sequence[str] = ()) -> list[str]:
    """Return the commands that printed something else than the page says, or failed where it says nothing.

    ``findings`` are the beginnings of commands that may find something, which is their exit code 1.
    """
    wrong = [
        f"$ {command.text}\n{was.printed}[{was.code}]"
        for command, was in zip(expected, played, strict=False)
        if not _as_said(command, was, findings)
    ]
    return wrong + [f"$ {command.text}\nwas not reached" for command in expected[len(played) :]]


def _as_said(command: Command, was: Played, findings: Sequence[str]) -> bool:
    if command.prints is not None:
        return doctest.OutputChecker().check_output(command.prints, was.printed, FLAGS)
    good = {0} | ({1} if command.text.startswith(tuple(findings)) else set())
    return was.code in good | ({ENDED} if goes_on(command.text) and "curl" in command.text else set())
