"""What is left behind: objects with a finalizer of ours whose owner is gone, so that nobody would take it away.

A claim is let go with its Metal3Data, and a Metal3Data with its Metal3DataClaim. But people strip finalizers of owners
by force, and a create whose answer was lost, or that an old leader had sent, may arrive when its owner is gone. Such an
object would keep its name, its number and its address for ever, and the next machine of that number would wait for it.
"""

import logging
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    is_terminating,
    text,
)
from tenure.integrations.kubernetes.metal3.objects.move_marks import is_marked
from tenure.integrations.kubernetes.metal3_data.data_caches import DataCaches, Group, WorkKey, cluster_of
from tenure.integrations.kubernetes.metal3_data.data_writes import DataWrites
from tenure.integrations.kubernetes.runtime.api_errors import ApiError
from tenure.integrations.kubernetes.runtime.resource_types import Key, Object, key_of, uid_of

LOG = logging.getLogger(__name__)

AGAIN_S = 10.0
"""How long until a release that the server refused is tried again."""


class LeftObject(NamedTuple):
    """An object whose owner is not in the caches."""

    group: Group
    object: Object
    finalizer: str
    owners: Group
    owner: Key
    owner_uid: str = ""
    """The identity of the owner; empty if any object of its name will do."""


class LeftBehind:
    """Releases what is left behind: at once if it is being deleted, else after a grace period."""

    def __init__(
        self,
        caches: DataCaches,
        writes: DataWrites,
        serves: Callable[[Object], bool],
        grace_s: float,
        add_after: Callable[[WorkKey, float], None],
    ) -> None:
        self._caches = caches
        self._writes = writes
        self._serves = serves
        self._grace_s = grace_s
        self._add_after = add_after
        self._since: dict[WorkKey, dict[str, float]] = {}
        """When objects were first seen without their owners, by their uid, for each pass that looks at them."""

    async def release(self, key: WorkKey, objects: Iterable[LeftObject]) -> None:
        """Release those whose owners the server does not have either; ``key``: the pass that comes again for them."""
        # Taken out whole: only what is left behind still is noted again.
        known = self._since.pop(key, {})
        for left in objects:
            if not self._may_end(left.object) or await self._is_owned(left):
                continue
            since = known.get(uid_of(left.object), time.monotonic())
            wait_s = since + self._grace_s - time.monotonic()
            # What is being deleted need not wait. For the rest, a restored backup may bring the owner back in time.
            is_due = wait_s <= 0 or is_terminating(left.object)
            if not is_due or not await self._is_released(left):
                self._since.setdefault(key, {})[uid_of(left.object)] = since
                self._add_after(key, AGAIN_S if is_due else wait_s)

    async def _is_released(self, left: LeftObject) -> bool:
        """Release an object; return whether the server let that be done. One that it refuses holds up no other."""
        words = text(left.object, "kind"), *key_of(left.object)
        try:
            is_gone = await self._writes.release(left.group, left.object, left.finalizer)
        except ApiError as error:
            LOG.warning("%s %s/%s is without its owner and cannot be released: %s", *words, error)
            return False
        rest = "is released" if is_gone else "is let go; it waits for others"
        LOG.warning("%s %s/%s was without its owner and %s", *words, rest)
        return True

    def _may_end(self, object: Object) -> bool:
        is_paused = self._caches.is_paused(object, cluster_of(object))
        return self._serves(object) and not is_paused and not is_marked(object)

    async def _is_owned(self, left: LeftObject) -> bool:
        """Return whether the server has the owner; the caches of two kinds may be of different times."""
        # The server cannot be asked for a kind that is not followed now; the owner may be there.
        if left.owners.kind is None:
            return True
        owner = await self._writes.read(left.owners.kind, left.owner)
        return owner is not None and left.owner_uid in ("", uid_of(owner))
