"""Another controller at work on the same kinds: it is noticed and ours stops, since two would undo each other (KD12).

Whatever stops this operator is something that users of a namespace must not be able to do. What they may do, by the
roles that are shipped and by Kubernetes' own role ``edit``, decides what counts:

==============================================  ==================================  ==========================
sign of Metal3's manager                        a user who may edit a namespace     counts
==============================================  ==================================  ==========================
a status changed, and the server noted it as    cannot change a status: it needs    yes
the writer of that status                       a right on ``*/status``
the server notes it as the writer of a status   can write ``managedFields`` as they  no
that did not change                             like, of objects they may edit
it made an address, or set its finalizer        can do so under any name            no
its Lease is renewed, where its manifests put   cannot write there                  yes
it
its Lease is renewed in any other namespace     can write Leases                    no
==============================================  ==================================  ==========================

The server notes for each object which program wrote which fields; ``manager`` is what the program is called in Metal3's
image, and in most others. An event of a watch is exactly one request. A request to the object itself leaves its status
alone, and a request to the status leaves the notes on other writers alone. So an event that changes both was a write of
the status by that program. What Metal3's manager wrote before a takeover stays in the objects, and changes no more.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import field, text
from tenure.integrations.kubernetes.metal3.objects.pool_kind import Provider
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable, ObjectMissing
from tenure.integrations.kubernetes.runtime.discovered_group import DiscoveredGroup
from tenure.integrations.kubernetes.runtime.event_recorder import EventRecorder
from tenure.integrations.kubernetes.runtime.informer_group import InformerGroup
from tenure.integrations.kubernetes.runtime.leader_lease import NotLeading
from tenure.integrations.kubernetes.runtime.object_cache import Delta
from tenure.integrations.kubernetes.runtime.resource_types import LEASE, Key, Object, ResourceType, key_of, uid_of

LOG = logging.getLogger(__name__)

WRITTEN = "statusWrittenByOther"
"""Where objects in caches have the times of such writes, in their metadata; no server knows this field."""
LOOKS_EVERY_S = 60.0
RECENT = timedelta(minutes=10)
"""A Lease that was renewed within this time, by clocks that may differ, may have a holder that renews it again."""
LONGEST_WAIT_S = 60.0
ADVICE = "nothing is done about these kinds: stop the other controller, then restart this operator"


@dataclass(frozen=True)
class OtherManager:
    """A program that serves the same kinds, and what it is known by."""

    title: str
    names: frozenset[str]
    """What servers call it: the name of its program, in its image and as Go builds it."""
    lease: str
    namespaces: tuple[str, ...]
    """Where its manifests put it, and with it its Lease."""

    def note_write(self, object: Object) -> None:
        """Drop ``managedFields``, and note the times at which this program is said to have written the status."""
        entries = object["metadata"].pop("managedFields", None) or ()
        if times := sorted(text(entry, "time") for entry in entries if self._is_writer(entry)):
            object["metadata"][WRITTEN] = times

    def _is_writer(self, entry: Any) -> bool:
        return text(entry, "manager") in self.names and text(entry, "subresource") == "status"


METAL3S_IPAM = OtherManager(
    "Metal3's manager",
    frozenset({"manager", "ip-address-manager"}),
    "controller-leader-election-ipam-capm3",
    ("metal3-ipam-system", "capm3-system"),
)


IN_CLUSTERS_IPAM = OtherManager(
    "the in-cluster provider's manager",
    frozenset({"manager", "cluster-api-ipam-provider-in-cluster", "in-cluster-ipam"}),
    "7bb7acb4.ipam.cluster.x-k8s.io",
    ("capi-ipam-in-cluster-system",),
)
MANAGERS = {Provider.METAL3: METAL3S_IPAM, Provider.IN_CLUSTER: IN_CLUSTERS_IPAM}
"""Who else may serve the kinds of a provider."""


class OtherController(NotLeading):
    """Another program serves the same kinds, so this process must not write, though it has the lease."""


class OtherWriters:
    """Looks for another controller for as long as this one leads; once found, it counts until the process ends."""

    def __init__(self, client: ApiClient, events: EventRecorder, other: OtherManager = METAL3S_IPAM) -> None:
        self._other = other
        self.reason = ""
        """Which other controller was found, and what to do; empty if none was."""
        self._client = client
        self._events = events
        self._found = asyncio.Event()
        self._is_watching = False
        self._renewals: dict[Key, str] = {}
        """When each Lease of Metal3's was renewed, as of the last look."""

    def watch(self, kind: ResourceType, objects: InformerGroup | DiscoveredGroup) -> None:
        """Look at every change of a kind, in caches that are trimmed by ``OtherManager.note_write``."""
        objects.on_change(lambda delta: self._changed(kind, delta))

    def check(self) -> None:
        """Raise ``OtherController`` if one was found; asked before every write, which may come before the work ends."""
        if self.reason:
            raise OtherController(self.reason)

    async def unless_found(self, work: Callable[[], Awaitable[None]]) -> None:
        """Work until another controller is found, and then do nothing until cancelled."""
        await self.begin()
        if not self.reason:
            await self._until_found(asyncio.ensure_future(work()), asyncio.ensure_future(self.look_regularly()))
        await asyncio.Event().wait()

    async def _until_found(self, *tasks: asyncio.Future[None]) -> None:
        """Let tasks run until another controller is found; raise what ends one of them before that."""
        parts: list[asyncio.Future[Any]] = [*tasks, asyncio.ensure_future(self._found.wait())]
        try:
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                # Where another controller is found, work may end by the write that ``check`` stops: that is no error.
                if task.done() and not self.reason:
                    task.result()
        finally:
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)

    async def begin(self) -> None:
        """Watch from now on. A Lease that may have a holder is looked at twice, as far apart as it lasts."""
        # Before the first look: a write between the two would go unseen.
        self._is_watching = True
        self._renewals.clear()  # of a former leadership: since then another process may have had the Lease
        waits_s = [_may_be_held_s(lease) for lease in await self._look()]
        if any(waits_s):
            LOG.info(
                "a Lease of %s was renewed lately: waiting %.0f s to see if it still is",
                self._other.title,
                max(waits_s),
            )
            await asyncio.sleep(max(waits_s))
            await self._look()

    async def look_regularly(self) -> None:
        """Look at the Leases of the other manager until cancelled."""
        while True:
            await asyncio.sleep(LOOKS_EVERY_S)
            await self._look()

    async def _look(self) -> list[Object]:
        """Look at the Leases of Metal3's manager; one that was renewed since the last look has a living holder."""
        leases = await self._leases()
        for lease in leases:
            before, renewed = self._renewals.get(key_of(lease)), text(lease, "spec", "renewTime")
            self._renewals[key_of(lease)] = renewed
            holder = text(lease, "spec", "holderIdentity")
            if holder and before is not None and before != renewed:
                self._stop(LEASE, lease, f"{holder} renews Lease {'/'.join(key_of(lease))} of {self._other.title}")
        return leases

    async def _leases(self) -> list[Object]:
        """Return the Leases of the other manager; a namespace that is not there, or may not be read, has none."""
        found: list[Object] = []
        for namespace in self._other.namespaces:
            try:
                found.append(await self._client.get(LEASE.path(namespace, self._other.lease)))
            except ObjectMissing:
                continue
            except (ApiError, ApiUnreachable) as error:
                LOG.info("the Lease of %s in %s cannot be read: %s", self._other.title, namespace, error)
        return found

    def _changed(self, kind: ResourceType, delta: Delta) -> None:
        """Judge a change: whether the other manager has written a status by it."""
        before, after = delta.before, delta.after
        if not self._is_watching or not delta.is_one_write or before is None or after is None:
            return
        written = set(after["metadata"].get(WRITTEN, ())) - set(before["metadata"].get(WRITTEN, ()))
        if written and uid_of(before) == uid_of(after) and before.get("status") != after.get("status"):
            place = f"{kind.kind} {'/'.join(delta.key)}"
            self._stop(kind, after, f"{self._other.title} wrote the status of {place} at {max(written)}")

    def _stop(self, kind: ResourceType, object: Object, finding: str) -> None:
        # The first finding stays: the event and ``/readyz`` go on saying the same.
        if self.reason:
            return
        self.reason = f"{finding}; {ADVICE}"
        LOG.error("another controller is at work: %s", self.reason)
        self._events.record(kind, object, "OtherController", self.reason, "Warning")
        self._found.set()


def _may_be_held_s(lease: Object) -> float:
    """Return how long a Lease lasts that was renewed lately; 0 for a Lease that is free, or old."""
    try:
        age = datetime.now(UTC) - datetime.fromisoformat(text(lease, "spec", "renewTime"))
        lasts_s = float(field(lease, "spec", "leaseDurationSeconds") or 0)
    except (ValueError, TypeError):
        return 0.0
    is_held = bool(text(lease, "spec", "holderIdentity")) and abs(age) < RECENT
    return min(lasts_s, LONGEST_WAIT_S) if is_held else 0.0
