"""A kind of which the server decides the version, and whether it is there at all (KP6)."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable
from tenure.integrations.kubernetes.runtime.discovery import UnknownVersion, find_kind
from tenure.integrations.kubernetes.runtime.informer import Handler, report_to
from tenure.integrations.kubernetes.runtime.informer_group import COMPARED_EVERY_S, InformerGroup, repeat_comparison
from tenure.integrations.kubernetes.runtime.object_cache import Delta
from tenure.integrations.kubernetes.runtime.resource_types import (
    Key,
    Object,
    ResourceType,
    key_of,
    uid_of,
    version_of,
)

LOG = logging.getLogger(__name__)

LOOKS_EVERY_S = 10.0

MakeGroup = Callable[[ResourceType], InformerGroup]


class DiscoveredGroup:
    """The informers of a kind in the first of the wanted versions that the server serves.

    While the server has no such kind, the group is empty and synced. A kind that comes later is found within
    ``LOOKS_EVERY_S``. If the version that is followed is not served any more, its objects stay known until those of
    another version are read; then only what is not among them is reported as gone. The same holds if it is served in
    unknown versions alone: then the kind counts as not read.
    """

    def __init__(
        self, client: ApiClient, group: str, plural: str, versions: Sequence[str], make: MakeGroup,
        looks_every_s: float = LOOKS_EVERY_S,
    ) -> None:  # fmt: skip
        self._client = client
        self._wanted = (group, plural, tuple(versions))
        self._make = make
        self._looks_every_s = looks_every_s
        self._informers: InformerGroup | None = None
        self._next: InformerGroup | None = None
        """Those of another version, while they are read."""
        self._shown: dict[Key, Object] | None = None
        """What handlers know while the version changes: objects of either version, each once. Else nothing."""
        self.kind: ResourceType | None = None
        """The kind in the version that the server serves; nothing if there is none."""
        self.unknown = ""
        """Why the objects of the kind cannot be read; empty if they can."""
        self._looked = asyncio.Event()
        """Set once it is known whether the kind is there; a later look does not make that unknown again."""
        self._looked_again = asyncio.Event()
        """Set by the first look after it was cleared."""
        self._hurries = asyncio.Event()
        """Set when it is to be found out now whether the kind is there."""
        self._handlers: list[Handler] = []

    def __iter__(self) -> Iterator[Object]:
        return iter(self._informers if self._informers is not None else ())

    @property
    def is_there(self) -> bool:
        """Whether the server has this kind."""
        return self._informers is not None and self._informers.is_there

    def unsynced(self) -> list[str]:
        """Return the namespaces that are not in the cache yet; an empty name is the whole cluster."""
        if not self._looked.is_set() or self.unknown:
            return [""]
        return self._informers.unsynced() if self._informers is not None else []

    def get(self, key: Key) -> Object | None:
        """Return an object, or nothing."""
        return self._informers.get(key) if self._informers is not None else None

    def by_index(self, name: str, value: str) -> list[Object]:
        """Return the objects that an indexer puts under a value."""
        return self._informers.by_index(name, value) if self._informers is not None else []

    def wrote(self, object: Object) -> None:
        """Enter the answer to a write of this process."""
        for informers in self._all:
            informers.wrote(object)

    def deleted(self, object: Object, answer: Object) -> None:
        """Enter the deletion of an object by this process, and the server's answer."""
        for informers in self._all:
            informers.deleted(object, answer)

    @property
    def _all(self) -> list[InformerGroup]:
        """Return whatever has to know of a write: those that are read from, and those that take their place soon."""
        return [each for each in (self._informers, self._next) if each is not None]

    async def reach(self, object: Object, within_s: float) -> bool:
        """Wait until all that was written before an object is in the cache; return whether it is."""
        return self._informers is not None and await self._informers.reach(object, within_s)

    def on_change(self, handler: Handler) -> None:
        """Call a handler for every change from now on."""
        self._handlers.append(handler)

    async def wait_synced(self) -> None:
        """Wait until it is known whether the kind is there, and its objects are in the cache."""
        await self._looked.wait()
        if self._informers is not None:
            await self._informers.wait_synced()

    async def compare(self) -> int:
        """List everything and mend the caches where they differ; a kind that has just come is found, too."""
        if not self.is_there:
            # Cleared first: a look that ended before this call may have missed a kind that came since.
            self._looked_again.clear()
            self._hurries.set()
            await self._looked_again.wait()
            await self.wait_synced()
        return await self._informers.compare() if self._informers is not None else 0

    async def compare_regularly(self, every_s: float = COMPARED_EVERY_S) -> None:
        """Compare until cancelled, beside ``run``."""
        await repeat_comparison(self.compare, every_s)

    async def run(self) -> None:
        """Follow the server until cancelled."""
        while True:
            try:
                kind = await find_kind(self._client, *self._wanted)
            except (ApiError, ApiUnreachable) as error:
                LOG.warning("%s: %s", self._wanted[1], error)
                await asyncio.sleep(min(1.0, self._looks_every_s))
                continue
            except UnknownVersion as error:
                LOG.warning("%s", error)
                # Not ``_report_gone``: the objects are there, and what they hold must stay held.
                self.kind, self.unknown = None, str(error)
                await self._rest()
                continue
            self.kind, self.unknown = kind, ""
            if kind is not None:
                await self._follow(self._make(kind))
                continue
            self._report_gone()
            self._has_looked()
            await self._rest()

    def _report_gone(self) -> None:
        """Report everything as gone, since the server does not have the kind any more."""
        if self._informers is not None:
            former, self._informers = self._informers, None
            former.report_gone()
            self._end_change(())

    def _has_looked(self) -> None:
        self._looked.set()
        self._looked_again.set()

    async def _rest(self) -> None:
        """Wait until the next look, or until somebody is in a hurry."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._looks_every_s):
                await self._hurries.wait()
        self._hurries.clear()

    async def _follow(self, informers: InformerGroup) -> None:
        """Follow a version of the kind for as long as the server has it."""
        informers.on_change(self._relay)
        if self._informers is None:
            self._informers = informers
            self._has_looked()
        else:
            self._next = informers
            # Else the version changed while another was being read.
            self._shown = {key_of(each): each for each in self} if self._shown is None else self._shown
        running = asyncio.create_task(informers.run())
        synced = asyncio.create_task(informers.wait_synced())
        try:
            await asyncio.wait({running, synced}, return_when=asyncio.FIRST_COMPLETED)
            if informers.is_there:
                self._informers, self._next = informers, None
                self._has_looked()
                self._end_change(key_of(each) for each in informers)
            while informers.is_there:
                done, _ = await asyncio.wait({running}, timeout=self._looks_every_s)
                if done:
                    running.result()
        finally:
            self._next = None
            synced.cancel()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    def _relay(self, delta: Delta) -> None:
        """Report a change; while the version changes, as the change that it is of what handlers know."""
        if self._shown is None:
            self._report(delta)
            return
        known, after = self._shown.get(delta.key), delta.after
        if after is None:
            if known is not None and uid_of(known) == uid_of(delta.before or known):
                del self._shown[delta.key]
                self._report(Delta(known, None))
            return
        if known is not None and not _is_news(known, after):
            return
        self._shown[delta.key] = after
        # Where it was made again under its name, handlers hear first that the former object is gone.
        if known is not None and uid_of(known) != uid_of(after):
            self._report(Delta(known, None))
            known = None
        self._report(Delta(known, after))

    def _end_change(self, left: Iterable[Key]) -> None:
        """Report as gone what is known and not left, at the end of a change of the version."""
        shown, self._shown = self._shown or {}, None
        for key in shown.keys() - set(left):
            self._report(Delta(shown[key], None))

    def _report(self, delta: Delta) -> None:
        report_to(self._handlers, [delta], self._wanted[1])


def _is_news(known: Object, after: Object) -> bool:
    """Return whether an object is newer than what is known of it, or the same in another version of its kind."""
    is_same = known.get("apiVersion") == after.get("apiVersion")
    return version_of(after) > version_of(known) or (version_of(after) == version_of(known) and not is_same)
