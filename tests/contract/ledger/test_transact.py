"""``transact``: everything or nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tenure.kernel.holdings.holding_model import Entry, State
from tenure.kernel.plan.plan_model import Network
from tenure.ports import Guard, LedgerStore, Transaction
from tests.contract.sites import Site, at

pytestmark = pytest.mark.every_store

Step = Callable[[Site[LedgerStore], Transaction], Awaitable[Any]]


class Interrupted(Exception):
    """Stands for anything that may go wrong in the middle."""


async def _rename(site: Site[LedgerStore], tx: Transaction) -> None:
    await tx.put_networks(site.here.space, [Network(site.here.networks[0], "renamed", "other-uuid", tags=("t",))])


async def _add_space(site: Site[LedgerStore], tx: Transaction) -> None:
    space = await tx.add_space("new")
    await tx.put_networks(space, [Network(await tx.next_network(), "new", "uuid-new")])


async def _rewrite(site: Site[LedgerStore], tx: Transaction) -> None:
    [row] = await tx.rows_at(site.here.space, [at("192.0.2.10")])
    assert row is not None
    await tx.rewrite([row._replace(owner="vm/z", slot="z", state=State.DRAINING, details={"a": 1})])


async def _remove(site: Site[LedgerStore], tx: Transaction) -> None:
    [row] = await tx.rows_at(site.here.space, [at("192.0.2.11")])
    assert row is not None
    await tx.remove([row])


async def _remember(site: Site[LedgerStore], tx: Transaction) -> None:
    rows = await tx.rows_of(["vm/c", "vm/d"])
    await tx.remember(rows)


async def _empty_there(site: Site[LedgerStore], tx: Transaction) -> None:
    rows = await tx.rows_within(site.there.space, 0, at("255.255.255.255"))
    await tx.remove(rows)
    await tx.remove_networks(site.there.networks)
    await tx.remove_space(site.there.space)


STEPS: list[tuple[str, Step]] = [
    ("guard", lambda site, tx: tx.guard([site.here.space, site.there.space], Guard.EDIT)),
    ("add_space", _add_space),
    ("put_networks", _rename),
    ("bump", lambda site, tx: tx.bump(site.here.space)),
    ("insert", lambda site, tx: tx.insert(site.here.space, [site.wish("192.0.2.50", "vm/new")])),
    ("rewrite", _rewrite),
    ("remove", _remove),
    ("remember", _remember),
    ("remove_space", _empty_there),
    ("log", lambda site, tx: tx.log([Entry("note", details={"n": n}) for n in range(3)])),
    ("trim", lambda site, tx: tx.trim(3)),
]


async def _snapshot(site: Site[LedgerStore]) -> tuple[Any, ...]:
    async def inside(tx: Transaction) -> tuple[Any, ...]:
        formers = [await tx.former(site.here.networks[0], owner, "") for owner in ("vm/c", "vm/d")]
        return formers, list(await tx.configurations([site.here.space, site.there.space])), await tx.last_change()

    owners = ["vm/a", "vm/b", "vm/c", "vm/d", "vm/z", "vm/new"]
    return (
        await site.store.transact(inside),
        list(await site.store.spaces()),
        await site.rows(),
        await site.rows(ground=site.there),
        sorted(await site.store.by_owner(owners), key=lambda row: (row.space, row.first)),
        await site.news(),
        await site.store.locate(["renamed", "new"]),
    )


async def _furnished(site: Site[LedgerStore]) -> tuple[Any, ...]:
    for number, owner in enumerate(("vm/a", "vm/b", "vm/c", "vm/d"), 10):
        await site.held_by(f"192.0.2.{number}", owner)
    await site.held_by("192.0.2.10", "vm/a", ground=site.there)
    row = (await site.rows())[2]
    await site.store.transact(lambda tx: tx.remember([row]))
    return await _snapshot(site)


@pytest.mark.sampled
@pytest.mark.parametrize("count", range(1, len(STEPS) + 1), ids=[f"after {name}" for name, _ in STEPS])
async def test_a_transaction_that_raises_leaves_nothing_behind(site: Site[LedgerStore], count: int) -> None:
    before = await _furnished(site)

    async def work(tx: Transaction) -> None:
        for _, step in STEPS[:count]:
            await step(site, tx)
        raise Interrupted

    with pytest.raises(Interrupted):
        await site.store.transact(work)

    assert await _snapshot(site) == before


async def test_a_transaction_that_returns_has_done_all_of_it(site: Site[LedgerStore]) -> None:
    await _furnished(site)

    async def work(tx: Transaction) -> str:
        for _, step in STEPS:
            await step(site, tx)
        return "done"

    answer = await site.store.transact(work)

    assert answer == "done"
    assert [name for _, name in await site.store.spaces()] == ["here", "new"]
    assert [(row.owner, row.state) for row in await site.rows()] == [
        ("vm/z", State.DRAINING), ("vm/c", State.HELD), ("vm/d", State.HELD), ("vm/new", State.HELD),
    ]  # fmt: skip
    assert [change.seq for change in await site.news(2)] == [3, 4, 5, 6, 7, 8]
    assert await site.store.locate(["renamed"]) == {"renamed": site.here.space}


async def test_a_transaction_sees_its_own_effects(site: Site[LedgerStore]) -> None:
    async def work(tx: Transaction) -> tuple[Any, ...]:
        [verdict] = await tx.insert(site.here.space, [site.wish("192.0.2.10", "vm/a")])
        number = await tx.log([Entry("grant", site.here.space, 1, at("192.0.2.10"), at("192.0.2.10"))])
        return verdict.row, await tx.rows_of(["vm/a"]), number, await tx.last_change()

    row, found, number, last = await site.store.transact(work)

    assert list(found) == [row]
    assert number == last


async def test_a_store_works_on_after_a_transaction_that_raised(site: Site[LedgerStore]) -> None:
    async def work(tx: Transaction) -> None:
        await tx.insert(site.here.space, [site.wish("192.0.2.10", "vm/a")])
        raise Interrupted

    for _ in range(10):
        with pytest.raises(Interrupted):
            await site.store.transact(work)

    assert (await site.held_by("192.0.2.10", "vm/b")).owner == "vm/b"


async def test_transactions_that_read_and_write_one_space_follow_each_other(site: Site[LedgerStore]) -> None:
    async def work(tx: Transaction) -> int:
        version = (await tx.guard([site.here.space], Guard.EDIT))[site.here.space]
        await tx.bump(site.here.space)
        return version

    seen = await asyncio.gather(*(site.store.transact(work) for _ in range(20)))

    assert sorted(seen) == list(range(site.here.version, site.here.version + 20))


async def test_a_deadlock_is_broken_and_its_loser_runs_again(parallel_site: Site[LedgerStore]) -> None:
    site = parallel_site
    for number in (10, 11):
        await site.held_by(f"192.0.2.{number}", f"vm/{number}")
    both_began = asyncio.Barrier(2)
    attempts = [0, 0]

    async def work(tx: Transaction, worker: int) -> None:
        attempts[worker] += 1
        order = [at("192.0.2.10"), at("192.0.2.11")][:: 1 if worker else -1]
        await tx.rows_at(site.here.space, order[:1])
        if attempts[worker] == 1:
            await both_began.wait()
        await tx.rows_at(site.here.space, order[1:])
        await tx.log([Entry("note", details={"worker": worker})])

    before = await site.store.last_change()
    await asyncio.gather(*(site.store.transact(lambda tx, worker=worker: work(tx, worker)) for worker in range(2)))  # type: ignore[misc]

    assert sum(attempts) > len(attempts)  # the loser may meet the winner once more before it gets through
    assert sorted(change.details["worker"] for change in await site.news(before)) == [0, 1]


async def test_a_cancelled_transaction_leaves_nothing_and_holds_nothing(parallel_site: Site[LedgerStore]) -> None:
    site = parallel_site
    inside = asyncio.Event()

    async def work(tx: Transaction) -> None:
        await tx.guard([site.here.space], Guard.EDIT)
        await tx.insert(site.here.space, [site.wish("192.0.2.10", "vm/a")])
        inside.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(site.store.transact(work))
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await asyncio.wait_for(site.rows(), 5) == []
    assert (await asyncio.wait_for(site.held_by("192.0.2.10", "vm/b"), 5)).owner == "vm/b"
