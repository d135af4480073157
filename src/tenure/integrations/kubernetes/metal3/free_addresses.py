"""What is free in a pool for people who ask: counted from objects, and from what the ledger of the pool holds."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from tenure.integrations.kubernetes.metal3.ledger.network_mirror import read_neighbours, read_plan
from tenure.integrations.kubernetes.metal3.objects.address_objects import claim_id_of, position_of
from tenure.integrations.kubernetes.metal3.objects.claim_reading import reference_of, was_served
from tenure.integrations.kubernetes.metal3.objects.ledger_owner import ledger_owner
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.pool_book import LEDGER, PICKED, PoolBook
from tenure.integrations.kubernetes.metal3.read_pools import ReadPools
from tenure.kernel.addressing.addresses import format_address
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
            book.hold((LEDGER, f"{holding.owner} {holding.slot} {position}"), position)
            others += (str(holding.owner), position) not in own and book.spec.entry_at(position) is not None
    waiting = [
        claim
        for claim in read.claims.values()
        if (reference := reference_of(claim)) is not None and reference.pool == key and not was_served(claim)
    ]
    held = [position_of(each) for each in read.addresses_of(key)]
    used = sum(position is not None and book.spec.entry_at(position) is not None for position in held)
    counts = {"total": book.spec.size, "free": book.free, "used": used, "kept": book.kept_back}
    counts["outside"] = len(held) - used
    network = {} if binding is None else {"network": binding.network, "held_by_others": others}
    return {
        "pool": key.path,
        **counts,
        **network,
        "waiting": len(waiting),
        "next": list(islice(_next(book), named)),
    }


def _next(book: PoolBook) -> Iterator[str]:
    """Yield what would be picked, one after the other."""
    while (position := book.pick()) is not None:
        book.hold((PICKED, str(position)), position)
        yield format_address(position)
