"""A cache that follows an API server: a paged list, a watch, and the list again when the watch cannot be resumed."""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping

import orjson

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import (
    ApiError,
    ApiUnreachable,
    ObjectMissing,
    VersionExpired,
    error_of,
)
from tenure.integrations.kubernetes.runtime.object_cache import Delta, Indexer, ObjectCache
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType, version_of
from tenure.integrations.kubernetes.runtime.runtime_meter import RuntimeMeter

LOG = logging.getLogger(__name__)

PAGE = 500
SILENT_S = 60.0
"""A watch that says nothing for so long is replaced: bookmarks come about once a minute, so it may be dead (KP5)."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 10.0

Handler = Callable[[Delta], None]


class Informer:
    """The cache of one kind, kept up to date by ``run``.

    Handlers are called for every change, in order, without awaiting: they put keys into a queue. ``synced`` is set once
    a whole list is in the cache. While the kind is not there (its definition may come later, KP6), the cache is empty
    and synced.
    """

    def __init__(
        self,
        client: ApiClient,
        kind: ResourceType,
        *,
        namespace: str = "",
        indexers: Mapping[str, Indexer] | None = None,
        labels: str = "",
        fields: str = "",
        trim: Callable[[Object], None] | None = None,
        silent_s: float = SILENT_S,
        page: int = PAGE,
        meter: RuntimeMeter | None = None,
    ) -> None:
        self.kind = kind
        self.cache = ObjectCache(indexers)
        self.synced = asyncio.Event()
        self.is_there = False
        """Whether the server has this kind."""
        self._client = client
        self._path = kind.path(namespace)
        selectors = {"labelSelector": labels, "fieldSelector": fields}
        self._query = {name: text for name, text in selectors.items() if text}
        self._trim = trim or drop_managed_fields
        self._silent_s = silent_s
        self._page = page
        self._meter = meter or RuntimeMeter()
        self._handlers: list[Handler] = []

    def on_change(self, handler: Handler) -> None:
        """Call a handler for every change from now on."""
        self._handlers.append(handler)

    def wrote(self, object: Object) -> None:
        """Enter the answer to a write of this process, so that it is read at once, also before the watch brings it."""
        self._trim(object)
        self._tell([self.cache.saw(object)])

    def deleted(self, object: Object) -> None:
        """Enter the answer to a deletion of this process after which the object is gone."""
        self._tell([self.cache.saw_gone(object, answered=True)])

    async def run(self) -> None:
        """Follow the server until cancelled; whatever goes wrong, it is tried again."""
        pause = FIRST_PAUSE_S
        while True:
            try:
                version = await self._list()
                pause = FIRST_PAUSE_S
                await self._follow(version)
            except ObjectMissing:
                self._vanish()
            except VersionExpired:
                LOG.info("%s: the version is forgotten, listing again", self.kind.plural)
            except (ApiError, ApiUnreachable, ValueError) as error:
                LOG.warning("%s: %s", self.kind.plural, error)
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(pause * 2, LONGEST_PAUSE_S)

    async def compare(self) -> int:
        """List everything and mend the cache where it differs; return in how many objects it did (KP13)."""
        objects, version = await self.list_all()
        if version < self.cache.listed:
            return 0  # the watch was replaced by a newer list meanwhile
        deltas = self.cache.replace(objects, version)
        self._tell(deltas)
        self._meter.drift[self.kind.plural] = self._meter.drift.get(self.kind.plural, 0) + len(deltas)
        return len(deltas)

    async def list_all(self) -> tuple[list[Object], int]:
        """Read every object, page by page, as of one version; a list that expires half way begins again (KP5)."""
        while True:
            try:
                return await self._pages()
            except VersionExpired:
                LOG.info("%s: the list expired half way, beginning again", self.kind.plural)
                await asyncio.sleep(FIRST_PAUSE_S)

    async def _pages(self) -> tuple[list[Object], int]:
        objects: list[Object] = []
        query = {**self._query, "limit": str(self._page)}
        while True:
            page, version, more = _page(await self._client.get(self._path, query))
            for object in page:
                self._trim(object)
                objects.append(object)
            if not more:
                return objects, version
            query["continue"] = more

    async def _list(self) -> int:
        objects, version = await self.list_all()
        self._meter.relists[self.kind.plural] = self._meter.relists.get(self.kind.plural, 0) + 1
        deltas = self.cache.replace(objects, version)
        self.is_there = True
        self._tell(deltas)
        self.synced.set()
        return version

    async def _follow(self, version: int) -> None:
        """Watch from a version on, and again from the last one that was seen, until that is not possible."""
        while True:
            query = {**self._query, "watch": "1", "allowWatchBookmarks": "true", "resourceVersion": str(version)}
            try:
                async with self._client.stream(self._path, query, self._silent_s) as lines:
                    async for line in lines:
                        version = max(version, self._take(*_event(line)))
            except ApiUnreachable as error:
                # Also how a silent watch ends. The next one begins where this one was, so nothing is missed.
                LOG.debug("%s: %s", self.kind.plural, error)
            # A server that closes every watch at once must not be asked in a tight loop.
            await asyncio.sleep(FIRST_PAUSE_S * random.uniform(0.5, 1.5))

    def _take(self, kind: str, object: Object) -> int:
        """Take in one event of a watch and return its version."""
        if kind == "ERROR":
            raise error_of(int(object.get("code") or 500), object)
        version = version_of(object)
        if kind == "DELETED":
            self._tell([self.cache.saw_gone(object)])
        elif kind != "BOOKMARK":
            self._trim(object)
            self._tell([self.cache.saw(object)])
        return version

    def _vanish(self) -> None:
        """Empty the cache, since the server does not have the kind (any more)."""
        self.is_there = False
        self._tell(self.cache.clear())
        self.synced.set()

    def _tell(self, deltas: Iterable[Delta | None]) -> None:
        for delta in deltas:
            if delta is not None:
                for handler in self._handlers:
                    handler(delta)


def _page(document: Object) -> tuple[list[Object], int, str]:
    """Return the objects of a page of a list, its version and what the next page is asked for by."""
    match document:
        case {"metadata": {"resourceVersion": str(version), **rest}, "items": [*objects]}:
            return [_whole(object) for object in objects], int(version), str(rest.get("continue") or "")
        case {"metadata": {"resourceVersion": str(version)}, "items": None}:
            return [], int(version), ""
    raise ValueError(f"not a page of a list: {str(document)[:200]}")


def _whole(object: object) -> Object:
    """Return an object that has what the cache rests on; another one raises ``ValueError``."""
    match object:
        case {"metadata": {"name": str(), "uid": str(), "resourceVersion": str(version)}} if version.isdecimal():
            assert isinstance(object, dict)
            return object
    raise ValueError(f"not an object of a server: {str(object)[:200]}")


def _event(line: bytes) -> tuple[str, Object]:
    """Read an event of a watch; what is none raises ``ValueError``."""
    match orjson.loads(line):
        case {"type": "ERROR", "object": dict(status)}:
            return "ERROR", status
        case {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str()}} as mark}:
            return "BOOKMARK", mark
        case {"type": "ADDED" | "MODIFIED" | "DELETED" as kind, "object": object}:
            return kind, _whole(object)
    raise ValueError(f"not an event of a watch: {line[:200]!r}")


def drop_managed_fields(object: Object) -> None:
    """Forget who wrote which field: it is half of many objects, and no controller here reads it."""
    object["metadata"].pop("managedFields", None)
