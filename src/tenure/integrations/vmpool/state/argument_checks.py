"""Checks of arguments that are numbers or words of a few: each error names the argument and what it may be.

A number that is not one (``nan``) compares with nothing, and one without end (``inf``) waits for ever: neither is a
duration.
"""

import re
from collections.abc import Sequence

from tenure.integrations.vmpool.pool_errors import BadArgument
from tenure.kernel.digits import read_digits
from tenure.kernel.names import shown

DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m)?", re.ASCII)
UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, None: 1.0}
LONGEST_S = 86_400.0
LARGEST_COUNT = 1_000_000
LARGEST_PORT = 65_535


def check_seconds(value: object, field: str, *, may_be_zero: bool = False) -> float:
    """Return a number of seconds, a day at most."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= float(value) <= LONGEST_S or not (value or may_be_zero):  # type: ignore[arg-type]
        raise BadArgument(f"{field}: {_needed(may_be_zero)}, not {shown(value)}", field=field)
    return float(value)  # type: ignore[arg-type]  # a number by now


def read_seconds(value: object, field: str, *, may_be_zero: bool = False) -> float:
    """Return a duration that may be spelled as text, such as ``30s`` or ``100ms``, as the environment has it."""
    if not isinstance(value, str):
        return check_seconds(value, field, may_be_zero=may_be_zero)
    match = DURATION.fullmatch(value.strip())
    seconds = float(match[1]) * UNITS_S[match[2]] if match else -1.0
    if not 0 <= seconds <= LONGEST_S or not (seconds or may_be_zero):
        raise BadArgument(f"{field}: {_needed(may_be_zero)}, not {shown(value)}", field=field)
    return seconds


def _needed(may_be_zero: bool) -> str:
    from_on = "from 0 on" if may_be_zero else "above 0"
    return f"a duration {from_on}, a day at most, such as 30, 30s or 100ms, is needed"


def check_count(value: object, field: str, *, least: int = 0, most: int = LARGEST_COUNT) -> int:
    """Return a whole number between two others."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise BadArgument(
            f"{field}: a whole number from {least} to {most} is needed, not {shown(value)}", field=field
        )  # fmt: skip
    return value


def read_count(value: object, field: str, *, least: int = 0, most: int = LARGEST_COUNT) -> int:
    """Return a whole number that may be spelled as text, as the environment has it."""
    number = read_digits(value, longest=9) if isinstance(value, str) else None
    return check_count(value if number is None else number, field, least=least, most=most)


def check_port(value: object, field: str = "port", *, least: int = 1) -> int:
    """Return the number of a port."""
    return check_count(value, field, least=least, most=LARGEST_PORT)


def check_choice(value: object, field: str, choices: Sequence[str]) -> None:
    """Raise ``BadArgument`` unless a word is one of a few."""
    if value not in choices:
        needed = " or ".join(map(repr, choices))
        raise BadArgument(f"{field}: {needed} is needed, not {shown(value)}", field=field)
