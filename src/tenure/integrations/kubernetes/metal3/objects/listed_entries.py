"""Lists that the operator keeps in a pool: in its status, or in an annotation where the status has no room for ours.

Metal3's own definition of the kind has no room: a server drops the fields that a definition does not have. After the
definition was replaced by ours, the annotation stays until the operator removes it.
"""

from typing import Any

import orjson

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import field, text
from tenure.integrations.kubernetes.runtime.resource_types import Object


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
