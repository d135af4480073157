"""Marks of a move that was killed: ``delete-for-move`` on objects that nobody deletes.

clusterctl marks an object in the source and deletes it in the next request. If it is killed between the two, the object
stays, marked; and a repeated move copies it to the target, mark and all, in place of what it had carried there before.
Such an object would never be touched again, and its deletion would never be a release. So a mark that has stood for a
while on an object that is not being deleted is taken off. A move that is repeated later sets it again.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from tenure.integrations.kubernetes.metal3.caches.ipam_caches import IpamCaches
from tenure.integrations.kubernetes.metal3.caches.pool_groups import Group
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import CLAIM_KINDS
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import DELETE_FOR_MOVE, is_terminating
from tenure.integrations.kubernetes.metal3.objects.move_marks import ANYWHERE, MARKED
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable
from tenure.integrations.kubernetes.runtime.patches import Step, guarded, pointer
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of, uid_of

LOG = logging.getLogger(__name__)

LOOKS_EVERY_S = 10.0


@dataclass
class StaleMarks:
    """Takes marks off objects that are not deleted, as long as this process leads."""

    client: ApiClient
    groups: Callable[[], Iterable[Group]]
    """Return the kinds that are looked at, as they are followed now."""
    check: Callable[[Object], None]
    """Raises if this process must not write an object, such as when it does not lead; asked before every write."""
    serves: Callable[[Object], bool]
    """Return whether an object is one that this operator looks after (E7)."""
    stale_s: float
    """A mark is that old before it is taken off: far longer than a move takes from the mark to the deletion."""
    _since: dict[str, float] = field(default_factory=dict)
    """When a mark was seen first, by the uid of the object."""

    async def run(self) -> None:
        """Look regularly until cancelled; the time of a mark begins with the leadership that finds it."""
        self._since.clear()
        while True:
            await self.look()
            await asyncio.sleep(min(LOOKS_EVERY_S, self.stale_s / 2))

    async def look(self) -> None:
        """Find marks, and take off those whose time is over. O(n) of the marks."""
        marked = {uid_of(object): (group, object) for group, object in self._marked()}
        # Only of marks that stand still: a mark that went and comes again has its whole time.
        self._since = {uid: self._since.get(uid, time.monotonic()) for uid in marked}
        for uid, (group, object) in marked.items():
            if time.monotonic() - self._since[uid] >= self.stale_s:
                await self._take_off(group, object)

    def _marked(self) -> Iterator[tuple[Group, Object]]:
        for group in self.groups():
            for object in group.by_index(MARKED, ANYWHERE):
                if not is_terminating(object) and self.serves(object):
                    yield group, object

    async def _take_off(self, group: Group, object: Object) -> None:
        kind = group.kind
        step: Step = {"op": "remove", "path": pointer("metadata", "annotations", DELETE_FOR_MOVE)}
        if kind is None:
            return
        try:
            self.check(object)
            group.wrote(await self.client.patch(kind, object, guarded(object, step)))
        except (ApiError, ApiUnreachable) as error:
            LOG.warning("%s/%s has a mark of a move that was killed: %s", *key_of(object), error)
        else:
            LOG.warning("%s/%s had a mark of a move that was killed; it is taken off", *key_of(object))


def ipam_groups(caches: IpamCaches) -> set[Group]:
    """Return the kinds of pools, claims and addresses, each once: two kinds of claims may be objects of one kind."""
    kinds, objects = CLAIM_KINDS.values(), caches.objects
    claims, addresses = map(objects.claims_of_kind, kinds), map(objects.addresses_of_kind, kinds)
    return {*objects.pools.by_kind.values(), *claims, *addresses}
