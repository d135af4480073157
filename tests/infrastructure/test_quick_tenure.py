"""The quick `tenure` of shells does what the real one does."""

import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.infrastructure.quick_tenure import quick_path


@pytest.fixture(scope="module")
def front() -> Iterator[Path]:
    """Start the fork server once."""
    with quick_path() as folder:
        yield folder


def typed(script: str, folder: Path, front: Path | None) -> tuple[int, str, str]:
    """Run a script; return its exit code, and what it wrote to both ends."""
    path = os.pathsep.join(
        [*([] if front is None else [str(front)]), str(Path(sys.executable).parent), "/usr/bin:/bin"]
    )
    run = subprocess.run(
        ["bash"],
        input=script,
        cwd=folder,
        env={"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return run.returncode, run.stdout, run.stderr


SCRIPT = r"""
tenure network add lab --description 'Zürich → *'; echo $?
tenure show nothing; echo $?
mkdir deep; cd deep
TENURE_STORE=sqlite:///other.db tenure network add lab > all 2>&1; tenure shoe >> all 2>&1; ls; cat all; cd ..
tenure completion bash | head -n 1; echo ${PIPESTATUS[0]}
printf 'network,address,owner\nlab,192.0.2.1,vm/a\n' | tenure import - --dry-run; echo $?
tenure network list -o name,description
python <<'END'
import os, sys
print(__name__, os.getcwd() == os.environ['HOME'])
sys.exit(3)
END
echo $?
echo 'x = 1' > beside.py; echo 'import beside; print(beside.x); 1/0' | python 2>&1 | tail -n 1
python -c 'print(6 * 7)'
"""
"""Answers, errors, codes, folders, environments, pipes, standard input; Python that is fed, and with words."""


def test_a_script_does_what_it_does_with_the_real_program(front: Path, tmp_path: Path) -> None:
    quick, real = tmp_path / "quick", tmp_path / "real"
    for folder in (quick, real):
        folder.mkdir()

    done = typed(SCRIPT, quick, front)

    assert done == typed(SCRIPT, real, None)
    assert "added network lab" in done[1]
    assert "__main__ True" in done[1]


@pytest.mark.parametrize(("number", "code"), [("INT", 130), ("TERM", 143)])
def test_a_signal_reaches_the_call(number: str, code: int, front: Path, tmp_path: Path) -> None:
    full = "tenure network add lab --subnet add:cidr=192.0.2.0/30,pool; tenure allocate lab vm/a --count 2; "
    begin = time.monotonic()
    ended, _, said = typed(
        full + f"timeout --preserve-status -s {number} 1 tenure allocate lab vm/b --wait 50", tmp_path, front
    )

    assert (ended, time.monotonic() - begin < 40) == (code, True), said


def test_what_serves_is_the_real_program(front: Path, tmp_path: Path) -> None:
    script = "tenure serve --port 0 --log json > log 2>&1 & sleep 0.5; tr '\\0' ' ' < /proc/$!/cmdline; kill -9 $!"

    _, shown, _ = typed(script, tmp_path, front)

    assert shown.split()[1:] == [str(Path(sys.executable).parent / "tenure"), "serve", "--port", "0", "--log", "json"]


@pytest.mark.parametrize("said", [b"", b"half of a call"])
def test_a_caller_that_is_killed_while_it_hands_its_call_over_leaves_no_process_behind(
    said: bytes, front: Path
) -> None:
    ours, theirs = os.pipe()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.connect(str(front / "line"))
        socket.send_fds(line, [(100).to_bytes(4, "big")], [theirs] * 3)
        line.sendall(said)
    os.close(theirs)

    # The other end of the pipe is open only in the fork.
    ended, _, _ = select.select([ours], [], [], 10)

    assert ended
    os.close(ours)
