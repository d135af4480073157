"""Comparison by content: two ledgers are the same if they stream the same, and a digest tells.

Pages may be cut differently; keys, order, numbers, times and details count. Memory does not grow with the ledger.
"""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from hashlib import sha256
from typing import Any

from tenure.kernel.plan.document import network_document
from tenure.kernel.snapshot import Inventory, Kind, Section

Told = Callable[[Section], None]


class Digest:
    """What passed: how many of each kind, and a mark of all of it."""

    def __init__(self) -> None:
        self.inventory = Inventory()
        # A mark for each kind, so that an error can name what differs.
        self._marks = {kind: sha256() for kind in Kind}

    def add(self, section: Section) -> None:
        """Take in a section."""
        self.inventory.add(section)
        # One line a page, and each item in brackets of its own: where a page ends leaves no mark.
        text = json.dumps([_plain(section.kind, item) for item in section.items], sort_keys=True)
        self._marks[section.kind].update(text[1:-1].encode() + b", ")

    @property
    def marks(self) -> dict[Kind, str]:
        """Return the mark of each kind."""
        return {kind: mark.hexdigest() for kind, mark in self._marks.items()}

    @property
    def whole(self) -> str:
        """Return the mark of everything."""
        return sha256("".join(self.marks.values()).encode()).hexdigest()

    def differences(self, other: "Digest") -> list[Kind]:
        """List the kinds that differ."""
        return [kind for kind in Kind if self.marks[kind] != other.marks[kind]]


def _plain(kind: Kind, item: Any) -> Any:
    """Return an item as JSON can carry it; rows, changes and the like are tuples of such already."""
    if kind is Kind.NETWORKS:
        return [item.space, item.network.id, item.network.name, network_document(item.network)]
    if kind is Kind.ARCHIVE_PAGES:
        return item._replace(body=item.body.hex())
    return item._replace(body=item.body.hex()) if kind is Kind.REPLIES else item


async def digested(
    sections: AsyncGenerator[Section, None], digest: Digest, told: Told
) -> AsyncGenerator[Section, None]:
    """Pass sections on, and take each into a digest."""
    async with aclosing(sections):
        async for section in sections:
            digest.add(section)
            told(section)
            yield section


async def digest_of(sections: AsyncGenerator[Section, None], told: Told) -> Digest:
    """Read a stream to its end."""
    digest = Digest()
    async for _ in digested(sections, digest, told):
        pass
    return digest
