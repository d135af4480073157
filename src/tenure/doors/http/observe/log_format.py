"""Log lines, as JSON for programs or in columns for people. Whatever a caller sends, a line stays one line.

They are built by hand: the hot path has some microseconds for them. Pieces that come again and again (paths, names,
peers) are written once and remembered.
"""

import re
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

MOST_TEXT = 300
"""Letters of a path or name that are kept."""

REMEMBERED = 4096
LONGEST_REMEMBERED = 512
"""Bytes of what is remembered; what is longer, nobody sends again and again."""

_SECRET = re.compile(r"(tnr(?:_|%5f)[0-9a-f]{1,16})(?:_|%5f)[0-9a-f]+", re.IGNORECASE)
"""A token that somebody wrote where it does not belong, such as into a path."""

_ENCODED = re.compile(r"%([2-7][0-9a-f])", re.IGNORECASE)
"""A letter as it may stand in a path: percent-encoded."""

_encode = msgspec.json.Encoder().encode


class Clock:
    """The time as log lines tell it, written once a millisecond."""

    def __init__(self) -> None:
        self._ms = -1
        self._written = ""

    def now(self) -> str:
        """Return the time: RFC 3339, UTC, milliseconds."""
        ms = time.time_ns() // 1_000_000
        if ms != self._ms:
            self._ms = ms
            second, rest = divmod(ms, 1000)
            self._written = f"{_written_second(second)}{rest:03d}Z"
        return self._written


@lru_cache(2)
def _written_second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(second))


class TextCache(dict[Any, str]):
    """Texts that were written before; bounded, because callers choose them."""

    def __init__(self, write: Callable[[Any], str]) -> None:
        super().__init__()
        self._write = write

    def __missing__(self, key: Any) -> str:
        # Written, and not kept: a limit on the number alone would not bound the memory.
        if isinstance(key, str | bytes) and len(key) > LONGEST_REMEMBERED:
            return self._write(key)
        if len(self) >= REMEMBERED:
            self.clear()
        written = self[key] = self._write(key)
        return written


def as_text(value: Any) -> str:
    """Return a value as short text: bytes from the wire are taken letter by letter."""
    text = _masked(value.decode("latin-1") if isinstance(value, bytes) else str(value))
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…"


def _masked(text: str) -> str:
    """Take the secret out of a token; where one shows only once the text is decoded, the decoded text is told."""
    masked = _SECRET.sub(r"\1_…", text)
    if "%" in masked:
        decoded = _ENCODED.sub(lambda match: chr(int(match[1], 16)), masked)
        # The letters of a token may be encoded one by one, and more than once.
        if _SECRET.search(decoded):
            return _masked(decoded)
    return masked


def as_json(value: Any) -> str:
    """Write text as a JSON string."""
    return _encode(as_text(value)).decode()


def as_word(value: Any) -> str:
    """Write text for people; what could move their cursor, forge a column or a line is escaped."""
    text = as_text(value)
    return text if text.isprintable() and " " not in text else ascii(text)


def json_note(at: str, level: str, event: str, fields: dict[str, Any]) -> str:
    """Write a message of the server itself as a JSON line."""
    document = {"time": at, "level": level, "event": event, **{name: _short(each) for name, each in fields.items()}}
    return f"{_encode(document).decode()}\n"


def console_note(at: str, level: str, event: str, fields: dict[str, Any]) -> str:
    """Write a message of the server itself for people; text of several lines is set off, so that it can forge none."""
    long = {name: str(each) for name, each in fields.items() if "\n" in str(each)}
    told = "".join(f" {name}={as_word(each)}" for name, each in fields.items() if name not in long)
    below = "".join(f"    | {_plain(line)}\n" for text in long.values() for line in text.splitlines())
    return f"{at[11:23]} {level:<7} {_plain(event)}{told}\n{below}"


def _plain(text: str) -> str:
    return text if text.isprintable() else ascii(text)


def _short(value: Any) -> Any:
    return value if isinstance(value, int | float | None) else str(value)[:16_000]
