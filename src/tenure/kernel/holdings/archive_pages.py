"""Pages of the archive: old changes of the log, packed column by column and compressed.

A column of one kind of thing (times, owners, verbs) compresses better than whole entries do, and is read faster. Times
and generations are written as steps from the one before, the last address as its distance from the first. The numbers
of the log have no gaps (I7), so only the first one is written down.
"""

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from tenure.kernel.addressing.addresses import key
from tenure.kernel.errors import StoreUnavailable
from tenure.kernel.holdings.holding_model import NO_DETAILS, Change

CHANGES_A_PAGE = 1000
"""Twice as many save a twentieth of the bytes, and double what is unpacked to read one entry."""

# zlib's best: a page is packed once, off the loop, and kept for years.
LEVEL = 9

DAMAGED = "archive"
"""The field of an error that tells of a page which is not as it was packed."""

_write = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode


class ArchivedPage(NamedTuple):
    """Changes that follow one another: the numbers and times of the first and the last, and all of them packed."""

    first_seq: int
    last_seq: int
    first_us: int
    last_us: int
    body: bytes


def packed(changes: Sequence[Change]) -> ArchivedPage:
    """Return the page that has these changes, which follow one another without a gap. Some 10 ms for 1000 of them."""
    times = [change.at_us for change in changes]
    columns = {
        "at_us": _steps(times),
        "verb": [change.verb for change in changes],
        "space": [change.space for change in changes],
        "network": [change.network for change in changes],
        "first": [change.first for change in changes],
        "beyond": [_beyond(change) for change in changes],
        "owner": [change.owner for change in changes],
        "slot": [change.slot for change in changes],
        "generation": _steps([change.generation for change in changes]),
        "request": [change.request for change in changes],
        "details": [dict(change.details) or None for change in changes],
    }
    body = zlib.compress(_write(columns).encode("ascii"), LEVEL)
    return ArchivedPage(changes[0].seq, changes[-1].seq, times[0], times[-1], body)


def unpacked(page: ArchivedPage) -> list[Change]:
    """Return a page's changes as they were; StoreUnavailable (of ``archive``) if they are not there. 3 ms for 1000."""
    try:
        columns = json.loads(zlib.decompress(page.body))
        changes = list(_changes(page.first_seq, columns))
    # Damage has many forms: bad compression, bad JSON, missing columns, columns of different length.
    except (zlib.error, ValueError, KeyError, TypeError, AssertionError) as error:
        raise _damaged(page) from error
    told = (page.last_seq, page.first_us, page.last_us)
    # The body of another page is damage, too, though it can be read.
    if not changes or (changes[-1].seq, changes[0].at_us, changes[-1].at_us) != told:
        raise _damaged(page)
    return changes


def _damaged(page: ArchivedPage) -> StoreUnavailable:
    text = f"changes {page.first_seq} to {page.last_seq} cannot be read from the archive: the page is damaged"
    error = StoreUnavailable(text, outcome="none")
    # StoreUnavailable takes no field, because no argument of a request is wrong.
    error.field = DAMAGED
    return error


def _changes(first_seq: int, columns: dict[str, Any]) -> Iterator[Change]:
    records = zip(
        _sums(columns["at_us"]), columns["verb"], columns["space"], columns["network"], columns["first"],
        columns["beyond"], columns["owner"], columns["slot"], _sums(columns["generation"]), columns["request"],
        columns["details"], strict=True,
    )  # fmt: skip
    for seq, record in enumerate(records, first_seq):
        at_us, verb, space, network, first, beyond, owner, slot, generation, request, details = record
        assert at_us is not None
        yield Change(
            seq, at_us, verb, space, network, first, None if beyond is None else first + beyond, owner, slot,
            generation, request, details or NO_DETAILS,
        )  # fmt: skip


def _steps(numbers: Iterable[int | None]) -> list[int | None]:
    """Write numbers as steps from the one before; None is passed over."""
    steps: list[int | None] = []
    before = 0
    for number in numbers:
        steps.append(None if number is None else number - before)
        before = before if number is None else number
    return steps


def _sums(steps: Iterable[int | None]) -> Iterator[int | None]:
    """Read back what ``_steps`` wrote."""
    total = 0
    for step in steps:
        total += step or 0
        yield None if step is None else total


def _beyond(change: Change) -> int | None:
    return None if change.first is None or change.last is None else change.last - change.first


def place_of(first: int) -> int:
    """Return the short mark under which pages that tell of an address are found; a few addresses share one."""
    # Signed, because PostgreSQL keeps the marks in an ``integer[]``.
    return zlib.crc32(key(first)) - (1 << 31)


def places_of(changes: Iterable[Change]) -> list[int]:
    """Return the marks of all addresses that these changes tell of, but by grants: as the log has it by address."""
    return sorted({place_of(each.first) for each in changes if each.first is not None and each.verb != "grant"})


def places_in(page: ArchivedPage) -> list[int]:
    """Return the marks of all addresses that a page tells of; none of a damaged one, which is kept as it is."""
    try:
        return places_of(unpacked(page))
    except StoreUnavailable:
        return []


def told_of(changes: Iterable[Change], firsts: Iterable[int], after: int) -> list[Change]:
    """Pick the changes about what began at these positions, but grants, behind a number."""
    wanted = set(firsts)
    return [each for each in changes if each.first in wanted and each.verb != "grant" and each.seq > after]


def without_older(page: ArchivedPage, before: int) -> ArchivedPage:
    """Return what is left of a page when the changes below a number are dropped."""
    return packed([change for change in unpacked(page) if change.seq >= before])
