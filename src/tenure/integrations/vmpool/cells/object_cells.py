"""One ConfigMap for each cell: a write meets another one only where both are about the same cell.

Cost: one request for each read, write and removal; a list of all has the size of all.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import (
    ApiError,
    ObjectExists,
    ObjectMissing,
    VersionExpired,
    WriteConflict,
    error_of,
)
from tenure.integrations.kubernetes.runtime.resource_types import Object, version_of
from tenure.integrations.vmpool.cells.cell_requests import CellRequests, reading_history
from tenure.integrations.vmpool.cells.cell_store import (
    ADDRESS,
    CLAIM,
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
from tenure.integrations.vmpool.config_map_swap import CONFIG_MAP
from tenure.integrations.vmpool.pool_errors import (
    READ_FAILED,
    WRITE_FAILED,
    PoolNamespaceMissing,
    PoolUnavailable,
    wrapped,
)

POOL_LABEL, PART_LABEL, GROUP_LABEL = "tenure.dev/pool", "tenure.dev/part", "tenure.dev/group"
HELD_PART, FREE_PART = ADDRESS[:-1], "free"
"""The parts of addresses, which the server can list apart."""
TEXT = "cell"
PAGE = 500
LONGEST_LABEL = 63
ONLY_NAMES = "application/json;as=Table;g=meta.k8s.io;v=v1"
"""The table that kubectl shows; its first column is the name. It costs a tenth of a list of metadata."""
BEACON = "beacon"
"""A cell that a reader of events writes, to know when it has seen all that was before."""
SILENT_S = 30.0


@dataclass
class ObjectCells:
    """The cells of one pool, whose objects are named after it."""

    client: ApiClient
    namespace: str
    root: str
    requests: CellRequests = field(default_factory=CellRequests)
    newest: int = 0
    has_neighbours: bool = False

    def together(self, first: str, second: str) -> bool:
        """Return whether both are one cell: no swap has two objects."""
        return first == second

    async def read(self, names: Sequence[str]) -> dict[str, StoredCell]:
        """Read some cells, all at once. Cost: one request each."""
        found = await asyncio.gather(*(self._read(name) for name in names))
        return {cell.name: cell for cell in found if cell is not None}

    async def swap(self, changes: Sequence[CellChange]) -> dict[str, StoredCell]:
        """Write one cell. Cost: one request."""
        [change] = changes
        if change.text is None:
            await self._delete(change)
            return {}
        written = await (self._create(change) if change.seen is None else self._replace(change))
        return {change.name: written}

    async def check_room(self, texts: Mapping[str, str]) -> None:
        """Do nothing: each cell has an object of its own."""

    async def all(self, group: str = "") -> CellSnapshot:
        """Read all cells as of one moment, or the claims of a group. Cost: a request for 500."""
        more = f",{GROUP_LABEL}={group}" if group else ""
        pages = await self._pages(more)
        cells = [self._cell(each) for page in pages for each in page["items"] or ()]
        return CellSnapshot({cell.name: cell for cell in cells}, version_of(pages[0]))

    async def look(self, *, with_free: bool) -> AddressLook:
        """Read which addresses are held. Cost: a request for 500 names; and one for 500 cells that are free."""
        tables = await self._pages(f",{PART_LABEL}={HELD_PART}", ONLY_NAMES, includeObject="None")
        held = frozenset(self._cell_name(row["cells"][0]) for table in tables for row in table["rows"] or ())
        if not with_free:
            return AddressLook(held, {})
        pages = await self._pages(f",{PART_LABEL}={FREE_PART}")
        free = [self._cell(each) for page in pages for each in page["items"] or ()]
        return AddressLook(held, {cell.name: cell for cell in free})

    async def events(self, after: int, limit: int) -> list[CellEvent]:
        """Read events from the server's history. Cost: a small write, and a watch until its event comes."""
        upto = await self._light_beacon()
        found: list[CellEvent] = []
        query = {"watch": "1", "labelSelector": self._selector, "resourceVersion": str(after)}
        with reading_history(after):
            async with self.client.stream(CONFIG_MAP.path(self.namespace), query, SILENT_S) as lines:
                async for line in lines:
                    event = self._event(orjson.loads(line)) if line else None
                    if event is None:
                        continue
                    if event.revision >= upto or (len(found) >= limit and event.revision != found[-1].revision):
                        break
                    found.append(event)
        return [event for event in found if event.name != BEACON]

    @property
    def _selector(self) -> str:
        # The name of an object may be longer than the value of a label.
        value = self.root if len(self.root) <= LONGEST_LABEL else digest(self.root)
        return f"{POOL_LABEL}={value}"

    async def _pages(self, more: str, accept: str = "application/json", **words: str) -> list[Object]:
        """Read a list page by page, as of one moment; a list that the server forgets half way is begun again."""
        query, failed = {"labelSelector": self._selector + more, "limit": str(PAGE), **words}, 0
        while True:
            try:
                return await self._paged(query, accept)
            except VersionExpired as error:
                failed += 1
                delay_s = self.requests.schedule.delay_s(failed)
                if delay_s is None:
                    raise PoolUnavailable(wrapped(READ_FAILED, error), outcome="none") from error
            await asyncio.sleep(delay_s)

    async def _paged(self, query: Mapping[str, str], accept: str) -> list[Object]:
        pages: list[Object] = []
        asked = dict(query)
        while True:
            page = await self.requests.answered(
                lambda: self.client.get(CONFIG_MAP.path(self.namespace), asked, accept), (VersionExpired,)
            )
            self.newest = max(self.newest, version_of(page))
            pages.append(page)
            if not (rest := page["metadata"].get("continue")):
                return pages
            asked["continue"] = rest

    async def _read(self, name: str) -> StoredCell | None:
        path = CONFIG_MAP.path(self.namespace, self._object_name(name))
        try:
            return self._cell(await self.requests.answered(lambda: self.client.get(path), (ObjectMissing,)))
        except ObjectMissing:
            return None

    async def _create(self, change: CellChange) -> StoredCell:
        assert change.text is not None
        document, tries = self._new(change.name, change.text), 0

        def create() -> Awaitable[Object]:
            nonlocal tries
            tries += 1
            return self.client.create(CONFIG_MAP, document)

        try:
            return self._cell(await self._written(create))
        except ObjectExists as error:
            if tries == 1 and not change.is_read:
                raise CellTaken(change.name) from error  # no answer was lost: it is another writer's
            return await self._ours(change)
        except ObjectMissing as error:
            raise PoolNamespaceMissing(self.namespace, WRITE_FAILED) from error

    async def _replace(self, change: CellChange) -> StoredCell:
        assert change.seen is not None
        assert change.text is not None
        metadata = change.seen.object["metadata"]
        # The label follows the text: by it a look lists the held addresses, and the free ones.
        labels = {**(metadata.get("labels") or {}), **self._labels(change.name, change.text)}
        document = {**change.seen.object, "metadata": {**metadata, "labels": labels}, "data": {TEXT: change.text}}
        try:
            return self._cell(await self._written(lambda: self.client.replace(CONFIG_MAP, document)))
        except (WriteConflict, ObjectMissing):
            return await self._ours(change)

    async def _delete(self, change: CellChange) -> None:
        assert change.seen is not None
        seen = change.seen.object
        try:
            await self._written(lambda: self.client.delete(CONFIG_MAP, seen))
        # The cell is gone, as it should be: by an earlier try whose answer was lost, or by another process.
        except ObjectMissing:
            return
        except WriteConflict as error:
            raise CellTaken(change.name) from error

    async def _ours(self, change: CellChange) -> StoredCell:
        """Return a cell that has our text, by a write whose answer was lost; else raise ``CellTaken``."""
        found = await self._read(change.name)
        if found is None or found.text != change.text:
            raise CellTaken(change.name, found)
        return found

    async def _written(self, ask: Any) -> Object:
        kept: tuple[type[ApiError], ...] = (ObjectExists, ObjectMissing, WriteConflict)
        answer: Object = await self.requests.answered(ask, kept, is_write=True)
        return answer

    async def _light_beacon(self) -> int:
        """Write the beacon, and return the revision of that."""
        while True:
            seen = (await self.read([BEACON])).get(BEACON)
            try:
                written = await self.swap([CellChange(BEACON, seen, secrets.token_hex(8))])
            except CellTaken:
                continue
            return version_of(written[BEACON].object)

    def _new(self, name: str, text: str) -> Object:
        metadata = {
            "name": self._object_name(name), "namespace": self.namespace, "labels": self._labels(name, text),
        }  # fmt: skip
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {TEXT: text}}

    def _labels(self, name: str, text: str) -> dict[str, str]:
        labels = dict([self._selector.split("=", 1)])
        if name.startswith(CLAIM):
            labels |= {PART_LABEL: CLAIM[:-1], GROUP_LABEL: group_of(name)}
        elif name.startswith(ADDRESS):
            labels[PART_LABEL] = FREE_PART if is_free_text(text) else HELD_PART
        return labels

    def _object_name(self, name: str) -> str:
        return f"{self.root}.{name}"

    def _cell_name(self, object_name: str) -> str:
        return object_name.removeprefix(f"{self.root}.")

    def _cell(self, object: Object) -> StoredCell:
        self.newest = max(self.newest, version_of(object))
        # What a list returns has no kind of its own.
        whole = {"apiVersion": "v1", "kind": "ConfigMap", **object}
        return StoredCell(self._cell_name(object["metadata"]["name"]), (object.get("data") or {}).get(TEXT, ""), whole)

    def _event(self, said: Mapping[str, Any]) -> CellEvent | None:
        # That a revision is forgotten may come within the stream, after a status of success; as may any other error.
        if said["type"] == "ERROR":
            raise error_of(int(said["object"].get("code") or 500), said["object"])
        if said["type"] not in ("ADDED", "MODIFIED", "DELETED"):
            return None
        cell = self._cell(said["object"])
        is_gone = said["type"] == "DELETED"
        before = cell.text if is_gone else None
        return CellEvent(version_of(cell.object), cell.name, before, None if is_gone else cell.text)
