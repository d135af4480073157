"""Our tables in Neutron's database, read beside Neutron's own and put right.

Servers that work meanwhile change both in one transaction, so a reading of one moment shows no drift that is none. What
it does show is looked at again, with locks, before anything is written.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import sqlalchemy as sa

from tenure.integrations.neutron.database import subnet_records
from tenure.integrations.neutron.database.allocation_rows import (
    ALLOCATIONS,
    HeldAddress,
    SessionBook,
    dialect_of,
    digits_of,
    insert_unless_there,
    is_digits,
    place_of,
)
from tenure.integrations.neutron.database.subnet_records import SubnetRecord
from tenure.integrations.neutron.database.unreadable_rows import Unreadable, read_column
from tenure.integrations.neutron.maintenance.compare import (
    Ports,
    Seen,
    compare_rows,
    compare_subnet,
    owner_at,
    unreadable_row,
)
from tenure.integrations.neutron.maintenance.drift import Drift
from tenure.integrations.neutron.maintenance.neutron_database import Database
from tenure.integrations.neutron.maintenance.neutron_tables import (
    Carried,
    locked_allocations,
    read_allocations,
    read_subnet,
    subnet_ids,
)
from tenure.integrations.neutron.maintenance.ports_in_flight import to_come
from tenure.integrations.neutron.space_mapping import Spaces

T = TypeVar("T")
NEUTRONS_ROWS = "ipallocations"


def all_ids(database: Database) -> list[str]:
    """List the subnets that Neutron has, or we have."""
    with database.reading() as session:
        return sorted(subnet_ids(session) | record_ids(session))


def record_ids(session: Any) -> set[str]:
    """List the subnets that we have."""
    return set(session.execute(sa.select(subnet_records.TABLE.c.id)).scalars())


def see(database: Database, subnet: str, grace_s: int) -> Seen:
    """Read a subnet as Neutron has it and as we have it, at one moment."""
    with database.reading() as session:
        rows, broken_rows = _read_rows(session, subnet)
        truth, blind = _or_unreadable(lambda: read_subnet(session, subnet))
        record, broken = _or_unreadable(lambda: subnet_records.find(session, subnet))
        carried = read_allocations(session, subnet)
        coming = to_come(session, [held for place, held in rows.items() if place not in carried.ports], grace_s)
    return Seen(
        subnet, truth, record, carried.ports, rows, carried.odd, coming, grace_s, blind=blind, broken=broken,
        unreadable=[*broken_rows, *_unreadable(subnet, carried)], doubtful=frozenset(carried.unreadable.values()),
    )  # fmt: skip


def _or_unreadable(read: Callable[[], T]) -> tuple[T | None, Unreadable | None]:
    try:
        return read(), None
    except Unreadable as error:
        return None, error


def _read_rows(session: Any, subnet: str) -> tuple[dict[int, HeldAddress], list[Drift]]:
    """Read our rows of a subnet, and tell of those that cannot be read."""
    rows: dict[int, HeldAddress] = {}
    drifts = []
    for text, owner, generation, since_s in SessionBook(session, subnet).all():
        try:
            place = read_column(ALLOCATIONS.name, subnet, "address", text, place_of)
        except Unreadable as error:
            found = unreadable_row("row-unreadable", error)
            drifts.append(replace(found, text=f"{found.text}; it is for {owner}"))
        else:
            rows[place] = HeldAddress(place, owner, generation, since_s)
    return rows, drifts


def _unreadable(subnet: str, carried: Carried) -> list[Drift]:
    """Tell of what Neutron has ports carry, and what is no address."""
    reason = "ip_address is {!r} (not an IPv4 or IPv6 address), which port {} carries"
    errors = [Unreadable(NEUTRONS_ROWS, subnet, reason.format(*each)) for each in carried.unreadable.items()]
    return [unreadable_row("row-unreadable", error, left=True) for error in errors]


def drop_unreadable(database: Database, subnet: str) -> None:
    """Delete our rows of a subnet that cannot be read."""
    with database.writing() as session:
        texts = [text for text, *_ in SessionBook(session, subnet).all() if not is_digits(text)]
        mine = (ALLOCATIONS.c.subnet_id == subnet, ALLOCATIONS.c.address.in_(texts))
        session.execute(sa.delete(ALLOCATIONS).where(*mine))


def repair_subnet(database: Database, seen: Seen, spaces: Spaces) -> list[Drift]:
    """Make the record of a subnet that of Neutron's, if it still is not; return what was put right."""
    with database.writing() as session:
        record, broken = _or_unreadable(lambda: locked_record(session, seen.id))
        # Behind ours: whoever makes a subnet writes ours first.
        truth, blind = _or_unreadable(lambda: read_subnet(session, seen.id, lock=True))
        space = None if truth is None else spaces.at(truth.site)
        now = replace(seen, truth=truth, record=record, blind=blind, broken=broken)
        drifts = compare_subnet(now, space)
        if drifts and blind is None:
            _write(session, now, space)
        return drifts


def _write(session: Any, seen: Seen, space: str | None) -> None:
    truth, record = seen.truth, seen.record
    if truth is None:
        # By the number of the subnet: our record of it may be one that cannot be read.
        SessionBook(session, seen.id).clear()
        session.execute(subnet_records.TABLE.delete().where(subnet_records.TABLE.c.id == seen.id))
    elif seen.broken is not None:
        subnet_records.change(session, truth.record(space))
    elif record is None:
        values = truth.record(space).row()
        session.execute(insert_unless_there(subnet_records.TABLE, dialect_of(session)).values(values))
    else:
        fields = {"cidr": truth.cidr, "gateway_ip": truth.gateway_ip, "pools": truth.pools, "space": space}
        subnet_records.change(session, record.changed(**fields))


def locked_record(session: Any, subnet: str) -> SubnetRecord | None:
    """Read our record of a subnet as it is now, and keep everybody from allocating in it until the transaction ends.

    Whoever writes a row for an address holds the record in common with others like him, by the foreign key at least.
    """
    return subnet_records.find(session, subnet, locking=True)


def lock_record(session: Any, subnet: str) -> None:
    """Keep everybody from allocating in a subnet until the transaction ends, whatever our record says."""
    session.execute(
        sa.select(subnet_records.TABLE.c.id).where(subnet_records.TABLE.c.id == subnet).with_for_update()
    ).first()


def locked_rows(session: Any, subnet: str, places: Sequence[int]) -> dict[int, HeldAddress]:
    """Read rows as they are now, and keep them so until the transaction ends."""
    texts = [digits_of(place) for place in places]
    columns = ALLOCATIONS.c
    wanted = (columns.address, columns.owner, columns.generation, columns.since_s)
    mine = (columns.subnet_id == subnet, columns.address.in_(texts))
    found = session.execute(sa.select(*wanted).where(*mine).order_by(columns.address).with_for_update())
    held = [HeldAddress(place_of(text), *rest) for text, *rest in found]
    return {each.place: each for each in held}


def locked_sides(session: Any, seen: Seen, places: Sequence[int]) -> tuple[dict[int, HeldAddress], Ports]:
    """Read the rows of places, and which ports carry them or are about to, as it is now."""
    rows = locked_rows(session, seen.id, places)
    # Asked first: in the other order, a port that is written in between would be neither coming nor there.
    coming = to_come(session, rows.values(), seen.grace_s)
    return rows, {**seen.kept(rows), **coming, **locked_allocations(session, seen.id, seen.spellings(places))}


def repair_rows(database: Database, seen: Seen, suspects: Mapping[int, str], places: Sequence[int]) -> list[Drift]:
    """Make the rows of places what Neutron's ports say, where they still differ in the way that was suspected."""
    subnet = seen.id
    with database.writing() as session:
        rows, ports = locked_sides(session, seen, places)
        drifts = [each for each in compare_rows(subnet, ports, rows) if each.kind == suspects.get(each.place or 0)]
        by_kind: dict[str, list[int]] = {}
        for drift in drifts:
            assert drift.place is not None
            by_kind.setdefault(drift.kind, []).append(drift.place)
        _insert(session, subnet, ports, by_kind.get("row-missing", []))
        _delete(session, subnet, by_kind.get("row-extra", []))
        for place in by_kind.get("row-owner", []):
            # Which holding of a ledger it is has to be found out: that of the old owner it is not.
            SessionBook(session, subnet).regrant(place, owner_at(place, ports, {}), 0)
        return drifts


def _insert(session: Any, subnet: str, ports: Ports, places: Sequence[int]) -> None:
    if places:
        values = [
            # Without ``since_s``: the port is there, and the row waits for none.
            {"subnet_id": subnet, "address": digits_of(place), "owner": owner_at(place, ports, {}), "generation": 0}
            for place in places
        ]
        session.execute(insert_unless_there(ALLOCATIONS, dialect_of(session)).values(values))


def _delete(session: Any, subnet: str, places: Sequence[int]) -> None:
    if places:
        texts = [digits_of(place) for place in places]
        mine = (ALLOCATIONS.c.subnet_id == subnet, ALLOCATIONS.c.address.in_(texts))
        session.execute(sa.delete(ALLOCATIONS).where(*mine))


def note_generations(session: Any, subnet: str, generations: dict[int, int]) -> None:
    """Write on rows which holdings of the ledger they are."""
    if generations:
        by_text = {digits_of(place): generation for place, generation in generations.items()}
        mine = (ALLOCATIONS.c.subnet_id == subnet, ALLOCATIONS.c.address.in_(by_text))
        number = sa.case(by_text, value=ALLOCATIONS.c.address, else_=ALLOCATIONS.c.generation)
        session.execute(sa.update(ALLOCATIONS).where(*mine).values(generation=number))
