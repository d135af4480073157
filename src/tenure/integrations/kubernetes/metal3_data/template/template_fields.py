"""The fields of a template, read one by one: what is wrong is noted with its path, and so is what nobody reads."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tenure.kernel.addressing.addresses import is_v6, parse_address
from tenure.kernel.errors import Invalid
from tenure.kernel.names import shown

HIGHEST = 2**63 - 1
"""The largest number that the API has; also what an index may come to."""


class TemplateRefused(Invalid):
    """A template cannot be rendered; ``faults`` is all that is wrong with it, each with its path."""

    code = "template_refused"

    def __init__(self, faults: Iterable[tuple[str, str]]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(f"{path}: {reason}" for path, reason in self.faults), field=self.faults[0][0])


@dataclass
class ReadingNotes:
    """What a reading brings to light."""

    faults: list[tuple[str, str]] = field(default_factory=list)
    translated: list[str] = field(default_factory=list)
    """Old spellings, and how they were understood."""

    def refuse(self, path: str, reason: str) -> None:
        """Note something that cannot be honoured."""
        self.faults.append((path, reason))

    def check(self) -> None:
        """Raise ``TemplateRefused`` if anything is wrong."""
        if self.faults:
            raise TemplateRefused(self.faults)


class TemplateFields:
    """One mapping of a template. A key that nobody asks for is refused by ``finish``: misspelt, it would do nothing."""

    def __init__(self, written: object, path: str, notes: ReadingNotes) -> None:
        self.path = path
        self.notes = notes
        self._asked: list[str] = []
        self._written: Mapping[str, Any] = {}
        if isinstance(written, Mapping):
            self._written = {str(key): value for key, value in written.items() if value is not None}
        else:
            notes.refuse(path, f"must be a map, not {shown(written)}")
            self.notes = ReadingNotes()  # what it lacks by that is not said as well

    def place(self, key: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{key}" if self.path else key

    def has(self, key: str) -> bool:
        """Return whether a field is there, and is not null."""
        self._asked.append(key)
        return key in self._written

    def take(self, key: str, *older: str) -> Any:
        """Return a field as it is written, or nothing; ``older``: spellings that are translated, and noted."""
        self._asked += [key, *older]
        for name in older:
            if key not in self._written and name in self._written:
                self.notes.translated.append(f"{self.place(name)} is read as {key}")
                return self._written[name]
        return self._written.get(key)

    def text(self, key: str, *older: str, needed: bool = True) -> str:
        """Return a text; one that is needed must not be missing or empty."""
        value = self.take(key, *older)
        if value is None or value == "":
            if needed:
                self.notes.refuse(self.place(key), "is missing")
            return ""
        if not isinstance(value, str):
            self.notes.refuse(self.place(key), f"must be text, not {shown(value)}")
            return ""
        return value

    def choice(self, key: str, choices: Iterable[str], *, needed: bool = True) -> str:
        """Return a text that is one of some words."""
        value = self.text(key, needed=needed)
        words = list(choices)
        if value and value not in words:
            self.notes.refuse(self.place(key), f"must be one of {', '.join(words)}, not {shown(value)}")
            return ""
        return value

    def number(self, key: str, default: int = 0, *, lowest: int = 0, highest: int = HIGHEST) -> int:
        """Return a whole number within bounds."""
        value = self.take(key)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool):
            self.notes.refuse(self.place(key), f"must be a whole number, not {shown(value)}")
            return default
        if not lowest <= value <= highest:
            self.notes.refuse(self.place(key), f"must be a number from {lowest} to {highest}, not {shown(value)}")
            return default
        return value

    def address(self, key: str, v6: bool | None = None) -> str:
        """Return an address of a family, as it is written; empty where there is none."""
        value = self.text(key, needed=False)
        return check_address(value, self.place(key), v6, self.notes) if value else ""

    def list(self, key: str) -> list[tuple[str, Any]]:
        """Return the members of a list, each with its path."""
        value = self.take(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self.notes.refuse(self.place(key), f"must be a list, not {shown(value)}")
            return []
        return [(f"{self.place(key)}[{number}]", each) for number, each in enumerate(value)]

    def maps(self, key: str) -> Iterator["TemplateFields"]:
        """Yield the members of a list of mappings; what is left unread in each is refused behind it."""
        for path, member in self.list(key):
            fields = TemplateFields(member, path, self.notes)
            yield fields
            fields.finish()

    def map(self, key: str) -> "TemplateFields | None":
        """Return a mapping within this one, or nothing; the caller finishes it."""
        value = self.take(key)
        return None if value is None else TemplateFields(value, self.place(key), self.notes)

    def finish(self) -> None:
        """Refuse what was not asked for."""
        known = dict.fromkeys(self._asked)
        for key in [key for key in self._written if key not in known]:
            self.notes.refuse(self.place(key), f"is not known; known here: {', '.join(known)}")


def check_address(value: object, path: str, v6: bool | None, notes: ReadingNotes) -> str:
    """Return the text of an address of a family (any, if that is nothing); what is none is noted."""
    wanted = {None: "an IP address", False: "an IPv4 address", True: "an IPv6 address"}[v6]
    try:
        if isinstance(value, str) and v6 in (None, is_v6(parse_address(value))):
            return value
    except Invalid:
        pass
    notes.refuse(path, f"must be {wanted}, not {shown(value)}")
    return ""
