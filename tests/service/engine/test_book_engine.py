"""The desk of a book: the allocator on a store that keeps holdings and nothing else."""

import asyncio
import itertools
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TypeVar

import pytest

from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.addressing.ranges import parse_cidr, parse_range
from tenure.kernel.errors import (
    AddressInUse,
    AlreadyExists,
    Conflict,
    CursorExpired,
    Invalid,
    NotFound,
    PoolExhausted,
    StoreUnavailable,
    TenureError,
)
from tenure.kernel.holdings.holding_model import Change, Row, Ticket
from tenure.kernel.plan.plan_model import Configuration, Network, Policy, Pool, Subnet
from tenure.service.allocator.claim import Granted
from tenure.service.apply.operations import read_claim
from tenure.service.engine.book_engine import BookEngine
from tenure.stores.etcd.store import EtcdStore
from tests.infrastructure.etcd import fresh_root, private_etcd

T = TypeVar("T")

SPACE, NETWORK = 1, 7


def plan(pool: str = "10.0.0.10-10.0.0.29", *, version: int = 1, policy: Policy = Policy.LOWEST) -> Configuration:
    """Lay out one network with one pool."""
    subnet = Subnet(parse_cidr("10.0.0.0/16"), "subnet-uuid", pools=(Pool(parse_range(pool), policy=policy),))
    return Configuration(SPACE, "site", version, {"net": Network(NETWORK, "net", "uuid", subnets=(subnet,))})


@pytest.fixture
async def stores() -> AsyncIterator[Sequence[EtcdStore]]:
    """Give three connections to one book, as three processes would have."""
    async with fresh_root() as url, AsyncExitStack() as stack:
        opened = [await EtcdStore.open(url) for _ in range(3)]
        for store in opened:
            stack.push_async_callback(store.close)
        await opened[0].set_version(SPACE, 1)
        yield opened


def desk(store: EtcdStore, configuration: Configuration, name: str = "one") -> BookEngine:
    return BookEngine(store, [configuration], name=name, chance=random.Random(name))


async def held(store: EtcdStore) -> list[Row]:
    return [row async for page in store.held(SPACE) for row in page]


def address(granted: Granted) -> str:
    return format_address(granted.row.first)


@pytest.mark.parametrize("policy", Policy)
async def test_three_desks_fill_a_pool_to_the_last_address(stores: Sequence[EtcdStore], policy: Policy) -> None:
    desks = [desk(store, plan(policy=policy), f"desk-{n}") for n, store in enumerate(stores)]
    claims = [(one, read_claim("net", f"vm/{one.name}-{n}")) for one in desks for n in range(8)]

    answers = await asyncio.gather(*(one.allocate(claim) for one, claim in claims), return_exceptions=True)

    granted = [answer for answer in answers if isinstance(answer, Granted)]
    refused = [answer for answer in answers if not isinstance(answer, Granted)]
    assert sorted(answer.row.first for answer in granted) == [parse_address(f"10.0.0.{n}") for n in range(10, 30)]
    assert await held(stores[0]) == sorted((answer.row for answer in granted), key=lambda row: row.first)
    assert [type(answer) for answer in refused] == [PoolExhausted] * 4


@pytest.mark.parametrize("policy", Policy)
async def test_desks_fill_the_first_rank_before_the_second(stores: Sequence[EtcdStore], policy: Policy) -> None:
    ranges = {"10.0.0.20-10.0.0.23": 1, "10.0.0.10-10.0.0.13": 0}
    pools = tuple(Pool(parse_range(each), policy=policy, rank=rank) for each, rank in ranges.items())
    subnet = Subnet(parse_cidr("10.0.0.0/16"), "subnet-uuid", pools=pools)
    ranked = Configuration(SPACE, "site", 1, {"net": Network(NETWORK, "net", "uuid", subnets=(subnet,))})
    desks = [desk(store, ranked, f"desk-{n}") for n, store in enumerate(stores)]

    given = [await desks[n % 3].allocate(read_claim("net", f"vm/{n}")) for n in range(8)]

    assert {address(granted) for granted in given[:4]} == {f"10.0.0.{n}" for n in range(10, 14)}
    assert {address(granted) for granted in given[4:]} == {f"10.0.0.{n}" for n in range(20, 24)}


async def test_a_line_is_read_once_for_all_who_wait_for_it(
    stores: Sequence[EtcdStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    readings: list[int] = []
    held_after = EtcdStore.held

    def counted(store: EtcdStore, space: int, *, after: int = -1) -> AsyncIterator[Sequence[Row]]:
        readings.append(after)
        return held_after(store, space, after=after)

    monkeypatch.setattr(EtcdStore, "held", counted)
    one = desk(stores[0], plan("10.0.0.0-10.0.255.255", policy=Policy.RANDOM))
    await asyncio.gather(*(one.allocate(read_claim("net", f"vm/{n}")) for n in range(100)))

    assert len(readings) == 1


async def test_lowest_is_the_lowest_that_is_free_also_where_another_desk_freed_it(stores: Sequence[EtcdStore]) -> None:
    one, other = desk(stores[0], plan(), "one"), desk(stores[1], plan(), "other")
    rows = [(await one.allocate(read_claim("net", f"vm/{n}"))).row for n in range(5)]
    await other.release(SPACE, Ticket(NETWORK, rows[2].first, rows[2].owner, rows[2].generation))

    assert address(await one.allocate(read_claim("net", "vm/next"))) == "10.0.0.12"
    assert address(await one.allocate(read_claim("net", "vm/last"))) == "10.0.0.15"


@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize("span", ["10.0.0.10-10.0.0.29", "10.0.0.10"], ids=["room", "full"])
async def test_what_is_held_is_no_answer_to_something_else(
    stores: Sequence[EtcdStore], policy: Policy, span: str
) -> None:
    one = desk(stores[0], plan(span, policy=policy))
    first = await one.allocate(read_claim("net", "vm/a"))

    with pytest.raises(AlreadyExists, match=address(first)):
        await one.allocate(read_claim("net", "vm/a", address="10.0.0.99"))
    for wanted in ({"pool": "none"}, {"family": "ipv6"}):
        with pytest.raises(TenureError):
            await one.allocate(read_claim("net", "vm/a", **wanted))
    assert await one.allocate(read_claim("net", "vm/a", family="ipv4")) == first


@pytest.mark.parametrize("policy", Policy)
async def test_a_full_pool_is_believed_only_after_the_store_was_asked(
    stores: Sequence[EtcdStore], policy: Policy
) -> None:
    small = plan("10.0.0.10-10.0.0.11", policy=policy)
    one, other = desk(stores[0], small, "one"), desk(stores[1], small, "other")
    first = await one.allocate(read_claim("net", "vm/1"))
    await one.allocate(read_claim("net", "vm/2"))
    with pytest.raises(PoolExhausted):
        await one.allocate(read_claim("net", "vm/3"))
    await other.release(SPACE, Ticket(NETWORK, first.row.first, "vm/1"))

    assert (await one.allocate(read_claim("net", "vm/3"))).row.first == first.row.first


async def test_an_address_that_is_only_asked_for_is_no_reason_to_call_the_pool_full(
    stores: Sequence[EtcdStore],
) -> None:
    one = desk(stores[0], plan("10.0.0.10-10.0.0.11"))
    first = await one.allocate(read_claim("net", "vm/1"))

    again, other = await asyncio.gather(*(one.allocate(read_claim("net", owner)) for owner in ("vm/1", "vm/2")))

    assert again.row == first.row
    assert address(other) == "10.0.0.11"


async def test_who_holds_already_is_answered_the_same_also_from_a_full_pool(stores: Sequence[EtcdStore]) -> None:
    one = desk(stores[0], plan("10.0.0.10-10.0.0.11"))
    first = await one.allocate(read_claim("net", "vm/1"))
    again = await one.allocate(read_claim("net", "vm/1"))
    await one.allocate(read_claim("net", "vm/2"))

    assert again.row == first.row
    assert (await one.allocate(read_claim("net", "vm/1"))).row == first.row
    with pytest.raises(PoolExhausted):
        await one.allocate(read_claim("net", "vm/1", slot="nic1"))


async def test_one_claim_asked_many_times_at_once_gets_one_address(stores: Sequence[EtcdStore]) -> None:
    desks = [desk(store, plan(), f"desk-{n}") for n, store in enumerate(stores)]

    answers = await asyncio.gather(*(desks[n % 3].allocate(read_claim("net", "vm/1")) for n in range(12)))

    assert [answer.row for answer in answers] == await held(stores[0]) * 12


async def test_a_named_address_is_granted_or_its_holder_told(stores: Sequence[EtcdStore]) -> None:
    one = desk(stores[0], plan())
    named = await one.allocate(read_claim("net", "vm/1", address="10.0.9.9"))

    assert address(named) == "10.0.9.9"
    with pytest.raises(AddressInUse, match="vm/1"):
        await one.allocate(read_claim("net", "vm/2", address="10.0.9.9"))
    with pytest.raises(AlreadyExists):
        await one.allocate(read_claim("net", "vm/1", address="10.0.9.10"))


async def test_a_desk_with_a_stale_plan_waits_until_it_is_given_the_new_one(stores: Sequence[EtcdStore]) -> None:
    one = desk(stores[0], plan("10.0.0.10-10.0.0.19"))
    await stores[1].set_version(SPACE, 2)
    waiting = asyncio.ensure_future(one.allocate(read_claim("net", "vm/1")))
    await asyncio.sleep(0.1)
    assert await held(stores[1]) == []

    one.configure(plan("10.0.1.0-10.0.1.9", version=2))

    assert address(await waiting) == "10.0.1.0"
    with pytest.raises(Conflict):
        one.configure(plan(version=1))


async def test_a_wish_that_the_store_cannot_take_fails_alone(stores: Sequence[EtcdStore]) -> None:
    one = desk(stores[0], plan(policy=Policy.RANDOM))
    heavy = {f"label-{n}": "ß" * 4096 for n in range(64)}
    claims = [read_claim("net", f"vm/{n}", labels=heavy if n == 3 else None) for n in range(6)]

    answers = await asyncio.gather(*(one.allocate(claim) for claim in claims), return_exceptions=True)

    assert [isinstance(answer, Granted) for answer in answers] == [True, True, True, False, True, True]
    assert isinstance(answers[3], Invalid)
    assert len(await held(stores[0])) == 5


async def _client(one: BookEngine, owner: str, enough: asyncio.Event) -> list[Row]:
    """Allocate and release, asking again while the node is away; return what is held at the end."""
    kept: list[Row] = []
    for turn in itertools.takewhile(lambda _: not enough.is_set(), itertools.count()):
        claim = read_claim("net", owner, slot=str(turn))
        row = (await _until_answered(partial(one.allocate, claim))).row
        if turn % 3 == 0:
            kept.append(row)
        else:
            await _until_answered(partial(one.release, SPACE, Ticket(NETWORK, row.first, owner, row.generation)))
    return kept


async def _until_answered(call: Callable[[], Awaitable[T]]) -> T:
    deadline = time.monotonic() + 60
    while True:
        try:
            return await call()
        except StoreUnavailable:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)


async def test_what_was_answered_survives_kills_of_the_node_under_load() -> None:
    with private_etcd() as server:
        store = await EtcdStore.open(server.url)
        await store.set_version(SPACE, 1)
        desks = [desk(store, plan("10.0.16.0-10.0.255.255", policy=policy), policy) for policy in Policy]
        enough = asyncio.Event()
        clients = [asyncio.ensure_future(_client(one, f"vm/{one.name}-{n}", enough)) for one in desks for n in range(4)]

        for _ in range(2):
            await asyncio.sleep(0.3)
            await asyncio.to_thread(server.restart)
        await asyncio.sleep(0.3)
        enough.set()
        kept = [row for rows in await asyncio.gather(*clients) for row in rows]

        assert await held(store) == sorted(kept, key=lambda row: row.first)
        assert len({row.owner for row in kept}) == len(clients)
        await store.close()


async def ends(store: EtcdStore) -> list[tuple[int | None, str | None]]:
    """Read which generations ended, by which requests."""
    return [(change.generation, change.request) for change in await store.watch(0) if change.verb == "release"]


async def test_what_its_owner_got_after_a_release_looked_is_not_called_ended_unless_it_was(
    stores: Sequence[EtcdStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = desk(stores[0], plan(), "one"), desk(stores[1], plan(), "other")
    wanted = Ticket(NETWORK, parse_address("10.0.0.10"), "vm/shared")
    await other.allocate(read_claim("net", "vm/shared"))
    look, later = stores[0].by_owner, list[Row]()

    async def overtaken_look(owners: Sequence[str]) -> Sequence[Row]:
        found = await look(owners)
        if not later:
            await other.release(SPACE, wanted._replace(request="theirs"))
            later.append((await other.allocate(read_claim("net", "vm/shared"))).row)
        return found

    monkeypatch.setattr(stores[0], "by_owner", overtaken_look)

    assert await one.release(SPACE, wanted._replace(request="mine")) == later[0]
    assert (await ends(stores[2]))[1:] == [(later[0].generation, "mine")]
    assert await held(stores[2]) == []


FirstTry = Callable[[Callable[[], Awaitable[object]]], Awaitable[object]]


def losing_desk(store: EtcdStore, first_try: FirstTry) -> BookEngine:
    """Give a desk whose first release loses its answer; ``first_try`` is given that release, and may make it."""
    release, tried = store.release, list[int]()

    async def losing(space: int, tickets: Sequence[Ticket]) -> Sequence[Row | None]:
        if tried:
            return await release(space, tickets)
        tried.append(1)
        await first_try(lambda: release(space, tickets))
        raise StoreUnavailable("the answer was lost", outcome="unknown")

    store.release = losing  # type: ignore[method-assign]
    return desk(store, plan(), "losing")


@pytest.mark.parametrize("next_owner", [None, "vm/next", "vm/shared"])
@pytest.mark.parametrize("named", [True, False], ids=["generation", "no generation"])
async def test_a_release_that_never_arrived_is_not_called_done_where_another_request_has_done_it(
    stores: Sequence[EtcdStore], named: bool, next_owner: str | None
) -> None:
    other = desk(stores[1], plan(), "other")
    row = (await other.allocate(read_claim("net", "vm/shared"))).row
    wanted = Ticket(NETWORK, row.first, "vm/shared", row.generation if named else None)

    async def overtaken(_: object) -> None:
        assert await other.release(SPACE, wanted._replace(request="theirs")) == row
        if next_owner is not None:
            await other.allocate(read_claim("net", next_owner))

    assert await losing_desk(stores[0], overtaken).release(SPACE, wanted._replace(request="mine")) is None
    assert await ends(stores[2]) == [(row.generation, "theirs")]


@pytest.mark.parametrize("next_owner", [None, "vm/next", "vm/shared"])
async def test_a_release_that_was_done_is_called_so_though_its_answer_was_lost(
    stores: Sequence[EtcdStore], next_owner: str | None
) -> None:
    other = desk(stores[1], plan(), "other")
    row = (await other.allocate(read_claim("net", "vm/shared"))).row

    async def done(first_try: Callable[[], Awaitable[object]]) -> None:
        await first_try()
        if next_owner is not None:
            await other.allocate(read_claim("net", next_owner))

    wanted = Ticket(NETWORK, row.first, "vm/shared", request="mine")

    assert await losing_desk(stores[0], done).release(SPACE, wanted) == row
    assert [each.owner for each in await held(stores[2])] == ([] if next_owner is None else [next_owner])


@pytest.mark.parametrize("held_before", [True, False], ids=["held", "not held"])
@pytest.mark.parametrize("arrives", [True, False], ids=["arrives", "never arrives"])
async def test_a_release_without_a_generation_ends_one_holding_though_its_owner_gets_the_address_again_and_again(
    stores: Sequence[EtcdStore], monkeypatch: pytest.MonkeyPatch, held_before: bool, arrives: bool
) -> None:
    other = desk(stores[1], plan(), "other")
    wanted = Ticket(NETWORK, parse_address("10.0.0.10"), "vm/1")
    claim = read_claim("net", "vm/1", address="10.0.0.10")

    async def get_again() -> None:
        await other.release(SPACE, wanted._replace(request="theirs"))
        await other.allocate(claim)

    async def first_try(release: Callable[[], Awaitable[object]]) -> None:
        if arrives:
            await release()
        await get_again()

    look, looks = stores[0].by_owner, list[int]()

    async def overtaken_look(owners: Sequence[str]) -> Sequence[Row]:
        found = await look(owners)
        if not looks:
            looks.append(1)
            await get_again()
        return found

    if held_before:
        await other.allocate(claim)
    monkeypatch.setattr(stores[0], "by_owner", overtaken_look)

    answer = await losing_desk(stores[0], first_try).release(SPACE, wanted._replace(request="mine"))

    mine = [generation for generation, request in await ends(stores[2]) if request == "mine"]
    assert mine == ([] if answer is None else [answer.generation])


@pytest.mark.parametrize("reason", [StoreUnavailable("gone", outcome="none"), CursorExpired(1, 2)], ids=["away", "old"])
async def test_a_release_is_unknown_where_the_log_cannot_tell_whose_it_was(
    stores: Sequence[EtcdStore], reason: TenureError, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = (await desk(stores[1], plan()).allocate(read_claim("net", "vm/1"))).row

    async def unreadable(*_: object, **__: object) -> Sequence[Change]:
        raise reason

    monkeypatch.setattr(stores[0], "watch", unreadable)

    with pytest.raises(StoreUnavailable) as refused:
        await losing_desk(stores[0], lambda first_try: first_try()).release(SPACE, Ticket(NETWORK, row.first, "vm/1"))
    assert refused.value.outcome == "unknown"


async def test_mixed_units_are_refused_when_configured(stores: Sequence[EtcdStore]) -> None:
    whole = Subnet(parse_cidr("10.0.0.0/16"), "uuid-1")
    blocks = Subnet(parse_cidr("10.0.0.0/24"), "uuid-2", unit=28)
    networks = {"a": Network(1, "a", "uuid-a", subnets=(whole,)), "b": Network(2, "b", "uuid-b", subnets=(blocks,))}

    with pytest.raises(Invalid) as refused:
        desk(stores[0], Configuration(SPACE, "site", 1, networks))

    assert refused.value.field == "unit"


@pytest.mark.parametrize(
    ("claim", "error"),
    [
        (read_claim("nowhere", "vm/1"), NotFound),
        (read_claim("net", "vm/1", pool="none"), NotFound),
        (read_claim("net", "vm/1", address="192.0.2.1"), Invalid),
    ],
)
async def test_what_the_plan_does_not_know_is_refused(
    stores: Sequence[EtcdStore], claim: object, error: type[TenureError]
) -> None:
    one = desk(stores[0], plan())

    with pytest.raises(error):
        await one.allocate(claim)  # type: ignore[arg-type]

    assert await held(stores[0]) == []
