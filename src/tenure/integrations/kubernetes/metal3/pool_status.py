"""What a pool's ``status`` says: the fields of its provider, and ours under the one key ``tenure`` (KD3)."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from tenure.integrations.kubernetes.metal3.objects.address_objects import claim_name_of, is_made_here, pool_of
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import kind_of
from tenure.integrations.kubernetes.metal3.objects.drain_steps import DRAINED, DrainStep, drained_condition
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    STORED_INDEXES,
    WHOLE_AGAIN,
    field,
    finalizers_of,
    is_terminating,
    now_text,
    text,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_kinds import pool_id_of, pool_kind_of
from tenure.integrations.kubernetes.metal3.pool_book import OBJECT, PoolBook, object_key
from tenure.integrations.kubernetes.metal3.pool_record import PoolRecord
from tenure.integrations.kubernetes.metal3.pool_room import AGAIN, bytes_of, bytes_of_indexes, room_of
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of
from tenure.kernel.addressing.addresses import FAMILY_NAMES, Family, format_address

READY, OVERLAPPING, REALM_SHARED = "Ready", "Overlapping", "RealmShared"
"""Conditions of a pool: whether it is served; and, which is no hindrance, whether it shares addresses with others, and
whether a ledger holds addresses of its realm for pools that are not here."""
LARGEST = 2**63 - 1
"""What an integer of the API holds; a larger count is written as this."""
SAMPLE = 50
"""How many addresses of others, outside of the pool, and orphans, are listed by name."""


class LeaderNotes(NamedTuple):
    """What a pool keeps for its leaders, as its status lists it."""

    reserving: list[Object]
    cooling: list[Object]
    remembered: list[Object]


def shown_indexes(record: PoolRecord, pool: Object, own: Object) -> Mapping[str, str]:
    """Return what ``status.indexes`` is to say beside ``status.tenure``; nothing, if it has no room there (KD4)."""
    # A status that was never written was not emptied: a large pool shows its claims on its first day.
    was_emptied = bool(text(pool, "status", "lastUpdated")) and not field(pool, "status", "indexes")
    # Two limits, and not one: else a pool at the limit would be rewritten whole with every claim that comes or goes.
    if len(record.indexes) > (WHOLE_AGAIN if was_emptied else STORED_INDEXES):
        return {}
    is_cramped = not own
    room = room_of(pool, is_cramped=is_cramped) - bytes_of([own.get(name) for name in ("reserving", "cooling")])
    taken = bytes_of_indexes(record.indexes, is_cramped=is_cramped)
    return record.indexes if taken <= (room * AGAIN if was_emptied else room) else {}


def own_status(
    record: PoolRecord,
    pool: Object,
    notes: LeaderNotes,
    problem: tuple[str, str],
    orphans: list[Object],
    overlap: str = "",
    steps: Sequence[DrainStep] = (),
) -> Object:
    """Return what ``status.tenure`` is to say; a problem is a reason and a message, both empty if there is none.

    ``overlap``: what the pool has in common with others, for people; empty if nothing. ``steps``: the first of those
    that still have addresses of a drained range.
    """
    book, reason = record.book, problem[0]
    conditions = [_condition(pool, READY, "False" if reason else "True", reason or "Serving", problem[1])]
    if overlap:
        conditions.append(_condition(pool, OVERLAPPING, "True", "AddressesShared", overlap))
    if record.ledger.strange:
        conditions.append(_condition(pool, REALM_SHARED, "True", "PoolElsewhere", record.ledger.strange))
    drained = book.drains
    if drained:
        found = drained_condition(len(book.draining), drained, steps)
        conditions.append(_condition(pool, DRAINED, *found))
    families = [
        {
            "family": FAMILY_NAMES[family],
            **_counts(book.spec.size_of(family), book.free_of(family), book.used_of(family), book.kept_back_of(family)),
        }
        for family in Family
        if book.spec.size_of(family)
    ]
    return {
        "observedGeneration": int(pool["metadata"].get("generation") or 0),
        "addresses": {
            **_counts(book.spec.size, book.free, book.used, book.kept_back),
            "outside": len(book.outside),
            "waiting": record.without_address,
        },
        "families": families,
        **notes._asdict(),
        "conditions": conditions,
        "foreign": list(islice(record.foreign.values(), SAMPLE)),
        "outside": list(islice(_outside(book, pool_id_of(pool)), SAMPLE)),
        "orphans": orphans[:SAMPLE],
        "ledger": _ledger(record),
        "drain": {"left": len(book.draining), "holders": [each._asdict() for each in steps]} if drained else {},
    }


def is_condition(pool: Object, type: str, status: str) -> bool:
    """Return whether a pool has a condition with this status."""
    known = field(pool, "status", "tenure", "conditions")
    found = (each for each in known if isinstance(each, dict)) if isinstance(known, list) else ()
    return any((text(each, "type"), text(each, "status")) == (type, status) for each in found)


def _counts(total: int, free: int, used: int, kept: int) -> Object:
    """Return what is counted of a pool, or of one family in it."""
    counted = {"total": total, "free": free, "used": used, "kept": kept}
    return {**{name: min(count, LARGEST) for name, count in counted.items()}, "usedPercent": used_percent(used, free)}


def used_percent(used: int, free: int) -> int:
    """Return how much of what claims can get is used, in percent; 100 only where nothing is free, 0 where all is."""
    if not free:
        return 100 if used else 0
    return max(min(used * 100 // (used + free), 99), 1) if used else 0


def _outside(book: PoolBook, pool: PoolId) -> Iterator[Object]:
    """Yield the objects whose addresses are in no entry, in the order of the addresses."""
    for position in sorted(book.outside):
        for name in sorted(name for sort, name in book.holders_at(position) if sort == OBJECT):
            yield {"address": format_address(position), "name": pool.listed(object_key(name))}


def _ledger(record: PoolRecord) -> Object:
    """Return which network of a ledger the pool is bound to, and when that last answered; nothing for others."""
    binding, observed_at = record.book.spec.ledger, record.ledger.observed_at
    return (
        {} if binding is None else {"network": binding.network, **({"observedAt": observed_at} if observed_at else {})}
    )


def foreign_entry(address: Object) -> Object | None:
    """Return how an address is listed that others made and no claim here has adopted; nothing for any other."""
    if is_made_here(address) or kind_of(address).address_finalizer in finalizers_of(address):
        return None
    pool = pool_of(address)
    name = pool.listed(key_of(address)) if pool is not None else key_of(address)[1]
    return {"address": text(address, "spec", "address"), "name": name, "claim": claim_name_of(address)}


def problem_of(
    record: PoolRecord, pool: Object, *, is_paused: bool, is_cluster_missing: bool, unseen: str = ""
) -> tuple[str, str]:
    """Return what is wrong with a pool, as a reason and a message; both empty if nothing is."""
    spec = record.book.spec
    if is_terminating(pool):
        away = f"; the ledger: {record.ledger.away}" if spec.ledger is not None and record.ledger.away else ""
        return "Deleting", f"the pool goes when its last address is released{away}"
    if record.book.faults:
        return "SpecInvalid", "; ".join(map(str, record.book.faults[:5]))
    if unseen:
        return "NamespacesUnseen", unseen
    if is_cluster_missing:
        return "ClusterMissing", f"Cluster {spec.cluster_name} is not there; nothing is given until it is"
    if is_paused:
        return "Paused", "the pool or its cluster is paused"
    if spec.ledger is not None and record.ledger.away:
        return "LedgerUnavailable", f"network {spec.ledger.network}: {record.ledger.away}"
    if spec.ledger is not None and record.ledger.refused:
        return "LedgerConflict", "; ".join(islice(record.ledger.refused.values(), 5))
    if record.book.doubled:
        shown = ", ".join(map(format_address, sorted(record.book.doubled)[:5]))
        return "AddressDoubled", f"several IPAddress objects hold one address: {shown}; delete all but one of each"
    if record.waiting and not record.book.free:
        return "Exhausted", f"{record.waiting} claims wait for an address"
    return "", ""


def status_changes(record: PoolRecord, pool: Object, own: Object) -> Object:
    """Return the fields of a merge patch that make the status what it should be; nothing if it is that already."""
    is_counted = pool_kind_of(pool).counts_addresses
    changes = _counted(record, pool, own) if is_counted else _listed(pool, shown_indexes(record, pool, own))
    own = {name: value for name, value in own.items() if not is_counted or name != "conditions"}
    before_own = field(pool, "status", "tenure") or {}
    changed = {name: value for name, value in own.items() if before_own.get(name) != value}
    # A list that is empty need not be there.
    changed = {name: value or None for name, value in changed.items() if value or before_own.get(name)}
    if changed:
        changes["tenure"] = changed
    return changes


def _counted(record: PoolRecord, pool: Object, own: Object) -> Object:
    """Return what changes of the in-cluster provider's fields; conditions are where Cluster API looks for them."""
    book = record.book
    numbers = {"total": book.size, "free": book.free, "used": len(record.addresses), "outOfRange": len(book.off_line)}
    wanted: Object = {"ipAddresses": {name: min(number, LARGEST) for name, number in numbers.items()}}
    if "conditions" in own:
        wanted["conditions"] = own["conditions"]
    return {name: value for name, value in wanted.items() if field(pool, "status", name) != value}


def _listed(pool: Object, indexes: Mapping[str, str]) -> Object:
    """Return what changes of Metal3's fields."""
    before: Mapping[str, Any] = field(pool, "status", "indexes") or {}
    changes: Object = {}
    indexed: Object = {name: address for name, address in indexes.items() if before.get(name) != address}
    # A merge patch leaves what it does not name, so claims that are gone are named with nothing.
    indexed |= dict.fromkeys(before.keys() - indexes.keys())
    if indexed:
        changes["indexes"] = indexed
        changes["lastUpdated"] = now_text()
    return changes


def _condition(pool: Object, type: str, status: str, reason: str, message: str) -> Object:
    """Return a condition, with the time of its last change."""
    generation = int(pool["metadata"].get("generation") or 0)
    condition = {
        "type": type, "status": status, "reason": reason, "message": message, "observedGeneration": generation,
    }  # fmt: skip
    place = ("conditions",) if pool_kind_of(pool).counts_addresses else ("tenure", "conditions")
    known = field(pool, "status", *place)
    for each in known if isinstance(known, list) else ():
        # Another message alone is no transition: the time stays, or each pass would write the status.
        if text(each, "type") == type and each.get("status") == status:
            return {**condition, "lastTransitionTime": each.get("lastTransitionTime") or now_text()}
    return {**condition, "lastTransitionTime": now_text()}
