"""Allocations on cells: one ConfigMap for each, or a few shards (VD6)."""

import contextlib
import json
import secrets
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tenure.integrations.vmpool.cells.cell_store import (
    ADDRESS,
    CellChange,
    CellStore,
    CellTaken,
    StoredCell,
    claim_name,
    digest,
)
from tenure.integrations.vmpool.cells.claim_pairs import (
    ClaimPairs,
    HeldPair,
    HoldOutcome,
    Offer,
    PairExchanged,
    pair_texts,
)
from tenure.integrations.vmpool.config_map_swap import SwapLost
from tenure.integrations.vmpool.modes.allocation_book import GENERATION, StoredNotes, TakenVM
from tenure.integrations.vmpool.modes.pool_fillers import is_filler
from tenure.integrations.vmpool.pool_document import PoolElsewhere
from tenure.integrations.vmpool.pool_errors import LOOK_AT_CELL, PoolStateUnreadable
from tenure.integrations.vmpool.state.go_json import NotReadable
from tenure.integrations.vmpool.state.pool_state import VMAllocation, entry_document, read_entry

NOTES = "notes"


@dataclass
class CellAllocations:
    """The allocations of one pool."""

    cells: CellStore
    _pairs: ClaimPairs = field(init=False)

    def __post_init__(self) -> None:
        self._pairs = ClaimPairs(self.cells)

    async def take(self, entry: VMAllocation, offers: AsyncGenerator[Sequence[str], None]) -> TakenVM | None:
        """Give an id a VM. Cost: two writes, or one swap where both cells are near."""
        with _elsewhere_if_exchanged():
            answer = await self._pairs.hold(claim_cell(entry.allocation_id), _offered(entry, offers))
        if answer.outcome is HoldOutcome.TAKEN or answer.pair is None:
            return None
        return TakenVM(_entry(answer.pair), answer.outcome is HoldOutcome.GRANTED, answer.tries)

    async def drop(self, entry: VMAllocation) -> bool:
        """End an allocation. Cost: two reads and two writes."""
        return await self._pairs.release(_pair(entry))

    async def exchange(self, entry: VMAllocation, new: VMAllocation) -> bool:
        """Give a VM to another id. Cost: three reads and two writes."""
        # A claim of its own name: it may stay unfinished, which those of ids must not.
        found = await self._pairs.exchange(_pair(entry), claim_name(new.allocation_id, "exchange"), _body(new))
        return found is not None

    async def check_room(self, entries: Sequence[VMAllocation]) -> None:
        """Raise ``PoolTooLarge`` if the cells of these allocations had no room. Cost: all shards, or nothing."""
        texts: dict[str, str] = {}
        for entry in entries:
            group = "exchange" if is_filler(entry) else "id"
            texts |= pair_texts(
                HeldPair(claim_name(entry.allocation_id, group), address_cell(entry.ip), 0, _body(entry))
            )
        await self.cells.check_room(texts)

    async def prepare(self, is_from_here: bool, entries: Sequence[VMAllocation]) -> None:
        """Raise ``PoolTooLarge`` if these allocations had no room; cells come with what they say."""
        await self.check_room(entries)

    async def arrive(self) -> None:
        """Do nothing: who sees cells sees the ConfigMap that says where the pool is."""

    async def seal(self) -> bool:
        """Return that there is no such write: each VM is locked by itself."""
        return False

    async def of_id(self, allocation_id: str) -> VMAllocation | None:
        """Return what an id has. Cost: two reads, or one if it has nothing."""
        with _elsewhere_if_exchanged():
            pair = await self._pairs.find(claim_cell(allocation_id))
        return None if pair is None else _entry(pair)

    async def of_ip(self, ip: str) -> VMAllocation | None:
        """Return which id has a VM. Cost: two reads."""
        pair = await self._pairs.holder(address_cell(ip))
        return None if pair is None else _entry(pair)

    async def entries(self) -> list[VMAllocation]:
        """Return all allocations. Cost: a list of everything."""
        return [_entry(pair) for pair in await self._pairs.holdings()]

    async def held_ips(self) -> frozenset[str]:
        """Return the VMs that are held. Cost: a list of names, and those that were."""
        return frozenset(ip for name in await self._pairs.look() if (ip := ip_of_cell(name)))

    def nearest(self, allocation_id: str, ips: list[str]) -> list[str]:
        """Return VMs whose cell is swapped together with the id's, if there are such."""
        if not self.cells.has_neighbours:
            return ips
        claim = claim_cell(allocation_id)
        # One swap has both cells then, with no moment between that a killed process could leave.
        return [ip for ip in ips if self.cells.together(claim, address_cell(ip))] or ips

    async def read_notes(self) -> StoredNotes:
        """Return the notes. Cost: one read."""
        cell = (await self.cells.read([NOTES])).get(NOTES)
        if cell is None:
            return StoredNotes(None)
        try:
            text = json.loads(cell.text)["notes"]
        except (ValueError, KeyError, TypeError, RecursionError):
            text = None
        # Another one's hand was in it: what it is now is for people, who find that it cannot be read.
        return StoredNotes(text if isinstance(text, str) else f"no notes: {cell.text}", cell)

    async def write_notes(self, text: str, seen: StoredNotes) -> None:
        """Write the notes. Cost: one write."""
        cell: StoredCell | None = seen.seen
        # No text is written twice: with the token a lost answer is settled by reading.
        written = json.dumps({"notes": text, "token": secrets.token_hex(8)}, ensure_ascii=False)
        try:
            await self.cells.swap([CellChange(NOTES, cell, written)])
        except CellTaken as error:
            raise SwapLost("the notes have changed") from error

    async def keep_copy(self, name: str, text: str) -> str:
        """Keep a text in a cell of its own. Cost: one write."""
        await self.cells.swap([CellChange(name, None, text)])
        return f"the cell {name}"

    async def heal(self) -> int:
        """Remove cells without their other half. Cost: a list of everything, and four requests for each of them."""
        return await self._pairs.heal()

    async def close(self) -> None:
        """Let go of nothing: the client is its owner's."""


@contextlib.contextmanager
def _elsewhere_if_exchanged() -> Iterator[None]:
    """Say that the pool is elsewhere where an id's VM was given to a filler, which only a mover does."""
    try:
        yield
    except PairExchanged:
        raise PoolElsewhere from None


def claim_cell(allocation_id: str) -> str:
    """Return the name of the cell of an id."""
    return claim_name(allocation_id, "id")


V4_CELL, OTHER_CELL = f"{ADDRESS}v4-", f"{ADDRESS}ip-"


def address_cell(ip: str) -> str:
    """Return the name of the cell of a VM; what a name in Kubernetes may not have stands as numbers."""
    if ":" not in ip:
        return f"{V4_CELL}{ip}"
    return f"{OTHER_CELL}{ip.encode().hex()}"


def ip_of_cell(name: str) -> str:
    """Return the IP of the cell of a VM; an empty text for another cell."""
    if name.startswith(V4_CELL):
        return name.removeprefix(V4_CELL)
    return bytes.fromhex(name.removeprefix(OTHER_CELL)).decode() if name.startswith(OTHER_CELL) else ""


async def _offered(
    entry: VMAllocation, offers: AsyncGenerator[Sequence[str], None]
) -> AsyncGenerator[Sequence[Offer], None]:
    async with contextlib.aclosing(offers):
        async for ips in offers:
            yield [Offer(address_cell(ip), _body(replace(entry, ip=ip))) for ip in ips]


def _body(entry: VMAllocation) -> dict[str, Any]:
    # The generation is the pair's token, which its cells say already.
    unknown = {name: value for name, value in entry.unknown.items() if name != GENERATION}
    return {"entry": entry_document(replace(entry, unknown=unknown))}


def _entry(pair: HeldPair) -> VMAllocation:
    said = pair.body.get("entry")
    try:
        key = said.get("allocationID") if isinstance(said, Mapping) else None
        found = read_entry(str(key), said)
    except NotReadable as error:
        raise PoolStateUnreadable(f"the cell {pair.address}: {error}", LOOK_AT_CELL) from None
    return replace(found, unknown={**found.unknown, GENERATION: pair.token})


def _pair(entry: VMAllocation) -> HeldPair:
    token = int(entry.unknown.get(GENERATION, -1))
    return HeldPair(claim_cell(entry.allocation_id), address_cell(entry.ip), token, _body(entry))


def pool_root(name: str) -> str:
    """Return how the objects of a pool begin: its name, unless that leaves no room for those of the cells."""
    return name if len(name) <= 150 else f"{name[:100]}-{digest(name)}"
