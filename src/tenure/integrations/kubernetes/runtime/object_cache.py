"""The objects of one kind as this process knows them: what was listed and watched, and its own writes at once."""

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from tenure.integrations.kubernetes.runtime.packed_objects import PackedObjects
from tenure.integrations.kubernetes.runtime.resource_types import Key, Object, key_of, uid_of, version_of

LOG = logging.getLogger(__name__)

Indexer = Callable[[Object], Iterable[str]]
"""Return the values under which an object is found."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A change of one object; ``before`` is missing for a new one, ``after`` for one that is gone."""

    before: Object | None
    after: Object | None
    is_one_write: bool = False
    """Whether exactly one request to the server made it, as with each event of a watch; lists leave versions out."""

    @property
    def key(self) -> Key:
        """Return which object it is."""
        return key_of(self.after or self.before or {})


class KeyIndex:
    """Keys of objects by a value that an indexer gave them. Most values have one object, and need no list for it.

    Those of the others are the keys of a dict, which takes a third of the memory that a large set does.
    """

    def __init__(self) -> None:
        self._keys: dict[str, Key | dict[Key, None]] = {}

    def get(self, value: str) -> list[Key]:
        """Return the keys under a value, in order."""
        known = self._keys.get(value)
        if known is None:
            return []
        return sorted(known) if isinstance(known, dict) else [known]

    def add(self, value: str, key: Key) -> None:
        """Put a key under a value."""
        known = self._keys.setdefault(value, key)
        if isinstance(known, dict):
            known[key] = None
        elif known != key:
            self._keys[value] = {known: None, key: None}

    def discard(self, value: str, key: Key) -> None:
        """Take a key away from a value."""
        known = self._keys.get(value)
        if isinstance(known, dict):
            known.pop(key, None)
        if not known or known == key:
            self._keys.pop(value, None)


class ObjectCache:
    """A cache that never goes back in time.

    Every object carries the version of its write. What arrives late or twice is older than what is there and is passed
    over; a deleted object is known by its identity, which never returns. So the answers to this process's own writes
    can be entered at once (``saw``, ``saw_gone``), and the watch may bring them again. The watch may also be ahead of a
    list that is still being read (``reading_list``).

    Cost: O(1) a change, plus O(values) for each indexer, which is a pure function of the object; memory as
    ``PackedObjects`` says.
    """

    def __init__(self, indexers: Mapping[str, Indexer] | None = None) -> None:
        self._objects = PackedObjects()
        self._indexers = dict(indexers or {})
        self._index = {name: KeyIndex() for name in self._indexers}
        self._gone: dict[str, int] = {}
        """Objects whose deletion was answered to this process and not yet seen in the watch: identity, last version."""
        self._ended: set[str] = set()
        """Identities of objects whose deletion the watch brought while a list was being read."""
        self._lists = 0
        """How many lists are being read."""
        self.listed = 0
        """The version of the last list."""
        self.reached = 0
        """The version up to which the watch has brought everything."""

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Object]:
        return iter(self._objects)

    def get(self, key: Key) -> Object | None:
        """Return an object, or nothing."""
        return self._objects.get(key)

    def by_index(self, name: str, value: str) -> list[Object]:
        """Return the objects that an indexer puts under a value, in the order of their names."""
        return [found for key in self._index[name].get(value) if (found := self._objects.get(key)) is not None]

    def saw(self, object: Object, *, watched: bool = False) -> Delta | None:
        """Enter an object that was watched, or returned by a write; nothing if it is not news."""
        # Up to there the cache is whole: an older object that is not in it is gone, whatever brings it late.
        if version_of(object) <= max(self.listed, self.reached) and key_of(object) not in self._objects:
            return None
        return self._enter(object, is_one_write=watched)

    def saw_gone(self, object: Object, *, answered: bool = False) -> Delta | None:
        """Remove an object that is gone; ``answered``: the watch has not said so yet, and may still bring it."""
        uid, key = uid_of(object), key_of(object)
        before = self._objects.head(key)
        if answered:
            is_there = before is not None and before.uid == uid
            # Else the watch has brought the deletion already, and would never clear the note away.
            if is_there or version_of(object) > max(self.listed, self.reached):
                self._gone[uid] = version_of(object)
        else:
            self._gone.pop(uid, None)
            if self._lists:
                self._ended.add(uid)
        if before is None or (before.uid != uid and before.version > version_of(object)):
            return None
        return self._take_out(key)

    def passed(self, version: int) -> None:
        """Note that the watch, or the list it begins with, has brought everything up to a version."""
        self.reached = max(self.reached, version)

    @contextlib.contextmanager
    def reading_list(self) -> Iterator[int]:
        """Remember deletions for as long as a list is being read, which may be older than they are.

        Gives the version that the list has at least; a list below it comes from a server restored from a backup.
        """
        self._lists += 1
        try:
            yield max(self.listed, self.reached)
        finally:
            self._lists -= 1
            # A comparison may be reading a list beside the informer: the notes are for both.
            if not self._lists:
                self._ended.clear()

    def replace(self, objects: Iterable[Object], version: int, *, least: int = 0) -> list[Delta]:
        """Make a whole list the state as of a version, and return what changed, deletions included.

        An object that is missing in the list and newer than it stays: it was written or watched after the list. A
        list that is older than the last one changes nothing. A list below ``least`` is from a server that was
        restored from a backup: then the list alone counts.
        """
        restored = {delta.key: delta for delta in self.clear()} if version < least else {}
        if version < self.listed:
            return []
        deltas: list[Delta | None] = []
        identities = set()
        for object in objects:
            identities.add(uid_of(object))
            delta = self._enter(object, as_of=version)
            # What a backup brings back has not gone in between: it has changed, or is as it was.
            known = restored.pop(delta.key, None) if delta is not None else None
            deltas.append(Delta(known.before, object) if known is not None else delta)
        deltas = [*restored.values(), *deltas]
        for key, head in self._objects.heads():
            if head.uid not in identities and head.version <= version:
                deltas.append(self._take_out(key))
        # The watch brings nothing of an object that is newer than a list without it; ``saw`` passes the rest over.
        self._gone = {uid: last for uid, last in self._gone.items() if uid in identities or last > version}
        self.listed = version
        return [delta for delta in deltas if delta is not None]

    def clear(self) -> list[Delta]:
        """Forget everything, versions included, and return what is gone by that."""
        gone = [self._take_out(key) for key, _ in self._objects.heads()]
        self._gone.clear()
        self._ended.clear()
        self.listed = self.reached = 0
        return gone

    def _enter(self, object: Object, as_of: int = 0, *, is_one_write: bool = False) -> Delta | None:
        """Enter an object unless it is gone or older; ``as_of``: the version of the list that has it."""
        if uid_of(object) in self._gone or uid_of(object) in self._ended:
            return None
        key, version = key_of(object), version_of(object)
        known = self._objects.head(key)
        # A newer version that the list should have, and has not, is from before a restore of a backup.
        if known is not None and (known.version == version or known.version > max(version, as_of)):
            return None
        before = self._objects.get(key)
        key = self._objects.put(object)
        self._note(key, before, object)
        return Delta(before, object, is_one_write)

    def _take_out(self, key: Key) -> Delta:
        """Remove an object that is there."""
        before = self._objects.get(key)
        self._objects.remove(key)
        self._note(key, before, None)
        return Delta(before, None)

    def _note(self, key: Key, before: Object | None, after: Object | None) -> None:
        """Bring the indexes up to date."""
        if not self._indexers:
            return
        old, new = (self._values_of(object) if object is not None else {} for object in (before, after))
        for name, index in self._index.items():
            was, is_now = old.get(name, set()), new.get(name, set())
            for value in was - is_now:
                index.discard(value, key)
            for value in is_now - was:
                index.add(value, key)

    def _values_of(self, object: Object) -> dict[str, set[str]]:
        """Return the values of an object by indexer; an indexer that raises gives none.

        Any user may write an object that an indexer cannot read. It must not keep the others out of the cache.
        """
        found = {}
        for name, indexer in self._indexers.items():
            try:
                found[name] = set(indexer(object))
            except Exception:
                LOG.exception("the index %s has nothing of %s", name, "/".join(key_of(object)))
        return found
