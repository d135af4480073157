"""Everything a ledger holds as one stream, of one moment, and back into an empty ledger of any kind."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing

import pytest

from tenure.kernel.errors import Conflict, Invalid
from tenure.kernel.holdings.holding_model import Waiter
from tenure.kernel.snapshot import Counters, Kind, Section
from tenure.ports import LedgerStore, Transaction
from tenure.service.read.verify import verify
from tests.contract.providers import Ground, Provider, ledger_providers
from tests.contract.sites import Site
from tests.interchange.million import made_contents
from tests.scale import FIRST_STORE, in_proof

pytestmark = pytest.mark.every_store

MADE = 4500
"""So many that holdings and changes take several pages."""


class Interrupted(Exception):
    """Stands for anything that may go wrong in the middle."""


@pytest.fixture
async def store(ledger_provider: Provider[LedgerStore]) -> AsyncIterator[LedgerStore]:
    """Give an empty store of every kind."""
    async with ledger_provider.open() as opened:
        yield opened


ORIGINS = sorted(ledger_providers(), key=lambda provider: provider.name != FIRST_STORE)


@pytest.fixture(params=[*ORIGINS[:1], *map(in_proof, ORIGINS[1:])], ids=lambda provider: f"from {provider.name}")
async def origin(request: pytest.FixtureRequest) -> AsyncIterator[LedgerStore]:
    """Give a store of every kind with something of everything in it."""
    async with request.param.open() as opened:
        await opened.fill(made_contents(MADE))
        yield opened


async def everything(store: LedgerStore) -> dict[Kind, list[object]]:
    """Read a whole store."""
    return gathered([section async for section in store.contents()])


def gathered(sections: Sequence[Section]) -> dict[Kind, list[object]]:
    found: dict[Kind, list[object]] = {kind: [] for kind in Kind}
    for section in sections:
        found[section.kind].extend(section.items)
    return found


async def broken_off(stream: AsyncIterator[Section], after: int, error: Exception | None) -> AsyncIterator[Section]:
    """Pass on so many sections, then end, or raise."""
    async for section in stream:
        if after == 0:
            break
        yield section
        after -= 1
    if error is not None:
        raise error


async def again(*sections: Section) -> AsyncGenerator[Section, None]:
    for section in sections:
        yield section


NOTHING = Section(Kind.COUNTERS, [Counters(0, 0, 0, 1, 1, 0, 0)])


async def test_what_was_written_is_read_back_from_every_store(store: LedgerStore) -> None:
    made = gathered([section async for section in made_contents(MADE)])

    await store.fill(made_contents(MADE))

    assert await everything(store) == made
    assert await verify(store) == []


async def test_contents_pass_from_every_store_into_every_other(store: LedgerStore, origin: LedgerStore) -> None:
    await store.fill(origin.contents())

    assert await everything(store) == await everything(origin)


async def test_trying_to_write_changes_nothing(store: LedgerStore) -> None:
    await store.fill(made_contents(MADE))
    before = await everything(store)
    for _ in range(3):
        await store.try_write()

    assert await everything(store) == before


async def test_an_empty_ledger_has_only_its_counters(store: LedgerStore) -> None:
    assert [section async for section in store.contents()] == [NOTHING]


async def test_contents_are_of_one_moment_and_others_go_on_meanwhile(site: Site[LedgerStore]) -> None:
    for number in range(3):
        await site.held_by(f"192.0.2.{number}", f"vm/{number}")
    before = await everything(site.store)

    async with aclosing(site.store.contents()) as stream:
        seen = [await anext(stream)]
        late = await site.held_by("192.0.2.9", "vm/late")
        await site.release(site.ticket((await site.rows())[0]))
        await site.store.transact(lambda tx: tx.add_space("late"))
        seen += [section async for section in stream]

    assert gathered(seen) == before
    assert late in (await everything(site.store))[Kind.HOLDINGS]


async def test_numbers_go_on_where_the_source_was(store: LedgerStore, origin: LedgerStore) -> None:
    await store.fill(origin.contents())

    async def work(tx: Transaction) -> tuple[int, int]:
        return await tx.add_space("new"), await tx.next_network()

    assert await store.transact(work) == (9, 12)
    [counters] = (await everything(origin))[Kind.COUNTERS]
    assert isinstance(counters, Counters)
    assert await store.last_change() == counters.seq
    site = Site(ledger_providers()[0], "", store, await _ground(store), await _ground(store))
    await store.transact(_without_what_is_due)
    row = await site.held_by("10.200.0.1", "vm/new")
    assert row.generation == counters.generation + 1
    assert (await store.watch(counters.seq))[0].seq == counters.seq + 1


async def _without_what_is_due(tx: Transaction) -> None:
    """Remove what would be removed before anything is granted, without a word in the log."""
    await tx.remove(await tx.overdue(3))


async def _ground(store: LedgerStore) -> Ground:
    configuration = await store.configuration(3)
    assert configuration is not None
    return Ground(3, configuration.version, (5, 5))


async def test_a_ledger_that_is_not_empty_is_left_as_it_is(site: Site[LedgerStore]) -> None:
    await site.held_by("192.0.2.1")
    before = await everything(site.store)

    with pytest.raises(Conflict, match="not empty"):
        await site.store.fill(made_contents(10))

    assert await everything(site.store) == before


async def test_a_ledger_with_nothing_but_a_space_is_not_empty(store: LedgerStore) -> None:
    await store.transact(lambda tx: tx.add_space("here"))

    with pytest.raises(Conflict, match="not empty"):
        await store.fill(made_contents(10))


@pytest.mark.sampled
@pytest.mark.parametrize("after", [0, 1, 3, 5, 7])
async def test_what_breaks_off_leaves_the_ledger_empty_and_can_be_repeated(store: LedgerStore, after: int) -> None:
    with pytest.raises(Interrupted):
        await store.fill(broken_off(made_contents(MADE), after, Interrupted()))
    with pytest.raises(Invalid, match="sections"):
        await store.fill(broken_off(made_contents(MADE), after, None))

    assert await everything(store) == gathered([NOTHING])
    await store.fill(made_contents(MADE))
    assert await verify(store) == []


async def test_sections_out_of_order_are_refused(store: LedgerStore) -> None:
    counters, spaces, networks = [section async for section in made_contents(0)]

    for wrong in ([spaces, counters], [counters, spaces, networks, spaces], [counters, counters, spaces], [spaces]):
        with pytest.raises(Invalid, match="sections"):
            await store.fill(again(*wrong))

    assert await everything(store) == gathered([NOTHING])


async def test_a_reading_that_is_given_up_holds_nothing(site: Site[LedgerStore]) -> None:
    await site.held_by("192.0.2.1", "vm/a")

    for _ in range(20):
        async with aclosing(site.store.contents()) as stream:
            await anext(stream)

    await site.held_by("192.0.2.2", "vm/b")
    assert len((await everything(site.store))[Kind.HOLDINGS]) == 2


async def test_who_waits_is_not_copied_and_the_copy_has_no_queue(site: Site[LedgerStore], store: LedgerStore) -> None:
    waiter = Waiter(0, site.here.space, site.here.networks[0], "vm/w", "", 0, 0)
    await site.store.transact(lambda tx: tx.join(waiter, 60_000_000))

    await store.fill(site.store.contents())

    queued, copied = [await kept.configuration(site.here.space) for kept in (site.store, store)]
    assert queued is not None
    assert copied is not None
    assert (queued.queued, copied.queued) == (True, False)
    assert copied.version == queued.version + 1
    assert await store.transact(lambda tx: tx.waiters(site.here.space)) == []
    assert await everything(store) == await everything(site.store)
