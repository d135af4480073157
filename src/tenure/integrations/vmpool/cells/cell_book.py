"""A book of holdings on cells: one object for each, shards, or a single ConfigMap (KD13).

What to know beyond the port:

* A space takes grants once ``set_version`` has been called for it. A grant looks at the version before and after it is
  written, and is given back if the version has changed: no write can have the version's cell as a condition.
* There is no clock of the store: ``since_us`` and the log's times are by the clock of the process that asked. They
  decide nothing (I10).
* Units must not be mixed in a space: equal names decide which holding is in the way, overlap does not.
* A generation is a random number, and no order is to be read from it.
* Changes are numbered ``revision * 2048 + place in the revision``. They reach as far back as the history of the API
  server; a cursor from before raises ``CursorExpired``. A reading of the log costs a small write.
* Nothing cools: a ticket that asks for it is refused.
* An address that was held once keeps a small cell for ever, which says that it is free.
"""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Any, Literal

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.resource_types import version_of
from tenure.integrations.vmpool.cells.cell_store import ADDRESS, CellChange, CellStore, CellTaken, claim_name
from tenure.integrations.vmpool.cells.claim_pairs import (
    ClaimPairs,
    HeldPair,
    HoldOutcome,
    Offer,
    PairEvent,
    held_pairs,
    pair_events,
)
from tenure.integrations.vmpool.cells.object_cells import ObjectCells
from tenure.integrations.vmpool.cells.shard_cells import ShardCells
from tenure.kernel.addressing.addresses import key, position
from tenure.kernel.errors import Conflict, Invalid
from tenure.kernel.holdings.holding_model import (
    AGAIN,
    NO_DETAILS,
    OWNED,
    Change,
    Outcome,
    Row,
    SpaceId,
    State,
    Ticket,
    Verdict,
    Wish,
)
from tenure.kernel.holdings.log_entries import grant_entry, release_entry
from tenure.ports import Abilities, Failed

PAGE = 1000
SHARE = 2048
"""At most so many changes have one revision."""
LARGEST_BATCH = 100
AT_ONCE = 16
ORIGIN = "origin"
"""A cell that is written once: the log begins behind it."""

BookLayout = Literal["objects", "shards"]


class CellBook:
    """A book in a namespace of a cluster, under one root."""

    abilities = Abilities(parallel_writes=True, largest_batch=LARGEST_BATCH)

    def __init__(self, cells: CellStore, *, clock: Callable[[], int] = lambda: time.time_ns() // 1000) -> None:
        self.cells = cells
        self._pairs = ClaimPairs(cells, has_log=True)
        self._clock = clock

    @classmethod
    def on(cls, client: ApiClient, namespace: str, root: str, layout: BookLayout, shards: int = 1) -> "CellBook":
        """Return a book on objects, or on so many ConfigMaps; the client is its owner's to close."""
        if layout == "objects":
            return cls(ObjectCells(client, namespace, root))
        return cls(ShardCells(client, namespace, root, shards))

    @property
    def newest(self) -> int:
        """The highest number that a change can have at the newest revision that an answer has named."""
        return (self.cells.newest + 1) * SHARE - 1

    async def set_version(self, space: SpaceId, version: int) -> None:
        """Say under which version of its configuration a space takes grants; it never goes back."""
        await self._origin()
        name = _version_name(space)
        while True:
            cell = (await self.cells.read([name])).get(name)
            known = 0 if cell is None else int(json.loads(cell.text)["version"])
            if known > version:
                raise Conflict(f"space {space} is at version {known} already, not {version}", field="version")
            if known == version:
                return
            text = json.dumps({"version": version, "token": secrets.token_hex(8)})
            try:
                await self.cells.swap([CellChange(name, cell, text)])
            except CellTaken:
                continue
            return

    async def grant(self, space: SpaceId, version: int, wishes: Sequence[Wish]) -> Sequence[Verdict | Failed]:
        """Create holdings, each for itself. Cost: for each two writes, and two reads for all."""
        if not await self._has_version(space, version):
            return [AGAIN] * len(wishes)
        turns, now = asyncio.Semaphore(AT_ONCE), self._clock()
        answers = await asyncio.gather(*(self._grant(space, wish, now, turns) for wish in wishes))
        if await self._has_version(space, version):
            return [verdict for verdict, _ in answers]
        granted = [pair for verdict, pair in answers if verdict.outcome is Outcome.GRANTED and pair is not None]
        await asyncio.gather(*map(self._pairs.release, granted))
        return [AGAIN] * len(wishes)

    async def _grant(
        self, space: SpaceId, wish: Wish, now: int, turns: asyncio.Semaphore
    ) -> tuple[Verdict, HeldPair | None]:
        async with turns:
            offer = Offer(address_cell(space, wish.first), {"row": _row_document(space, wish, now)})
            claim = _claim_of(space, wish)
            answer = await self._pairs.hold(claim, _once(offer), is_thorough=True)
        row = None if answer.pair is None else _read_row(answer.pair)
        outcomes = {
            HoldOutcome.GRANTED: Outcome.GRANTED, HoldOutcome.ALREADY: Outcome.ALREADY,
            HoldOutcome.TAKEN: Outcome.TAKEN,
        }  # fmt: skip
        outcome = outcomes[answer.outcome]
        # What is parting has no claim to answer for: its cell is named by the address, which is then what is taken.
        if outcome is Outcome.ALREADY and wish.state not in OWNED:
            outcome = Outcome.TAKEN
        return Verdict(outcome, row), answer.pair

    async def release(self, space: SpaceId, tickets: Sequence[Ticket]) -> Sequence[Row | Failed | None]:
        """End holdings, each for itself. Cost: four reads and two writes each."""
        return await asyncio.gather(*(self._release(space, ticket) for ticket in tickets))

    async def _release(self, space: SpaceId, ticket: Ticket) -> Row | Failed | None:
        if ticket.cooling_us:
            return Failed(Invalid("cooling: this book lets nothing cool", field="cooling"))
        while True:
            pair = await self._pairs.holder(address_cell(space, ticket.first))
            row = None if pair is None else _read_row(pair)
            if pair is None or row is None or row.state is State.COOLING:
                return None
            mark = {"request": ticket.request, "at_us": self._clock()}
            if not ticket.names(row) or await self._pairs.release(pair, mark):
                return row

    async def held(self, space: SpaceId, *, after: int = -1) -> AsyncIterator[Sequence[Row]]:
        """Stream holdings in pages, all as of the first page's moment; of shards nearly so."""
        snapshot = await self.cells.all()
        # With the dash, because the number of another space may begin with this one.
        rows = [_read_row(pair) for pair in held_pairs(snapshot.cells) if pair.address.startswith(f"{ADDRESS}{space}-")]
        rows = sorted((row for row in rows if row.first > after), key=lambda row: row.first)
        for start in range(0, len(rows), PAGE):
            yield rows[start : start + PAGE]

    async def by_owner(self, owners: Sequence[str]) -> Sequence[Row]:
        """Find holdings by owner. Cost: a list and two reads for each holding."""
        found: list[Row] = []
        for owner in owners:
            snapshot = await self.cells.all(claim_group(owner))
            pairs = await asyncio.gather(*map(self._pairs.find, snapshot.cells))
            rows = [_read_row(pair) for pair in pairs if pair is not None]
            found += sorted(rows, key=lambda row: (row.space, row.first))
        return found

    async def watch(self, after: int, *, limit: int = 1000, space: SpaceId | None = None) -> Sequence[Change]:
        """Read the log from the history of the API server. Cost: a write, and a watch."""
        if limit < 1:
            return []
        changes: list[Change] = []
        # One revision before the cursor's, of which some changes may still be unread.
        revision = max(after // SHARE - 1, await self._origin())
        # The changes of the cursor's revision come again, and are left out below: they must not use the limit up.
        most = limit + SHARE
        while True:
            events = await self.cells.events(revision, most)
            found = map(_change, pair_events(events))
            changes += [each for each in found if each.seq > after and space in (None, each.space)]
            if len(events) < most or len(changes) >= limit:
                return changes[:limit]
            revision = events[-1].revision

    async def close(self) -> None:
        """Let go of nothing: the client is its owner's."""

    async def _origin(self) -> int:
        """Return the revision behind which the log begins."""
        while True:
            cell = (await self.cells.read([ORIGIN])).get(ORIGIN)
            if cell is not None:
                return int(json.loads(cell.text)["revision"])
            snapshot = await self.cells.all()
            # Shards of which none was written yet have no revision.
            revision = snapshot.revision or await self._first_revision()
            text = json.dumps({"revision": revision, "token": secrets.token_hex(8)})
            try:
                await self.cells.swap([CellChange(ORIGIN, None, text)])
            except CellTaken:
                continue

    async def _first_revision(self) -> int:
        """Write a cell where there is none yet, and return a revision that all others are behind."""
        name = f"first-{secrets.token_hex(4)}"
        written = await self.cells.swap([CellChange(name, None, secrets.token_hex(8))])
        cell = written[name]
        await self.cells.swap([CellChange(name, cell, None)])
        return version_of(cell.object)

    async def _has_version(self, space: SpaceId, version: int) -> bool:
        name = _version_name(space)
        cell = (await self.cells.read([name])).get(name)
        return cell is not None and int(json.loads(cell.text)["version"]) == version


def address_cell(space: SpaceId, first: int) -> str:
    """Return the name of the cell of an address; names sort as positions do."""
    return f"{ADDRESS}{space}-{key(first).hex()}"


def claim_group(owner: str) -> str:
    """Return the group of an owner's claims, as names of cells have it."""
    return claim_name(owner).removeprefix("c-").partition("-")[0]


def _claim_of(space: SpaceId, wish: Wish) -> str:
    if wish.state in OWNED:
        return claim_name(wish.owner, str(space), str(wish.network), wish.slot)
    return claim_name(wish.owner, str(space), "address", str(wish.first))


def _version_name(space: SpaceId) -> str:
    return f"version-{space}"


async def _once(offer: Offer) -> AsyncGenerator[Sequence[Offer], None]:
    yield (offer,)


def _row_document(space: SpaceId, wish: Wish, now: int) -> dict[str, Any]:
    """Write a holding; what is not said is left out."""
    said = {
        "space": space, "network": wish.network, "first": key(wish.first).hex(), "last": key(wish.last).hex(),
        "owner": wish.owner, "slot": wish.slot or None, "state": str(wish.state), "since_us": now,
        "until_us": None if wish.lasts_us is None else now + wish.lasts_us, "request": wish.request,
        "details": dict(wish.details) or None,
    }  # fmt: skip
    return {name: value for name, value in said.items() if value is not None}


def _read_row(pair: HeldPair) -> Row:
    said = pair.body["row"]
    return Row(
        said["space"], said["network"], position(bytes.fromhex(said["first"])), position(bytes.fromhex(said["last"])),
        said["owner"], said.get("slot", ""), State(said["state"]), pair.token, said["since_us"],
        said.get("until_us"), said.get("request"), said.get("details", NO_DETAILS),
    )  # fmt: skip


def _change(event: PairEvent) -> Change:
    """Return a change of the log; a holding whose object was removed by another hand has no time of its end."""
    row = _read_row(event.pair)
    entry = release_entry(row, event.mark.get("request")) if event.is_end else grant_entry(row)
    return Change(event.revision * SHARE + event.place, event.mark.get("at_us", row.since_us), *entry)
