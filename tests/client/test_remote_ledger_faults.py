"""Faults of the network: nothing is done twice, nothing is left behind, and what is unknown is told as unknown."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import tenure
from tests.client.proxy import Fault, Wire, wire_to
from tests.contract.ledger.plan import addresses, small_plan
from tests.contract.ledger.timing import until_waiting
from tests.doors.http.stage import token_in
from tests.infrastructure.street import street

BROKEN = [fault for fault in Fault if fault not in (Fault.NONE, Fault.MUTE)]
AFTER_THE_EFFECT = [Fault.LOST, Fault.CUT, Fault.GATEWAY]

Ledger = tenure.AsyncLedger
Change = Callable[[Ledger], Awaitable[object]]

CHANGES: dict[str, Change] = {
    "allocate": lambda ledger: ledger.allocate("net", owner="vm/a"),
    "hold": lambda ledger: ledger.hold("net", owner="vm/a", lasts_s=60),
    "allocate many": lambda ledger: ledger.allocate_many("net", owner="vm/a", count=3, contiguous=True),
    "claim": lambda ledger: ledger.claim("net", owner="vm/a"),
    "release": lambda ledger: ledger.release("net", "192.0.2.19", owner="vm/held"),
    "release owner": lambda ledger: ledger.release_owner("vm/held"),
    "transfer": lambda ledger: ledger.transfer("net", "192.0.2.19", owner="vm/held", to="vm/b"),
    "edit": lambda ledger: ledger.add_network("other"),
    "paper": lambda ledger: ledger.apply([tenure.WritePaper(kind="k", name="n", document={"a": 1})]),
}


@pytest.fixture(autouse=True)
async def held(direct: Ledger) -> tenure.Holding:
    """Let somebody hold the last address of the pool."""
    return await direct.allocate("net", owner="vm/held", address="192.0.2.19")


@pytest.mark.sampled
@pytest.mark.parametrize("fault", BROKEN, ids=lambda fault: fault.name.lower())
@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_takes_effect_once_whatever_happens_on_the_way(
    ledger: Ledger, direct: Ledger, wire: Wire, change: str, fault: Fault
) -> None:
    before = await direct.last_change()
    wire.will(fault, fault)
    answer = await CHANGES[change](ledger)

    log = [each async for each in direct.changes(before)]
    assert answer is not None
    assert len({each.request_id for each in log}) == 1
    assert len({(each.verb, each.address, each.owner) for each in log}) == len(log) > 0
    assert wire.connections >= 3


@pytest.mark.parametrize("fault", AFTER_THE_EFFECT, ids=lambda fault: fault.name.lower())
async def test_a_release_whose_answer_was_lost_does_not_free_what_came_after_it(
    ledger: Ledger, direct: Ledger, wire: Wire, fault: Fault
) -> None:
    wire.will(fault)
    freed = await ledger.release("net", "192.0.2.19", owner="vm/held", key="k")
    again = await direct.allocate("net", owner="vm/held", address="192.0.2.19")

    assert await ledger.release("net", "192.0.2.19", owner="vm/held", key="k") == freed
    assert await direct.holdings(owner="vm/held") == [again]


async def test_what_stays_unknown_is_told_so_and_resolved_by_asking_again(direct: Ledger, wire: Wire) -> None:
    wire.will(*[Fault.LOST] * 100)
    async with await tenure.open_async(f"{wire.url}?within_s=0.3") as ledger:
        with pytest.raises(tenure.StoreUnavailable) as unknown:
            await ledger.allocate("net", owner="vm/a", key="k")
        wire.faults.clear()
        resolved = await ledger.allocate("net", owner="vm/a", key="k")

    assert unknown.value.outcome == "unknown"
    assert await direct.holdings(owner="vm/a") == [resolved]
    assert await addresses(direct) == ["192.0.2.10", "192.0.2.19"]


async def test_an_answer_that_never_comes_ends_as_unknown(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, direct: Ledger
) -> None:
    monkeypatch.setattr("tenure.client.remote_ledger.LONG_S", 0.2)
    wire.will(Fault.MUTE)
    async with await tenure.open_async(f"{wire.url}?within_s=0") as ledger:
        with pytest.raises(tenure.StoreUnavailable, match="no answer in time") as unknown:
            await ledger.sweep()

    assert unknown.value.outcome == "unknown"


async def test_what_never_arrived_is_told_so(direct: Ledger) -> None:
    async with await tenure.open_async("http://127.0.0.1:1?within_s=0.2") as ledger:
        with pytest.raises(tenure.StoreUnavailable) as none:
            await ledger.allocate("net", owner="vm/a")

    assert none.value.outcome == "none"
    assert "127.0.0.1:1 cannot be reached" in str(none.value)


async def test_a_reading_that_failed_changed_nothing(wire: Wire) -> None:
    wire.will(*[Fault.LOST] * 100)
    async with await tenure.open_async(f"{wire.url}?within_s=0.2") as ledger:
        with pytest.raises(tenure.StoreUnavailable) as none:
            await ledger.networks()

    assert none.value.outcome == "none"


async def test_a_rehearsal_that_failed_changed_nothing(wire: Wire, direct: Ledger) -> None:
    before = await direct.last_change()
    wire.will(*[Fault.LOST] * 100)
    async with await tenure.open_async(f"{wire.url}?within_s=0.2") as ledger:
        with pytest.raises(tenure.StoreUnavailable) as none:
            await ledger.rehearse([tenure.Allocate(network="net", owner="vm/a")])

    assert none.value.outcome == "none"
    assert await direct.last_change() == before


async def test_many_at_once_over_a_bad_wire_get_one_address_each(ledger: Ledger, direct: Ledger, wire: Wire) -> None:
    await direct.add_subnet("net", "10.0.0.0/24")
    await direct.add_pool("net", "10.0.0.10-10.0.0.250", name="wide")
    wire.will(*[fault for _ in range(8) for fault in BROKEN])
    given = await asyncio.gather(*(ledger.allocate("net", owner=f"vm/{n}", pool="wide") for n in range(100)))

    held = [
        each.address
        for each in await direct.holdings("net")
        if each.owner.startswith("vm/") and "10.0." in each.address
    ]
    assert sorted(held) == sorted(each.address for each in given)
    assert len(set(held)) == 100


async def test_the_next_server_is_asked_when_one_is_gone(served: str, direct: Ledger) -> None:
    host = served.removeprefix("http://")
    async with await tenure.open_async(f"http://127.0.0.1:1,{host}?within_s=2") as ledger:
        given = await ledger.allocate("net", owner="vm/a")

    assert await direct.holdings(owner="vm/a") == [given]


async def test_a_server_that_dies_in_the_middle_is_replaced_by_another(served: str, direct: Ledger) -> None:
    async with (
        wire_to(served) as first,
        wire_to(served) as second,
        await tenure.open_async(f"{first.url},{second.url}?within_s=5") as ledger,
    ):
        await ledger.allocate("net", owner="vm/a")
        await first.close()
        await ledger.allocate("net", owner="vm/b")

        assert second.connections > 0
    assert len(await direct.holdings("net")) == 3


async def test_a_waiting_claim_keeps_its_place_when_the_wire_breaks(
    ledger: Ledger, direct: Ledger, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.client.remote_ledger.POLL_S", 0.3)
    await direct.allocate_many("net", owner="vm/full", count=9)
    first = asyncio.create_task(ledger.allocate("net", owner="vm/first", wait_s=20))
    await until_waiting(direct, "vm/first")
    second = asyncio.create_task(direct.allocate("net", owner="vm/second", wait_s=20))
    await until_waiting(direct, "vm/first", "vm/second")
    await asyncio.sleep(1.0)  # several requests long
    assert [claim.owner for claim in await direct.waiting()] == ["vm/first", "vm/second"]

    await direct.release("net", "192.0.2.19", owner="vm/held")
    assert (await asyncio.wait_for(first, 8)).address == "192.0.2.19"
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)


@pytest.mark.parametrize("poll_s", [0.3, 20.0], ids=["between requests", "in one request"])
async def test_who_is_cancelled_while_he_waits_leaves_nothing_behind(
    ledger: Ledger, direct: Ledger, monkeypatch: pytest.MonkeyPatch, poll_s: float
) -> None:
    monkeypatch.setattr("tenure.client.remote_ledger.POLL_S", poll_s)
    await direct.allocate_many("net", owner="vm/full", count=9)
    waiting = asyncio.create_task(ledger.allocate("net", owner="vm/late", wait_s=60))
    await until_waiting(direct, "vm/late")
    await asyncio.sleep(0.5)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await until_waiting(direct)
    await direct.release("net", "192.0.2.19", owner="vm/held")

    assert (await direct.allocate("net", owner="vm/next")).address == "192.0.2.19"
    assert await direct.holdings(owner="vm/late") == []


async def test_what_was_granted_in_the_moment_of_leaving_is_given_back(
    ledger: Ledger, direct: Ledger, wire: Wire
) -> None:
    await direct.allocate_many("net", owner="vm/full", count=9)
    for number in range(20):
        waiting = asyncio.create_task(ledger.allocate("net", owner=f"vm/late{number}", wait_s=60))
        await until_waiting(direct, f"vm/late{number}")
        freeing = asyncio.create_task(direct.release("net", "192.0.2.19", owner="vm/held"))
        await asyncio.sleep(0.002 * number)
        waiting.cancel()
        await asyncio.gather(waiting, freeing, return_exceptions=True)
        got = not waiting.cancelled() and waiting.exception() is None
        await until_waiting(direct)
        if got:
            await direct.release_owner(f"vm/late{number}")
        await _none_held(direct, f"vm/late{number}")
        await direct.allocate("net", owner="vm/held", address="192.0.2.19")


async def test_who_may_only_allocate_gives_back_what_he_was_granted_unheard(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'guarded.db'}"
    async with await tenure.open_async(store) as near:
        await small_plan(near)
        await near.allocate_many("net", owner="vm/full", count=10)
    token = await token_in(store, "tenant", "allocate:net")
    async with (
        street().house(store, guarded=True) as url,
        wire_to(url, [Fault.MUTE]) as wire,
        await tenure.open_async(wire.url, token=token) as ledger,
        await tenure.open_async(store) as near,
    ):
        waiting = asyncio.create_task(ledger.allocate("net", owner="vm/late", wait_s=10))
        async with asyncio.timeout(8):
            while not await near.waiting():  # noqa: ASYNC110 - what happens in a store wakes nobody here
                await asyncio.sleep(0.02)
            await near.release("net", "192.0.2.12", owner="vm/full")
            while not await near.holdings(owner="vm/late"):  # noqa: ASYNC110 - its answer is never heard
                await asyncio.sleep(0.02)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

        assert await near.holdings(owner="vm/late") == []


async def test_who_follows_a_quiet_log_outlives_one_short_outage_after_another(direct: Ledger, wire: Wire) -> None:
    start, seen = await direct.last_change(), []

    async def follow() -> None:
        async with await tenure.open_async(f"{wire.url}?within_s=0.5") as ledger:
            async for change in ledger.tail(start):
                seen.append(change.seq)  # noqa: PERF401 - it is looked at meanwhile

    following = asyncio.create_task(follow())
    for outage in range(1, 4):
        async with asyncio.timeout(5):
            while wire.connections < outage:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.6)
        wire.cut()
    await direct.allocate("net", owner="vm/a")
    async with asyncio.timeout(5):
        while not seen and not following.done():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)

    assert seen == [start + 1]


async def _none_held(ledger: Ledger, owner: str) -> None:
    async with asyncio.timeout(5):
        while await ledger.holdings(owner=owner):  # noqa: ASYNC110 - the server gives back on its own
            await asyncio.sleep(0.02)


async def test_who_follows_the_log_sees_every_change_once_over_a_wire_that_breaks(
    ledger: Ledger, direct: Ledger, wire: Wire
) -> None:
    start = await direct.last_change()
    wire.will(Fault.NONE, Fault.CUT, Fault.LOST, Fault.REFUSED)
    seen: list[int] = []

    async def follow() -> None:
        async for change in ledger.tail(start):
            seen.append(change.seq)  # noqa: PERF401 - it is looked at meanwhile

    following = asyncio.create_task(follow())
    for number in range(30):
        await direct.release_owner(f"vm/{number - 1}")
        await direct.allocate("net", owner=f"vm/{number}")
        if number % 10 == 9:
            wire.cut()
        await asyncio.sleep(0.02)
    newest = await direct.last_change()
    async with asyncio.timeout(20):
        while not seen or seen[-1] < newest:  # noqa: ASYNC110 - nobody tells when the last one has come
            await asyncio.sleep(0.05)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)

    assert seen == list(range(start + 1, newest + 1))
