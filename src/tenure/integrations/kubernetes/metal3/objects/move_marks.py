"""The mark that clusterctl puts on what it is about to delete for a move, and the index of what has it.

Marks are few and objects many, so what looks for marks must not parse all objects of a cache.
"""

from collections.abc import Iterable, Mapping

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import DELETE_FOR_MOVE, annotations_of
from tenure.integrations.kubernetes.runtime.object_cache import Indexer
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of, uid_of

MARKED = "marked"
"""The name of the index."""
ANYWHERE = "anywhere"
"""What all marked objects are found under."""


def is_marked(object: Object) -> bool:
    """Return whether an object is about to be deleted for a move."""
    return DELETE_FOR_MOVE in annotations_of(object)


def in_namespace(namespace: str) -> str:
    """Return what the marked objects of a namespace are found under."""
    return f"namespace/{namespace}"


def of_uid(uid: str) -> str:
    """Return what an object is found under if it is marked."""
    return f"uid/{uid}"


def with_marks(indexers: Mapping[str, Indexer] | None) -> dict[str, Indexer]:
    """Return the indexers of a cache, and that of marks."""
    return {MARKED: _found_under, **(indexers or {})}


def _found_under(object: Object) -> Iterable[str]:
    return (ANYWHERE, in_namespace(key_of(object)[0]), of_uid(uid_of(object))) if is_marked(object) else ()
