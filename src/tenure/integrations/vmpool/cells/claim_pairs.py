"""A claim and an address that belong to each other: two cells with one token, and so never one without the other.

The claim's cell is written first, then the address's. An address is held if the claim that its cell names is there
and has the same token; a release removes the address first. A token is never used again, so a pair that does not
match never will:

=================================  ==================================================================================
what is found                      what it is
=================================  ==================================================================================
claim and address, one token       held
a claim, no address of its token   a holding that is being made or ended, or whose writer was killed in between; the
                                   next caller with that claim waits a moment, and then removes it
an address, no claim of its token  left by a writer that was killed after its claim was removed; whoever meets it
                                   removes it
=================================  ==================================================================================

Whoever makes a holding reads the claim again after the address was written: it may have been removed meanwhile, and
then the address is given up. Where both cells can be swapped together, there is no moment in between.

Cost of a holding: two writes and a read, or one swap where both cells are together; of a release two reads and two
removals.
"""

import asyncio
import itertools
import json
import random
import secrets
import time
from collections.abc import AsyncIterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tenure.integrations.vmpool.cells.cell_store import (
    ADDRESS,
    CLAIM,
    CellChange,
    CellEvent,
    CellSnapshot,
    CellStore,
    CellTaken,
    StoredCell,
)
from tenure.integrations.vmpool.pool_errors import LOOK_AT_CELL, PoolStateUnreadable

UNFINISHED_S = 0.5
"""So long a claim without its address is left to its writer."""
LOOK_EVERY_S = 0.05
TOKEN_BITS = 62

Body = Mapping[str, Any]
Mark = Mapping[str, Any]
"""What is said of the end of a holding, for those who read events."""


class HoldOutcome(Enum):
    """What became of a wish."""

    GRANTED = "granted"
    ALREADY = "already"
    """The claim has a holding: this one."""
    TAKEN = "taken"
    """Others hold all addresses that were offered."""


@dataclass(frozen=True, slots=True)
class Offer:
    """An address that would do, and what its cell is to say."""

    address: str
    body: Body


@dataclass(frozen=True, slots=True)
class HeldPair:
    """A claim with its address."""

    claim: str
    address: str
    token: int
    body: Body


@dataclass(frozen=True, slots=True)
class HoldAnswer:
    """What became of a wish, the pair that decided it, and how many addresses were tried."""

    outcome: HoldOutcome
    pair: HeldPair | None = None
    tries: int = 1


@dataclass(frozen=True, slots=True)
class _Record:
    """What a cell of a pair says."""

    other: str
    """The name of the pair's other cell."""
    token: int
    body: Body = field(default_factory=dict)
    is_exchange: bool = False
    """Whether an address goes from one claim to this one: it is left to its writer, however long that takes."""
    released: Mark | None = None
    """What is said of the end of the holding; its cell is about to go."""


@dataclass(frozen=True)
class ClaimPairs:
    """The pairs in one place for cells."""

    cells: CellStore

    async def hold(self, claim: str, offers: AsyncIterable[Offer], *, is_thorough: bool = False) -> HoldAnswer:
        """Give a claim the first of the offered addresses that is free; one that has an address keeps it.

        ``is_thorough``: an address is taken only if its holder can be named, and that one is in the answer.
        """
        mine: StoredCell | None = None
        blocker: HeldPair | None = None
        tries = 0
        async for offer in offers:
            while True:
                tries += 1
                found = await self._try(claim, mine, offer)
                if isinstance(found, HeldPair):
                    return HoldAnswer(HoldOutcome.GRANTED, found, tries)
                mine, taken = found
                if taken == claim:
                    if (existing := await self.settled(claim)) is not None:
                        return HoldAnswer(HoldOutcome.ALREADY, existing, tries)
                    continue
                blocker = await self.holder(offer.address) if is_thorough else None
                if blocker is not None or not is_thorough:
                    break
        if mine is not None:
            await self._remove(mine)
        elif (existing := await self.settled(claim)) is not None:
            return HoldAnswer(HoldOutcome.ALREADY, existing, tries)
        return HoldAnswer(HoldOutcome.TAKEN, blocker, tries)

    async def _try(self, claim: str, mine: StoredCell | None, offer: Offer) -> HeldPair | tuple[StoredCell | None, str]:
        """Write both cells; return the pair, or the claim's cell as we have it and which cell was taken."""
        pair = HeldPair(claim, offer.address, secrets.randbits(TOKEN_BITS), offer.body)
        claim_change = CellChange(claim, mine, _claim_text(pair))
        address_change = CellChange(offer.address, None, _address_text(pair))
        if self.cells.together(claim, offer.address):
            try:
                await self.cells.swap([claim_change, address_change])
            except CellTaken as taken:
                return (None if taken.name == claim else mine), taken.name
            return pair
        try:
            mine = (await self.cells.swap([claim_change]))[claim]
        except CellTaken:
            return None, claim
        try:
            written = await self.cells.swap([address_change])
        except CellTaken:
            return mine, offer.address
        if await self._has_token(claim, pair.token):
            return pair
        await self._remove(written[offer.address])
        return None, claim

    async def find(self, claim: str) -> HeldPair | None:
        """Return what a claim has. Cost: three reads if it has something, one if it has nothing."""
        cell = (await self.cells.read([claim])).get(claim)
        return None if cell is None else await self._complete(cell)

    async def settled(self, claim: str) -> HeldPair | None:
        """Return what a claim has; if it is unfinished and stays so, remove it and return nothing."""
        seen, since = "", 0.0
        while True:
            cell = (await self.cells.read([claim])).get(claim)
            if cell is None:
                return None
            if (pair := await self._complete(cell)) is not None:
                return pair
            if cell.text != seen:
                seen, since = cell.text, time.monotonic()
            elif time.monotonic() - since >= UNFINISHED_S:
                if not _read(cell).is_exchange:
                    await self._remove(cell)
                return None
            await asyncio.sleep(random.uniform(0, LOOK_EVERY_S))

    async def holder(self, address: str) -> HeldPair | None:
        """Return who has an address; what none has is removed. Cost: two reads."""
        cell = (await self.cells.read([address])).get(address)
        if cell is None:
            return None
        record = _read(cell)
        claim = (await self.cells.read([record.other])).get(record.other)
        said = None if claim is None else _read(claim)
        if record.released is None and said is not None and (said.is_exchange or said.token == record.token):
            return HeldPair(record.other, address, record.token, record.body)
        await self._remove(cell)
        return None

    async def release(self, pair: HeldPair, mark: Mark | None = None) -> bool:
        """End a holding; return whether it was there as it was seen. A mark costs one more write."""
        cells = await self.cells.read([pair.claim, pair.address])
        claim, address = cells.get(pair.claim), cells.get(pair.address)
        if claim is None or address is None or {_read(claim).token, _read(address).token} != {pair.token}:
            return False
        if _read(address).released is not None:
            return False
        try:
            if mark is not None:
                marked = CellChange(address.name, address, _address_text(pair, mark))
                address = (await self.cells.swap([marked]))[address.name]
            changes = [CellChange(address.name, address, None), CellChange(claim.name, claim, None)]
            if self.cells.together(claim.name, address.name):
                await self.cells.swap(changes)
                return True
            await self.cells.swap(changes[:1])
        except CellTaken:
            return False
        await self._remove(claim)
        return True

    async def exchange(self, pair: HeldPair, claim: str, body: Body) -> HeldPair | None:
        """Give the address of a holding to another claim, so that it is free at no moment between.

        Return the new holding; nothing if the old one is not there any more. The new claim is the caller's alone: none
        but a caller of ``exchange`` removes it while it is unfinished. Cost: four reads, two writes and a removal.
        """
        while True:
            cells = await self.cells.read([pair.address, claim])
            address, seen = cells.get(pair.address), cells.get(claim)
            if address is None or _read(address).token != pair.token or _read(address).released is not None:
                if seen is not None and (address is None or _read(address).other != claim):
                    await self._remove(seen)
                return None
            new = HeldPair(claim, pair.address, secrets.randbits(TOKEN_BITS), body)
            try:
                await self.cells.swap([CellChange(claim, seen, _claim_text(new, is_exchange=True))])
                await self.cells.swap([CellChange(pair.address, address, _address_text(new))])
            except CellTaken:
                continue
            old = (await self.cells.read([pair.claim])).get(pair.claim)
            if old is not None and old.name != claim and _read(old).token == pair.token:
                await self._remove(old)
            if await self._has_token(claim, new.token):
                return new
            pair = new

    async def heal(self) -> int:
        """Remove what writers that were killed have left; return how many cells that were.

        Nothing else does any harm by it: whoever is still at work finds out, and begins anew.
        """
        snapshot = await self.cells.all()
        held = {name for pair in held_pairs(snapshot) for name in (pair.claim, pair.address)}
        left = [name for name in snapshot.cells if name.startswith((CLAIM, ADDRESS)) and name not in held]
        left = [name for name in left if not _read(snapshot.cells[name]).is_exchange]
        work = [self.settled(name) if name.startswith(CLAIM) else self.holder(name) for name in left]
        found = await asyncio.gather(*work)
        return sum(each is None for each in found)

    async def _complete(self, claim: StoredCell) -> HeldPair | None:
        """Return the pair of a claim if its address has the same token, and the claim is there after that as well."""
        said = _read(claim)
        address = (await self.cells.read([said.other])).get(said.other)
        if address is None:
            return None
        record = _read(address)
        if record.token != said.token or record.released is not None:
            return None
        is_there = await self._has_token(claim.name, said.token)
        return HeldPair(claim.name, address.name, record.token, record.body) if is_there else None

    async def _has_token(self, claim: str, token: int) -> bool:
        cell = (await self.cells.read([claim])).get(claim)
        return cell is not None and _read(cell).token == token

    async def _remove(self, cell: StoredCell) -> None:
        """Remove a cell, unless it has changed: then it is another writer's."""
        try:
            await self.cells.swap([CellChange(cell.name, cell, None)])
        except CellTaken:
            return


def held_pairs(snapshot: CellSnapshot) -> list[HeldPair]:
    """Return all holdings of a snapshot, in order of the names of their addresses."""
    pairs = []
    for name in sorted(name for name in snapshot.cells if name.startswith(ADDRESS)):
        record = _read(snapshot.cells[name])
        claim = snapshot.cells.get(record.other)
        if claim is not None and record.released is None and _read(claim).token == record.token:
            pairs.append(HeldPair(record.other, name, record.token, record.body))
    return pairs


@dataclass(frozen=True, slots=True)
class PairEvent:
    """A holding that began, or ended, and what was said of its end."""

    revision: int
    place: int
    """Which of the revision's events it is."""
    pair: HeldPair
    is_end: bool
    mark: Mark = field(default_factory=dict)


def pair_events(events: Sequence[CellEvent]) -> list[PairEvent]:
    """Return which holdings began and ended, of what became of cells."""
    found: list[PairEvent] = []
    places: dict[int, Iterator[int]] = {}
    for event in events:
        if event.name.startswith(ADDRESS):
            place = next(places.setdefault(event.revision, itertools.count()))
            found += _pair_event(event, place)
    return found


def _pair_event(event: CellEvent, place: int) -> list[PairEvent]:
    """Return what a cell's change means: a marked cell has ended, and its removal after that says nothing more."""
    before = None if event.before is None else _read(StoredCell(event.name, event.before))
    now = None if event.text is None else _read(StoredCell(event.name, event.text))
    if now is not None:
        is_end = now.released is not None
        return [PairEvent(event.revision, place, _pair(event.name, now), is_end, now.released or {})]
    if before is not None and before.released is None:
        return [PairEvent(event.revision, place, _pair(event.name, before), is_end=True)]
    return []


def _pair(address: str, record: _Record) -> HeldPair:
    return HeldPair(record.other, address, record.token, record.body)


def _claim_text(pair: HeldPair, *, is_exchange: bool = False) -> str:
    said = {"address": pair.address, "token": pair.token}
    return json.dumps({**said, "is_exchange": True} if is_exchange else said)


def _address_text(pair: HeldPair, released: Mark | None = None) -> str:
    said: dict[str, Any] = {"claim": pair.claim, "token": pair.token, **pair.body}
    if released is not None:
        said["released"] = released
    return json.dumps(said, ensure_ascii=False)


def _read(cell: StoredCell) -> _Record:
    """Read what a cell says; raise ``PoolStateUnreadable``, which names it."""
    try:
        said = json.loads(cell.text)
        token = said.pop("token")
        if cell.name.startswith(CLAIM):
            return _Record(str(said["address"]), int(token), is_exchange=bool(said.get("is_exchange")))
        claim, released = str(said.pop("claim")), said.pop("released", None)
        return _Record(claim, int(token), said, released=released)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise PoolStateUnreadable(f"the cell {cell.name} cannot be read: {error!r}", LOOK_AT_CELL) from None
