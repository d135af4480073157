"""Another controller at work on the same kinds: it is noticed and ours stops, since two would undo each other (KD12).

Metal3's manager is known by what it writes, and by its Lease. The server notes for each object which program wrote
which fields; ``manager`` is what the program is called in Metal3's image, and in most others. Those may write claims,
too: the provider of bare metal creates them. So only fields count that only a controller of these kinds writes,
and only writes that come after ours has begun: what Metal3's manager wrote before a takeover stays in the objects.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import ADDRESS_FINALIZER, field, text
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable
from tenure.integrations.kubernetes.runtime.event_recorder import EventRecorder
from tenure.integrations.kubernetes.runtime.informer_group import InformerGroup
from tenure.integrations.kubernetes.runtime.leader_lease import NotLeading
from tenure.integrations.kubernetes.runtime.object_cache import Delta
from tenure.integrations.kubernetes.runtime.resource_types import LEASE, Key, Object, ResourceType, key_of, uid_of

LOG = logging.getLogger(__name__)

METAL3S_NAMES = frozenset({"manager", "ip-address-manager"})
"""What Metal3's manager is called by servers: the name of its program, in its image and as Go builds it."""
METAL3S_LEASE = "controller-leader-election-ipam-capm3"
WRITTEN = "writtenByMetal3"
"""Where objects in caches have the time of such a write, in their metadata; no server knows this field."""
LOOKS_EVERY_S = 60.0
RECENT = timedelta(minutes=10)
"""A Lease that was renewed within this time, by clocks that may differ, may have a holder that renews it again."""
LONGEST_WAIT_S = 60.0
ADVICE = "nothing is done about these kinds: stop the other controller, then restart this operator"


def note_metal3s_write(object: Object) -> None:
    """Drop ``managedFields``, and note when Metal3's manager wrote what only a controller of the kind writes."""
    entries = object["metadata"].pop("managedFields", None) or ()
    times = [text(entry, "time") for entry in entries if _is_metal3s(entry)]
    if times:
        object["metadata"][WRITTEN] = max(times)


def _is_metal3s(entry: Any) -> bool:
    """Return whether an entry has a status, or the finalizer of an address.

    A claim's own finalizer says nothing: our webhook sets it in the name of the program that creates the claim.
    """
    if text(entry, "manager") not in METAL3S_NAMES:
        return False
    finalizers = field(entry, "fieldsV1", "f:metadata", "f:finalizers") or {}
    return field(entry, "fieldsV1", "f:status") is not None or f'v:"{ADDRESS_FINALIZER}"' in finalizers


class OtherController(NotLeading):
    """Another program serves the same kinds, so this process must not write, though it has the lease."""


class OtherWriters:
    """Looks for another controller for as long as this one leads; once found, it counts until the process ends."""

    def __init__(self, client: ApiClient, namespaces: Sequence[str], events: EventRecorder) -> None:
        self.reason = ""
        """Which other controller was found, and what to do; empty if none was."""
        self._client = client
        self._namespaces = tuple(namespaces)
        self._events = events
        self._found = asyncio.Event()
        self._is_watching = False
        self._renewals: dict[Key, str] = {}
        """When each Lease of Metal3's was renewed, as of the last look."""

    def watch(self, kind: ResourceType, objects: InformerGroup) -> None:
        """Look at every change of a kind, in caches that are trimmed by ``note_metal3s_write``."""
        objects.on_change(lambda delta: self._changed(kind, delta))

    def check(self) -> None:
        """Raise ``OtherController`` if one was found; asked before every write, which may come before the work ends."""
        if self.reason:
            raise OtherController(self.reason)

    async def unless_found(self, work: Callable[[], Awaitable[None]]) -> None:
        """Work until another controller is found, and then do nothing until cancelled."""
        await self._begin()
        if not self.reason:
            await self._until_found(asyncio.ensure_future(work()), asyncio.ensure_future(self._look_regularly()))
        await asyncio.Event().wait()

    async def _until_found(self, *tasks: asyncio.Future[None]) -> None:
        """Let tasks run until another controller is found; raise what ends one of them before that."""
        parts: list[asyncio.Future[Any]] = [*tasks, asyncio.ensure_future(self._found.wait())]
        try:
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done() and not self.reason:
                    task.result()
        finally:
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)

    async def _begin(self) -> None:
        """Watch from now on. A Lease that may have a holder is looked at twice, as far apart as it lasts."""
        self._is_watching = True
        self._renewals.clear()  # of a former leadership: since then another process may have had the Lease
        waits_s = [_may_be_held_s(lease) for lease in await self._look()]
        if any(waits_s):
            LOG.info(
                "a Lease of Metal3's manager was renewed lately: waiting %.0f s to see if it still is", max(waits_s)
            )
            await asyncio.sleep(max(waits_s))
            await self._look()

    async def _look_regularly(self) -> None:
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
                self._stop(LEASE, lease, f"{holder} renews Lease {'/'.join(key_of(lease))} of Metal3's manager")
        return leases

    async def _leases(self) -> list[Object]:
        """Return the Leases of the cluster, or of the namespaces where the operator may read no others."""
        found: list[Object] = []
        for namespace in ("", *self._namespaces):
            try:
                query = {"fieldSelector": f"metadata.name={METAL3S_LEASE}"}
                found += (await self._client.get(LEASE.path(namespace), query)).get("items") or ()
            except (ApiError, ApiUnreachable) as error:
                LOG.info("Leases of other controllers cannot be read in %s: %s", namespace or "the cluster", error)
                continue
            if not namespace:
                break
        return found

    def _changed(self, kind: ResourceType, delta: Delta) -> None:
        """Judge a change; what is known of an object before it was changed is from before, whatever clocks say."""
        if not self._is_watching or delta.after is None:
            return
        written = text(delta.after, "metadata", WRITTEN)
        if not written:
            return
        if delta.before is not None and uid_of(delta.before) == uid_of(delta.after):
            is_new = written > text(delta.before, "metadata", WRITTEN)
        else:
            # An object that was restored from a backup is newer than what was written on it.
            is_new = written >= text(delta.after, "metadata", "creationTimestamp")
        if is_new:
            self._stop(kind, delta.after, f"Metal3's manager wrote {kind.kind} {'/'.join(delta.key)} at {written}")

    def _stop(self, kind: ResourceType, object: Object, finding: str) -> None:
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
