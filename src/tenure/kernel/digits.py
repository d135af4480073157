"""Whole numbers in the texts of callers."""

LONGEST = 39
"""Digits of the highest number here: 2**128, as many addresses as IPv6 has."""

LONGEST_STORED = 18
"""Digits that always fit into 64 bits, which is what stores keep numbers in."""


def read_digits(text: str, *, longest: int = LONGEST) -> int | None:
    """Read a whole number, written in so many digits at most and nothing else; None if it is none."""
    # ``int`` alone also takes blanks, signs, ``_`` and the digits of other scripts; of thousands of digits it raises.
    return int(text) if text.isascii() and text.isdigit() and len(text) <= longest else None
