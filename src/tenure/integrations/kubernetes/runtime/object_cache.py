"""The objects of one kind as this process knows them: what was listed and watched, and its own writes at once."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from tenure.integrations.kubernetes.runtime.resource_types import Key, Object, key_of, uid_of, version_of

Indexer = Callable[[Object], Iterable[str]]
"""Return the values under which an object is found."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A change of one object; ``before`` is missing for a new one, ``after`` for one that is gone."""

    before: Object | None
    after: Object | None

    @property
    def key(self) -> Key:
        """Return which object it is."""
        return key_of(self.after or self.before or {})


class ObjectCache:
    """A cache that never goes back in time.

    Every object carries the version of its write. What arrives late or twice is older than what is there and is passed
    over; that of a deleted object is known by its identity, which never returns. So the answers to this process's own
    writes can be entered at once (``saw``, ``saw_gone``), and the watch may bring them again.

    Cost: O(1) a change, plus O(values) for each indexer.
    """

    def __init__(self, indexers: Mapping[str, Indexer] | None = None) -> None:
        self._objects: dict[Key, Object] = {}
        self._indexers = dict(indexers or {})
        self._index: dict[str, dict[str, set[Key]]] = {name: {} for name in self._indexers}
        self._gone: set[str] = set()
        """Identities of objects whose deletion was answered to this process and not yet seen in the watch."""
        self.listed = 0
        """The version of the last list."""

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Object]:
        return iter(list(self._objects.values()))

    def get(self, key: Key) -> Object | None:
        """Return an object, or nothing."""
        return self._objects.get(key)

    def by_index(self, name: str, value: str) -> list[Object]:
        """Return the objects that an indexer puts under a value, in the order of their names."""
        return [self._objects[key] for key in sorted(self._index[name].get(value, ()))]

    def saw(self, object: Object) -> Delta | None:
        """Enter an object that was watched, listed, or returned by a write; nothing if it is not news."""
        # A list is whole: what is older than it and not in it is gone, though the watch may be behind and bring it.
        if version_of(object) <= self.listed and key_of(object) not in self._objects:
            return None
        return self._enter(object)

    def _enter(self, object: Object) -> Delta | None:
        if uid_of(object) in self._gone:
            return None
        key = key_of(object)
        before = self._objects.get(key)
        if before is not None and version_of(before) >= version_of(object):
            return None
        self._put(key, before, object)
        return Delta(before, object)

    def saw_gone(self, object: Object, *, answered: bool = False) -> Delta | None:
        """Remove an object that is gone; ``answered``: the watch has not said so yet, and may still bring it."""
        uid, key = uid_of(object), key_of(object)
        if answered:
            self._gone.add(uid)
        else:
            self._gone.discard(uid)
        before = self._objects.get(key)
        if before is None or (uid_of(before) != uid and version_of(before) > version_of(object)):
            return None
        self._put(key, before, None)
        return Delta(before, None)

    def replace(self, objects: Iterable[Object], version: int) -> list[Delta]:
        """Make a whole list the state as of a version, and return what changed, deletions included.

        An object that is missing in the list and newer than it stays: it was written by this process after the list.
        A server whose versions went back was restored from a backup: then the list alone counts.
        """
        deltas: list[Delta | None] = [*self.clear()] if version < self.listed else []
        listed, identities = set(), set()
        for object in objects:
            listed.add(key_of(object))
            identities.add(uid_of(object))
            deltas.append(self._enter(object))
        for key, object in list(self._objects.items()):
            if key not in listed and version_of(object) <= version:
                self._put(key, object, None)
                deltas.append(Delta(object, None))
        self._gone &= identities  # of others the watch brings nothing that is newer than the list
        self.listed = version
        return [delta for delta in deltas if delta is not None]

    def clear(self) -> list[Delta]:
        """Forget everything, versions included, and return what is gone by that."""
        gone = [Delta(object, None) for object in self._objects.values()]
        for delta in gone:
            self._put(delta.key, delta.before, None)
        self._gone.clear()
        self.listed = 0
        return gone

    def _put(self, key: Key, before: Object | None, after: Object | None) -> None:
        if after is None:
            del self._objects[key]
        else:
            self._objects[key] = after
        for name, values_of in self._indexers.items():
            index = self._index[name]
            for value in values_of(before) if before is not None else ():
                keys = index[value]
                keys.discard(key)
                if not keys:
                    del index[value]
            for value in values_of(after) if after is not None else ():
                index.setdefault(value, set()).add(key)
