"""The fields of edits, each read from what a user wrote, or refused with its name and the reason."""

import enum
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.errors import Invalid
from tenure.kernel.names import check_labels, check_name, check_text, shown
from tenure.kernel.plan.edits import KEEP, Keep, Labels
from tenure.kernel.plan.plan_model import KeepBack, Notes

T = TypeVar("T")
U = TypeVar("U")
E = TypeVar("E", bound=enum.StrEnum)

_MAC_PREFIX = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){2}")


def read_keep_back(words: Sequence[str]) -> frozenset[KeepBack]:
    """Read what a subnet keeps back."""
    return frozenset(read_member(KeepBack, word, "keep_back") for word in _listed(words, "keep_back"))


def read_addresses(values: Sequence[object], field: str) -> tuple[str, ...]:
    """Read a list of addresses, written the one way."""
    return tuple(format_address(parse_address(value, field=field)) for value in _listed(values, field))  # type: ignore[arg-type]


def read_names(values: Sequence[str], field: str) -> tuple[str, ...]:
    """Read a list of names, each once."""
    return tuple(dict.fromkeys(check_name(value, field=field) for value in _listed(values, field)))


def _listed(values: Sequence[T], field: str) -> Sequence[T]:
    # Text is a sequence, too: of single letters.
    if isinstance(values, str) or not isinstance(values, Sequence | set | frozenset):
        raise Invalid(f"{field}: a list is needed, not {type(values).__name__}", field=field)
    return values


def read_member(kind: type[E], word: object, field: str) -> E:
    """Read a word out of a fixed choice."""
    try:
        return kind(word)  # type: ignore[arg-type]  # another type is no member either
    except ValueError:
        choices = ", ".join(kind)
        raise Invalid(f"{field}: {shown(word)} is none of {choices}", field=field) from None


def read_flag(value: object, old: bool, field: str) -> bool:
    """Read true, false, or what it was."""
    return old if value is KEEP else read_yes_or_no(value, field)


def read_yes_or_no(value: object, field: str) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise Invalid(f"{field}: true or false is needed, not {shown(value)}", field=field)
    return value


def read_seconds(value: object) -> int:
    """Read for how long a pool cools."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 366 * 86400:
        raise Invalid(f"cooling_s: a number of seconds up to a year is needed, not {shown(value)}", field="cooling_s")
    return value


def read_mac_prefix(value: object) -> str | None:
    """Read the beginning of a MAC address, if there is one."""
    if value is None:
        return None
    if not isinstance(value, str) or not _MAC_PREFIX.fullmatch(value.lower()):
        raise Invalid(f"mac_prefix: {shown(value)} is not of the form aa:bb:cc", field="mac_prefix")
    return value.lower()


def read_notes(old: Notes, labels: Labels | Keep, description: str | Keep) -> Notes:
    """Read what people write on an object."""
    return Notes(
        old.labels if isinstance(labels, Keep) else check_labels(labels),
        old.description if isinstance(description, Keep) else check_text(description, field="description"),
    )


def unless_kept(value: T | Keep, old: U, read: Callable[[T], U]) -> U:
    """Read a field that a modify names; leave the others as they are."""
    return old if isinstance(value, Keep) else read(value)
