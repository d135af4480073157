"""Backup, restore and copy: a whole ledger from one store to another, while others work on the first.

A backup is itself a ledger, in one SQLite file: backup is a copy into a new file, restore a copy out of it. What is
copied is the source as of one moment, numbers and times included; claims in line stay with the processes that wait.
"""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tenure.interchange.content_digest import Digest, digest_of, digested
from tenure.kernel.errors import AlreadyExists, Conflict, Invalid, NotFound, StoreUnavailable
from tenure.kernel.snapshot import Kind, Section
from tenure.ports import LedgerStore
from tenure.service.read.verify import Breach, verify
from tenure.wiring import open_store, seal_backup, without_secrets

T = TypeVar("T")

Progress = Callable[[str, int, int], None]
"""Told of a stage (``copying``, ``comparing``, ``verifying``), how much of it is done, and of how much."""

WEIGHTY = (Kind.HOLDINGS, Kind.CHANGES)


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What was copied: everything up to change ``seq``. The breaches found in the copy are the source's own."""

    seq: int
    counts: Mapping[str, int]
    digest: str
    breaches: tuple[Breach, ...]


async def copy(source: str, target: str, *, progress: Progress | None = None) -> CopyReport:
    """Copy a ledger into an empty store; others may work on the source meanwhile.

    Ends with a comparison by content and with ``verify`` on the copy.
    """
    _refuse_missing(source)
    async with _opened(source) as origin, _opened(target) as copied:
        # A ledger from which everything was removed still has a log, and is copied.
        if not await origin.last_change() and not await origin.spaces():
            raise NotFound("ledger", without_secrets(source), hint="the store is empty; are URL and schema right?")
        return await copy_store(origin, copied, progress=progress)


async def backup(source: str, path: str | Path, *, progress: Progress | None = None) -> CopyReport:
    """Copy a ledger into a new file, which has its name only when it is whole."""
    final = _file(path)
    _refuse_missing(source)
    # Refused before the work, and again at the end, because another backup may take the name meanwhile.
    await asyncio.to_thread(_refuse_place, final)
    part = final.with_name(f".{final.name}.{secrets.token_hex(4)}.part")
    try:
        report = await copy(source, f"sqlite:///{part}", progress=progress)
        # After the copy has closed its connections: the journal mode changes only for the sole user of a file.
        await asyncio.to_thread(seal_backup, part)
        await asyncio.to_thread(_give_name, part, final)
    finally:
        await asyncio.to_thread(_remove, part)
    return report


async def restore(path: str | Path, target: str, *, progress: Progress | None = None) -> CopyReport:
    """Copy a backup into an empty store."""
    source = f"sqlite:///{_file(path)}"
    _refuse_missing(source)
    try:
        async with _opened(source):
            pass
    except StoreUnavailable as error:
        error.field = "path"  # it is not the target that does not answer
        raise
    return await copy(source, target, progress=progress)


async def copy_store(source: LedgerStore, target: LedgerStore, *, progress: Progress | None = None) -> CopyReport:
    """Copy everything from one open store into another, which must be empty; then compare and verify."""
    if not target.abilities.survives_restart:
        raise Invalid(
            "target: a ledger in memory is gone when the copy is done; name a file or a server", field="target"
        )
    tell = _Telling(progress)
    sent = Digest()
    async with aclosing(digested(source.contents(), sent, tell.stage("copying"))) as stream:
        await target.fill(stream)
    # Read back from the target: what it stored counts, not what was sent.
    came = await digest_of(target.contents(), tell.stage("comparing"))
    if differences := sent.differences(came):
        raise Conflict(f"the copy differs from what was sent, in: {', '.join(differences)}; do not use it")
    # Breaches are reported and do not fail the copy: its content equals the source's, so they are the source's own.
    breaches = await tell.of_all("verifying", verify(target))
    counts = {str(kind): count for kind, count in sent.inventory.counts.items() if kind is not Kind.COUNTERS}
    return CopyReport(sent.inventory.complete().seq, counts, sent.whole, tuple(breaches))


class _Telling:
    """Tells the caller how far each stage is, in holdings and changes."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress: Progress = progress or (lambda stage, done, total: None)
        self._total = 0

    def stage(self, name: str) -> Callable[[Section], None]:
        """Begin a stage; return what is to be told of each section."""
        done = 0

        def told(section: Section) -> None:
            nonlocal done
            if section.kind is Kind.COUNTERS:
                [counters] = section.items
                self._total = counters.holdings + counters.changes
            if section.kind in WEIGHTY:
                done += len(section.items)
            self._progress(name, done, self._total)

        return told

    async def of_all(self, name: str, work: Awaitable[T]) -> T:
        """Tell of a stage that is not seen from inside: when it begins, and when it is over."""
        self._progress(name, 0, self._total)
        result = await work
        self._progress(name, self._total, self._total)
        return result


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[LedgerStore]:
    store = await open_store(url)
    try:
        yield store
    finally:
        await store.close()


def _file(path: str | Path) -> Path:
    if not isinstance(path, str | Path) or not str(path):
        raise Invalid("path: the name of a file is needed", field="path")
    return Path(path)


def _refuse_missing(url: str) -> None:
    """Refuse a file that is not there: opening it would make an empty ledger of it."""
    name = url.removeprefix("sqlite:///") if isinstance(url, str) else url
    if name != url and not (os.path.isfile(name) and os.path.getsize(name)):
        raise NotFound("ledger", name, hint="the file does not exist or is empty; is the name right?")


def _refuse_place(final: Path) -> None:
    if final.exists() or final.is_symlink():
        raise AlreadyExists("backup", str(final), hint="a backup is never written over another; name a new file")
    if not final.parent.is_dir():
        raise NotFound("folder", str(final.parent), hint="make it first")


def _give_name(part: Path, final: Path) -> None:
    """Make the file durable and give it its name, unless somebody else took it."""
    # The content is on disk before the name, and the name before the answer.
    _sync(part)
    try:
        os.link(part, final)  # unlike a renaming, it fails if the name is taken
    except FileExistsError:
        raise AlreadyExists("backup", str(final), hint="somebody else wrote it meanwhile") from None
    except OSError:  # a file system without links
        _refuse_place(final)
        part.rename(final)
    _sync(final.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(part: Path) -> None:
    """Remove what a copy that was broken off left, and the second name of one that was not."""
    # A copy that was broken off leaves its journal beside it.
    for tail in ("", "-wal", "-shm"):
        part.with_name(part.name + tail).unlink(missing_ok=True)
