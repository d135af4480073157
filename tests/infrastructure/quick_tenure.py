"""A `tenure` for shells of tests that is quick to begin: each call is a fork of a process that has all of it imported.

``quick_path`` gives a folder for the front of PATH. The `tenure` in it is a few lines on a bare interpreter (some
10 ms): they hand words, folder, environment and open files over to the fork server, hand signals on, and end with the
exit code. What serves or watches on is the real program, in a process of its own. So is `python` with words; Python
that comes on standard input is run by a fork, too.
"""

import gc
import importlib
import marshal
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from importlib.metadata import entry_points
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import NoReturn

PROGRAMS = Path(sys.executable).parent
LONG = ("serve", "watch", "bench")
"""Commands that go on until they are stopped, or measure: these are run as they are."""

SHIM = """#!{python} -IS
import sys, os
name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
if {long}.intersection(words) or (name == "python" and words):
    os.execv({programs} + "/" + name, [name, *words])
import _signal, _socket, marshal
said = marshal.dumps((name, words, os.getcwd(), dict(os.environ), os.umask(0)))
line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
line.connect({place})
files = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
line.sendmsg([len(said).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
line.sendall(said)
child = int.from_bytes(line.recv(4), "big")
for number in (_signal.SIGINT, _signal.SIGTERM):
    _signal.signal(number, lambda number, _: os.kill(child, number))
code = int.from_bytes(line.recv(4), "big", signed=True)
os._exit(code if code >= 0 else 128 - code)
"""


@contextmanager
def quick_path(*preloaded: str) -> Iterator[Path]:
    """Give the folder of a quick `tenure` and `python`; ``preloaded`` are modules to import once beside its own."""
    with tempfile.TemporaryDirectory(prefix="tenure-quick-") as name:
        folder = Path(name)
        command = [sys.executable, "-m", __name__, str(folder / "line"), *preloaded]
        # The server ends when its standard input does, also if this process is killed.
        server = subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            assert server.stdout.readline() == b"ready\n", "the fork server did not start"
            write_shims(folder)
            yield folder
        finally:
            server.stdin.close()
            server.wait(30)
            server.stdout.close()


PROJECT = Path(__file__).parents[2]


def write_shims(folder: Path) -> None:
    """Write the programs that hand their calls over."""
    text = SHIM.format(
        python=sys.executable, long=set(LONG), programs=repr(str(PROGRAMS)), place=repr(str(folder / "line"))
    )
    for name in ("tenure", "python"):
        (folder / name).write_text(text, "utf-8")
        (folder / name).chmod(0o755)


def serve(place: str, preloaded: Sequence[str]) -> None:
    """Fork for every call, until standard input ends."""
    load(preloaded)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(place)
    listener.listen(64)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children: they say their codes themselves
    gc.collect()
    gc.freeze()
    print("ready", flush=True)
    if os.fork() == 0:
        _end_with_standard_input(os.getppid())
    while True:
        line, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _call(line)
        line.close()


def _end_with_standard_input(server: int) -> NoReturn:
    os.read(0, 1)
    os.kill(server, signal.SIGTERM)
    os._exit(0)


def load(preloaded: Sequence[str]) -> None:
    """Import what calls would import, and let one call read what each would read again."""
    import tenure.doors.cli as package

    names = [each.name for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    for name in (*names, *PARTS, *preloaded):
        if not name.endswith("__main__"):
            importlib.import_module(name)
    with redirect_stdout(StringIO()):
        run_program(["group", "list", "--store", "memory:"])


PARTS = (
    "tenure.client.remote_ledger",
    "tenure.integrations.bosh.deployments_api",
    "tenure.stores.postgres.store",
    "tenure.stores.sqlite.store",
    "doctest",
)
"""What commands import when they are called."""


def run_program(words: list[str]) -> int:
    """Run the program as its entry point does; return the exit code."""
    [entry] = entry_points(group="console_scripts", name="tenure")
    sys.argv = ["tenure", *words]
    return _code_of(entry.load())


def run_strictly(words: list[str]) -> int:
    """Run the program as ``python -W error`` does."""
    warnings.simplefilter("error")
    return run_program(words)


def run_python(words: list[str]) -> int:
    """Run what comes on standard input, as `python` does."""
    text = sys.stdin.read()
    sys.path.insert(0, "")
    return _code_of(lambda: exec(compile(text, "<stdin>", "exec"), {"__name__": "__main__"}))  # noqa: S102


def run_module(words: list[str]) -> int:
    """Run a module of this project, as ``python -m`` does."""
    sys.path.insert(0, str(PROJECT))
    sys.argv = words
    return _code_of(lambda: runpy.run_module(words[0], run_name="__main__", alter_sys=True))


RUN: dict[str, Callable[[list[str]], int]] = {
    "tenure": run_program,
    "strict tenure": run_strictly,
    "python": run_python,
    "module": run_module,
}


def _code_of(work: Callable[[], object]) -> int:
    try:
        work()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.stdout.flush()  # as an interpreter does before it prints what happened
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _call(line: socket.socket) -> NoReturn:
    """Let a fork become the called program, say its number, and at its end its exit code, however it ended."""
    head, files, _, _ = socket.recv_fds(line, 4, 3)
    call = _received(line, int.from_bytes(head, "big"))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if child == 0:
        line.close()
        _become(call, files)
    for file in files:
        os.close(file)
    # A caller that was killed does not hear of it.
    with suppress(OSError):
        line.sendall(child.to_bytes(4, "big"))
    _, status = os.waitpid(child, 0)
    with suppress(OSError):
        line.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
    os._exit(0)


def _become(call: bytes, files: Sequence[int]) -> NoReturn:
    """Become the called program: its files, folder, environment."""
    name, words, folder, environment, umask = marshal.loads(call)  # noqa: S302
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.umask(umask)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:] = [path for path in sys.path if path != str(PROJECT)]
    sys.modules["__main__"] = ModuleType("__main__")  # a process that it spawns would import the main module again
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    encoding = environment.get("PYTHONIOENCODING", "utf-8")  # an interpreter reads it when it starts
    sys.stdout = open(1, "w", encoding=encoding, closefd=False, buffering=1 if os.isatty(1) else -1)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)  # noqa: SIM115
    code = 120
    try:
        code = RUN[name](words)
        sys.stdout.flush()
    finally:
        os._exit(code & 0xFF)


def _received(line: socket.socket, size: int) -> bytes:
    """Return what the caller hands over; end the process if the caller was killed meanwhile."""
    received = b""
    while len(received) < size:
        more = line.recv(size - len(received))
        if not more:
            os._exit(1)
        received += more
    return received


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2:])
