"""A claim and an address that belong to each other: two cells with one token, and so never one without the other.

The claim's cell is written first, then the address's. The claim names an address, or a few that are tried in their
order, and says of each what is to be replaced: the token that it has, or that there is none. An address whose holding
has ended keeps its cell, which says that it is free; so it never looks again as it did to a writer that came too late.

=================================  ==================================================================================
what is found                      what it is
=================================  ==================================================================================
claim and address, one token       held
a claim, one of its addresses as   a holding that is being made, or whose writer was killed: the next caller with that
it was when the claim was written  claim waits a moment, changes the address, and has the next case
a claim, its addresses otherwise   nothing that can be held any more: its writer's next write fails, whenever it comes;
                                   the next caller with that claim removes it
a claim, one of its addresses      moved: the place is being left, and the claim stays as the lock on its name there,
exchanged since                    so that nobody who comes late begins a second holding
an address, no claim of its token  a hand from outside has removed the claim; whoever meets it says that it is free
=================================  ==================================================================================

So a claim is given up only when its writer can no longer succeed, and a writer whose address was written need not look
back. Where both cells can be swapped together, there is no moment in between.

Cost of a holding: two writes, or one swap where both cells are together; of a release two reads and two writes.
"""

import asyncio
import contextlib
import itertools
import random
import secrets
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from tenure.integrations.vmpool.cells.cell_store import (
    ADDRESS,
    CLAIM,
    FREE_TEXT,
    CellChange,
    CellEvent,
    CellStore,
    CellTaken,
    StoredCell,
    is_free_text,
)
from tenure.integrations.vmpool.pool_errors import LOOK_AT_CELL, PoolStateUnreadable
from tenure.integrations.vmpool.state.go_json import read_json, write_line

UNFINISHED_S = 0.5
"""How long a claim without its address is left to its writer."""
LOOK_EVERY_S = 0.05
FREE_OLD_S = 30.0
"""How long a list of the free cells is used: an address that is free and not in it costs a few requests more."""
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


class PairExchanged(Exception):
    """The address of a claim was given to another claim by ``exchange``: who has it is said elsewhere."""


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
class _Claim:
    """What the cell of a claim says."""

    choices: tuple[tuple[str, int | None], ...]
    """The addresses that its writer tries, each with the token that it has until then; none if it has no cell."""
    token: int
    is_exchange: bool = False
    """Whether an address goes from one claim to this one: it is left to its writer, however long that takes."""


@dataclass(frozen=True, slots=True)
class _Address:
    """What the cell of an address says."""

    claim: str
    """The claim that holds the address; of a free address, the last one that held it, if any."""
    token: int
    body: Body = field(default_factory=dict)
    is_free: bool = False
    was: int | None = None
    """The token of the holding that has ended."""
    took: int | None = None
    """The token of the holding that was exchanged for this one."""
    mark: Mark = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Tried:
    """What became of a try: the pair, or the cell that was taken, and how many addresses were passed before."""

    mine: StoredCell | None
    """The claim's cell, if it is this caller's."""
    pair: HeldPair | None = None
    taken: CellTaken | None = None
    passed: int = 0


@dataclass
class ClaimPairs:
    """The pairs in one place for cells."""

    cells: CellStore
    has_log: bool = False
    """Whether ends of holdings are read from events: then a cell that is free says all that its holding said."""
    _free: dict[str, StoredCell] = field(default_factory=dict, repr=False)
    """Cells of free addresses as last seen. A hint: the swap that replaces one fails if the address was taken."""
    _free_read_at: float = field(default=float("-inf"), repr=False)

    async def hold(
        self, claim: str, offers: AsyncGenerator[Sequence[Offer], None], *, is_thorough: bool = False
    ) -> HoldAnswer:
        """Give a claim the first of the offered addresses that is free; one that has an address keeps it.

        Those that are offered together are named in one write. ``is_thorough``, for one at a time: an address is taken
        only if its holder can be named, and that one is in the answer. Raise ``PairExchanged``.
        """
        # A generator that is left where it is costs the loop a task of its own to end it.
        async with contextlib.aclosing(offers):
            return await self._held(claim, offers, is_thorough)

    async def _held(self, claim: str, offers: AsyncGenerator[Sequence[Offer], None], is_thorough: bool) -> HoldAnswer:
        mine: StoredCell | None = None
        blocker: HeldPair | None = None
        tries = 0
        async for together in offers:
            left = list(together)
            while left:
                tried = await self._try(claim, mine, left)
                mine, left, tries = tried.mine, left[tried.passed :], tries + tried.passed
                if tried.pair is not None:
                    return HoldAnswer(HoldOutcome.GRANTED, tried.pair, tries + 1)
                if tried.taken is not None and tried.taken.name == claim:
                    # Where the claim that was in the way is given up here, the same addresses are tried again.
                    if (existing := await self.settled(claim)) is not None:
                        return HoldAnswer(HoldOutcome.ALREADY, existing, tries + 1)
                elif is_thorough and not left:
                    blocker = await self.holder(together[0].address)
                    left = [] if blocker is not None else list(together)
        if mine is not None:
            await self._remove(mine)
        # Where nothing could be offered, the claim may still have an address from before.
        elif (existing := await self.settled(claim)) is not None:
            return HoldAnswer(HoldOutcome.ALREADY, existing, tries)
        return HoldAnswer(HoldOutcome.TAKEN, blocker, tries)

    async def _try(self, claim: str, mine: StoredCell | None, offers: Sequence[Offer]) -> _Tried:
        """Write the claim, and then the first address that lets itself be written."""
        # A token for each try: a text that was written once must never be written again.
        token = secrets.randbits(TOKEN_BITS)
        if self.cells.together(claim, offers[0].address):
            return await self._try_at_once(HeldPair(claim, offers[0].address, token, offers[0].body), mine)
        seen = {offer.address: self._free.get(offer.address) for offer in offers}
        text = _claim_text(token, [(name, _token_of(cell)) for name, cell in seen.items()])
        try:
            mine = (await self.cells.swap([CellChange(claim, mine, text)]))[claim]
        except CellTaken as taken:
            return _Tried(None, taken=taken)
        for passed, offer in enumerate(offers):
            # Whatever becomes of the write, the cell is not as it was seen any more.
            self._free.pop(offer.address, None)
            pair = HeldPair(claim, offer.address, token, offer.body)
            # The cell in the way is read for the last choice alone, which saves a request for each of the others.
            is_last = passed == len(offers) - 1
            change = CellChange(offer.address, seen[offer.address], _address_text(pair), is_read=is_last)
            try:
                await self.cells.swap([change])
            except CellTaken as taken:
                if taken.found is None:
                    self._free_read_at = float("-inf")  # it may be free under a token that is not known here
                # The write may have been done, its answer lost, and the address exchanged before it was looked at.
                _check_kept(taken.found, token, claim)
                if self._is_free(taken):
                    return _Tried(mine, taken=taken, passed=passed)  # the claim has to name what it replaces
                continue
            return _Tried(mine, pair, passed=passed)
        return _Tried(mine, passed=len(offers))

    async def _try_at_once(self, pair: HeldPair, mine: StoredCell | None) -> _Tried:
        """Write the claim and its address in one swap."""
        seen = self._free.pop(pair.address, None)
        # The claim comes first, so that it is named where both have changed: what became of it settles the rest.
        changes = [
            CellChange(pair.claim, mine, _claim_text(pair.token, [(pair.address, _token_of(seen))])),
            CellChange(pair.address, seen, _address_text(pair)),
        ]
        try:
            await self.cells.swap(changes)
        except CellTaken as taken:
            if taken.name == pair.claim:
                return _Tried(None, taken=taken)
            return _Tried(mine, taken=taken, passed=0 if self._is_free(taken) else 1)
        return _Tried(mine, pair)

    def _is_free(self, taken: CellTaken) -> bool:
        """Return whether an address that is not as it was seen is free nevertheless; then that is how it is seen."""
        if taken.found is None or not is_free_text(taken.found.text):
            return False
        self._free[taken.name] = taken.found
        return True

    async def look(self) -> frozenset[str]:
        """Return the cells of addresses that are held. Cost: a list of names; now and then those that are free, too."""
        is_old = time.monotonic() - self._free_read_at > FREE_OLD_S
        seen = await self.cells.look(with_free=is_old)
        if is_old:
            self._see_free(seen.free)
        for name in self._free.keys() & seen.held:
            del self._free[name]
        return seen.held

    async def holdings(self) -> list[HeldPair]:
        """Return all holdings. Cost: a list of everything."""
        cells = (await self.cells.all()).cells
        self._see_free({name: cell for name, cell in cells.items() if is_free_text(cell.text)})
        return held_pairs(cells)

    def _see_free(self, free: Mapping[str, StoredCell]) -> None:
        self._free.clear()
        self._free.update(free)
        self._free_read_at = time.monotonic()

    async def find(self, claim: str) -> HeldPair | None:
        """Return what a claim has; raise ``PairExchanged``. Cost: two reads; one if it has nothing."""
        cell = (await self.cells.read([claim])).get(claim)
        return None if cell is None else (await self._outcome(cell))[0]

    async def settled(self, claim: str) -> HeldPair | None:
        """Return what a claim has; if it is unfinished and stays so, give it up and return nothing.

        Raise ``PairExchanged``; then the claim stays as it is.
        """
        seen, since = "", 0.0
        while True:
            cell = (await self.cells.read([claim])).get(claim)
            if cell is None:
                return None
            pair, still_open = await self._outcome(cell)
            if pair is not None:
                return pair
            # Another text is another try, which has the whole time for itself.
            if cell.text != seen:
                seen, since = cell.text, time.monotonic()
            is_late, is_exchange = time.monotonic() - since >= UNFINISHED_S, _read_claim(cell).is_exchange
            if is_late and is_exchange:
                return None
            if not still_open and not is_exchange:
                await self._remove(cell)
                return None
            if is_late:
                # The claim goes in the next turn: only then can its writer no longer succeed, whenever it wakes.
                await asyncio.gather(*(self._free_up(name, address) for name, address in still_open))
            else:
                await asyncio.sleep(random.uniform(0, LOOK_EVERY_S))

    async def _outcome(self, claim: StoredCell) -> tuple[HeldPair | None, list[tuple[str, StoredCell | None]]]:
        """Return what a claim has, or else the addresses that its writer could still take, as they are.

        An address that was found to be out of its reach stays so; therefore they need not be read at one moment.
        """
        said = _read_claim(claim)
        still_open = []
        for name, replaced in said.choices:
            cell = (await self.cells.read([name])).get(name)
            _check_kept(cell, said.token, claim.name)
            found = None if cell is None else _read_address(cell)
            if found is not None and _belongs(found, claim.name, said):
                return HeldPair(claim.name, name, found.token, found.body), []
            # This very holding was made and has ended: no other address of the claim is open any more.
            if found is not None and found.was == said.token:
                return None, []
            if (None if found is None else found.token) == replaced:
                still_open.append((name, cell))
        return None, still_open

    async def holder(self, address: str) -> HeldPair | None:
        """Return who has an address; one whose claim is not there is made free. Cost: two reads."""
        cell = (await self.cells.read([address])).get(address)
        if cell is None or is_free_text(cell.text):
            return None
        found = _read_address(cell)
        claim = (await self.cells.read([found.claim])).get(found.claim)
        if claim is not None and _belongs(found, claim.name, _read_claim(claim)):
            return HeldPair(found.claim, address, found.token, found.body)
        await self._free_up(address, cell)
        return None

    async def release(self, pair: HeldPair, mark: Mark | None = None) -> bool:
        """End a holding, and write a mark about that; return whether it was there as it was seen."""
        cells = await self.cells.read([pair.claim, pair.address])
        claim, address = cells.get(pair.claim), cells.get(pair.address)
        if claim is None or address is None:
            return False
        found = _read_address(address)
        if found.token != pair.token or not _belongs(found, claim.name, _read_claim(claim)):
            return False
        free = CellChange(address.name, address, self._free_text(address, mark))
        changes = [free, CellChange(claim.name, claim, None)]
        is_together = self.cells.together(claim.name, address.name)
        try:
            written = await self.cells.swap(changes if is_together else changes[:1])
        except CellTaken:
            return False
        self._free[address.name] = written[address.name]
        # A process that is killed here leaves a claim that its next call removes: the address says that it is over.
        if not is_together:
            await self._remove(claim)
        return True

    async def exchange(self, pair: HeldPair, claim: str, body: Body) -> HeldPair | None:
        """Give the address of a holding to another claim, so that it is free at no moment between.

        Return the new holding; nothing if the old one is not there any more. The old claim stays, and is nobody's to
        give up. The new claim is the caller's alone: none but a caller of ``exchange`` removes it while it is
        unfinished. Cost: three reads and two writes.
        """
        # The token of the first turn: the old claim is known by it, however often the address is written.
        took = pair.token
        while True:
            cells = await self.cells.read([pair.address, claim])
            address, seen = cells.get(pair.address), cells.get(claim)
            if address is None or _read_address(address).token != pair.token:
                # Where the address names the claim, another mover has made this very exchange.
                if seen is not None and not _names(address, claim):
                    await self._remove(seen)
                return None
            new = HeldPair(claim, pair.address, secrets.randbits(TOKEN_BITS), body)
            try:
                text = _claim_text(new.token, [(new.address, pair.token)], is_exchange=True)
                await self.cells.swap([CellChange(claim, seen, text)])
                await self.cells.swap([CellChange(pair.address, address, _address_text(new, took))])
            except CellTaken:
                continue
            if await self._has_token(claim, new.token):
                return new
            pair = new

    async def heal(self) -> int:
        """Remove what writers that were killed have left; return how many cells that were.

        Nothing else does any harm by it: whoever is still at work finds out, and begins anew.
        """
        cells = (await self.cells.all()).cells
        kept = {name for pair in held_pairs(cells) for name in (pair.claim, pair.address)} | _exchanged(cells)
        left = [cell for name, cell in cells.items() if name not in kept and not _is_at_rest(cell)]
        return sum(await asyncio.gather(*map(self._is_healed, left)))

    async def _is_healed(self, cell: StoredCell) -> bool:
        """Remove a cell that is no half of a holding; return whether it was still none."""
        try:
            found = await (self.settled if cell.name.startswith(CLAIM) else self.holder)(cell.name)
        except PairExchanged:
            return False
        return found is None

    async def _has_token(self, claim: str, token: int) -> bool:
        cell = (await self.cells.read([claim])).get(claim)
        return cell is not None and _read_claim(cell).token == token

    async def _free_up(self, address: str, seen: StoredCell | None) -> None:
        """Say of an address that it is free, unless it has changed: no writer that has seen it before can take it."""
        try:
            written = await self.cells.swap([CellChange(address, seen, self._free_text(seen))])
        except CellTaken:
            return
        self._free[address] = written[address]

    def _free_text(self, seen: StoredCell | None, mark: Mark | None = None) -> str:
        """Write of an address that it is free, under a token of its own, and which holding has ended."""
        # free stands first: stores know a free cell by how its text begins.
        said: dict[str, Any] = {"free": True, "token": secrets.randbits(TOKEN_BITS)}
        if seen is not None and not is_free_text(seen.text):
            found = _read_address(seen)
            said["was"] = found.token
            if self.has_log:
                said |= {"claim": found.claim, "mark": dict(mark or {}), "body": found.body}
        text = write_line(said)
        assert text.startswith(FREE_TEXT)
        return text

    async def _remove(self, claim: StoredCell) -> None:
        """Remove a claim, unless it has changed: then it is another writer's."""
        try:
            await self.cells.swap([CellChange(claim.name, claim, None)])
        except CellTaken:
            return


def _belongs(address: _Address, name: str, claim: _Claim) -> bool:
    """Return whether an address is held for the claim of a name.

    An exchange is done as soon as the address names its claim: two that make the same one may have different tokens.
    """
    return not address.is_free and address.claim == name and (claim.is_exchange or claim.token == address.token)


def _check_kept(address: StoredCell | None, token: int, claim: str) -> None:
    """Raise ``PairExchanged`` if an address was held under a token, and was then exchanged."""
    if address is not None and _read_address(address).took == token:
        raise PairExchanged(f"{address.name} of {claim} is another claim's")


def _exchanged(cells: Mapping[str, StoredCell]) -> set[str]:
    """Return the claims whose address was exchanged."""
    addresses = [_read_address(cell) for name, cell in cells.items() if name.startswith(ADDRESS)]
    took = {each.took for each in addresses if each.took is not None}
    return {name for name, cell in cells.items() if name.startswith(CLAIM) and _read_claim(cell).token in took}


def _names(address: StoredCell | None, claim: str) -> bool:
    """Return whether an address is held for a claim."""
    return address is not None and not is_free_text(address.text) and _read_address(address).claim == claim


def _token_of(address: StoredCell | None) -> int | None:
    return None if address is None else _read_address(address).token


def _is_at_rest(cell: StoredCell) -> bool:
    """Return whether a cell that is no half of a holding is right as it is."""
    if cell.name.startswith(CLAIM):
        return _read_claim(cell).is_exchange
    return not cell.name.startswith(ADDRESS) or is_free_text(cell.text)


def held_pairs(cells: Mapping[str, StoredCell]) -> list[HeldPair]:
    """Return all holdings that some cells have, in order of the names of their addresses."""
    pairs = []
    for name in sorted(name for name in cells if name.startswith(ADDRESS)):
        if is_free_text(cells[name].text):
            continue
        found = _read_address(cells[name])
        claim = cells.get(found.claim)
        if claim is not None and _belongs(found, claim.name, _read_claim(claim)):
            pairs.append(HeldPair(found.claim, name, found.token, found.body))
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
    before = None if event.before is None else _read_address(StoredCell(event.name, event.before))
    now = None if event.text is None else _read_address(StoredCell(event.name, event.text))
    if now is not None and not now.is_free:
        return [PairEvent(event.revision, place, HeldPair(now.claim, event.name, now.token, now.body), is_end=False)]
    if now is not None and now.was is not None:
        ended = HeldPair(now.claim, event.name, now.was, now.body)
        return [PairEvent(event.revision, place, ended, is_end=True, mark=now.mark)]
    if now is None and before is not None and not before.is_free:
        # Another hand has removed the object.
        ended = HeldPair(before.claim, event.name, before.token, before.body)
        return [PairEvent(event.revision, place, ended, is_end=True)]
    return []


def pair_texts(pair: HeldPair) -> dict[str, str]:
    """Return the texts of a claim and its address, as long as they can become for one address."""
    token = (1 << TOKEN_BITS) - 1
    claim = _claim_text(token, [(pair.address, token)], is_exchange=True)
    return {pair.claim: claim, pair.address: _address_text(replace(pair, token=token), token)}


def _claim_text(token: int, choices: Sequence[tuple[str, int | None]], *, is_exchange: bool = False) -> str:
    said = {"choices": list(choices), "token": token}
    return write_line({**said, "is_exchange": True} if is_exchange else said)


def _address_text(pair: HeldPair, took: int | None = None) -> str:
    said = {"claim": pair.claim, "token": pair.token, **pair.body}
    return write_line(said if took is None else {**said, "took": took})


def _read_claim(cell: StoredCell) -> _Claim:
    """Read the cell of a claim; raise ``PoolStateUnreadable``, which names it."""
    with _readable(cell):
        said = read_json(cell.text)
        choices = tuple((str(name), replaced) for name, replaced in said["choices"])
        return _Claim(choices, int(said["token"]), is_exchange=bool(said.get("is_exchange")))


def _read_address(cell: StoredCell) -> _Address:
    """Read the cell of an address; raise ``PoolStateUnreadable``, which names it."""
    with _readable(cell):
        said = read_json(cell.text)
        token = int(said.pop("token"))
        if not said.get("free"):
            took = said.pop("took", None)
            return _Address(str(said.pop("claim")), token, said, took=took)
        body, mark = said.get("body") or {}, said.get("mark") or {}
        return _Address(said.get("claim", ""), token, body, is_free=True, was=said.get("was"), mark=mark)


@contextlib.contextmanager
def _readable(cell: StoredCell) -> Iterator[None]:
    try:
        yield
    # A cell that was edited by hand may hold any JSON.
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise PoolStateUnreadable(f"the cell {cell.name} cannot be read: {error!r}", LOOK_AT_CELL) from None
