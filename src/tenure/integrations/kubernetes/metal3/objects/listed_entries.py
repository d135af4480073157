"""Lists that the operator keeps in a pool: in its status, or in an annotation where the status has no room for ours.

Metal3's own definition of the kind has no room: a server drops the fields that a definition does not have. After the
definition was replaced by ours, the annotation stays until the operator removes it.
"""

from collections.abc import Collection
from itertools import accumulate
from typing import Any

import orjson

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import annotations_of, field, text
from tenure.integrations.kubernetes.runtime.resource_types import Object

MOST_ANNOTATIONS = 256 * 1024
"""The most bytes of annotations, names included, that a server stores in one object."""
LEFT_TO_OTHERS = 48 * 1024
"""Of these, what is left to annotations that others write later, and to reservations."""


def listed_entries(pool: Object, name: str, annotation: str) -> list[Any]:
    """Return the entries of both places; what the status says comes last, since an annotation may be an old one.

    The ``name`` is the list's name in ``status.tenure``. An annotation that cannot be read has no entries.
    """
    in_status = field(pool, "status", "tenure", name)
    try:
        in_annotation = orjson.loads(text(pool, "metadata", "annotations", annotation) or "[]")
    except orjson.JSONDecodeError:
        in_annotation = []
    return [each for entries in (in_annotation, in_status) if isinstance(entries, list) for each in entries]


def as_annotation(entries: list[Object]) -> str:
    """Write entries as the text of an annotation."""
    return orjson.dumps(entries).decode()


def last_that_fit(pool: Object, entries: list[Object], ours: Collection[str]) -> list[Object]:
    """Return the last of some entries, as many as an annotation has room for beside those that are not ``ours``."""
    others = (len(f"{name}{value}".encode()) for name, value in annotations_of(pool).items() if name not in ours)
    return last_within(entries, MOST_ANNOTATIONS - LEFT_TO_OTHERS - sum(others))


def last_within(entries: list[Object], room: int) -> list[Object]:
    """Return the last of some entries, as many as so many bytes have room for."""
    sizes = accumulate(len(orjson.dumps(entry)) + 1 for entry in reversed(entries))
    count = sum(size <= room for size in sizes)
    return entries[len(entries) - count :]
