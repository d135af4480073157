"""A claim and an address that belong to each other: two cells with one token, and so never one without the other.

The claim's cell is written first, then the address's. The claim says what it means to replace: the token that the
address has, or that there is none. An address whose holding has ended keeps its cell, which says that it is free; so it
never looks again as it did to a writer that came too late.

=================================  ==================================================================================
what is found                      what it is
=================================  ==================================================================================
claim and address, one token       held
a claim, the address as it was     a holding that is being made, or whose writer was killed: the next caller with that
when the claim was written         claim waits a moment, changes the address, and has the next case
a claim, the address otherwise     nothing that can be held any more: its writer's second write fails, whenever it
                                   comes; the next caller with that claim removes it
an address, no claim of its token  a hand from outside has removed the claim; whoever meets it says that it is free
=================================  ==================================================================================

So a claim is given up only when its writer can no longer succeed, and a writer whose second write was done need not
look back. Where both cells can be swapped together, there is no moment in between.

Cost of a holding: two writes, or one swap where both cells are together; of a release two reads and two writes.
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
    FREE_TEXT,
    CellChange,
    CellEvent,
    CellSnapshot,
    CellStore,
    CellTaken,
    StoredCell,
    is_free_text,
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
    """The name of the pair's other cell; of an address that is free and was never held, nothing."""
    token: int
    body: Body = field(default_factory=dict)
    replaces: int | None = None
    """Of a claim: the token that its address has until the claim is held; none if the address has no cell."""
    is_exchange: bool = False
    """Whether an address goes from one claim to this one: it is left to its writer, however long that takes."""
    is_free: bool = False
    """Whether nobody has the address; then it says who had it."""
    was: int | None = None
    """The token of the holding that has ended."""
    mark: Mark = field(default_factory=dict)


@dataclass(frozen=True)
class ClaimPairs:
    """The pairs in one place for cells."""

    cells: CellStore
    _free: dict[str, StoredCell] = field(default_factory=dict, repr=False)
    """Cells of free addresses as they were last seen; whoever replaces one finds out whether it still is."""

    async def hold(self, claim: str, offers: AsyncIterable[Offer], *, is_thorough: bool = False) -> HoldAnswer:
        """Give a claim the first of the offered addresses that is free; one that has an address keeps it.

        ``is_thorough``: an address is taken only if its holder can be named, and that one is in the answer.
        """
        mine: StoredCell | None = None
        blocker: HeldPair | None = None
        tries = 0
        async for offer in offers:
            tries += 1
            while True:
                found = await self._try(claim, mine, offer)
                if isinstance(found, HeldPair):
                    return HoldAnswer(HoldOutcome.GRANTED, found, tries)
                mine, taken = found
                if taken.name == claim:
                    if (existing := await self.settled(claim)) is not None:
                        return HoldAnswer(HoldOutcome.ALREADY, existing, tries)
                    continue
                if self._is_free(taken):
                    continue
                blocker = await self.holder(offer.address) if is_thorough else None
                if blocker is not None or not is_thorough:
                    break
        if mine is not None:
            await self._remove(mine)
        elif (existing := await self.settled(claim)) is not None:
            return HoldAnswer(HoldOutcome.ALREADY, existing, tries)
        return HoldAnswer(HoldOutcome.TAKEN, blocker, tries)

    async def _try(
        self, claim: str, mine: StoredCell | None, offer: Offer
    ) -> HeldPair | tuple[StoredCell | None, CellTaken]:
        """Write both cells; return the pair, or the claim's cell as we have it and which cell was taken."""
        seen = self._free.pop(offer.address, None)
        pair = HeldPair(claim, offer.address, secrets.randbits(TOKEN_BITS), offer.body)
        claim_change = CellChange(claim, mine, _claim_text(pair, seen))
        address_change = CellChange(offer.address, seen, _address_text(pair))
        if self.cells.together(claim, offer.address):
            try:
                await self.cells.swap([claim_change, address_change])
            except CellTaken as taken:
                return (None if taken.name == claim else mine), taken
            return pair
        try:
            mine = (await self.cells.swap([claim_change]))[claim]
        except CellTaken as taken:
            return None, taken
        try:
            await self.cells.swap([address_change])
        except CellTaken as taken:
            return mine, taken
        return pair

    def _is_free(self, taken: CellTaken) -> bool:
        """Return whether an address that is not as it was seen is free nevertheless; then that is how it is seen."""
        if taken.found is None or not is_free_text(taken.found.text):
            return False
        self._free[taken.name] = taken.found
        return True

    async def look(self) -> frozenset[str]:
        """Return the cells of addresses that are held, and remember those that are free. Cost: a list of names."""
        seen = await self.cells.look()
        self._free.clear()
        self._free.update(seen.free)
        return seen.held

    async def find(self, claim: str) -> HeldPair | None:
        """Return what a claim has. Cost: two reads if it has something, one if it has nothing."""
        cell = (await self.cells.read([claim])).get(claim)
        if cell is None:
            return None
        said = _read(cell)
        return _pair_of(cell, (await self.cells.read([said.other])).get(said.other))

    async def settled(self, claim: str) -> HeldPair | None:
        """Return what a claim has; if it is unfinished and stays so, give it up and return nothing."""
        seen, since = "", 0.0
        while True:
            cell = (await self.cells.read([claim])).get(claim)
            if cell is None:
                return None
            said = _read(cell)
            address = (await self.cells.read([said.other])).get(said.other)
            if (pair := _pair_of(cell, address)) is not None:
                return pair
            if cell.text != seen:
                seen, since = cell.text, time.monotonic()
            is_late = time.monotonic() - since >= UNFINISHED_S
            if is_late and said.is_exchange:
                return None
            if not said.is_exchange and said.replaces != _token_of(address):
                await self._remove(cell)
                return None
            if is_late:
                await self._free_up(said.other, address)
            else:
                await asyncio.sleep(random.uniform(0, LOOK_EVERY_S))

    async def holder(self, address: str) -> HeldPair | None:
        """Return who has an address; one whose claim is not there is made free. Cost: two reads."""
        cell = (await self.cells.read([address])).get(address)
        if cell is None or is_free_text(cell.text):
            return None
        record = _read(cell)
        claim = (await self.cells.read([record.other])).get(record.other)
        said = None if claim is None else _read(claim)
        if said is not None and (said.is_exchange or said.token == record.token):
            return HeldPair(record.other, address, record.token, record.body)
        await self._free_up(address, cell)
        return None

    async def release(self, pair: HeldPair, mark: Mark | None = None) -> bool:
        """End a holding, and write a mark about that; return whether it was there as it was seen."""
        cells = await self.cells.read([pair.claim, pair.address])
        claim, address = cells.get(pair.claim), cells.get(pair.address)
        if claim is None or address is None or {_read(claim).token, _read(address).token} != {pair.token}:
            return False
        changes = [CellChange(address.name, address, _free_text(address, mark)), CellChange(claim.name, claim, None)]
        is_together = self.cells.together(claim.name, address.name)
        try:
            written = await self.cells.swap(changes if is_together else changes[:1])
        except CellTaken:
            return False
        self._free[address.name] = written[address.name]
        if not is_together:
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
            if address is None or _read(address).token != pair.token:
                if seen is not None and not _names(address, claim):
                    await self._remove(seen)
                return None
            new = HeldPair(claim, pair.address, secrets.randbits(TOKEN_BITS), body)
            try:
                await self.cells.swap([CellChange(claim, seen, _claim_text(new, address, is_exchange=True))])
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
        left = [cell for name, cell in snapshot.cells.items() if name not in held and not _is_at_rest(cell)]
        work = [self.settled(cell.name) if cell.name.startswith(CLAIM) else self.holder(cell.name) for cell in left]
        found = await asyncio.gather(*work)
        return sum(each is None for each in found)

    async def _has_token(self, claim: str, token: int) -> bool:
        cell = (await self.cells.read([claim])).get(claim)
        return cell is not None and _read(cell).token == token

    async def _free_up(self, address: str, seen: StoredCell | None) -> None:
        """Say of an address that it is free, unless it has changed: no writer that has seen it before can take it."""
        try:
            written = await self.cells.swap([CellChange(address, seen, _free_text(seen))])
        except CellTaken:
            return
        self._free[address] = written[address]

    async def _remove(self, claim: StoredCell) -> None:
        """Remove a claim, unless it has changed: then it is another writer's."""
        try:
            await self.cells.swap([CellChange(claim.name, claim, None)])
        except CellTaken:
            return


def _pair_of(claim: StoredCell, address: StoredCell | None) -> HeldPair | None:
    """Return the pair of a claim, if the address that was read after it has the same token."""
    if address is None or is_free_text(address.text):
        return None
    record = _read(address)
    if record.token != _read(claim).token:
        return None
    return HeldPair(claim.name, address.name, record.token, record.body)


def _names(address: StoredCell | None, claim: str) -> bool:
    """Return whether an address is held for a claim."""
    return address is not None and not is_free_text(address.text) and _read(address).other == claim


def _token_of(address: StoredCell | None) -> int | None:
    return None if address is None else _read(address).token


def _is_at_rest(cell: StoredCell) -> bool:
    """Return whether a cell that is no half of a holding is right as it is."""
    if cell.name.startswith(CLAIM):
        return _read(cell).is_exchange
    return not cell.name.startswith(ADDRESS) or is_free_text(cell.text)


def held_pairs(snapshot: CellSnapshot) -> list[HeldPair]:
    """Return all holdings of a snapshot, in order of the names of their addresses."""
    pairs = []
    for name in sorted(name for name in snapshot.cells if name.startswith(ADDRESS)):
        if is_free_text(snapshot.cells[name].text):
            continue
        record = _read(snapshot.cells[name])
        claim = snapshot.cells.get(record.other)
        if claim is not None and _read(claim).token == record.token:
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
    """Return what a cell's change means; that an address is free means nothing new where nobody has had it."""
    before = None if event.before is None else _read(StoredCell(event.name, event.before))
    now = None if event.text is None else _read(StoredCell(event.name, event.text))
    if now is not None and not now.is_free:
        return [PairEvent(event.revision, place, HeldPair(now.other, event.name, now.token, now.body), is_end=False)]
    if now is not None and now.was is not None:
        ended = HeldPair(now.other, event.name, now.was, now.body)
        return [PairEvent(event.revision, place, ended, is_end=True, mark=now.mark)]
    if now is None and before is not None and not before.is_free:
        # Another hand has removed the object.
        ended = HeldPair(before.other, event.name, before.token, before.body)
        return [PairEvent(event.revision, place, ended, is_end=True)]
    return []


def _claim_text(pair: HeldPair, replaced: StoredCell | None, *, is_exchange: bool = False) -> str:
    said = {"address": pair.address, "token": pair.token, "replaces": _token_of(replaced)}
    return json.dumps({**said, "is_exchange": True} if is_exchange else said)


def _address_text(pair: HeldPair) -> str:
    return json.dumps({"claim": pair.claim, "token": pair.token, **pair.body}, ensure_ascii=False)


def _free_text(seen: StoredCell | None, mark: Mark | None = None) -> str:
    """Write of an address that it is free, under a token of its own, and who had it until now."""
    said: dict[str, Any] = {"free": True, "token": secrets.randbits(TOKEN_BITS)}
    if seen is not None and not is_free_text(seen.text):
        record = _read(seen)
        said["was"] = {"claim": record.other, "token": record.token, **record.body}
        if mark is not None:
            said["mark"] = dict(mark)
    text = json.dumps(said, ensure_ascii=False)
    assert text.startswith(FREE_TEXT)
    return text


def _read(cell: StoredCell) -> _Record:
    """Read what a cell says; raise ``PoolStateUnreadable``, which names it."""
    try:
        said = json.loads(cell.text)
        token = int(said.pop("token"))
        if cell.name.startswith(CLAIM):
            replaces, is_exchange = said.get("replaces"), bool(said.get("is_exchange"))
            return _Record(str(said["address"]), token, replaces=replaces, is_exchange=is_exchange)
        if not said.get("free"):
            return _Record(str(said.pop("claim")), token, said)
        was = said.get("was") or {"claim": "", "token": None}
        return _Record(
            str(was.pop("claim")), token, is_free=True, was=was.pop("token"), body=was, mark=said.get("mark") or {}
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise PoolStateUnreadable(f"the cell {cell.name} cannot be read: {error!r}", LOOK_AT_CELL) from None
