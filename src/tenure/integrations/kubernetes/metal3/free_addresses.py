"""What is free in a pool for people who ask, by objects and by the pool's ledger; and what is left of a drain."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any

from tenure.integrations.kubernetes.metal3.ledger.network_mirror import read_neighbours, read_plan
from tenure.integrations.kubernetes.metal3.objects.address_objects import claim_id_of, position_of
from tenure.integrations.kubernetes.metal3.objects.claim_reading import own_address, reference_of, was_served
from tenure.integrations.kubernetes.metal3.objects.drain_steps import DrainStep, claim_step, drain_step
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import text
from tenure.integrations.kubernetes.metal3.objects.ledger_owner import ledger_owner
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.pool_book import LEDGER, NAME, PICKED, PoolBook
from tenure.integrations.kubernetes.metal3.read_pools import ReadPools
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.addressing.ranges import AddressRange
from tenure.service.ledger.async_ledger import AsyncLedger


async def count_free(read: ReadPools, key: PoolId, ledger: AsyncLedger | None, named: int) -> dict[str, Any]:
    """Count what a pool has, and name so many addresses that would be given next. O(n) of what is held."""
    book, binding = read.book_of(key), read.spec_of(key).spec.ledger
    others = 0
    if ledger is not None and binding is not None:
        own = {(ledger_owner(binding.realm, claim_id_of(each)), position_of(each)) for each in read.addresses_of(key)}
        plan = await read_plan(ledger, binding.network)
        book.follow_plan(plan)
        for holding in (*await ledger.holdings(binding.network), *await read_neighbours(ledger, plan)):
            position = holding.row.first
            # With slot and position: a holder has one place in a book, and an owner may hold several addresses.
            book.hold((LEDGER, f"{holding.owner} {holding.slot} {position}"), position)
            others += (str(holding.owner), position) not in own and book.spec.entry_at(position) is not None
    waiting = [
        claim
        for claim in read.claims.values()
        if (reference := reference_of(claim)) is not None and reference.pool == key and not was_served(claim)
    ]
    held = [position_of(each) for each in read.addresses_of(key)]
    used = sum(position is not None and book.spec.entry_at(position) is not None for position in held)
    taken = {position: each for position, each in read.names_taken(key).items() if _has_only_name(book, position)}
    counts = {"total": book.spec.size, "free": book.free, "used": used + len(taken), "kept": book.kept_back}
    counts["outside"] = len(held) - used
    faults = read.spec_of(key).faults
    network = {} if binding is None else {"network": binding.network, "held_by_others": others}
    return {
        "pool": key.path,
        "kind": key.kind,
        **counts,
        **network,
        "waiting": len(waiting),
        "faults": list(map(str, faults)),
        "names_taken": [_name_text(position, each) for position, each in sorted(taken.items(), key=itemgetter(0))],
        "next": [] if faults else list(islice(_next(book), named)),
    }


def _has_only_name(book: PoolBook, position: int) -> bool:
    """Return whether an address would be free, if no other object had the name of its own."""
    return book.is_on_line(position) and all(sort == NAME for sort, _ in book.holders_at(position))


def _name_text(position: int, named: Object) -> str:
    name = key_of(named)[1]
    return f"{format_address(position)} (IPAddress {name} is there, for {text(named, 'spec', 'address')})"


def _next(book: PoolBook) -> Iterator[str]:
    """Yield what would be picked, one after the other; from a pool of prefixes, prefixes."""
    while (position := book.pick()) is not None:
        book.hold((PICKED, str(position)), position)
        length = "" if book.spec.unit == 1 else f"/{book.spec.options_at(position).prefix}"
        yield f"{format_address(position)}{length}"


def drain_document(read: ReadPools, key: PoolId, ranges: Sequence[AddressRange]) -> dict[str, Any]:
    """Return the plan of a drain of a pool; ``ranges``: what to drain, in place of what the pool says."""
    spec = read.spec_of(key).spec
    drained = tuple(ranges) or spec.drained
    steps = [step for _, step in sorted(_steps(read, key, drained))]
    elsewhere = _free_elsewhere(read, key, drained)
    return {
        "pool": key.path,
        "drain": [str(each) for each in drained],
        "is_set": all(any(known.covers(each) for known in spec.drained) for each in drained),
        "left": len(steps),
        "free_elsewhere": elsewhere,
        "has_room": elsewhere >= len(steps),
        "holders": [each._asdict() for each in steps],
    }


def _steps(read: ReadPools, key: PoolId, drained: Sequence[AddressRange]) -> Iterator[tuple[int, DrainStep]]:
    """Yield who has addresses of drained ranges, behind these: by an object, or by what a claim says without one."""
    held = set[int]()
    for address in read.addresses_of(key):
        position = position_of(address)
        if position is not None and any(position in each for each in drained):
            held.add(position)
            yield position, drain_step(key, address, read.claim_of(address))
    for claim in _claims_of(read, key):
        position = own_address(claim)
        if position is not None and position not in held and any(position in each for each in drained):
            yield position, claim_step(key, claim, position)


def _claims_of(read: ReadPools, key: PoolId) -> Iterator[Object]:
    """Yield the claims of a pool that it serves: those of its namespace, and of others that it names."""
    for id, claim in read.claims.items():
        reference = reference_of(claim)
        if reference is not None and reference.pool == key and read.is_open_to(key, id.namespace):
            yield claim


def _free_elsewhere(read: ReadPools, key: PoolId, drained: Iterable[AddressRange]) -> int:
    """Count what claims could get outside of the drained ranges."""
    return read.book_of(key, also_drained=tuple(drained)).free
