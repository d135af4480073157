"""Objects in little room: compressed JSON, since a cache of many objects is mostly the same text again and again.

A parsed IPAddress takes 5 KB in some thirty Python objects, all of which the garbage collector visits; packed it is one
string of 100 to 200 bytes, which it does not. So a cache of 20,000 costs little memory, and no time while others work.
"""

import logging
import sys
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

import orjson

from tenure.integrations.kubernetes.runtime.resource_types import Key, Object, key_of, uid_of, version_of

LOG = logging.getLogger(__name__)

RECENT = 500
"""The number of objects that stay parsed: those in use are read and replaced many times, and packed once at the end."""
WINDOW_BITS = -12
"""A raw stream with a window of 4 KB: with the largest one, making room for it takes longer than packing."""
MEMORY_LEVEL = 4


class Packed(NamedTuple):
    """An object in little room, with what is asked of it most."""

    uid: str
    version: int
    data: bytes = b""
    """Nothing as long as the object is a recent one, or where it cannot be packed."""


class PackedObjects:
    """Objects by their keys. Cost: O(1); about 15 µs to get one that is not recent, and for each that ceases to be.

    Objects that are given out are shared by all callers, and must not be changed; but a text may be replaced by an
    equal one that is kept already, as ``put`` does.
    """

    def __init__(self) -> None:
        self._packed: dict[Key, Packed] = {}
        self._recent: OrderedDict[Key, Object] = OrderedDict()
        self._sample = b""
        """The first object: the text that the others repeat."""
        self._unpacked: dict[Key, Object] = {}
        """Objects that cannot be packed, and stay parsed: orjson reads some 1,000 levels, and writes only 254."""

    def __len__(self) -> int:
        return len(self._packed)

    def __contains__(self, key: Key) -> bool:
        return key in self._packed

    def __iter__(self) -> Iterator[Object]:
        """Yield the objects that are there now, whatever changes meanwhile."""
        # The parsed ones are fetched at once: an object may be packed, or gone, before the walk comes to it.
        for packed, parsed in [(each, self._known(key)) for key, each in self._packed.items()]:
            yield self._parsed(packed) if parsed is None else parsed

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
        unpacked = self._unpacked.get(key)
        return self._remember(key, self._parsed(packed)) if unpacked is None else unpacked

    def put(self, object: Object) -> Key:
        """Put an object in its place, and return where that is."""
        namespace, name = key_of(object)
        # Keys share one text for their namespace, whatever the number of objects there.
        key, uid = (sys.intern(namespace), name), uid_of(object)
        known = self._packed.get(key)
        if known is not None and known.uid == uid:
            # Every parsed object has a text of its own. Whatever remembers the uid is to keep none but the first.
            uid = object["metadata"]["uid"] = known.uid
        self._packed[key] = Packed(uid, version_of(object))
        self._unpacked.pop(key, None)
        self._remember(key, object)
        return key

    def remove(self, key: Key) -> None:
        """Remove an object."""
        del self._packed[key]
        self._recent.pop(key, None)
        self._unpacked.pop(key, None)

    def _known(self, key: Key) -> Object | None:
        return self._recent.get(key) or self._unpacked.get(key)

    def _remember(self, key: Key, object: Object) -> Object:
        self._recent[key] = object
        self._recent.move_to_end(key)
        if len(self._recent) > RECENT:
            self._put_away(*self._recent.popitem(last=False))
        return object

    def _put_away(self, key: Key, past: Object) -> None:
        """Pack an object that is no recent one any more."""
        # The object was read and not replaced: what was packed before still holds.
        if self._packed[key].data:
            return
        try:
            self._packed[key] = self._packed[key]._replace(data=self._pack(past))
        except orjson.JSONEncodeError as error:
            # Any user may write such an object. It must neither be lost nor keep others out.
            LOG.info("%s is kept as it is: %s", "/".join(key), error)
            self._unpacked[key] = past

    def _parsed(self, packed: Packed) -> Object:
        unpacker = zlib.decompressobj(WINDOW_BITS, zdict=self._sample)
        parsed: Object = orjson.loads(unpacker.decompress(packed.data))
        return parsed

    def _pack(self, object: Object) -> bytes:
        text = orjson.dumps(object)
        # Never replaced: what is packed can be read with this sample alone.
        self._sample = self._sample or text
        packer = zlib.compressobj(1, zlib.DEFLATED, WINDOW_BITS, MEMORY_LEVEL, zlib.Z_DEFAULT_STRATEGY, self._sample)
        return packer.compress(text) + packer.flush()
