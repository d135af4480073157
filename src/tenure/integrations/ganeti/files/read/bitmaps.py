"""Bit strings: one character an address, in order, ``1`` for a marked one."""

import re
from collections.abc import Iterable, Iterator

from tenure.kernel.addressing.ranges import AddressRange, merge
from tenure.kernel.errors import Invalid
from tenure.kernel.names import shown

_RUN = re.compile("1+")
_BITS = re.compile("[01]*")


def read_bits(text: object, block: AddressRange, *, field: str) -> tuple[AddressRange, ...]:
    """Return the marked addresses of a block; its length must be the block's (U1)."""
    if not isinstance(text, str):
        raise Invalid(f"{field}: a string of 0 and 1 is needed, not {shown(text)}", field=field)
    if _BITS.fullmatch(text) is None:
        raise Invalid(f"{field}: a character other than 0 and 1, in {shown(text)}", field=field)
    if len(text) != block.size:
        raise Invalid(f"{field}: {len(text)} characters, {block.size} are needed", field=field)
    return tuple(_runs(text, block.first))


def _runs(text: str, first: int) -> Iterator[AddressRange]:
    return (AddressRange(first + run.start(), first + run.end() - 1) for run in _RUN.finditer(text))


def write_bits(marked: Iterable[AddressRange], block: AddressRange) -> str:
    """Write the marked addresses of a block; what lies outside is left out."""
    # Bytes are written in place, a run at a time: the string of a /8 has sixteen million characters.
    bits = bytearray(b"0" * block.size)
    for piece in marked:
        first, last = max(piece.first, block.first), min(piece.last, block.last)
        if first <= last:
            bits[first - block.first : last - block.first + 1] = b"1" * (last - first + 1)
    return bits.decode("ascii")


def single(position: int) -> AddressRange:
    """Return one address as a range."""
    return AddressRange(position, position)


def within(marked: Iterable[AddressRange], block: AddressRange) -> tuple[AddressRange, ...]:
    """Cut ranges to a block, sorted and merged."""
    return tuple(
        merge(
            AddressRange(max(piece.first, block.first), min(piece.last, block.last))
            for piece in marked
            if piece.overlaps(block)
        )
    )
