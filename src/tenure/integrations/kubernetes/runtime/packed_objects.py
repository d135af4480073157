"""Objects in little room: compressed JSON, since a cache of many objects is mostly the same text again and again.

A parsed IPAddress takes 5 KB in some thirty Python objects, all of which the garbage collector visits; packed it is one
string of 100 to 200 bytes, which it does not. So a cache of 20,000 costs little memory, and no time while others work.
"""

import sys
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

import orjson

from tenure.integrations.kubernetes.runtime.resource_types import Key, Object, key_of, uid_of, version_of

RECENT = 500
"""So many objects are kept parsed: what is at work now is looked at and replaced many times, and packed once after."""
WINDOW_BITS = -12
"""A raw stream with a window of 4 KB: with the largest one, making room for it takes longer than packing."""
MEMORY_LEVEL = 4


class Packed(NamedTuple):
    """An object in little room, with what is asked of it most."""

    uid: str
    version: int
    data: bytes = b""
    """Nothing as long as the object is a recent one."""


class PackedObjects:
    """Objects by their keys. Cost: O(1); about 15 µs to get one that is not recent, and for each that ceases to be.

    Objects that are given out are shared by all callers, and must not be changed.
    """

    def __init__(self) -> None:
        self._packed: dict[Key, Packed] = {}
        self._recent: OrderedDict[Key, Object] = OrderedDict()
        self._sample = b""
        """The first object: the text that the others repeat."""

    def __len__(self) -> int:
        return len(self._packed)

    def __contains__(self, key: Key) -> bool:
        return key in self._packed

    def __iter__(self) -> Iterator[Object]:
        """Yield the objects that are there now, whatever changes meanwhile."""
        for packed, recent in [(each, self._recent.get(key)) for key, each in self._packed.items()]:
            yield self._parsed(packed) if recent is None else recent

    def heads(self) -> list[tuple[Key, Packed]]:
        """Return keys, identities and versions of all objects, without parsing them."""
        return list(self._packed.items())

    def head(self, key: Key) -> Packed | None:
        """Return identity and version of an object, or nothing."""
        return self._packed.get(key)

    def get(self, key: Key) -> Object | None:
        """Return an object, or nothing."""
        recent = self._recent.get(key)
        if recent is not None:
            self._recent.move_to_end(key)
            return recent
        packed = self._packed.get(key)
        if packed is None:
            return None
        return self._remember(key, self._parsed(packed))

    def put(self, object: Object) -> Key:
        """Put an object in its place, and return where that is."""
        namespace, name = key_of(object)
        key = sys.intern(namespace), name
        self._packed[key] = Packed(uid_of(object), version_of(object))
        self._remember(key, object)
        return key

    def remove(self, key: Key) -> None:
        """Remove an object."""
        del self._packed[key]
        self._recent.pop(key, None)

    def _remember(self, key: Key, object: Object) -> Object:
        self._recent[key] = object
        self._recent.move_to_end(key)
        if len(self._recent) > RECENT:
            oldest, past = self._recent.popitem(last=False)
            if not self._packed[oldest].data:
                self._packed[oldest] = self._packed[oldest]._replace(data=self._pack(past))
        return object

    def _parsed(self, packed: Packed) -> Object:
        unpacker = zlib.decompressobj(WINDOW_BITS, zdict=self._sample)
        parsed: Object = orjson.loads(unpacker.decompress(packed.data))
        return parsed

    def _pack(self, object: Object) -> bytes:
        text = orjson.dumps(object)
        self._sample = self._sample or text
        packer = zlib.compressobj(1, zlib.DEFLATED, WINDOW_BITS, MEMORY_LEVEL, zlib.Z_DEFAULT_STRATEGY, self._sample)
        return packer.compress(text) + packer.flush()
