"""Kinds of pools whose definition has no room for ``status.tenure``, since it is the other provider's own (KD4).

No one says so: a server drops the fields that a definition does not have, and the answer to a write shows it. The
definition may be replaced by ours at any time, so each kind is tried again after a while.
"""

import time
from dataclasses import dataclass, field

TRIED_AGAIN_S = 300.0


@dataclass
class CrampedKinds:
    """What the server's answers said of kinds, by their names."""

    _until: dict[str, float] = field(default_factory=dict)
    """When a kind is tried again."""

    def __contains__(self, kind: str) -> bool:
        """Return whether nothing of ours is to be written into the status of pools of a kind."""
        return time.monotonic() < self._until.get(kind, float("-inf"))

    def add(self, kind: str) -> None:
        """Note that the server dropped what was written."""
        self._until[kind] = time.monotonic() + TRIED_AGAIN_S

    def discard(self, kind: str) -> bool:
        """Note that the server kept what was written; return whether it did not before."""
        return self._until.pop(kind, None) is not None

    def tried_in_s(self, kind: str) -> float | None:
        """Return after how long a kind is to be tried again; nothing, if it has room."""
        until = self._until.get(kind)
        return None if until is None else until - time.monotonic()
