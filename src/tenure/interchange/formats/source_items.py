"""What a source says, item by item: each with its place, so that whatever is wrong can be named by line."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from tenure.kernel.names import MAX_NAME
from tenure.kernel.plan.edits import Edit

Progress = Callable[[int, int | None], None]
"""Told how much is done, and of how much where that is known."""

STEP = 1000
"""Items between two words of progress."""

T = TypeVar("T")


class SourcePlace(NamedTuple):
    """Where a source says something: a line of a table, or a path in a document."""

    source: str
    line: int | None = None
    path: str = ""

    def __str__(self) -> str:
        where = f"line {self.line}" if self.line is not None else self.path
        return f"{self.source} {where}".strip()

    @property
    def order(self) -> tuple[str, int, list[tuple[int, str]]]:
        """Return what sorts places as a reader meets them: ``[9]`` comes before ``[10]``."""
        pieces = re.findall(r"(\d+)|(\D+)", self.path)
        return (self.source, self.line or 0, [(int(digits or 0), text) for digits, text in pieces])


@dataclass(frozen=True, slots=True)
class Remark:
    """Something to tell about a place: the field it is about, a stable code, and the reason for people."""

    place: SourcePlace
    field: str
    code: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.field}: {self.reason}" if self.field else f"{self.place}: {self.reason}"


class Fault(Remark):
    """What keeps an import from being written."""


class Oddity(Remark):
    """What is worth a look, and keeps nothing from being done."""


class SourceHolding(NamedTuple):
    """A holding as a source tells it, not checked yet: in JSON anything may stand anywhere."""

    network: Any
    address: Any
    owner: Any
    slot: Any = ""
    state: Any = "held"
    labels: Any = None
    description: Any = ""
    carrier: Any = None
    plan: Any = None
    until: Any = None
    reserved: str = "refuse"


class Item(NamedTuple):
    """One thing that a source says: an edit of the plan, a holding, or what is wrong there."""

    place: SourcePlace
    what: Edit | SourceHolding | Remark


@dataclass(frozen=True, slots=True)
class Source:
    """What was read from one or several files of one origin."""

    name: str
    items: list[Item] = field(default_factory=list)

    @property
    def request(self) -> str:
        """Name the request under which its holdings are written."""
        plain = re.sub(r"\s+", " ", "".join(c if c.isprintable() else "?" for c in self.name)).strip()
        # Stripped once more: the cut may leave a blank at the end, which no name may have.
        return f"import {plain}"[:MAX_NAME].strip()


def counted(things: Iterator[T], progress: Progress | None, total: int | None) -> Iterator[T]:
    """Pass things on and tell about every thousandth, and the end."""
    done = 0
    for done, thing in enumerate(things, 1):
        yield thing
        if progress is not None and done % STEP == 0:
            progress(done, total)
    if progress is not None and done % STEP:
        progress(done, total)
