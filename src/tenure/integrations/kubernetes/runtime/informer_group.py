"""One kind in some namespaces, or in all: an informer for each, read as one. A role in a namespace allows no more."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence

from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable
from tenure.integrations.kubernetes.runtime.informer import Handler, Informer
from tenure.integrations.kubernetes.runtime.resource_types import Key, Object, ResourceType, key_of, version_of

LOG = logging.getLogger(__name__)

COMPARED_EVERY_S = 600.0

MakeInformer = Callable[[str], Informer]
"""Make the informer of a namespace; of the whole cluster for an empty name."""


class InformerGroup:
    """The informers of one kind, each with its cache; an object is found in that of its namespace.

    Without namespaces there is one informer, of the whole cluster. What ``ObjectCache`` costs, this costs, and
    ``by_index`` is as long as there are namespaces.
    """

    def __init__(self, namespaces: Sequence[str], make: MakeInformer) -> None:
        self._informers = {namespace: make(namespace) for namespace in namespaces or ("",)}

    @property
    def kind(self) -> ResourceType:
        """Return the kind, in the version that is followed."""
        return next(iter(self._informers.values())).kind

    def __iter__(self) -> Iterator[Object]:
        return (object for informer in self._informers.values() for object in informer.cache)

    @property
    def is_there(self) -> bool:
        """Whether the server has this kind."""
        return any(informer.is_there for informer in self._informers.values())

    def unsynced(self) -> list[str]:
        """Return the namespaces whose first list is not in the cache yet; an empty name is the whole cluster."""
        return [namespace for namespace, informer in self._informers.items() if not informer.synced.is_set()]

    def get(self, key: Key) -> Object | None:
        """Return an object, or nothing."""
        informer = self._of(key[0])
        return None if informer is None else informer.cache.get(key)

    def by_index(self, name: str, value: str) -> list[Object]:
        """Return the objects that an indexer puts under a value, in the order of their names in each namespace."""
        return [object for informer in self._informers.values() for object in informer.cache.by_index(name, value)]

    def on_change(self, handler: Handler) -> None:
        """Call a handler for every change from now on."""
        for informer in self._informers.values():
            informer.on_change(handler)

    def wrote(self, object: Object) -> None:
        """Enter the answer to a write of this process; what was written into another namespace is not followed."""
        if informer := self._of(key_of(object)[0]):
            informer.wrote(object)

    def deleted(self, object: Object, answer: Object) -> None:
        """Enter the deletion of an object by this process, and the server's answer."""
        if informer := self._of(key_of(object)[0]):
            informer.deleted(object, answer)

    async def reach(self, object: Object, within_s: float) -> bool:
        """Wait until all that was written before an object is in the cache of its namespace; return whether it is."""
        informer = self._of(key_of(object)[0])
        return informer is not None and await informer.reach(version_of(object), within_s)

    async def wait_synced(self) -> None:
        """Wait until whole lists of all namespaces are in the caches."""
        for informer in self._informers.values():
            await informer.synced.wait()

    async def compare(self) -> int:
        """List everything and mend the caches where they differ; return in how many objects watches erred (KP13)."""
        return sum([await informer.compare() for informer in self._informers.values()])

    async def compare_regularly(self, every_s: float = COMPARED_EVERY_S) -> None:
        """Compare until cancelled, beside ``run``."""
        await repeat_comparison(self.compare, every_s)

    def report_gone(self) -> None:
        """Report everything as gone, since the kind is not followed any more."""
        for informer in self._informers.values():
            informer.empty()

    async def run(self) -> None:
        """Follow the server until cancelled."""
        async with asyncio.TaskGroup() as group:
            for informer in self._informers.values():
                group.create_task(informer.run())

    def _of(self, namespace: str) -> Informer | None:
        return self._informers.get("") or self._informers.get(namespace)


async def repeat_comparison(compare: Callable[[], Awaitable[int]], every_s: float) -> None:
    """Compare until cancelled; a server in trouble is asked again the next time."""
    while True:
        # Replicas that were started together do not list together.
        await asyncio.sleep(every_s * random.uniform(0.8, 1.2))
        try:
            await compare()
        except (ApiError, ApiUnreachable, ValueError) as error:
            LOG.warning("the caches cannot be compared with the server: %s", error)
        except Exception:
            LOG.exception("the caches cannot be compared with the server")
