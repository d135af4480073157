"""The writes on pools: finalizer and cluster, reservations, status. Each names the version that was read."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from tenure.integrations.kubernetes.metal3.caches.cramped_kinds import CrampedKinds
from tenure.integrations.kubernetes.metal3.caches.ipam_caches import IpamCaches
from tenure.integrations.kubernetes.metal3.objects.address_objects import claim_id_of, pool_of, position_of
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import kind_of
from tenure.integrations.kubernetes.metal3.objects.claim_reading import reference_of
from tenure.integrations.kubernetes.metal3.objects.cooling_addresses import (
    MOST_COOLING,
    CoolingAddress,
    cooling_entries,
    cooling_written,
    listed_addresses,
)
from tenure.integrations.kubernetes.metal3.objects.drain_steps import (
    DRAINED,
    DrainStep,
    claim_step,
    drain_step,
    drained_condition,
)
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLUSTER,
    CLUSTER_NAME,
    COOLING_LIST,
    PROVIDER_LABEL,
    RESERVING,
    annotations_of,
    finalizers_of,
    is_terminating,
    labels_of,
    mapping,
    text,
)
from tenure.integrations.kubernetes.metal3.objects.listed_entries import as_annotation, last_that_fit, last_within
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_kinds import POOL_KINDS, pool_kind_of
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolSpec
from tenure.integrations.kubernetes.metal3.objects.remembered_addresses import (
    MOST_REMEMBERED,
    RememberedAddresses,
    remembered_entries,
)
from tenure.integrations.kubernetes.metal3.objects.reservations import kinds_in, reserved_in, reserving
from tenure.integrations.kubernetes.metal3.pool_book import RESERVED
from tenure.integrations.kubernetes.metal3.pool_overlaps import overlap_text
from tenure.integrations.kubernetes.metal3.pool_record import PoolRecord
from tenure.integrations.kubernetes.metal3.pool_room import bytes_of, room_of
from tenure.integrations.kubernetes.metal3.pool_status import (
    OVERLAPPING,
    REALM_SHARED,
    SAMPLE,
    LeaderNotes,
    is_condition,
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
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of, uid_of

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
    check: Callable[[Object], None]
    """Raises if this process must not write an object, such as when it does not lead; asked before every write."""
    orphans_of: Callable[[PoolId], list[Object]] = field(default=lambda key: [])
    """Return the addresses of a pool without a claim, as the status lists them."""
    serves: Callable[[Object], bool] = field(default=lambda pool: True)
    """Return whether a pool is one that this operator looks after (E7)."""
    cramped: CrampedKinds = field(default_factory=CrampedKinds)
    """Kinds of which no status has room for what is ours."""

    async def prepare(self, pool: Object, spec: PoolSpec) -> Object:
        """Give a pool its finalizer, and what binds it to its cluster (E1); return the pool."""
        steps = [*finalizer_steps(pool, pool_kind_of(pool).finalizer), *self._cluster_steps(pool, spec)]
        if not steps or is_terminating(pool):
            return pool
        self.check(pool)
        patched = await self.client.patch(pool_kind_of(pool).type, pool, guarded(pool, *steps))
        self.caches.objects.pools.wrote(patched)
        return patched

    async def reserve(self, key: PoolId, chosen: dict[str, int]) -> Object:
        """Reserve addresses for claims by their uids, with all else that the status is to say; return the pool."""
        pool = self.caches.objects.pools.get(key)
        if pool is None or is_terminating(pool):
            # As the server would say it, so that the claims of the batch are looked at again.
            raise WriteConflict(409, "Conflict", f"{key.title} is going")
        notes = self._notes(key, pool, chosen=chosen)
        if key.kind not in self.cramped:
            pool = await self._patch_status(key, pool, notes)
            # The answer shows what was stored: a definition without room drops fields, and no error says so.
            if chosen.items() <= reserved_in(pool).items():
                return pool
            self.cramped.add(key.kind)
        return await self._annotate(pool, {RESERVING: notes.reserving})

    async def note_released(self, addresses: Iterable[Object]) -> None:
        """Write down which addresses are about to be released, where their pool is to know: one write a pool.

        It comes before the objects go. A crash between the two makes addresses less available, and nothing else (KP13).
        """
        by_pool: dict[PoolId, list[Object]] = {}
        for address in addresses:
            if (key := pool_of(address)) is not None and self.notes_releases(key):
                by_pool.setdefault(key, []).append(address)
        for key, released in by_pool.items():
            # One after the other: each names the version of the pool that the former has made.
            async with self.caches.records.of(key).noting:
                try:
                    await self._note_released(key, released)
                except WriteConflict:
                    # The watch may be behind: with the same version the next try would fail as well.
                    await self.refresh(key)
                    raise

    def notes_releases(self, key: PoolId) -> bool:
        """Return whether a pool is written before its addresses are released; a pool that is going is not.

        Nor is a pool of another operator: a claim of ours with an address of it is let go all the same, since that
        operator does not look after the claim.
        """
        pool, spec = self.caches.objects.pools.get(key), self.caches.records.of(key).book.spec
        if pool is None or is_terminating(pool) or key[0] in self.caches.terminating or not self.serves(pool):
            return False
        return spec.sticky or _cools(spec)

    async def _note_released(self, key: PoolId, addresses: Iterable[Object]) -> None:
        pool, spec = self.caches.objects.pools.get(key), self.caches.records.of(key).book.spec
        if pool is None or not self.notes_releases(key):
            return  # it went, or began to, while others were noted
        # Rounded up: an address rests for no less than was promised.
        until = math.ceil(time.time() + spec.cooling_s)
        released = [
            CoolingAddress(until, position, claim_id_of(each))
            for each in addresses
            if (position := position_of(each)) is not None
        ]
        notes = self._notes(key, pool, released=released)
        if key.kind not in self.cramped:
            pool = await self._patch_status(key, pool, notes)
            # What was written, and not what is released: of too many the oldest have made room.
            if not _cools(spec) or listed_addresses(notes.cooling) <= listed_addresses(cooling_written(pool)):
                return
            self.cramped.add(key.kind)
        await self._annotate(pool, {COOLING_LIST: self._annotated(pool, notes.cooling)})

    async def write_status(self, key: PoolId) -> None:
        """Write what the status is to say, if it says something else."""
        pool = self.caches.objects.pools.get(key)
        if pool is None:
            return
        notes = self._notes(key, pool)
        pool = await self._patch_status(key, pool, notes)
        cooling = self._annotated(pool, notes.cooling) if key.kind in self.cramped else []
        annotated = {RESERVING: notes.reserving, COOLING_LIST: cooling}
        stale = {
            name: entries
            for name, entries in annotated.items()
            if name in annotations_of(pool)
            and (not entries or (name == COOLING_LIST and annotations_of(pool)[name] != as_annotation(entries)))
        }
        if stale:
            # The status is right already: if this write fails, nothing else would ask for another look.
            self.caches.records.of(key).is_status_due = True
            await self._annotate(pool, stale)

    def _notes(
        self,
        key: PoolId,
        pool: Object,
        *,
        chosen: Mapping[str, int] | None = None,
        released: Iterable[CoolingAddress] = (),
    ) -> LeaderNotes:
        """Return what a pool keeps for its leaders."""
        reserved = {**self._still_reserved(key, pool), **(chosen or {})}
        reserving = self._reserving(pool, reserved)
        cooling = self._cooling(key, pool, released, room_of(pool) - bytes_of(reserving))
        notes = LeaderNotes(reserving, cooling, self._remembered(key, released))
        return notes._replace(remembered=last_within(notes.remembered, self._left_room(key, pool, notes)))

    def _left_room(self, key: PoolId, pool: Object, notes: LeaderNotes) -> int:
        """Return how many bytes are left in a pool for what it remembers, beside all else that it lists."""
        if not notes.remembered:
            return 0
        shown = shown_indexes(self.caches.records.of(key), pool, notes._asdict())
        listed = (notes.reserving, notes.cooling, dict(shown))
        return room_of(pool) - sum(map(bytes_of, listed))

    def _remembered(self, key: PoolId, released: Iterable[CoolingAddress]) -> list[Object]:
        """Return which claims had which addresses, of a sticky pool: without claims that are there and have one."""
        book = self.caches.records.of(key).book
        if not book.spec.sticky:
            return []
        kept = RememberedAddresses((claim, at) for claim, at in book.remembered if not self._owned(key, claim))
        for each in released:
            kept.note(each.claim, each.position)
        return remembered_entries(list(kept)[-MOST_REMEMBERED:])

    def _cooling(self, key: PoolId, pool: Object, released: Iterable[CoolingAddress], room: int) -> list[Object]:
        """Return what cools off in a pool: without what has cooled off, and what the claim of its name has again.

        An entry never lasts longer than a new one would: the pool may have been changed, or a clock be set back.
        """
        record = self.caches.records.of(key)
        now, spec = time.time(), record.book.spec
        latest = math.ceil(now + spec.cooling_s)
        cooling = {
            position: each._replace(until=min(each.until, latest))
            for position, each in record.cooling.items()
            if _cools(spec) and each.until > now and position not in self._owned(key, each.claim)
        }
        cooling |= {each.position: each for each in released if _cools(spec)}
        ordered = sorted(cooling.values())
        kept = last_within(cooling_entries(ordered[-MOST_COOLING:]), room)
        self._report_cut(pool, len(ordered) - len(kept), f"the pool has room for {len(kept)} of them")
        return kept

    def _annotated(self, pool: Object, cooling: list[Object]) -> list[Object]:
        """Return what cools off as an annotation has room for it: of too many, those that are free last."""
        kept = last_that_fit(pool, cooling, (RESERVING, COOLING_LIST))
        room = f"the annotations of a pool have room for {len(kept)} of them, since its definition has none"
        self._report_cut(pool, len(cooling) - len(kept), room)
        return kept

    def _report_cut(self, pool: Object, surplus: int, room: str) -> None:
        """Record an event, if more addresses cool off than the pool can list."""
        if surplus > 0:
            note = f"{surplus} addresses cool off no longer: {room}"
            self.events.record(pool_kind_of(pool).type, pool, "CoolingCutShort", note, "Warning")

    def _owned(self, key: PoolId, claim: ClaimId) -> set[int]:
        """Return the addresses of a pool that a living claim of this name has again."""
        found = self.caches.objects.claim(claim)
        if found is None or is_terminating(found):
            return set()
        owned = self.caches.objects.addresses_owned(uid_of(found))
        positions = {position_of(each) for each in owned if pool_of(each) == key}
        return {each for each in positions if each is not None}

    async def let_go(self, pool: Object) -> None:
        """Take the finalizer away, so that a pool without addresses can go (D6, D7)."""
        kind = pool_kind_of(pool)
        if kind.finalizer not in finalizers_of(pool):
            return
        self.check(pool)
        try:
            answer = await self.client.patch(kind.type, pool, remove_finalizer(pool, kind.finalizer))
        except ObjectMissing:
            answer = GONE
        self.caches.objects.pools.deleted(pool, answer)

    async def refresh(self, key: PoolId) -> None:
        """Read a pool from the server itself."""
        try:
            self.caches.objects.pools.wrote(await self.client.get(POOL_KINDS[key.kind].type.path(*key.key)))
        except ObjectMissing:
            pool = self.caches.objects.pools.get(key)
            if pool is not None:
                self.caches.objects.pools.deleted(pool, GONE)

    def _still_reserved(self, key: PoolId, pool: Object) -> dict[str, int]:
        """Return the reservations that still count: their claim is there, and no object of it is seen yet (KD4).

        A claim that was never seen may be one that the watch has not brought yet; for a while its reservation counts.
        One for a claim of another pool was not written here.
        """
        record = self.caches.records.of(key)
        kept = {}
        for uid, position in reserved_in(pool).items():
            # The book has let go of it: its claim has gone, or cannot be given this address any more.
            if record.book.position_of((RESERVED, uid)) != position:
                continue
            claim = self.caches.objects.claim_of_uid(uid)
            is_strange = time.monotonic() - record.strangers.get(uid, float("-inf")) < STRANGE_S
            if is_strange if claim is None else self._awaits_object(key, claim):
                kept[uid] = position
        return kept

    def _reserving(self, pool: Object, reserved: Mapping[str, int]) -> list[Object]:
        """Write reservations down; the kind of a claim that was not seen yet is what the pool says already."""
        claims = {uid: self.caches.objects.claim_of_uid(uid) for uid in reserved}
        known = {uid: kind_of(claim).claim.kind for uid, claim in claims.items() if claim is not None}
        return reserving(reserved, {**kinds_in(pool), **known})

    def _awaits_object(self, pool: PoolId, claim: Object) -> bool:
        """Return whether a claim of a pool owns no address of it; one that only has its name may be another claim's."""
        reference = reference_of(claim)
        owned = self.caches.objects.addresses_owned(uid_of(claim))
        return reference is not None and reference.pool == pool and all(pool_of(each) != pool for each in owned)

    async def _patch_status(self, key: PoolId, pool: Object, notes: LeaderNotes) -> Object:
        record = self.caches.records.of(key)
        problem = problem_of(
            record, pool,
            is_paused=self.caches.records.is_pool_paused(key),
            is_cluster_missing=self.caches.records.is_cluster_missing(key), unseen=self.caches.records.why_unseen(key),
        )  # fmt: skip
        overlap = overlap_text(key, self.caches.records.overlaps.others(key))
        self._report(record, pool, problem, overlap)
        orphans, steps = self.orphans_of(key), list(islice(self._drain_steps(key), SAMPLE))
        own = {} if key.kind in self.cramped else own_status(record, pool, notes, problem, orphans, overlap, steps)
        changes = status_changes(record, pool, own)
        # Before the write: what changes while it is on its way makes the status due again.
        record.is_status_due, record.counted = False, record.waiting_counts
        # All of ours is stored, so there is room for it.
        if own and "tenure" not in changes:
            self._note_room(key.kind, has_room=True)
        if not changes:
            return pool
        record.status_at = time.monotonic()
        self.check(pool)
        try:
            patch = status_patch(pool, changes)
            patched = await self.client.patch(
                pool_kind_of(pool).type, pool, patch, content_type=MERGE_PATCH, subresource="status"
            )
        except BaseException:
            # Also where the leadership ends here: whether the write was done is not known.
            record.is_status_due = True
            raise
        # The answer is no news by itself; what has changed while the write was on its way is, and a reservation that
        # it ends, if that kept an address back until now.
        is_due, free = record.is_status_due, record.book.free
        self.caches.objects.pools.wrote(patched)
        record.is_status_due = is_due or record.book.free != free
        if "tenure" in changes:
            self._note_room(key.kind, has_room=bool(mapping(patched, "status", "tenure")))
        return patched

    def _note_room(self, kind: str, *, has_room: bool) -> None:
        """Note whether a definition has room for ours; if it has by now, all pools of the kind are to say so."""
        if not has_room:
            self.cramped.add(kind)
        elif self.cramped.discard(kind):
            for pool, _ in self.caches.records:
                if pool.kind == kind:
                    self.caches.records.status_due(pool)

    def _drain_steps(self, key: PoolId) -> Iterator[DrainStep]:
        """Yield what is still held in drained ranges, in the order of the addresses."""
        for position in sorted(self.caches.records.of(key).book.draining):
            objects = self.caches.records.addresses_at(key, position)
            for address in objects:
                yield drain_step(key, address, self.caches.objects.claim(claim_id_of(address)))
            # A claim is named by its object, where it has one, and not twice.
            for id in () if objects else self.caches.records.claims_at(key, position):
                if (claim := self.caches.objects.claim(id)) is not None:
                    yield claim_step(key, claim, position)

    def _report(self, record: PoolRecord, pool: Object, problem: tuple[str, str], overlap: str) -> None:
        """Record events of a pool: what is wrong; once, what it shares with others, and that a drain is over."""
        if problem[0] in EVENTFUL:
            self.events.record(pool_kind_of(pool).type, pool, *problem, "Warning")
        if overlap and overlap != record.reported_overlap:
            self.events.record(pool_kind_of(pool).type, pool, OVERLAPPING, overlap, "Warning")
        record.reported_overlap = overlap
        if record.ledger.strange:
            self.events.record(pool_kind_of(pool).type, pool, REALM_SHARED, record.ledger.strange, "Warning")
        book = record.book
        if book.drains and not book.draining and is_condition(pool, DRAINED, "False"):
            self.events.record(pool_kind_of(pool).type, pool, DRAINED, drained_condition(0, book.drains, ())[2])

    async def _annotate(self, pool: Object, notes: Mapping[str, list[Object]]) -> Object:
        """Keep entries in annotations, where the definition of the kind has no room for ours; none: remove them."""
        written = {name: as_annotation(entries) for name, entries in notes.items() if entries}
        steps: list[Step] = [
            {"op": "add", "path": pointer("metadata", "annotations", name), "value": value}
            for name, value in written.items()
        ]
        # A JSON patch cannot add to a map that is not there.
        if not annotations_of(pool):
            steps = [{"op": "add", "path": "/metadata/annotations", "value": written}]
        # A JSON patch that removes what is not there is refused whole.
        gone = [name for name in notes if name not in written and name in annotations_of(pool)]
        steps += [{"op": "remove", "path": pointer("metadata", "annotations", name)} for name in gone]
        self.check(pool)
        patched = await self.client.patch(pool_kind_of(pool).type, pool, guarded(pool, *steps))
        self.caches.objects.pools.wrote(patched)
        return patched

    def _cluster_steps(self, pool: Object, spec: PoolSpec) -> list[Step]:
        """Return what binds a pool to its cluster: labels, and an owner that is no controller."""
        cluster = self.caches.objects.clusters.get((key_of(pool)[0], spec.cluster_name)) if spec.cluster_name else None
        labels = {CLUSTER_NAME: spec.cluster_name, PROVIDER_LABEL[0]: PROVIDER_LABEL[1]}
        steps: list[Step] = []
        if cluster is not None and any(labels_of(pool).get(name) != value for name, value in labels.items()):
            steps.append({"op": "add", "path": "/metadata/labels", "value": {**labels_of(pool), **labels}})
        before = pool["metadata"].get("ownerReferences") or []
        owners = _owners(before, cluster, spec)
        return (
            [*steps, {"op": "add", "path": "/metadata/ownerReferences", "value": owners}] if owners != before else steps
        )


def _owners(before: list[Object], cluster: Object | None, spec: PoolSpec) -> list[Object]:
    """Return the owners of a pool: its cluster among them, or not, if the pool outlives that."""
    # By kind and name alone: after a move the uid and the version differ (E10).
    others = [each for each in before if (text(each, "kind"), text(each, "name")) != (CLUSTER.kind, spec.cluster_name)]
    if spec.outlives_cluster:
        return others
    if cluster is None or len(others) < len(before):
        return before
    reference = {
        "apiVersion": text(cluster, "apiVersion") or CLUSTER.api_version,
        "kind": CLUSTER.kind,
        "name": spec.cluster_name,
        "uid": uid_of(cluster),
        "controller": False,
    }
    return [*before, reference]


def _cools(spec: PoolSpec) -> bool:
    """Return whether addresses of a pool cool off by its own word: a ledger has a rule of its own."""
    return bool(spec.cooling_s) and spec.ledger is None
