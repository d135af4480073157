"""A cache that follows an API server: a paged list, a watch, and the list again when the watch cannot be resumed."""

import asyncio
import heapq
import itertools
import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import (
    ApiError,
    ApiUnreachable,
    VersionExpired,
    error_of,
)
from tenure.integrations.kubernetes.runtime.deep_json import read_deep_json
from tenure.integrations.kubernetes.runtime.discovery import is_served
from tenure.integrations.kubernetes.runtime.object_cache import Delta, Indexer, ObjectCache
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType, uid_of, version_of
from tenure.integrations.kubernetes.runtime.runtime_meter import RuntimeMeter

LOG = logging.getLogger(__name__)

PAGE = 500
SILENT_S = 60.0
"""A watch that says nothing for so long is replaced, since it may be dead (KP5)."""
WATCH_S = 50.0
"""How long a watch is asked to last: a living one ends, with a bookmark if there was news, before it counts as dead."""
STEADY_S = 5.0
"""A watch that lived for so long has worked, even if it brought nothing."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 10.0
TURNED_AWAY = (429, 503)
"""Answers to a watch that say nothing of its version: there is no room for it now (KP11)."""

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
        empties: bool = True,
    ) -> None:
        self.kind = kind
        self._empties = empties
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
        self._pause_s = FIRST_PAUSE_S
        self._suspects: dict[str, int] = {}
        """Objects in which a comparison found the cache behind a list: identity, and when the watch is past them."""
        self._awaited: list[tuple[int, int, asyncio.Future[None]]] = []
        """Versions that are waited for, the lowest first."""
        self._number = itertools.count()

    def on_change(self, handler: Handler) -> None:
        """Call a handler for every change from now on."""
        self._handlers.append(handler)

    def wrote(self, object: Object) -> None:
        """Enter the answer to a write of this process, so that it is read at once, also before the watch brings it."""
        self._trim(object)
        self._report([self.cache.saw(object)])

    def deleted(self, object: Object, answer: Object) -> None:
        """Enter the deletion of an object by this process, and the server's answer.

        An object with finalizers, or with time left to end in, lives on; then the answer is the object.
        """
        if _lives_on(answer):
            self.wrote(answer)
        else:
            self._report([self.cache.saw_gone(object, answered=True)])

    async def reach(self, version: int, within_s: float) -> bool:
        """Wait until everything up to a version is in the cache; return whether that came in time.

        With the version of a write, that is all that other clients had written before it.
        """
        if self.cache.reached >= version:
            return True
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # The number keeps the heap from comparing futures, which have no order.
        heapq.heappush(self._awaited, (version, next(self._number), reached))
        try:
            async with asyncio.timeout(within_s):
                await reached
        except TimeoutError:
            return False
        return True

    async def run(self) -> None:
        """Follow the server until cancelled; whatever goes wrong, it is tried again."""
        while True:
            try:
                await self._list()
                await self._follow()
            except VersionExpired as error:
                LOG.info("%s: listing again: %s", self.kind.full_name, error)
            except (ApiError, ApiUnreachable, ValueError) as error:
                if isinstance(error, ApiError) and error.status == 404 and await self._is_gone():
                    self._vanish()
                else:
                    LOG.warning("%s: %s", self.kind.full_name, error)
            except Exception:
                # To end the process would not help: the next one would meet the same object.
                LOG.exception("%s: it is listed again", self.kind.full_name)
            await self._rest()

    async def compare(self) -> int:
        """List everything and mend the cache where it differs; return in how many objects the watch was wrong (KP13).

        What the watch has not reached yet is mended, too, and counted as drift only if the watch passes it by. A kind
        that is not there has no drift.
        """
        with self.cache.reading_list() as least:
            try:
                objects, version = await self.list_all()
            except ApiError as error:
                # Whatever stands before a server may answer so; only the server's word counts, as it does for ``run``.
                if error.status != 404 or not await self._is_gone():
                    raise
                return 0
            if not self.is_there:
                return 0  # the kind went while its last objects were read
            deltas = self.cache.replace(objects, version, least=least)
            if version < least:
                self.cache.passed(version)  # from where the next watch begins
            self._report(deltas)
        # After a restore everything may differ, and no watch has erred.
        return 0 if version < least else self._suspect(deltas, version)

    async def list_all(self) -> tuple[list[Object], int]:
        """Read every object, page by page, as of one version; a list that expires half way begins again (KP5)."""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                return await self._pages()
            except VersionExpired:
                LOG.info("%s: the list expired half way, beginning again", self.kind.full_name)
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

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

    async def _list(self) -> None:
        with self.cache.reading_list() as least:
            objects, version = await self.list_all()
            _count(self._meter.relists, self.kind, 1)
            deltas = self.cache.replace(objects, version, least=least)
        if version < least:
            LOG.warning("%s: versions went back from %d to %d", self.kind.full_name, least, version)
        self.cache.passed(version)
        self._wake_waiting()
        self._suspects.clear()
        self.is_there = True
        self._report(deltas)
        # Behind the handlers: what waits for the first list finds it entered everywhere.
        self.synced.set()

    async def _follow(self) -> None:
        """Watch from the version of the list on, and again from the last one that was seen, until that is not possible.

        A watch that breaks off or is silent is followed by another one, which begins where this one was, so nothing is
        missed.
        """
        await self._watch()
        while True:
            await self._rest()
            if await self._is_at_least():
                await self._watch()

    async def _watch(self) -> None:
        """Take in what a watch brings until it ends, breaks off or is silent."""
        lasts_s = self._lasts_s()
        query = {**self._query, "watch": "1", "allowWatchBookmarks": "true"}
        query |= {"resourceVersion": str(self.cache.reached), "timeoutSeconds": str(lasts_s)}
        began = time.monotonic()
        try:
            async with self._client.stream(self._path, query, self._silent_s) as lines:
                async for line in lines:
                    self._take(*_event(line))
                    self._pause_s = FIRST_PAUSE_S
        except ApiUnreachable as error:
            LOG.debug("%s: %s", self.kind.full_name, error)
        except ApiError as error:
            # A whole list would cost a server that has no room far more than the watch that it turned away.
            if error.status not in TURNED_AWAY:
                raise
            LOG.info("%s: the watch is turned away: %s", self.kind.full_name, error)
        if time.monotonic() - began > min(STEADY_S, lasts_s / 2):
            self._pause_s = FIRST_PAUSE_S

    def _lasts_s(self) -> int:
        """Return how long a watch lasts; not all watches of all replicas begin again at once."""
        return max(1, int(min(WATCH_S, self._silent_s * 0.9) * random.uniform(0.8, 1.0)))

    async def _is_at_least(self) -> bool:
        """Return whether the server is where the watch was; raise ``VersionExpired`` if it is behind that.

        A server behind it was restored from a backup. It says nothing to a watch from a version that it has not reached
        yet, and raises no error. A server that is starting answers nothing useful yet; it is asked again.
        """
        try:
            _, version, _ = _page(await self._client.get(self._path, {**self._query, "limit": "1"}))
        except (ApiError, ApiUnreachable) as error:
            if isinstance(error, ApiError) and error.status in (404, 410):
                raise
            LOG.debug("%s: %s", self.kind.full_name, error)
            return False
        if version < self.cache.reached:
            raise VersionExpired(410, "Restored", f"the server is at {version}, the watch was at {self.cache.reached}")
        return True

    async def _rest(self) -> None:
        """Pause, longer each time, until a watch brings something or lasts: a server in trouble is asked less often."""
        await asyncio.sleep(self._pause_s * random.uniform(0.5, 1.5))
        self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)

    def _take(self, kind: str, object: Object) -> None:
        """Take in one event of a watch."""
        if kind == "ERROR":
            raise error_of(int(object.get("code") or 500), object)
        version = version_of(object)
        if kind == "BOOKMARK":
            if version < self.cache.reached:
                raise VersionExpired(410, "Restored", f"a bookmark at {version} after {self.cache.reached}")
        else:
            if kind == "DELETED" or version >= self._suspects.get(uid_of(object), 0):
                self._suspects.pop(uid_of(object), None)
            self._trim(object)
            self._report([self.cache.saw_gone(object) if kind == "DELETED" else self.cache.saw(object, watched=True)])
        # After the change: at a version that was reached, the cache takes an object that is new to it for gone.
        self.cache.passed(version)
        self._wake_waiting()
        if self._suspects:
            self._judge_suspects(version)

    def _wake_waiting(self) -> None:
        while self._awaited and self._awaited[0][0] <= self.cache.reached:
            reached = heapq.heappop(self._awaited)[2]
            # A wait that has timed out stays in the heap until its version comes.
            if not reached.done():
                reached.set_result(None)

    def _suspect(self, deltas: Iterable[Delta], version: int) -> int:
        """Note what the watch has to bring, and by when; return how much of it is late already."""
        for delta in deltas:
            due = version_of(delta.after) if delta.after else version
            self._suspects[uid_of(delta.after or delta.before or {})] = due
        return self._judge_suspects(self.cache.reached)

    def _judge_suspects(self, version: int) -> int:
        """Count, and return, how many suspects the watch has passed by without a word."""
        late = [uid for uid, due in self._suspects.items() if due <= version]
        for uid in late:
            del self._suspects[uid]
        _count(self._meter.drift, self.kind, len(late))
        return len(late)

    async def _is_gone(self) -> bool:
        """Return whether the server itself says that it does not have the kind."""
        try:
            return not await is_served(self._client, self.kind)
        except (ApiError, ApiUnreachable) as error:
            LOG.warning("%s: whether the kind is there cannot be found out: %s", self.kind.full_name, error)
            return False

    def empty(self) -> None:
        """Empty the cache, and report everything in it as gone."""
        self.is_there = False
        self._suspects.clear()
        self._report(self.cache.clear())

    def _vanish(self) -> None:
        """Note that the server does not have the kind (any more), in this version; then everything of it is gone.

        Where the kind may be there in another version, that is for others to find out: nothing is reported as gone.
        """
        if self._empties:
            self.empty()
        self.is_there = False
        self.synced.set()

    def _report(self, deltas: Iterable[Delta | None]) -> None:
        report_to(self._handlers, deltas, self.kind.full_name)


def report_to(handlers: Sequence[Handler], deltas: Iterable[Delta | None], kind: str) -> None:
    """Call handlers for each change; a handler that raises is logged, and the others are called.

    One object that a handler cannot take must stop neither the cache nor the other handlers. Nor would it help to end
    the process: it would meet the object again.
    """
    for delta in deltas:
        if delta is None:
            continue
        for handler in handlers:
            try:
                handler(delta)
            except Exception:
                LOG.exception("%s: a handler failed at %s", kind, "/".join(delta.key))


def _count(counts: dict[str, int], kind: ResourceType, number: int) -> None:
    if number:
        counts[kind.full_name] = counts.get(kind.full_name, 0) + number


def _lives_on(answer: Object) -> bool:
    """Return whether the answer to a deletion is an object that is only marked as deleted."""
    metadata = answer.get("metadata") or {}
    waits = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
    return bool(answer.get("kind") != "Status" and metadata.get("deletionTimestamp") and waits)


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
    match read_deep_json(line, "watch"):
        case {"type": "ERROR", "object": dict(status)}:
            return "ERROR", status
        case {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str()}} as mark}:
            return "BOOKMARK", mark
        case {"type": "ADDED" | "MODIFIED" | "DELETED" as kind, "object": object}:
            return kind, _whole(object)
    raise ValueError(f"not an event of a watch: {line[:200]!r}")


def drop_managed_fields(object: Object) -> None:
    """Drop the managers of fields: they are half of many objects, and no controller here reads them."""
    object["metadata"].pop("managedFields", None)
