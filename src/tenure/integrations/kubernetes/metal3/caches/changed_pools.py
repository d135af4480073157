"""What a change of a pool means to its record, and to those of pools that share addresses with it."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from tenure.integrations.kubernetes.metal3.caches.departed_claims import DepartedClaims
from tenure.integrations.kubernetes.metal3.caches.followed_objects import FollowedObjects
from tenure.integrations.kubernetes.metal3.caches.pool_records import PoolRecords
from tenure.integrations.kubernetes.metal3.objects.address_objects import range_of
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import id_of
from tenure.integrations.kubernetes.metal3.objects.cooling_addresses import cooling_in, cooling_written
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    DELETE_FOR_MOVE,
    NETWORK,
    PAUSED,
    WATCH_FILTER,
    annotations_of,
    field,
    is_terminating,
    labels_of,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_kinds import pool_id_of, read_pool
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolReading, PoolSpec
from tenure.integrations.kubernetes.metal3.objects.remembered_addresses import (
    RememberedAddresses,
    remembered_in,
    remembered_written,
)
from tenure.integrations.kubernetes.metal3.objects.reservations import reserved_in
from tenure.integrations.kubernetes.metal3.pool_book import CLAIM, COOLING, RESERVED, cooling_holder, holder_of
from tenure.integrations.kubernetes.metal3.pool_record import PoolRecord
from tenure.integrations.kubernetes.runtime.object_cache import Delta
from tenure.integrations.kubernetes.runtime.resource_types import Object, uid_of


@dataclass
class ChangedPools:
    """Enter changes of pools into their records. Cost: O(n) of what a pool lists; O(n log n) for another ``spec``."""

    objects: FollowedObjects
    records: PoolRecords
    departed: DepartedClaims

    def enter(self, delta: Delta) -> None:
        """Let the book of a pool have what the pool says now."""
        before, after = delta.before, delta.after
        pool = pool_id_of(after or before or {})
        record = self.records.of(pool)
        if after is not None:
            _share_texts(after, record.indexes)
        if after is None or before is None or _says_of_addresses(before) != _says_of_addresses(after):
            self._lay(pool, record, after)
        self._reserve(record, reserved_in(after) if after else {})
        self._cool(record, before, after)
        # Compared as written: a pool changes with every batch, and may remember thousands of addresses.
        if after is None or before is None or remembered_written(before) != remembered_written(after):
            record.book.remember(remembered_in(after) if after is not None else RememberedAddresses())
        if after is None or before is None or _concerns_claims(before, after):
            record.look_again()
        record.is_status_due = True
        self.records.wake_or_tidy(pool)

    def _lay(self, pool: PoolId, record: PoolRecord, after: Object | None) -> None:
        """Let a book have the addresses that the pool's ``spec`` says."""
        shared = record.book.spec.namespaces
        record.book.lay(PoolReading(PoolSpec(), []) if after is None else read_pool(after))
        self.records.note_overlaps(pool, is_there=after is not None)
        if shared != record.book.spec.namespaces:
            self._hold_elsewhere(pool, record)
        for address in self.objects.addresses_of(pool) if record.book.spec.gives_prefixes else ():
            record.book.hold_range(holder_of(address), range_of(address, record.book.spec))

    def _hold_elsewhere(self, pool: PoolId, record: PoolRecord) -> None:
        """Let claims of other namespaces hold the addresses that they name, if the pool serves them by now."""
        for claim in self.objects.claims_elsewhere(pool):
            self.records.drop(record, (CLAIM, uid_of(claim)))
            record.book.hold((CLAIM, uid_of(claim)), self.records.own_of(claim, pool))

    def _reserve(self, record: PoolRecord, reserved: dict[str, int]) -> None:
        """Let reservations hold their addresses, also of claims that are not known: their watch may be behind."""
        for holder in record.book.holders_of_sort(RESERVED):
            if holder[1] not in reserved:
                self.records.drop(record, holder)
                record.strangers.pop(holder[1], None)
        for uid, position in reserved.items():
            # Not for a departed claim: it would count as a stranger, and keep its address for a while more.
            if record.book.position_of((RESERVED, uid)) == position or uid in self.departed:
                continue
            record.book.hold((RESERVED, uid), position)
            claim = self.objects.claim_of_uid(uid)
            if claim is None:
                record.strangers[uid] = time.monotonic()
            elif record.is_in_line(id_of(claim)):
                record.dirty.add(id_of(claim))  # another leader has reserved it an address, which it need not wait for

    def _cool(self, record: PoolRecord, before: Object | None, after: Object | None) -> None:
        """Let exactly those addresses cool off that a pool lists; what is free by that serves claims that wait."""
        if before is not None and after is not None and cooling_written(before) == cooling_written(after):
            return
        record.cooling = cooling_in(after) if after is not None else {}
        cooling = {cooling_holder(position, each.claim): position for position, each in record.cooling.items()}
        for holder in record.book.holders_of_sort(COOLING):
            if holder not in cooling:
                self.records.drop(record, holder)
        for holder, position in cooling.items():
            record.book.hold(holder, position)


def _share_texts(pool: Object, indexes: Mapping[str, str]) -> None:
    """Let a pool's list have the texts of its record: every version that is parsed has thousands of its own."""
    listed = field(pool, "status", "indexes")
    # A list that was emptied, for it had too many entries (KD4), is not compared with all of them.
    if isinstance(listed, dict) and listed:
        shared = {name: address for name, address in indexes.items() if listed.get(name) == address}
        pool["status"]["indexes"] = shared | {name: listed[name] for name in listed.keys() - shared.keys()}


def _says_of_addresses(pool: Object) -> tuple[object, str | None]:
    """Return all that the addresses of a pool depend on."""
    return pool.get("spec"), annotations_of(pool).get(NETWORK)


def _concerns_claims(before: Object, after: Object) -> bool:
    """Return whether a change of a pool may change what is decided about its claims; ours do not."""
    if before.get("spec") != after.get("spec") or is_terminating(before) != is_terminating(after):
        return True
    is_marked = [[name in annotations_of(each) for name in (PAUSED, DELETE_FOR_MOVE)] for each in (before, after)]
    return is_marked[0] != is_marked[1] or labels_of(before).get(WATCH_FILTER) != labels_of(after).get(WATCH_FILTER)
