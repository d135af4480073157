"""Files that commands write: whole or not at all, and otherwise as the user keeps them."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

NEW_FILE = 0o666
"""What a new file may be used for, as far as the umask lets it."""


@contextmanager
def whole_file(output: Path) -> Iterator[TextIO]:
    """Open a file for writing that gets its name only when it is whole; links lead to what is written.

    A file that was there keeps its mode and, where the system permits it, its owner. What is no file, such as a pipe or
    a device, is written straight into, as is where our own output goes (/dev/stdout): they must not be replaced.
    """
    known = _known(output)
    if known is not None and ((ours := _own_stream(known)) is not None or not stat.S_ISREG(known.st_mode)):
        # A duplicate, because closing this file must leave our own output open.
        place = output if ours is None else os.dup(ours)
        with _named(output), open(place, "w", encoding="utf-8", newline="") as stream:
            yield stream
        return
    target = Path(os.path.realpath(output))
    if not target.parent.is_dir():
        folder = target.parent if output.is_symlink() else output.parent
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(folder))
    # In the target's own folder: only inside one file system a rename is atomic.
    part = target.with_name(f".tenure.{secrets.token_hex(8)}.part")
    try:
        with _named(output, part), _opened(part, known) as file:
            yield file
        with _named(output, part):
            part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def write_whole(output: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    with whole_file(output) as file:
        file.write(text)


def _known(output: Path) -> os.stat_result | None:
    """Look at what is there by that name, behind all links."""
    with suppress(FileNotFoundError):
        return output.stat()
    return None


def _own_stream(known: os.stat_result) -> int | None:
    """Tell whether it is our own standard output or standard error, by its number."""
    for number in (1, 2):
        with suppress(OSError):
            if os.path.samestat(known, os.fstat(number)):
                return number
    return None


def _opened(part: Path, known: os.stat_result | None) -> TextIO:
    """Make the file to write into; at no time may more people read it than the one it replaces."""
    mode = NEW_FILE if known is None else stat.S_IMODE(known.st_mode)
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode & NEW_FILE)
    file = os.fdopen(handle, "w", encoding="utf-8", newline="")
    if known is not None:
        # One by one: a user may give a file to a group of his, but not to another user.
        for user, group in ((known.st_uid, -1), (-1, known.st_gid)):
            with suppress(OSError):
                os.fchown(handle, user, group)
        # After the change of owner, which clears bits of the mode.
        os.fchmod(handle, mode)
    return file


@contextmanager
def _named(output: Path, part: Path | None = None) -> Iterator[None]:
    """Let errors name the file as the user does: nobody knows the other name."""
    try:
        yield
    except OSError as error:
        # A failed write names no file, and a failed open names the part; the error of any other file stays as it is.
        if error.filename is None or error.filename == str(part):
            raise OSError(error.errno, error.strerror, str(output)) from error
        raise
