"""CellStore in the values of a few ConfigMaps: a write meets another one where both are in the same shard.

A claim lies in the shard of its group and an address in that of its own name, both by rendezvous hashing. Where the
two are the same one, a swap has both. Cost: a write for the swaps of a process that wait for a shard, and a read
before it unless the shard is known; each as large as the shard.
"""

import asyncio
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import orjson

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ObjectExists, ObjectMissing, WriteConflict, error_of
from tenure.integrations.kubernetes.runtime.resource_types import Object, version_of
from tenure.integrations.vmpool.cells.cell_requests import CellRequests, reading_history
from tenure.integrations.vmpool.cells.cell_store import (
    ADDRESS,
    AddressLook,
    CellChange,
    CellEvent,
    CellSnapshot,
    CellTaken,
    StoredCell,
    digest,
    group_of,
    is_free_text,
)
from tenure.integrations.vmpool.config_map_swap import CONFIG_MAP, TOO_LONG, StoredPool
from tenure.integrations.vmpool.pool_errors import (
    WRITE_FAILED,
    PoolNamespaceMissing,
    PoolSwapConflict,
    PoolTooLarge,
    PoolWriteRefused,
)
from tenure.integrations.vmpool.vm_pool_settings import LARGEST_CONFIG_MAP
from tenure.kernel.errors import Conflict

SHARD_LABEL, COUNT_LABEL = "tenure.dev/shards-of", "tenure.dev/shards"
MARK = "mark"
"""A value that every write changes: it says whether a write whose answer was lost was done."""
BEACON = "beacon"
"""A cell that a reader of events writes, to know when it has seen all that was before."""
SILENT_S = 30.0
ROOM_FOR_MORE = 65_536
"""The bytes that stay free in a shard for the notes, and for allocations while a pool is moved."""
TOO_FEW_SHARDS = (
    "a shard has no room for its part; release allocations, or name more shards for a pool that comes (VM_POOL_SHARDS)"
)


@lru_cache(maxsize=100_000)
def shard_of(name: str, count: int) -> int:
    """Return the shard of a name: the one whose hash with the name is largest. Cost: O(shards), once for a name."""
    return max(range(count), key=lambda number: digest(name, str(number)))


@dataclass
class ShardCells:
    """The cells of one pool in so many ConfigMaps."""

    client: ApiClient
    namespace: str
    root: str
    count: int
    requests: CellRequests = field(default_factory=CellRequests)
    newest: int = 0
    has_neighbours: bool = True
    _known: dict[int, Object | None] = field(default_factory=dict, repr=False)
    """The shards as they were last seen: a swap begins with them, and reads if they are old."""
    _turns: dict[int, asyncio.Lock] = field(default_factory=dict, repr=False)
    _waiting: dict[int, list["_Swap"]] = field(default_factory=dict, repr=False)
    """Swaps by shard, in order of arrival; the caller whose turn it is writes all of its kind (``needs_check``)."""
    _is_checked: bool = False

    @cached_property
    def object_names(self) -> list[str]:
        """Return the names of the ConfigMaps."""
        return [f"{self.root}-shard-{number}" for number in range(self.count)]

    def together(self, first: str, second: str) -> bool:
        """Return whether both are in one shard."""
        return self._shard(first) == self._shard(second)

    async def read(self, names: Sequence[str]) -> dict[str, StoredCell]:
        """Read some cells. Cost: a request for each shard that they are in, all at once."""
        shards = sorted({self._shard(name) for name in names})
        objects = dict(zip(shards, await asyncio.gather(*map(self._read, shards)), strict=True))
        found = [_cell(name, objects[self._shard(name)]) for name in names]
        return {cell.name: cell for cell in found if cell is not None}

    async def swap(self, changes: Sequence[CellChange]) -> dict[str, StoredCell]:
        """Write cells of one shard, all in one write, which callers of one process share."""
        [shard] = {self._shard(change.name) for change in changes}
        await self._check_count()
        swap = _Swap(changes, self.requests.needs_check(), asyncio.get_running_loop().create_future())
        waiting = self._waiting.setdefault(shard, [])
        waiting.append(swap)
        try:
            async with self._turns.setdefault(shard, asyncio.Lock()):
                if not swap.answer.done():
                    await self._swap_waiting(shard, swap)
            return await swap.answer
        finally:
            if swap in waiting:
                waiting.remove(swap)
            if not swap.answer.cancel():
                swap.answer.exception()  # a caller that has left hears of none

    async def _swap_waiting(self, shard: int, own: "_Swap") -> None:
        """Do what waits for a shard until the caller's own swap, the oldest of its kind, is answered.

        What is left then waits for the turn of its own caller: its error is nobody else's. Swaps that need a check
        and swaps that need none are written apart: only the caller whose turn it is gets checked.
        """
        tried = 0
        while not own.answer.done():
            waiting = [each for each in self._waiting[shard] if not each.answer.done()]
            swaps = [each for each in waiting if each.needs_check == own.needs_check]
            is_fresh = tried > 0 or shard not in self._known
            object = await self._read(shard) if is_fresh else self._known[shard]
            going, is_clear = _judged(object, swaps, is_fresh=is_fresh)
            if not is_clear:
                tried += 1  # what this process knew of the shard is old
                continue
            if own.answer.done():
                return
            try:
                await self._write_swaps(shard, object, going)
            except (WriteConflict, ObjectExists, ObjectMissing):
                tried += 1
                await self._pause(shard, tried)

    async def _write_swaps(self, shard: int, object: Object | None, swaps: Sequence["_Swap"]) -> None:
        """Write swaps together; where that is too large, the first of them alone."""
        try:
            written = await self._write(shard, object, [change for each in swaps for change in each.changes])
        except PoolTooLarge:
            if len(swaps) == 1:
                raise
            await self._write_swaps(shard, object, swaps[:1])
            return
        for each in swaps:
            each.answered(written)

    async def _pause(self, shard: int, tried: int) -> None:
        # The shard has changed since it was read, so the next turn reads it again.
        self._known.pop(shard, None)
        delay_s = self.requests.schedule.delay_s(tried)
        if delay_s is None:
            raise PoolSwapConflict("write", f"shard {shard} has changed", attempts=tried)
        await asyncio.sleep(delay_s)

    async def check_room(self, texts: Mapping[str, str]) -> None:
        """Raise ``PoolTooLarge`` if these cells, beside all others, had no room in their shards. Cost: all shards."""
        objects = await asyncio.gather(*map(self._read, range(self.count)))
        wanted = [_values(each) for each in objects]
        for name, text in texts.items():
            wanted[self._shard(name)][name] = text
        size = max(StoredPool({"data": values}).size() for values in wanted)
        if size > LARGEST_CONFIG_MAP - ROOM_FOR_MORE:
            raise PoolTooLarge(size=size, limit=LARGEST_CONFIG_MAP, remedy=TOO_FEW_SHARDS)

    async def all(self, group: str = "") -> CellSnapshot:
        """Read all cells, shard by shard: each is of one moment, together they are of nearly one."""
        shards = [shard_of(group, self.count)] if group else list(range(self.count))
        objects = await asyncio.gather(*map(self._read, shards))
        cells = [cell for object in objects for cell in _cells(object)]
        kept = {cell.name: cell for cell in cells if not group or group_of(cell.name) == group}
        return CellSnapshot(kept, max((version_of(each) for each in objects if each), default=0))

    async def look(self, *, with_free: bool) -> AddressLook:
        """Read which addresses are held. Cost: all shards."""
        cells = (await self.all()).cells
        addresses = {name: cell for name, cell in cells.items() if name.startswith(ADDRESS)}
        free = {name: cell for name, cell in addresses.items() if is_free_text(cell.text)}
        return AddressLook(frozenset(addresses.keys() - free.keys()), free)

    async def events(self, after: int, limit: int) -> list[CellEvent]:
        """Read what shards had in them in the server's history, and what was different from one to the next."""
        query = {"labelSelector": self._selector}
        past = {**query, "resourceVersion": str(after), "resourceVersionMatch": "Exact"}
        upto = await self._light_beacon()
        found: list[CellEvent] = []
        with reading_history(after):
            listed = await self.client.get(CONFIG_MAP.path(self.namespace), past)
            before = {each["metadata"]["name"]: _texts(each) for each in listed["items"] or ()}
            watched = {**query, "watch": "1", "resourceVersion": str(after)}
            async with self.client.stream(CONFIG_MAP.path(self.namespace), watched, SILENT_S) as lines:
                async for line in lines:
                    if not line:
                        continue
                    object = _watched(orjson.loads(line))
                    if object is None:
                        continue
                    found += _differences(before.get(object["metadata"]["name"], {}), object)
                    before[object["metadata"]["name"]] = _texts(object)
                    if version_of(object) >= upto or len(found) >= limit:
                        break
        return found

    async def _check_count(self) -> None:
        """See before the first write that all writers have the same number of shards: the first shard says which."""
        if self._is_checked:
            return
        while await self._read(0) is None:
            try:
                await self._sent(0, None, {MARK: secrets.token_hex(8)})
            except ObjectExists:
                # Another process was faster; reading compares the number that it wrote.
                continue
        self._is_checked = True

    @property
    def _selector(self) -> str:
        return f"{SHARD_LABEL}={digest(self.root)}"

    def _shard(self, name: str) -> int:
        return shard_of(group_of(name) or name, self.count)

    async def _read(self, shard: int) -> Object | None:
        path = CONFIG_MAP.path(self.namespace, self.object_names[shard])
        try:
            object = await self.requests.answered(lambda: self.client.get(path), (ObjectMissing,))
        except ObjectMissing:
            self._known[shard] = None
            return None
        return self._remember(shard, object)

    def _remember(self, shard: int, object: Object) -> Object:
        said = (object["metadata"].get("labels") or {}).get(COUNT_LABEL)
        if said != str(self.count):
            raise Conflict(
                f"pool_shards: the pool {self.root} has {said} shards, not {self.count}; set VM_POOL_SHARDS to that",
                field="pool_shards",
            )
        self.newest = max(self.newest, version_of(object))
        self._known[shard] = object
        return object

    async def _write(self, shard: int, object: Object | None, changes: Sequence[CellChange]) -> dict[str, StoredCell]:
        values = {**_values(object), MARK: secrets.token_hex(8)}
        _apply(changes, values)
        if (size := StoredPool({"data": values}).size()) > LARGEST_CONFIG_MAP:
            raise PoolTooLarge(size=size, limit=LARGEST_CONFIG_MAP)
        written = await self._sent(shard, object, values)
        return {cell.name: cell for cell in _cells(written)}

    async def _sent(self, shard: int, object: Object | None, values: Mapping[str, str]) -> Object:
        """Write a shard; one that has our mark already, by a write whose answer was lost, is written."""
        kept = (WriteConflict, ObjectExists, ObjectMissing)
        try:
            if object is None:
                new = self._new(shard, values)
                stored = await self.requests.answered(
                    lambda: self.client.create(CONFIG_MAP, new), kept, is_write=True
                )  # fmt: skip
            else:
                whole = {**object, "data": dict(values)}
                stored = await self.requests.answered(
                    lambda: self.client.replace(CONFIG_MAP, whole), kept, is_write=True
                )  # fmt: skip
        except ObjectMissing as error:
            if object is None:
                raise PoolNamespaceMissing(self.namespace, WRITE_FAILED) from error
            raise
        except (WriteConflict, ObjectExists):
            found = await self._read(shard)
            if found is None or _values(found).get(MARK) != values[MARK]:
                raise
            stored = found
        except PoolWriteRefused as error:
            if TOO_LONG in str(error):
                raise PoolTooLarge(size=LARGEST_CONFIG_MAP + 1, limit=LARGEST_CONFIG_MAP) from error
            raise
        return self._remember(shard, stored)

    async def _light_beacon(self) -> int:
        """Write the beacon, and return a revision from which on all that was before is seen."""
        while True:
            seen = (await self.read([BEACON])).get(BEACON)
            try:
                written = await self.swap([CellChange(BEACON, seen, secrets.token_hex(8))])
            except CellTaken:
                continue
            return version_of(written[BEACON].object)

    def _new(self, shard: int, values: Mapping[str, str]) -> Object:
        labels = {SHARD_LABEL: digest(self.root), COUNT_LABEL: str(self.count)}
        metadata = {"name": self.object_names[shard], "namespace": self.namespace, "labels": labels}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(values)}


@dataclass(eq=False)
class _Swap:
    """A swap that waits for its shard to be written."""

    changes: Sequence[CellChange]
    needs_check: bool
    """Whether its caller's writes are checked, as those of a mover (``CellRequests.needs_check``)."""
    answer: "asyncio.Future[dict[str, StoredCell]]"

    def answered(self, cells: dict[str, StoredCell]) -> None:
        """Say that it is done, unless its caller has left."""
        if not self.answer.done():
            self.answer.set_result(cells)

    def refused(self, taken: CellTaken) -> None:
        """Say that a cell is another's."""
        if not self.answer.done():
            self.answer.set_exception(taken)


def _judged(object: Object | None, swaps: Sequence[_Swap], *, is_fresh: bool) -> tuple[list[_Swap], bool]:
    """Return which swaps can be written together, and whether all others wait for these alone.

    Where the shard was read for them, those are answered that were done already, or cannot be done.
    """
    stored = _texts(object)
    texts, going, is_clear = dict(stored), list[_Swap](), True
    for swap in swaps:
        if _first_taken(texts, swap.changes) is None:
            going.append(swap)
            _apply(swap.changes, texts)
        elif (taken := _first_taken(stored, swap.changes)) is None:
            continue  # it meets another one of these
        elif not is_fresh:
            is_clear = False
        elif _is_done(stored, swap.changes):
            swap.answered({cell.name: cell for cell in _cells(object)})
        else:
            swap.refused(CellTaken(taken, _cell(taken, object)))
    return going, is_clear


def _values(object: Object | None) -> dict[str, str]:
    return {} if object is None else dict(object.get("data") or {})


def _texts(object: Object | None) -> dict[str, str]:
    """Return the cells of a shard: all values but the mark."""
    return {name: text for name, text in _values(object).items() if name != MARK}


def _cell(name: str, object: Object | None) -> StoredCell | None:
    text = _texts(object).get(name)
    return None if text is None or object is None else StoredCell(name, text, object)


def _cells(object: Object | None) -> Iterable[StoredCell]:
    return [StoredCell(name, text, object or {}) for name, text in _texts(object).items()]


def _apply(changes: Sequence[CellChange], texts: dict[str, str]) -> None:
    for change in changes:
        texts.pop(change.name, None)
        if change.text is not None:
            texts[change.name] = change.text


def _first_taken(texts: Mapping[str, str], changes: Sequence[CellChange]) -> str | None:
    """Return the first cell that is not as it was seen."""
    seen = {change.name: None if change.seen is None else change.seen.text for change in changes}
    return next((name for name, text in seen.items() if texts.get(name) != text), None)


def _is_done(texts: Mapping[str, str], changes: Sequence[CellChange]) -> bool:
    """Return whether a swap was done by a write whose answer was lost; only a text says so, which is ours alone."""
    is_ours = any(change.text is not None for change in changes)
    return is_ours and all(texts.get(change.name) == change.text for change in changes)


def _watched(said: Mapping[str, object]) -> Object | None:
    object = said["object"]
    assert isinstance(object, dict)
    if said["type"] == "ERROR":
        raise error_of(int(object.get("code") or 500), object)
    return {**object, "data": {}} if said["type"] == "DELETED" else object if "data" in object else None


def _differences(before: Mapping[str, str], object: Object) -> list[CellEvent]:
    now, revision = _texts(object), version_of(object)
    # Sorted, since a change has its number by its place in the revision, and has to keep it in the next reading.
    names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name) and name != BEACON)
    return [CellEvent(revision, name, before.get(name), now.get(name)) for name in names]
