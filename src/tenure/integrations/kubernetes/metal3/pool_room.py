"""What a pool has room for: a server stores 1.5 MiB of an object, and names of claims may be long.

If not everything fits, the pool first forgets the addresses of departed claims, the oldest first. Then
``status.indexes`` is emptied, as above 5,000 entries (KD4): the IPAddress objects say the same. Cooling addresses are
dropped last, since users were promised them.
"""

from collections.abc import Mapping

import orjson

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import annotations_of
from tenure.integrations.kubernetes.metal3.objects.listed_entries import MOST_ANNOTATIONS
from tenure.integrations.kubernetes.runtime.resource_types import Object

STORED_BYTES = 1_400_000
"""The bytes of a pool that are planned; the rest of 1.5 MiB is for conditions, samples and managers of fields."""
AGAIN = 0.9
"""Emptied indexes come back when they need no more than this part of their room."""


def room_of(pool: Object, *, is_cramped: bool = False) -> int:
    """Return how many bytes the lists of a pool's status may have beside what its users wrote.

    ``is_cramped``: the operator keeps lists of its own in annotations, which may grow as large as the server allows.
    """
    annotations = MOST_ANNOTATIONS if is_cramped else bytes_of(annotations_of(pool))
    return STORED_BYTES - annotations - bytes_of(pool.get("spec"))


def bytes_of(value: object) -> int:
    """Return how many bytes something takes; what is too deep to be measured counts as if it filled the pool."""
    try:
        return len(orjson.dumps(value))
    except orjson.JSONEncodeError:
        return STORED_BYTES


def bytes_of_indexes(indexes: Mapping[str, str], *, is_cramped: bool) -> int:
    """Return how many bytes ``status.indexes`` takes.

    Of a definition that is not ours, its names stand among the managers of fields once more (KP10).
    """
    managed = bytes_of({f"f:{name}": {} for name in indexes}) if is_cramped else 0
    return bytes_of(dict(indexes)) + managed
