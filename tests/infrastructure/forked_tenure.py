"""`tenure` as a process of its own that begins at once: a fork of a process that has all of it imported.

``ForkedTenure`` is a ``subprocess.Popen``: what tests do with the program's files, signals and exit code is the same.
An interpreter that is started anew imports for a second of CPU before it serves, some hundred times in a run.
"""

import atexit
import marshal
import os
import socket
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, AnyStr

from tests.infrastructure.quick_tenure import quick_path

PRELOADED = (
    "tenure.doors.http.app",
    "tenure.doors.http.process.run_server",
    "tenure.integrations.kubernetes.operator",
    "tenure.integrations.vmpool.vm_pool",
    "tests.contract.providers",
)
"""What commands import that serve on."""


@cache
def _line() -> Path:
    """Start this process's fork server, which ends with it; return where it listens."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(quick_path(*PRELOADED)) / "line"


class ForkedTenure(subprocess.Popen[AnyStr]):
    """`tenure WORDS`, with ``strict`` as under ``python -W error``. Its number is that of the program itself."""

    def __init__(self, words: Sequence[str], *, strict: bool = False, program: str = "", **settings: Any) -> None:
        self._name = program or ("strict tenure" if strict else "tenure")
        self._caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        super().__init__(words, **settings)

    def _execute_child(self, args: Sequence[str], *rest: Any) -> None:
        """Hand the call over instead of starting a program. The order of Popen's arguments is that of Python 3.8 on."""
        cwd, env, (in_read, _, _, out_write, _, error_write) = rest[4], rest[5], rest[9:15]
        said = marshal.dumps(
            (self._name, [*args], os.path.abspath(cwd or "."), dict(os.environ if env is None else env), _umask())
        )
        files = [file if file >= 0 else own for own, file in enumerate((in_read, out_write, error_write))]
        self._caller.connect(str(_line()))
        socket.send_fds(self._caller, [len(said).to_bytes(4, "big")], files)
        self._caller.sendall(said)
        self.pid = int.from_bytes(self._caller.recv(4), "big")
        self._child_created = True
        self._close_pipe_fds(*rest[9:15])  # type: ignore[attr-defined]

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        """Return the number and the exit status, as ``os.waitpid`` does of a child; this one is another's."""
        self._caller.setblocking(not wait_flags & os.WNOHANG)
        try:
            code = self._caller.recv(4)
        except BlockingIOError:
            return 0, 0
        self._caller.close()
        number = int.from_bytes(code, "big", signed=True)
        return self.pid, -number if number < 0 else number << 8

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        # Another thread may be waiting for it: then nothing is known yet.
        if self.returncode is None and self._waitpid_lock.acquire(False):  # type: ignore[attr-defined]
            try:
                pid, status = self._try_wait(os.WNOHANG)
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
            finally:
                self._waitpid_lock.release()  # type: ignore[attr-defined]
        return self.returncode


class ForkedModule(ForkedTenure[AnyStr]):
    """`python -m MODULE WORDS`, for a module of this project."""

    def __init__(self, module: str, *words: str, **settings: Any) -> None:
        super().__init__([module, *words], program="module", **settings)


def run_forked(words: Sequence[str], *, timeout: float, **settings: Any) -> "subprocess.CompletedProcess[str]":
    """Run `tenure WORDS` to its end, as ``subprocess.run`` does with ``capture_output``."""
    with ForkedTenure[str](
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", **settings
    ) as process:
        try:
            told, wrong = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, told, wrong)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
