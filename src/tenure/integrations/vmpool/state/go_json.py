"""JSON as Go writes and reads it: what two kinds of managers write into one ConfigMap is the same to the byte.

Written: two spaces, keys of maps in order of their bytes, ``<``, ``>``, ``&`` and the two separators of Unicode as
escapes, everything else as it is. Read: names of fields in any case, ``null`` for anything; a name that an object has
twice is refused, since Go's answer to it depends on the order. Numbers in fields that nobody here knows keep their
spelling; what lies deeper in such a field than Python can compare is refused. Cost: O(n) of the text, both ways.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any, NamedTuple, NoReturn

ESCAPES = str.maketrans({each: f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"})
NEEDS_ESCAPE = re.compile("[<>&\u2028\u2029]")
SURROGATES = re.compile("[\ud800-\udfff]")
"""Halves of characters, which cannot be written as UTF-8; Go reads U+FFFD in their place, and so does this module."""

SMALLEST_INTEGER, LARGEST_INTEGER = -(1 << 63), (1 << 63) - 1
LONGEST_INTEGER = 19
"""Digits of a 64-bit integer: a longer number is kept as text, and never computed with."""

TIME = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,]\d+)?(?:Z|(?P<sign>[+-])(?P<hours>\d\d):(?P<minutes>\d\d))", re.ASCII
)
ZERO_TIME = datetime(1, 1, 1, tzinfo=UTC)
"""Go's zero time, which is written as ``null``."""

DEEPEST = 400
"""So many objects and lists may lie in each other in a field that nobody here knows: Python compares them recursively,
and gives up at a thousand calls."""
TOO_DEEP = "objects lie too deep in each other"

TIMES = 8192
"""How many times are remembered: entries are read and written far more often than they are made."""


class NotReadable(ValueError):
    """A text is no JSON, or says something of another type than is needed; the message says where."""


class NumberText(str):
    """A number that is kept as it was spelled: no integer, or one that no field here can have."""

    __slots__ = ()


def read_json(text: str) -> Any:
    """Read a text; numbers that are no 64-bit integers are ``NumberText``. Raise ``NotReadable``."""
    try:
        return json.loads(
            text, object_pairs_hook=_object, parse_float=NumberText, parse_int=_integer, parse_constant=_refuse
        )
    except RecursionError:
        raise NotReadable(TOO_DEEP) from None
    except json.JSONDecodeError as error:
        raise NotReadable(str(error)) from None


def write_json(value: Any, indent: str = "") -> str:
    """Write a value as Go's ``MarshalIndent`` with two spaces does; members stay in the order of the mapping."""
    return _written(value, f"\n{indent}", "  ", ",", write_text)


def write_line(value: Any, *, is_ascii: bool = False) -> str:
    """Write a value in one line, as Python's ``json`` does, and numbers as they were spelled."""
    return _written(value, "", "", ", ", encode_basestring_ascii if is_ascii else write_text)


def _written(value: Any, line: str, step: str, comma: str, spell: Callable[[str], str]) -> str:
    """Write a value: each member on a line of its own, by so much further to the right than what it is in.

    Blocks that are begun lie on a list and not on Python's stack: a value may be deeper than calls can be.
    """
    parts: list[str] = []
    begun = [_Block(iter([("", value)]), line, "")]
    while begun:
        block = begun[-1]
        for before, each in block.members:
            parts.append(before)
            if each and not isinstance(each, str | int):
                brackets, inner = "{}" if isinstance(each, Mapping) else "[]", block.line + step
                parts.append(brackets[0])
                begun.append(_Block(_members(each, inner, comma, spell), inner, f"{block.line}{brackets[1]}"))
                break
            parts.append(_write_plain(each, spell))
        else:
            parts.append(block.end)
            begun.pop()
    return "".join(parts)


class _Block(NamedTuple):
    """An object or a list that is begun: the members that are left, how their lines begin, and how it ends."""

    members: Iterator[tuple[str, Any]]
    line: str
    end: str


def _members(value: Any, line: str, comma: str, spell: Callable[[str], str]) -> Iterator[tuple[str, Any]]:
    """Give the members of an object or a list, each with what stands before it: comma, line and name."""
    before = line
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield f"{before}{spell(name)}: ", each
            before = f"{comma}{line}"
    else:
        for each in value:
            yield before, each
            before = f"{comma}{line}"


def _write_plain(value: Any, spell: Callable[[str], str]) -> str:
    """Write a value that has no members."""
    if isinstance(value, str):
        return str(value) if isinstance(value, NumberText) else spell(value)
    if value is None:
        return "null"
    if isinstance(value, int):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return "{}" if isinstance(value, Mapping) else "[]"


def check_depth(value: Any, where: str) -> None:
    """Raise ``NotReadable`` if objects and lists lie too deep in each other. Cost: O(n) of the value."""
    # Level by level: nested calls would end at the very depth that is looked for.
    level, depth = [value], 0
    while level := [
        each for above in level if isinstance(above, dict | list)
        for each in (above.values() if isinstance(above, dict) else above)
    ]:  # fmt: skip
        depth += 1
        if depth > DEEPEST:
            raise NotReadable(f"{where}: {TOO_DEEP}: {DEEPEST} are possible")


def write_block(brackets: str, members: Iterable[str], indent: str) -> str:
    """Write members that are written already between brackets, one to a line."""
    between = f",\n{indent}  "
    inside = between.join(members)
    return f"{brackets[0]}\n{indent}  {inside}\n{indent}{brackets[1]}" if inside else brackets


def write_text(text: str) -> str:
    """Write a string, with its quotes."""
    written: str = encode_basestring(_whole(text))
    return written.translate(ESCAPES) if NEEDS_ESCAPE.search(written) else written


def in_byte_order(names: Iterable[str]) -> list[str]:
    """Return the keys of a map in the order in which Go writes them."""
    return sorted(names, key=lambda name: name.encode("utf-8", "replace"))


def split_fields(value: object, known: Mapping[str, str], where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields that are known, by their own spelling, and the others as they are.

    ``known`` has the spelling by the folded name. ``null`` stands for an object without fields, as in Go.
    """
    found: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for name, each in read_object(value, where).items():
        spelling = known.get(name.casefold())
        # Folding may turn one letter into two, which Go's comparison of names does not.
        if spelling is None or len(spelling) != len(name):
            check_depth(each, f"{where}: the field {name[:80]!r}")
            others[name] = each
        elif spelling in found:
            raise NotReadable(f"{where}: the field {spelling} is there twice, in two spellings")
        else:
            found[spelling] = each
    return found, others


def read_object(value: object, where: str) -> dict[str, Any]:
    """Return an object; ``null`` is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise NotReadable(f"{where}: an object is needed, not {_kind(value)}")
    return value


def read_list(value: object, where: str) -> list[Any]:
    """Return a list; ``null`` is an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise NotReadable(f"{where}: a list is needed, not {_kind(value)}")
    return value


def read_string(value: object, where: str) -> str:
    """Return a string; ``null`` is an empty one."""
    if value is None:
        return ""
    if not isinstance(value, str) or isinstance(value, NumberText):
        raise NotReadable(f"{where}: a string is needed, not {_kind(value)}")
    return _whole(value)


def read_integer(value: object, where: str) -> int:
    """Return a 64-bit integer; ``null`` is 0."""
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or not SMALLEST_INTEGER <= value <= LARGEST_INTEGER:
        raise NotReadable(f"{where}: an integer of 64 bits is needed, not {_kind(value)}")
    return value


def read_time(value: object, where: str) -> datetime | None:
    """Return a time of RFC 3339 in UTC, cut to whole seconds; ``null`` is none, and so is Go's zero time."""
    if value is None:
        return None
    text = read_string(value, where)
    try:
        return _parsed_time(text)
    except (ValueError, OverflowError):
        raise NotReadable(f"{where}: {text[:80]!r} is no time of RFC 3339") from None


def write_time(time: datetime | None) -> str:
    """Write a time, with its quotes: UTC, whole seconds; ``null`` if there is none."""
    return "null" if time is None else f'"{time_text(time)}"'


@lru_cache(TIMES)
def time_text(time: datetime) -> str:
    """Write a time as RFC 3339 in UTC, cut to whole seconds."""
    return time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def whole_seconds(time: datetime) -> datetime:
    """Return a time as it is written and read again."""
    return time.astimezone(UTC).replace(microsecond=0)


@lru_cache(TIMES)
def _parsed_time(text: str) -> datetime | None:
    match = TIME.fullmatch(text)
    if match is None:
        raise ValueError(text)
    time = datetime.fromisoformat(match[1]).replace(tzinfo=UTC) - _offset(match)
    return None if time == ZERO_TIME else time


def _offset(match: re.Match[str]) -> timedelta:
    if match["sign"] is None:
        return timedelta(0)
    hours, minutes = int(match["hours"]), int(match["minutes"])
    if hours > 24 or minutes > 59:
        raise ValueError
    offset = timedelta(hours=hours, minutes=minutes)
    return offset if match["sign"] == "+" else -offset


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = {_whole(name): value for name, value in pairs}
    if len(found) != len(pairs):
        names = [_whole(name) for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise NotReadable(f"an object has the name {twice[:80]!r} twice")
    return found


def _whole(text: str) -> str:
    """Return a text without halves of characters."""
    # Nearly every text is ASCII, which is known without a look at its characters.
    return text if text.isascii() else SURROGATES.sub("\ufffd", text)


def _integer(digits: str) -> int | NumberText:
    # -0 keeps its spelling, since an int would lose the sign.
    return int(digits) if len(digits) <= LONGEST_INTEGER + 1 and digits != "-0" else NumberText(digits)


def _refuse(constant: str) -> NoReturn:
    raise NotReadable(f"{constant} is no JSON")


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "a list", str: "a string", bool: "true or false", NumberText: "a fraction"}
    return kinds.get(type(value), "a number")
