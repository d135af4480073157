"""Names, owners and labels: checked once, at birth."""

import math
import re
from collections.abc import Mapping, Sequence

from tenure.kernel.errors import Invalid

MAX_NAME = 255
MAX_TEXT = 4096
MAX_LABELS = 64
CENTURY_S = 100 * 366 * 86400

_KIND = r"[A-Za-z][A-Za-z0-9_.-]*"
_OWNER = re.compile(rf"(?:([A-Za-z0-9][A-Za-z0-9_.-]*):)?({_KIND})/(.+)", re.DOTALL)

DEFAULT_REALM = "local"


def shown(value: object) -> str:
    """Write a wrong value for people: short, whatever it is."""
    try:
        text = repr(value)
    except Exception:  # a number of thousands of digits has no text, other things may refuse as well
        return f"something of type {type(value).__name__}"
    return text if len(text) <= 80 else text[:79] + "…"


def check_name(value: object, *, field: str) -> str:
    """Return a name as it is, or say what is wrong with it."""
    if not isinstance(value, str):
        raise Invalid(f"{field}: a name in text is needed, not {type(value).__name__}", field=field)
    if not value:
        raise Invalid(f"{field}: a name must not be empty", field=field)
    if len(value) > MAX_NAME:
        raise Invalid(f"{field}: a name has at most {MAX_NAME} characters, not {len(value)}", field=field)
    if not value.isprintable():
        raise Invalid(f"{field}: {value[:80]!r} holds a control character", field=field)
    if value != value.strip():
        raise Invalid(f"{field}: {value[:80]!r} begins or ends with white space", field=field)
    return value


def check_slot(value: object) -> str:
    """Return a slot; the empty slot is the one an owner has when it holds a single address."""
    return "" if value == "" else check_name(value, field="slot")


def check_request(value: object) -> str | None:
    """Return the name of a request, if there is one."""
    return None if value is None else check_name(value, field="request")


def check_generation(value: object) -> int | None:
    """Return a generation, if there is one."""
    if value is None:
        return None
    # ``True`` is an ``int`` in Python. The largest integer of the stores is 2**63 - 1.
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
        raise Invalid(f"generation: a holding's generation is needed, not {shown(value)}", field="generation")
    return value


def check_number(value: object, *, field: str) -> int:
    """Return a number that stores can keep: a count, never negative."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
        raise Invalid(f"{field}: a number from 0 on is needed, not {shown(value)}", field=field)
    return value


def check_key(value: object) -> str:
    """Return an idempotency key: any name."""
    return check_name(value, field="key")


def check_seconds(value: object, *, field: str) -> int:
    """Return a time span in microseconds: more than nothing, at most a century."""
    # NaN fails the chain of comparisons, too.
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= CENTURY_S:
        needed = "a number of seconds above 0, a century at most, is needed"
        raise Invalid(f"{field}: {needed}, not {shown(value)}", field=field)
    # A very short span must not round to 0, which means no span at all.
    return max(round(value * 1_000_000), 1)


def check_lingering(value: object) -> int:
    """Return for how many microseconds an address is to cool at least; not at all unless somebody says so."""
    return 0 if value is None else check_seconds(value, field="lingers_s")


def check_wait(value: object) -> float:
    """Return how many seconds a caller waits at most: none unless he says so, for ever if he does."""
    if value is None:
        return 0.0
    # ``not value >= 0`` and not ``value < 0``: NaN is refused, too.
    if not isinstance(value, int | float) or isinstance(value, bool) or not value >= 0:
        raise Invalid(f"wait_s: a number of seconds is needed, not {shown(value)}", field="wait_s")
    return float(value) if value <= CENTURY_S else math.inf


def check_text(value: object, *, field: str) -> str:
    """Return free text for people: any length up to a limit, no control characters but line breaks and tabs."""
    if not isinstance(value, str):
        raise Invalid(f"{field}: text is needed, not {type(value).__name__}", field=field)
    if len(value) > MAX_TEXT:
        raise Invalid(f"{field}: at most {MAX_TEXT} characters, not {len(value)}", field=field)
    if not value.replace("\n", "").replace("\t", "").isprintable():
        raise Invalid(f"{field}: holds a control character", field=field)
    return value


def check_labels(value: object, *, field: str = "labels") -> dict[str, str]:
    """Return labels as a plain dictionary of short texts."""
    if not isinstance(value, Mapping):
        raise Invalid(f"{field}: a mapping of text to text is needed, not {type(value).__name__}", field=field)
    if len(value) > MAX_LABELS:
        raise Invalid(f"{field}: at most {MAX_LABELS} labels, not {len(value)}", field=field)
    # In order of name, because a claim's mark is made of the text of this dictionary. By ``str``, so that a name of
    # another type reaches ``check_name``.
    return {
        check_name(name, field=field): check_text(text, field=f"{field}[{name}]")
        for name, text in sorted(value.items(), key=lambda pair: str(pair[0]))
    }


class Owner(str):
    """Who holds: ``kind/id``, or ``realm:kind/id`` when the realm is not ``local``. Equal to its canonical text."""

    __slots__ = ()

    def __new__(cls, value: str) -> "Owner":
        """Read and check an owner."""
        if type(value) is cls:
            return value
        if not isinstance(value, str):
            raise Invalid(f"owner: text such as 'instance/web-0' is needed, not {type(value).__name__}", field="owner")
        match = _OWNER.fullmatch(value)
        if match is None or len(value) > MAX_NAME * 2 or not value.isprintable() or value != value.strip():
            raise Invalid(f"owner: {value[:80]!r} is not of the form kind/id or realm:kind/id", field="owner")
        # ``local:pod/7`` and ``pod/7`` are one owner, and stores compare plain text.
        canonical = value[len(DEFAULT_REALM) + 1 :] if match[1] == DEFAULT_REALM else value
        return super().__new__(cls, canonical)

    @classmethod
    def trusted(cls, text: str) -> "Owner":
        """Wrap text that a store gives back and that was checked when it came in."""
        return super().__new__(cls, text)

    @property
    def realm(self) -> str:
        """Name the realm."""
        match = _OWNER.fullmatch(self)
        return (match[1] if match else None) or DEFAULT_REALM

    @property
    def kind(self) -> str:
        """Name the kind: instance, ipclaim, port, pod, …"""
        return self.partition("/")[0].rpartition(":")[2]

    @property
    def id(self) -> str:
        """Return what follows the kind."""
        return self.partition("/")[2]


def read_owners(value: object) -> list[Owner]:
    """Read a list of owners, each once."""
    return list(dict.fromkeys(Owner(each) for each in check_owners(value)))


def check_owners(value: object) -> Sequence[str]:
    """Return what must be a list of owners, each of which is still to be read."""
    # Text is a sequence, too: of single letters.
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise Invalid("owners: a list of owners is needed", field="owners")
    return value
