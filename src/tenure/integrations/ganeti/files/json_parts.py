"""Bytes to JSON, and JSON to values: every fault is noted with its place, and reading goes on."""

import json
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from tenure.integrations.ganeti.files.file_model import FileRemark, Json
from tenure.integrations.ganeti.machine_model import UUID, check_word
from tenure.kernel.errors import Invalid, TenureError
from tenure.kernel.names import shown

T = TypeVar("T")

DEEPEST = 64
"""How deep a document may be nested; Ganeti's own have about ten levels."""

TOLD = 20
"""How many faults a message names."""


def parse_document(data: bytes, *, field: str = "file") -> Any:
    """Read JSON as strictly as losing nothing asks for: one key once, finite numbers, a sane depth."""
    try:
        # A file may begin with a byte order mark, which is no part of JSON.
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Invalid(f"{field}: not UTF-8 (byte {error.start})", field=field) from None
    try:
        # ``parse_float`` as well: to the parser 1e999 is a number like others, and becomes infinite.
        document = json.loads(text, object_pairs_hook=_once, parse_constant=_finite, parse_float=_finite)
    # The parser recurses by itself, and may give up before the depth is looked at.
    except RecursionError:
        raise Invalid(f"{field}: nested deeper than {DEEPEST} levels", field=field) from None
    except ValueError as error:
        raise Invalid(f"{field}: not JSON ({str(error)[:160]})", field=field) from None
    _check_depth(document, field)
    return document


def _once(pairs: list[tuple[str, Any]]) -> Json:
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = next(key for index, (key, _) in enumerate(pairs) if key in dict(pairs[:index]))
        raise ValueError(f"the key {shown(twice)} stands twice in one object")
    return made


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is no finite number")
    return number


def _check_depth(document: object, field: str) -> None:
    """Refuse what is nested too deep for those who come after us; without recursion, for it may be very deep."""
    level = [document]
    for _ in range(DEEPEST):
        inner: list[object] = []
        for value in level:
            if isinstance(value, dict):
                inner.extend(value.values())
            elif isinstance(value, list):
                inner.extend(value)
        if not inner:
            return
        level = inner
    raise Invalid(f"{field}: nested deeper than {DEEPEST} levels", field=field)


class FileFaults:
    """The faults of one file, in the order they are met."""

    def __init__(self) -> None:
        self.found: list[FileRemark] = []

    def add(self, place: str, reason: str) -> None:
        """Note a fault."""
        self.found.append(FileRemark(place, reason))

    def take(self, place: str, error: TenureError) -> None:
        """Note what a reader complains of; it may know the place better."""
        exact = error.field if error.field is not None and error.field.startswith(place) else place
        self.add(exact, error.message.removeprefix(f"{exact}: "))

    def tried(self, place: str, read: Callable[[], T], otherwise: T) -> T:
        """Read a value; note the fault and go on with another where it cannot be read."""
        try:
            return read()
        except TenureError as error:
            self.take(place, error)
            return otherwise

    def check(self) -> None:
        """Raise if there are faults; the message names them all, or the first of very many."""
        if not self.found:
            return
        named = "; ".join(map(str, self.found[:TOLD]))
        more = f"; and {len(self.found) - TOLD} more" if len(self.found) > TOLD else ""
        raise Invalid(named + more, field=self.found[0].place)


class Part:
    """An object of a file: its document, its place, and where its faults go. A null counts as absent."""

    def __init__(self, document: Json, place: str, faults: FileFaults) -> None:
        self.document = document
        self.place = place
        self.faults = faults

    def at(self, key: str) -> str:
        """Name the place of a field."""
        return f"{self.place}.{key}" if self.place else key

    def has(self, key: str) -> bool:
        """Tell whether a field says something."""
        return self.document.get(key) is not None

    def read(self, key: str, reader: Callable[[Any, str], T], otherwise: T) -> T:
        """Read a field by a reader that takes the value and its place; ``otherwise`` where it is absent or wrong."""
        if not self.has(key):
            return otherwise
        place = self.at(key)
        return self.faults.tried(place, lambda: reader(self.document[key], place), otherwise)

    def needed(self, key: str, reader: Callable[[Any, str], T]) -> T | None:
        """Read a field that must be there."""
        if not self.has(key):
            self.faults.add(self.at(key), "is missing")
            return None
        return self.read(key, reader, None)

    def members(self, key: str) -> "Iterator[Part]":
        """Yield the objects of a list."""
        found = self.document.get(key)
        if found is None:
            return
        if not isinstance(found, list):
            self.faults.add(self.at(key), f"a list is needed, not {shown(found)}")
            return
        for index, each in enumerate(found):
            yield from self._part(each, f"{self.at(key)}[{index}]")

    def named(self, key: str) -> "Iterator[tuple[str, Part]]":
        """Yield the objects of a mapping, each with its key."""
        found = self.document.get(key)
        if found is None:
            return
        if not isinstance(found, dict):
            self.faults.add(self.at(key), f"an object is needed, not {shown(found)}")
            return
        for name, each in found.items():
            for part in self._part(each, f"{self.at(key)}[{name[:80]}]"):
                yield name, part

    def part(self, key: str) -> "Part":
        """Return an object inside; an empty one where there is none."""
        found = self.document.get(key)
        if found is not None:
            for part in self._part(found, self.at(key)):
                return part
        return Part({}, self.at(key), self.faults)

    def _part(self, found: object, place: str) -> "Iterator[Part]":
        if isinstance(found, dict):
            yield Part(found, place, self.faults)
        else:
            self.faults.add(place, f"an object is needed, not {shown(found)}")


def read_word(value: object, kind: str, field: str) -> str:
    """Read the name of a group, a node or an instance, or a uuid."""
    try:
        return check_word(value, field=kind)
    except Invalid as error:
        raise Invalid(f"{field}: {error.message.partition(': ')[2]}", field=field) from None


def read_uuid(value: object, field: str) -> str:
    """Read a uuid: names of the ledger's index papers are put together of it, so it is short and has no slash."""
    return read_word(value, UUID, field)


def text(value: object, field: str) -> str:
    """Read text."""
    if not isinstance(value, str):
        raise Invalid(f"{field}: text is needed, not {shown(value)}", field=field)
    return value
