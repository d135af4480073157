"""The fields of edits, each read from what a user wrote, or refused with its name and the reason."""

import enum
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from tenure.kernel.addressing.addresses import format_address, is_v6, parse_address
from tenure.kernel.addressing.ranges import Cidr
from tenure.kernel.errors import Invalid
from tenure.kernel.names import check_labels, check_name, check_text, shown
from tenure.kernel.plan.edits import KEEP, Keep, Labels
from tenure.kernel.plan.plan_model import KeepBack, Notes

T = TypeVar("T")
U = TypeVar("U")
E = TypeVar("E", bound=enum.StrEnum)

MOST_RANK = 1000

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


def read_rank(value: object) -> int:
    """Read which place a pool has among those of its network."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_RANK:
        raise Invalid(f"rank: a number from 0 to {MOST_RANK} is needed, not {shown(value)}", field="rank")
    return value


def read_mac_prefix(value: object) -> str | None:
    """Read the beginning of a MAC address, if there is one."""
    if value is None:
        return None
    if not isinstance(value, str) or not _MAC_PREFIX.fullmatch(value.lower()):
        raise Invalid(f"mac_prefix: {shown(value)} is not of the form aa:bb:cc", field="mac_prefix")
    return value.lower()


def read_gateway(value: object, cidr: Cidr, field: str = "gateway") -> int:
    """Read a gateway: an address of the block, or of IPv6 a link-local one."""
    gateway = parse_address(value, field=field)  # type: ignore[arg-type]  # parse_address refuses other types itself
    # fe80::/10: IPv6 routers announce a link-local address, which lies in no block.
    link_local = is_v6(gateway) and (gateway >> 118) & 0x3FF == 0x3FA
    if gateway not in cidr.range and not (link_local and is_v6(cidr.first)):
        raise Invalid(f"{field}: {format_address(gateway)} lies outside {cidr}", field=field)
    return gateway


def unusable_gateway(gateway: int, cidr: Cidr) -> str:
    """Say why no machine can have a gateway's address, or nothing: the first and the last one of an IPv4 block."""
    if gateway in (cidr.first, cidr.last) and not is_v6(cidr.first) and cidr.prefix <= 30:
        return f"{format_address(gateway)} is the network or broadcast address of {cidr}"
    return ""


class LabelChange(NamedTuple):
    """What a modify says of labels: all that there are to be, or those to add and to remove."""

    all: Labels | Keep = KEEP
    add: Labels | Keep = KEEP
    remove: Sequence[str] | Keep = KEEP

    @classmethod
    def of(cls, change: "ChangesLabels") -> "LabelChange":
        """Take it from an operation that changes labels."""
        return cls(change.labels, change.add_labels, change.remove_labels)

    def made(self, old: Labels) -> Labels:
        """Return the labels as they are then; to remove one that is not there changes nothing."""
        if isinstance(self.add, Keep) and isinstance(self.remove, Keep):
            return old if isinstance(self.all, Keep) else check_labels(self.all)
        if not isinstance(self.all, Keep):
            text = "labels: name all that there are to be, or those to add and to remove, not both"
            raise Invalid(text, field="labels")
        added = {} if isinstance(self.add, Keep) else check_labels(self.add, field="add_labels")
        gone = () if isinstance(self.remove, Keep) else read_names(self.remove, "remove_labels")
        if both := [name for name in gone if name in added]:
            raise Invalid(f"remove_labels: {both[0]!r} is to be added as well", field="remove_labels")
        return check_labels({name: text for name, text in {**old, **added}.items() if name not in gone})


class ChangesLabels(Protocol):
    """An operation that changes labels."""

    @property
    def labels(self) -> Labels | Keep:
        """All that there are to be."""

    @property
    def add_labels(self) -> Labels | Keep:
        """Those to add, or to write over."""

    @property
    def remove_labels(self) -> Sequence[str] | Keep:
        """Those to remove, by name."""


class ChangesNotes(ChangesLabels, Protocol):
    """An operation that changes labels and description."""

    @property
    def description(self) -> str | Keep:
        """A few words for people."""


def new_notes(labels: Labels, description: str) -> Notes:
    """Read what people write on a new object."""
    return Notes(check_labels(labels), check_text(description, field="description"))


def changed_notes(old: Notes, change: ChangesNotes) -> Notes:
    """Read what people write on an object that is there."""
    return Notes(
        LabelChange.of(change).made(old.labels),
        unless_kept(change.description, old.description, lambda text: check_text(text, field="description")),
    )


def unless_kept(value: T | Keep, old: U, read: Callable[[T], U]) -> U:
    """Read a field that a modify names; leave the others as they are."""
    return old if isinstance(value, Keep) else read(value)
