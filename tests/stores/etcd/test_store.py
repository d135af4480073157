"""The etcd store on a real etcd: what the contract suite cannot know of it."""

import asyncio
import http.client
import json
from collections.abc import AsyncIterator, Iterator

import pytest

from tenure.kernel.addressing.addresses import parse_address
from tenure.kernel.errors import Conflict, CursorExpired, Invalid, StoreUnavailable
from tenure.kernel.holdings.holding_model import AGAIN, Change, Outcome, Row, State, Ticket, Verdict, Wish
from tenure.stores.etcd.records import LARGEST_BATCH
from tenure.stores.etcd.store import EtcdStore, read_url
from tests.infrastructure.etcd import EtcdServer, fresh_root, private_etcd

BASE = parse_address("10.0.0.0")
GRANTED, ALREADY, TAKEN = Outcome.GRANTED, Outcome.ALREADY, Outcome.TAKEN


@pytest.fixture
async def store() -> AsyncIterator[EtcdStore]:
    """Give a book with spaces 1 and 2 at version 1."""
    async with fresh_root() as url:
        opened = await EtcdStore.open(url)
        await opened.set_version(1, 1)
        await opened.set_version(2, 1)
        yield opened
        await opened.close()


@pytest.fixture
def fragile() -> Iterator[EtcdServer]:
    """Give a node that may be killed."""
    with private_etcd() as server:
        yield server


def wish(n: int, owner: str = "", slot: str = "", state: State = State.HELD, **labels: str) -> Wish:
    return Wish(7, BASE + n, BASE + n, owner or f"vm/{n}", slot, state, details={"labels": labels} if labels else {})


def ticket(row: Row | None) -> Ticket:
    assert row is not None
    return Ticket(row.network, row.first, row.owner, row.generation)


async def rows(store: EtcdStore, space: int = 1, after: int = -1) -> list[Row]:
    return [row async for page in store.held(space, after=after) for row in page]


def outcomes(verdicts: list[Verdict]) -> list[Outcome]:
    return [verdict.outcome for verdict in verdicts]


async def grant(store: EtcdStore, *wishes: Wish, space: int = 1) -> list[Verdict]:
    return list(await store.grant(space, 1, wishes))


async def news(store: EtcdStore, *, limit: int = 1000, space: int | None = None) -> list[Change]:
    """Tail the log from its beginning, page by page."""
    found: list[Change] = []
    while page := await store.watch(found[-1].seq if found else 0, limit=limit, space=space):
        assert len(page) <= limit
        found.extend(page)
    return found


async def test_a_space_without_a_version_grants_nothing(store: EtcdStore) -> None:
    assert await grant(store, wish(1), space=3) == [AGAIN]
    assert await rows(store, space=3) == []


async def test_a_version_is_obeyed_at_once_and_never_goes_back(store: EtcdStore) -> None:
    await store.set_version(1, 5)

    with pytest.raises(Conflict):
        await store.set_version(1, 4)
    assert await store.version(1) == 5
    assert await grant(store, wish(1)) == [AGAIN]
    assert outcomes(list(await store.grant(1, 5, [wish(1)]))) == [GRANTED]


async def test_surprises_in_a_batch_cost_the_others_nothing(store: EtcdStore) -> None:
    [mine] = await grant(store, wish(3, "vm/me"))
    [other] = await grant(store, wish(5, "vm/other"))

    verdicts = await grant(store, wish(4, "vm/me"), wish(5, "vm/late"), wish(6), wish(3, "vm/late", "s"), wish(7))

    assert outcomes(verdicts) == [ALREADY, TAKEN, GRANTED, TAKEN, GRANTED]
    assert [verdicts[0].row, verdicts[1].row, verdicts[3].row] == [mine.row, other.row, mine.row]
    assert [row.first - BASE for row in await rows(store)] == [3, 5, 6, 7]


async def test_a_batch_beyond_the_limits_of_a_transaction_is_cut(store: EtcdStore) -> None:
    many = [wish(n) for n in range(3 * LARGEST_BATCH + 1)]
    heavy = [wish(500 + n, a="x" * 4000, b="y" * 4000) for n in range(LARGEST_BATCH)]

    first, second = await grant(store, *many), await grant(store, *heavy)

    assert outcomes(first) == [GRANTED] * len(many)
    assert outcomes(second) == [GRANTED] * len(heavy)
    assert await rows(store) == [verdict.row for verdict in first + second]


async def test_labels_that_etcd_cannot_take_are_refused_before_anything_is_done(store: EtcdStore) -> None:
    with pytest.raises(Invalid) as refused:
        await grant(store, wish(1), wish(2, a="x" * 600_000))

    assert refused.value.field == "labels"
    assert await rows(store) == []


async def test_owners_and_slots_of_any_letters_stay_apart(store: EtcdStore) -> None:
    owners = [("vm/a", ""), ("vm/a", "b"), ("vm/a/b", ""), ("vm/a%2Fb", ""), ("vm/ä ☃", "nic/0"), ("vm/a0", "")]

    verdicts = await grant(store, *(wish(n, owner, slot) for n, (owner, slot) in enumerate(owners)))

    assert outcomes(verdicts) == [GRANTED] * len(owners)
    assert list(await store.by_owner(["vm/a"])) == [verdicts[0].row, verdicts[1].row]
    assert list(await store.by_owner(["vm/ä ☃", "vm/a/b", "vm/nobody"])) == [verdicts[4].row, verdicts[2].row]


async def test_an_owner_is_found_in_all_spaces_and_states(store: EtcdStore) -> None:
    [here] = await grant(store, wish(1, "vm/a"))
    [there] = await grant(store, wish(1, "vm/a"), space=2)
    [parting] = await grant(store, wish(2, "vm/a", state=State.DRAINING))

    assert list(await store.by_owner(["vm/a"])) == [here.row, parting.row, there.row]


async def test_a_released_address_leaves_no_key_behind(store: EtcdStore) -> None:
    granted = await grant(store, wish(1), wish(2, state=State.DRAINING))

    ended = await store.release(1, [ticket(verdict.row) for verdict in granted])

    assert list(ended) == [verdict.row for verdict in granted]
    assert await rows(store) == []
    assert list(await store.by_owner(["vm/1", "vm/2"])) == []
    assert list(await store.release(1, [ticket(granted[0].row)])) == [None]


async def test_a_late_release_never_frees_a_later_grant(store: EtcdStore) -> None:
    [first] = await grant(store, wish(1, "vm/a"))
    late = ticket(first.row)
    await store.release(1, [late])
    [second] = await grant(store, wish(1, "vm/a"))

    assert list(await store.release(1, [late])) == [second.row]
    assert await rows(store) == [second.row]


async def test_a_holding_that_many_release_at_once_ends_once(store: EtcdStore) -> None:
    for turn in range(10):
        [verdict] = await grant(store, wish(1, f"vm/{turn}"))

        answers = await asyncio.gather(*(store.release(1, [Ticket(7, BASE + 1, f"vm/{turn}")]) for _ in range(6)))

        assert [row for [row] in answers if row is not None] == [verdict.row]
    assert [change.verb for change in await news(store)] == ["grant", "release"] * 10


async def test_pages_are_one_snapshot(store: EtcdStore) -> None:
    for start in range(0, 1500, 500):
        await grant(store, *(wish(n) for n in range(start, start + 500)))
    pages = aiter(store.held(1))
    seen = list(await anext(pages))

    await store.release(1, [Ticket(7, BASE + 1400, "vm/1400")])
    seen += [row async for page in pages for row in page]

    assert [row.first - BASE for row in seen] == list(range(1500))
    assert [row.first - BASE for row in await rows(store, after=BASE + 1397)] == [1398, 1399, *range(1401, 1500)]


@pytest.mark.parametrize("limit", [1, 3, 1000])
async def test_the_log_is_whole_and_in_order_whatever_the_page(store: EtcdStore, limit: int) -> None:
    [one, two] = await grant(store, wish(1), wish(2, a="b"))
    [there] = await grant(store, wish(9), space=2)
    await store.release(1, [Ticket(7, BASE + 1, "vm/1", request="r")])
    [again] = await grant(store, wish(1))
    assert one.row
    assert two.row
    assert there.row
    assert again.row

    log = await news(store, limit=limit)

    told = [(c.verb, c.space, (c.first or 0) - BASE, c.owner, c.generation, c.request) for c in log]
    assert told == [
        ("grant", 1, 1, "vm/1", one.row.generation, None),
        ("grant", 1, 2, "vm/2", two.row.generation, None),
        ("grant", 2, 9, "vm/9", there.row.generation, None),
        ("release", 1, 1, "vm/1", one.row.generation, "r"),
        ("grant", 1, 1, "vm/1", again.row.generation, None),
    ]
    assert log[1].details == {"labels": {"a": "b"}}
    assert [change.seq for change in log] == sorted({change.seq for change in log})
    assert await news(store, limit=limit, space=2) == [log[2]]


async def test_a_tailing_reader_misses_nothing_under_load(store: EtcdStore) -> None:
    async def write(writer: int) -> None:
        for turn in range(20):
            verdicts = await grant(store, *(wish(writer * 100 + n, f"vm/{writer}-{n}") for n in range(5)))
            if turn % 2:
                await store.release(1, [ticket(verdict.row) for verdict in verdicts])

    writing = asyncio.gather(*(write(writer) for writer in range(4)))
    found: list[Change] = []
    while not writing.done():
        found.extend(await store.watch(found[-1].seq if found else 0, limit=17))
    await writing
    found.extend(await store.watch(found[-1].seq))

    assert found == await news(store)
    assert len(found) == 4 * 10 * 5 * 2


def _compact(port: int, revision: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/v3/kv/compaction", json.dumps({"revision": revision, "physical": True}))
    assert connection.getresponse().status == 200
    connection.close()


async def test_a_cursor_from_before_a_compaction_is_expired_and_a_later_one_is_not(fragile: EtcdServer) -> None:
    store = await EtcdStore.open(fragile.url)
    await store.set_version(1, 1)
    for n in range(5):
        await grant(store, wish(n), wish(100 + n))
    log = await news(store)
    third = log[4].generation
    assert third is not None

    await asyncio.to_thread(_compact, fragile.port, third)

    with pytest.raises(CursorExpired) as expired:
        await store.watch(log[3].seq)
    assert list(await store.watch(expired.value.oldest)) == log[5:]
    assert list(await store.watch(log[4].seq)) == log[5:]
    assert list(await store.watch(log[-1].seq)) == []
    await store.close()


async def test_a_killed_node_changes_nothing_and_keeps_what_was_answered(fragile: EtcdServer) -> None:
    store = await EtcdStore.open(fragile.url)
    await store.set_version(1, 1)
    granted = await grant(store, wish(1))

    fragile.kill()
    with pytest.raises(StoreUnavailable) as refused:
        await grant(store, wish(2))
    fragile.start()

    assert refused.value.outcome == "none"
    assert await rows(store) == [verdict.row for verdict in granted]
    assert outcomes(await grant(store, wish(2))) == [GRANTED]
    await store.close()


async def test_a_lost_answer_is_unknown_and_repeating_tells(fragile: EtcdServer) -> None:
    store = await EtcdStore.open(fragile.url, answer_s=0.5)
    await store.set_version(1, 1)

    with fragile.frozen():
        with pytest.raises(StoreUnavailable) as write:
            await grant(store, wish(1))
        with pytest.raises(StoreUnavailable) as read:
            await rows(store)

    assert (write.value.outcome, read.value.outcome) == ("unknown", "none")
    [verdict] = await grant(store, wish(1))
    assert verdict.outcome in (GRANTED, ALREADY)
    assert await rows(store) == [verdict.row]
    await store.close()


async def test_the_next_member_is_asked_when_one_is_gone(fragile: EtcdServer) -> None:
    with private_etcd() as gone:
        port = gone.port
    store = await EtcdStore.open(f"etcd://127.0.0.1:{port},127.0.0.1:{fragile.port}")

    assert await store.version(1) is None
    await store.close()


async def test_a_member_that_hangs_costs_one_answer_and_then_the_next_is_asked(fragile: EtcdServer) -> None:
    with private_etcd() as other:
        # Long enough that a busy machine does not make the first member look hung before it is.
        store = await EtcdStore.open(f"etcd://127.0.0.1:{fragile.port},127.0.0.1:{other.port}", answer_s=3.0)
        await asyncio.gather(*(store.version(1) for _ in range(8)))
        # Of a machine so busy that a connection took too long, the other member may have been asked.
        for kept in [each for each in store._gateway._idle if each.port != fragile.port]:
            store._gateway._idle.remove(kept)
            kept.close()

        try:
            with fragile.frozen():
                with pytest.raises(StoreUnavailable):
                    await store.version(1)
                assert await store.version(1) is None
        finally:
            await store.close()


async def test_opening_where_nobody_listens_says_so() -> None:
    with private_etcd() as gone:
        url = gone.url

    with pytest.raises(StoreUnavailable, match="cannot reach etcd") as refused:
        await EtcdStore.open(url)

    assert refused.value.outcome == "none"


@pytest.mark.parametrize("url", ["etcd:", "etcd://", "etcd:///root", "etcd://host:port", "etcd://a,,b", "etcd://u:p@h"])
def test_a_url_that_names_no_member_is_refused(url: str) -> None:
    with pytest.raises(Invalid) as refused:
        read_url(url)

    assert refused.value.field == "url"


def test_a_url_names_members_and_root() -> None:
    assert read_url("etcd://[::1]:99,b/c/d/") == ([("::1", 99), ("b", 2379)], "/c/d")
    assert read_url("etcd://a") == ([("a", 2379)], "/tenure")
