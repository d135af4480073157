"""Programs that do something with VMs: without a shell, ended with all their children when they are late."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

CHUNK, KEPT_BYTES = 65_536, 4096
"""What a program says is read in such parts, and only the end of it is kept."""
QUOTED = 300
"""How many characters of what a program says are quoted in a cause."""


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """How a program ended."""

    code: int
    last_line: str
    """Of what it printed."""
    last_error: str
    """The last line of what it wrote to standard error; if that is nothing, of what it printed."""


async def run_program(words: Sequence[str], fields: Mapping[str, str], prefix: str) -> ProgramEnd:
    """Run a program; ``{name}`` in its words is replaced, and the same is in its environment under the prefix.

    Raise ``OSError`` if it cannot be started. When it is cancelled, the program is killed.
    """
    surroundings = os.environ | {f"{prefix}{name.upper()}": value for name, value in fields.items()}
    # In a session of its own, so that its children are killed with it, and no other process.
    process = await asyncio.create_subprocess_exec(
        *(filled(word, fields) for word in words), env=surroundings, start_new_session=True,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        # Both at once: a program that has filled a pipe waits until it is read.
        printed, complained = await asyncio.gather(_tail(process.stdout), _tail(process.stderr))
        code = await process.wait()
    except BaseException:
        # Its own children, too: they would keep the pipe open, and the VM busy.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        raise
    return ProgramEnd(code, _last_line(printed), _last_line(complained) or _last_line(printed))


async def _tail(stream: asyncio.StreamReader) -> bytes:
    """Return the end of what a program says; the rest is read and dropped.

    A program may say more than there is memory: an agent must not die of it.
    """
    kept = b""
    while part := await stream.read(CHUNK):
        kept = (kept + part)[-KEPT_BYTES:]
    return kept


def _last_line(said: bytes) -> str:
    return printable(said.decode("utf-8", "replace").strip().rpartition("\n")[2])[-QUOTED:]


def printable(text: str) -> str:
    """Return a text without what a terminal or a log would not show as it is, such as colours."""
    return "".join(each if each.isprintable() else " " for each in text)


def filled(text: str, fields: Mapping[str, str]) -> str:
    """Put fields into a text; other braces stay, and what a field contains is not looked at again."""
    parts = text.split("{")
    found = [parts[0]]
    for part in parts[1:]:
        name, brace, rest = part.partition("}")
        found.append(fields[name] + rest if brace and name in fields else "{" + part)
    return "".join(found)
