"""Hooks: programs in a directory that run before and after an operation on an instance or a network.

They run one after another, in a session of their own each, with a time limit; what they print is kept as far as its
end. ``run_hooks`` judges nothing: ``Hooking.ask`` lets failures of the first phase stop the operation.
"""

import asyncio
import math
import os
import re
import signal
from asyncio.subprocess import DEVNULL, Process, create_subprocess_exec
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tenure.kernel.errors import Conflict, Invalid

OP_CODES: Mapping[str, str] = {
    "instance-add": "OP_INSTANCE_CREATE",
    "instance-modify": "OP_INSTANCE_SET_PARAMS",
    "instance-remove": "OP_INSTANCE_REMOVE",
    "instance-rename": "OP_INSTANCE_RENAME",
    "instance-move": "OP_INSTANCE_MOVE",
    "network-add": "OP_NETWORK_ADD",
    "network-modify": "OP_NETWORK_SET_PARAMS",
    "network-remove": "OP_NETWORK_REMOVE",
    "network-rename": "OP_NETWORK_RENAME",
    "network-connect": "OP_NETWORK_CONNECT",
    "network-disconnect": "OP_NETWORK_DISCONNECT",
}
"""The operations that have hooks, and what Ganeti calls them."""

PRE, POST = "pre", "post"
PHASES = (PRE, POST)

TARGETS = {"instance": "GANETI_INSTANCE_NAME", "network": "GANETI_NETWORK_NAME"}
"""In which variable, by what an operation is about, the name of that object stands."""

PATH = "/sbin:/bin:/usr/sbin:/usr/bin"
LIMIT_S = 60.0
KEPT_BYTES = 4096
"""How much of the end of what a hook prints is kept."""

_NAME = re.compile(r"[A-Za-z0-9_-]+")
# For a killed hook to be gone, and for the last output of an ended one to come out of the pipe.
_GRACE_S = 0.5

Outcome = Literal["success", "failed", "timeout", "skipped"]


@dataclass(frozen=True, slots=True)
class HookResult:
    """What became of one file of a hook directory; ``code`` is None unless it ended by itself, negative by a signal."""

    name: str
    outcome: Outcome
    code: int | None = None
    output: str = ""
    seconds: float = 0.0


class HookFailed(Conflict):
    """A hook of the first phase said no; nothing was done."""

    code = "hook_failed"

    def __init__(self, results: Sequence[HookResult]) -> None:
        told = "; ".join(f"{result.name}: {result.outcome}" for result in failed(results))
        super().__init__(f"a hook refused the operation, nothing was changed: {told}", field="hooks")
        self.results = results


@dataclass(frozen=True, slots=True)
class Hooking:
    """Which hooks to run, and how long each may take."""

    directory: Path
    limit_s: float = LIMIT_S

    def longest(self, operation: str, phase: str) -> float:
        """Return how many seconds the hooks of a phase may take."""
        return count_hooks(self.directory, operation, phase) * self.limit_s

    async def ask(self, operation: str, variables: Mapping[str, str]) -> list[HookResult]:
        """Run the hooks before an operation; HookFailed if one of them refuses it."""
        results = await run_hooks(self.directory, operation, PRE, variables, limit_s=self.limit_s)
        if failed(results):
            raise HookFailed(results)
        return results

    async def report(self, operation: str, variables: Mapping[str, str]) -> list[HookResult]:
        """Run the hooks after an operation."""
        return await run_hooks(self.directory, operation, POST, variables, limit_s=self.limit_s)


CALLED_OFF = "called off while hooks ran, phase "
"""Begins the note on a cancellation that came while hooks ran; in the phase ``post`` the operation itself is done."""


def failed(results: Iterable[HookResult]) -> list[HookResult]:
    """Pick those that did not do what they were there for."""
    return [result for result in results if result.outcome in ("failed", "timeout")]


def count_hooks(directory: Path, operation: str, phase: str) -> int:
    """Count the hooks that would be run."""
    return sum(reason is None for _, reason in _files(directory, operation, phase))


async def run_hooks(
    directory: Path, operation: str, phase: str, variables: Mapping[str, str], *, limit_s: float = LIMIT_S
) -> list[HookResult]:
    """Run the hooks of one phase of an operation, all of them, in the order of their names."""
    if not (limit_s > 0 and math.isfinite(limit_s)):
        raise Invalid(f"hooks: a time limit is a number of seconds above 0, not {limit_s}", field="hooks")
    files = _files(directory, operation, phase)
    environment = {**variables, **_own_variables(operation, phase, variables)}
    results: list[HookResult] = []
    for path, reason in files:
        if reason is None:
            results.append(await _run_in(phase, path, environment, limit_s))
        else:
            results.append(HookResult(_printable(path.name), "skipped", output=reason))
    return results


async def _run_in(phase: str, path: Path, environment: Mapping[str, str], limit_s: float) -> HookResult:
    try:
        return await _run(path, environment, limit_s)
    except asyncio.CancelledError as error:
        error.add_note(CALLED_OFF + phase)
        raise


def _own_variables(operation: str, phase: str, variables: Mapping[str, str]) -> dict[str, str]:
    kind = operation.partition("-")[0]
    return {
        "PATH": PATH,
        "GANETI_HOOKS_VERSION": "2",
        "GANETI_HOOKS_PHASE": phase,
        "GANETI_HOOKS_PATH": operation,
        "GANETI_OP_CODE": OP_CODES[operation],
        "GANETI_OBJECT_TYPE": kind.upper(),
        "GANETI_OP_TARGET": variables.get(TARGETS[kind], ""),
    }


def _files(directory: Path, operation: str, phase: str) -> list[tuple[Path, str | None]]:
    """List the files of a phase in order, each with the reason why it is skipped, if it is."""
    if operation not in OP_CODES or phase not in PHASES:
        raise Invalid(f"hooks: there are no hooks for {operation!r}, phase {phase!r}", field="hooks")
    # A hook runs in "/", so a directory named from here must be written out.
    place = directory.absolute() / f"{operation}-{phase}.d"
    try:
        # A phase may have no directory, but a mistyped hook directory must not switch all hooks off in silence.
        if not directory.is_dir():
            raise Invalid(f"hooks: {str(directory)[:200]!r} is not a directory", field="hooks")
        return [(path, _why_skipped(path)) for path in sorted(place.iterdir(), key=lambda path: os.fsencode(path.name))]
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise Invalid(f"hooks: {str(place)[:200]!r} cannot be read: {error}", field="hooks") from error


def _why_skipped(path: Path) -> str | None:
    if not _NAME.fullmatch(path.name):
        return "its name has other signs than letters, digits, '_' and '-'"
    if not path.is_file():
        return "it is not a file"
    return None if os.access(path, os.X_OK) else "it is not executable"


def _printable(name: str) -> str:
    """Write a name that may hold anything, so that it can be shown."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in name)


async def _run(path: Path, environment: Mapping[str, str], limit_s: float) -> HookResult:
    loop = asyncio.get_running_loop()
    began = loop.time()
    tail = _Tail()
    try:
        process, transport = await _start(path, environment, tail)
    except (OSError, ValueError) as error:
        return HookResult(path.name, "failed", None, f"it cannot be started: {error}", loop.time() - began)
    try:
        code = await _ended(process, limit_s)
        await tail.drain()
    finally:
        transport.close()
    outcome: Outcome = "timeout" if code is None else "failed" if code else "success"
    return HookResult(path.name, outcome, code, tail.text, loop.time() - began)


async def _start(path: Path, environment: Mapping[str, str], tail: "_Tail") -> tuple[Process, asyncio.ReadTransport]:
    """Start a hook that prints into a pipe of ours.

    With a pipe of asyncio's own, waiting for the hook would also wait for whoever inherited its output.
    """
    reading, writing = os.pipe()
    # Our copy of the writing end is closed on the way out: otherwise the pipe would not end with the hook.
    with os.fdopen(writing, "wb"):
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: tail, os.fdopen(reading, "rb"))
        try:
            return await _started(path, environment, writing), transport
        except BaseException:
            transport.close()
            raise


async def _started(path: Path, environment: Mapping[str, str], output: int) -> Process:
    starting = asyncio.create_task(
        create_subprocess_exec(
            path, env=environment, cwd="/", stdin=DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        # The hook may be running already and have children; asyncio by itself would kill the hook alone.
        with suppress(OSError, ValueError):
            await _kill(await starting)
        raise


async def _ended(process: Process, limit_s: float) -> int | None:
    """Wait for a hook, and kill it when its time is up or the operation is called off; return its code, if it ended."""
    try:
        async with asyncio.timeout(limit_s):
            return await process.wait()
    except TimeoutError:
        return None
    finally:
        # Also when the waiting is cancelled: no hook runs on behind an operation that was called off.
        if process.returncode is None:
            await _kill(process)


async def _kill(process: Process) -> None:
    """Kill a hook with all that it started; one that runs as somebody else may be out of reach."""
    # It leads a group of its own, by its own number.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    # A hook that cannot be killed must not hold the command up.
    with suppress(TimeoutError):
        async with asyncio.timeout(_GRACE_S):
            await process.wait()


class _Tail(asyncio.Protocol):
    """The end of what a hook prints; the rest is read and dropped, so that the hook is never held up."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._dropped = False
        self._closed = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self._kept += data
        if len(self._kept) > KEPT_BYTES:
            self._dropped = True
            del self._kept[:-KEPT_BYTES]

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.set()

    async def drain(self) -> None:
        """Read what is still in the pipe, but do not wait for a program that the hook left behind."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_S):
                await self._closed.wait()

    @property
    def text(self) -> str:
        """Write it as text, whatever it was."""
        return ("…" if self._dropped else "") + self._kept.decode("utf-8", "replace")
