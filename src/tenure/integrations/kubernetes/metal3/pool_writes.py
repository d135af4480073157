"""The writes on pools: finalizer and cluster, reservations, status. Each names the version that was read."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tenure.integrations.kubernetes.metal3.ipam_caches import IpamCaches
from tenure.integrations.kubernetes.metal3.objects.address_objects import pool_of
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import kind_of
from tenure.integrations.kubernetes.metal3.objects.claim_reading import reference_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLUSTER,
    CLUSTER_NAME,
    IP_POOL,
    POOL_FINALIZER,
    PROVIDER_LABEL,
    RESERVING,
    annotations_of,
    finalizers_of,
    is_terminating,
    labels_of,
    text,
)
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolSpec
from tenure.integrations.kubernetes.metal3.objects.reservations import as_annotation, kinds_in, reserved_in, reserving
from tenure.integrations.kubernetes.metal3.pool_book import RESERVED
from tenure.integrations.kubernetes.metal3.pool_overlaps import overlap_text
from tenure.integrations.kubernetes.metal3.pool_record import PoolRecord
from tenure.integrations.kubernetes.metal3.pool_status import (
    OVERLAPPING,
    own_status,
    problem_of,
    shown_indexes,
    status_changes,
)
from tenure.integrations.kubernetes.runtime.api_client import GONE, MERGE_PATCH, ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ObjectMissing, WriteConflict
from tenure.integrations.kubernetes.runtime.event_recorder import EventRecorder
from tenure.integrations.kubernetes.runtime.patches import (
    Step,
    finalizer_steps,
    guarded,
    pointer,
    remove_finalizer,
    status_patch,
)
from tenure.integrations.kubernetes.runtime.resource_types import Key, Object, key_of, uid_of

EVENTFUL = ("SpecInvalid", "ClusterMissing", "AddressDoubled", "LedgerUnavailable", "LedgerConflict")
"""Problems of a pool that also get an event."""
STRANGE_S = 10.0
"""For so long a reservation counts whose claim was never seen; a watch is behind by less."""


@dataclass
class PoolWrites:
    """Writes on pools; each answer is in the caches before the next decision."""

    client: ApiClient
    caches: IpamCaches
    events: EventRecorder
    check: Callable[[], None]
    """Raises if this process does not lead any more; asked before every write."""
    orphans_of: Callable[[Key], list[Object]] = field(default=lambda key: [])
    """Return the addresses of a pool without a claim, as the status lists them."""
    _is_foreign_kind: bool = False
    """Whether the definition of the kind has no room for ``status.tenure``: it is Metal3's (KD4)."""

    async def prepare(self, pool: Object, spec: PoolSpec) -> Object:
        """Give a pool its finalizer, and what binds it to its cluster (E1); return the pool."""
        steps = [*finalizer_steps(pool, POOL_FINALIZER), *self._cluster_steps(pool, spec)]
        if not steps or is_terminating(pool):
            return pool
        self.check()
        patched = await self.client.patch(IP_POOL, pool, guarded(pool, *steps))
        self.caches.pools.wrote(patched)
        return patched

    async def reserve(self, key: Key, chosen: dict[str, int]) -> Object:
        """Reserve addresses for claims by their uids, with all else that the status is to say; return the pool."""
        pool = self.caches.pools.get(key)
        if pool is None or is_terminating(pool):
            raise WriteConflict(409, "Conflict", f"IPPool {key[1]} is going")
        entries = self._reserving(pool, {**self._still_reserved(key, pool), **chosen})
        if not self._is_foreign_kind:
            pool = await self._patch_status(key, pool, entries)
            if chosen.items() <= reserved_in(pool).items():
                return pool
            self._is_foreign_kind = True
        return await self._annotate(pool, entries)

    async def write_status(self, key: Key) -> None:
        """Write what the status is to say, if it says something else."""
        pool = self.caches.pools.get(key)
        if pool is None:
            return
        entries = self._reserving(pool, self._still_reserved(key, pool))
        pool = await self._patch_status(key, pool, entries)
        if RESERVING in annotations_of(pool) and not entries:
            step: Step = {"op": "remove", "path": pointer("metadata", "annotations", RESERVING)}
            # The status is right already: if this write fails, nothing else would ask for another look.
            self.caches.record(key).is_status_due = True
            self.check()
            self.caches.pools.wrote(await self.client.patch(IP_POOL, pool, guarded(pool, step)))

    async def let_go(self, pool: Object) -> None:
        """Take the finalizer away, so that a pool without addresses can go (D6, D7)."""
        if POOL_FINALIZER not in finalizers_of(pool):
            return
        self.check()
        try:
            answer = await self.client.patch(IP_POOL, pool, remove_finalizer(pool, POOL_FINALIZER))
        except ObjectMissing:
            answer = GONE
        self.caches.pools.deleted(pool, answer)

    async def refresh(self, key: Key) -> None:
        """Read a pool from the server itself."""
        try:
            self.caches.pools.wrote(await self.client.get(IP_POOL.path(*key)))
        except ObjectMissing:
            pool = self.caches.pools.get(key)
            if pool is not None:
                self.caches.pools.deleted(pool, GONE)

    def _still_reserved(self, key: Key, pool: Object) -> dict[str, int]:
        """Return the reservations that still count: their claim is there, and no object of it is seen yet (KD4).

        A claim that was never seen may be one that the watch has not brought yet; for a while its reservation counts.
        One for a claim of another pool was not written here.
        """
        record = self.caches.record(key)
        kept = {}
        for uid, position in reserved_in(pool).items():
            if record.book.position_of((RESERVED, uid)) != position:
                continue
            claim = self.caches.claim_of_uid(uid)
            is_strange = time.monotonic() - record.strangers.get(uid, float("-inf")) < STRANGE_S
            if is_strange if claim is None else self._awaits_object(key, claim):
                kept[uid] = position
        return kept

    def _reserving(self, pool: Object, reserved: Mapping[str, int]) -> list[Object]:
        """Write reservations down; the kind of a claim that was not seen yet is what the pool says already."""
        claims = {uid: self.caches.claim_of_uid(uid) for uid in reserved}
        known = {uid: kind_of(claim).claim.kind for uid, claim in claims.items() if claim is not None}
        return reserving(reserved, {**kinds_in(pool), **known})

    def _awaits_object(self, pool: Key, claim: Object) -> bool:
        """Return whether a claim of a pool owns no address of it; one that only has its name may be another claim's."""
        reference = reference_of(claim)
        owned = self.caches.addresses_owned(uid_of(claim))
        return reference is not None and reference.pool == pool and all(pool_of(each) != pool for each in owned)

    async def _patch_status(self, key: Key, pool: Object, entries: list[Object]) -> Object:
        record = self.caches.record(key)
        problem = problem_of(
            record, pool,
            is_paused=self.caches.is_pool_paused(key), is_cluster_missing=self.caches.is_cluster_missing(key),
        )  # fmt: skip
        overlap = overlap_text(self.caches.overlaps.others(key))
        self._report(record, pool, problem, overlap)
        orphans = self.orphans_of(key)
        own = {} if self._is_foreign_kind else own_status(record, pool, entries, problem, orphans, overlap)
        changes = status_changes(pool, shown_indexes(record, pool), own)
        record.is_status_due = False
        if not changes:
            return pool
        record.status_at = time.monotonic()
        self.check()
        try:
            patch = status_patch(pool, changes)
            patched = await self.client.patch(IP_POOL, pool, patch, content_type=MERGE_PATCH, subresource="status")
        except BaseException:
            record.is_status_due = True
            raise
        # The answer is no news by itself; what has changed while the write was on its way is, and a reservation that
        # it ends, if that kept an address back until now.
        is_due, free = record.is_status_due, record.book.free
        self.caches.pools.wrote(patched)
        record.is_status_due = is_due or record.book.free != free
        return patched

    def _report(self, record: PoolRecord, pool: Object, problem: tuple[str, str], overlap: str) -> None:
        """Record events of a pool: of what is wrong with it, and, once, of what it shares with others."""
        if problem[0] in EVENTFUL:
            self.events.record(IP_POOL, pool, *problem, "Warning")
        if overlap and overlap != record.reported_overlap:
            self.events.record(IP_POOL, pool, OVERLAPPING, overlap, "Warning")
        record.reported_overlap = overlap

    async def _annotate(self, pool: Object, entries: list[Object]) -> Object:
        """Reserve in an annotation, where the definition of the kind has no room for ours."""
        value = as_annotation(entries)
        if annotations_of(pool):
            step: Step = {"op": "add", "path": pointer("metadata", "annotations", RESERVING), "value": value}
        else:
            step = {"op": "add", "path": "/metadata/annotations", "value": {RESERVING: value}}
        self.check()
        patched = await self.client.patch(IP_POOL, pool, guarded(pool, step))
        self.caches.pools.wrote(patched)
        return patched

    def _cluster_steps(self, pool: Object, spec: PoolSpec) -> list[Step]:
        """Return what binds a pool to its cluster: labels, and an owner that is no controller."""
        cluster = self.caches.clusters.get((key_of(pool)[0], spec.cluster_name)) if spec.cluster_name else None
        if cluster is None:
            return []
        labels = {CLUSTER_NAME: spec.cluster_name, PROVIDER_LABEL[0]: PROVIDER_LABEL[1]}
        steps: list[Step] = []
        if any(labels_of(pool).get(name) != value for name, value in labels.items()):
            steps.append({"op": "add", "path": "/metadata/labels", "value": {**labels_of(pool), **labels}})
        owners = pool["metadata"].get("ownerReferences") or []
        # By kind and name alone: after a move the uid and the version differ (E10).
        known = any((text(each, "kind"), text(each, "name")) == (CLUSTER.kind, spec.cluster_name) for each in owners)
        if not known and not spec.outlives_cluster:
            reference = {
                "apiVersion": text(cluster, "apiVersion") or CLUSTER.api_version,
                "kind": CLUSTER.kind,
                "name": spec.cluster_name,
                "uid": uid_of(cluster),
                "controller": False,
            }
            steps.append({"op": "add", "path": "/metadata/ownerReferences", "value": [*owners, reference]})
        return steps
