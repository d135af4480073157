"""Where ways into the lane meet: picks and names, units of two sizes, plans that change, rooms that break."""

import asyncio

import pytest

import tenure
from tenure.kernel.holdings.holding_model import Outcome
from tenure.ports import LedgerStore
from tests.contract.ledger.plan import addresses, small_plan
from tests.contract.ledger.timing import let_deadlines_pass, news, store_of, until_waiting
from tests.contract.sites import Site, outcomes

pytestmark = pytest.mark.every_store

Ledger = tenure.AsyncLedger


async def test_two_wishes_for_one_address_in_one_call_have_one_winner(site: Site[LedgerStore]) -> None:
    wishes = [site.wish("192.0.2.10", "vm/a"), site.wish("192.0.2.10", "vm/b")]

    verdicts = await site.store.transact(lambda tx: tx.insert(site.here.space, wishes))

    assert sorted(outcome.value for outcome in outcomes(list(verdicts))) == ["granted", "taken"]
    [winner] = [verdict.row for verdict in verdicts if verdict.outcome is Outcome.GRANTED]
    assert await site.rows() == [winner]


async def test_an_address_that_is_picked_and_named_in_one_apply_is_given_once(ledger: Ledger) -> None:
    await small_plan(ledger)

    with pytest.raises(tenure.AddressInUse):
        await ledger.apply(
            [
                tenure.Allocate(network="net", owner="vm/a"),
                tenure.Allocate(network="net", owner="vm/b", address="192.0.2.10"),
            ]
        )

    assert await addresses(ledger) == []


async def test_of_many_who_name_one_address_in_a_queued_space_one_gets_it(ledger: Ledger) -> None:
    await small_plan(ledger)
    await ledger.allocate_many("net", owner="vm/full", count=10)
    await ledger.claim("net", owner="vm/waits")

    asked = (ledger.allocate("net", owner=f"vm/{n}", address="192.0.2.99") for n in range(6))
    answers = await asyncio.gather(*asked, return_exceptions=True)

    winners = [answer for answer in answers if isinstance(answer, tenure.Holding)]
    assert [winner.address for winner in winners] == ["192.0.2.99"]
    assert await ledger.verify() == []


async def test_a_refused_prefix_takes_no_more_than_what_was_in_its_way(ledger: Ledger) -> None:
    await ledger.add_network("small", space="site")
    await ledger.add_subnet("small", "10.0.0.0/24", keep_back=[])
    await ledger.add_pool("small", "10.0.0.0-10.0.0.31")
    await ledger.add_network("large", space="site")
    await ledger.add_subnet("large", "10.0.0.0/24", unit=28, keep_back=[])
    await ledger.allocate("small", owner="vm/0")

    with pytest.raises(tenure.AddressInUse):
        await ledger.allocate("large", owner="vm/large", address="10.0.0.0")

    assert (await ledger.allocate("small", owner="vm/1")).address == "10.0.0.1"


async def test_what_may_move_for_a_waiting_claim_does_not_keep_a_named_address_from_others(ledger: Ledger) -> None:
    await small_plan(ledger)
    await ledger.allocate_many("net", owner="vm/full", count=10)
    await ledger.claim("net", owner="vm/waits", policy="random")
    await ledger.release_owner("vm/full")

    for _ in range(20):
        held = await ledger.allocate("net", owner="vm/named", address="192.0.2.13")
        await ledger.release("net", held.address, owner="vm/named")

    assert (await ledger.claim("net", owner="vm/waits", policy="random")).state == "granted"


async def test_a_key_tells_the_old_answer_whatever_became_of_the_plan(ledger: Ledger) -> None:
    await small_plan(ledger)
    named = await ledger.allocate("net", owner="vm/a", address="192.0.2.50", key="k-1")
    picked = await ledger.allocate("net", owner="vm/b", pool="pool", key="k-2")
    await ledger.release_owner("vm/a")
    await ledger.release_owner("vm/b")
    await ledger.reserve("net", "192.0.2.50")
    await ledger.remove_pool("net", "pool")

    assert await ledger.allocate("net", owner="vm/a", address="192.0.2.50", key="k-1") == named
    assert await ledger.allocate("net", owner="vm/b", pool="pool", key="k-2") == picked
    assert await addresses(ledger) == []


async def test_what_is_overdue_stands_in_the_way_of_no_edit(ledger: Ledger) -> None:
    await small_plan(ledger)
    await ledger.hold("net", owner="vm/a", address="192.0.2.60", lasts_s=60)
    await ledger.hold("net", owner="vm/b", address="192.0.2.61", lasts_s=60)
    with pytest.raises(tenure.AddressInUse):
        await ledger.modify_subnet("net", "block", gateway="192.0.2.60")
    await let_deadlines_pass(ledger)

    await ledger.modify_subnet("net", "block", gateway="192.0.2.60")
    await ledger.remove_network("net")

    assert [change.details.get("because") for change in await news(ledger) if change.verb == "release"] == [
        "deadline"
    ] * 2


async def test_a_cascade_over_a_cooling_address_is_no_second_release(ledger: Ledger) -> None:
    await small_plan(ledger)
    await ledger.modify_pool("net", "pool", cooling_s=60)
    await ledger.allocate("net", owner="vm/a")
    await ledger.release("net", "192.0.2.10", owner="vm/a")

    await ledger.remove_network("net", cascade=True)

    ends = [(change.verb, change.details.get("because")) for change in await news(ledger) if change.owner == "vm/a"]
    assert ends == [("grant", None), ("cool", None), ("release", "cooled off")]
    assert len((await ledger.history("192.0.2.10")).tenures) == 1


async def test_verify_sees_while_others_wait(ledger: Ledger) -> None:
    await small_plan(ledger)
    await ledger.allocate_many("net", owner="vm/full", count=10)
    row = (await ledger.holding("net", "192.0.2.10")).row
    await store_of(ledger).transact(lambda tx: tx.rewrite([row._replace(owner="vm/planted")]))

    async def coming_and_going() -> None:
        for n in range(30):
            await ledger.claim("net", owner=f"vm/{n}")
            await ledger.withdraw("net", owner=f"vm/{n}")

    coming = asyncio.create_task(coming_and_going())
    found = [await ledger.verify() for _ in range(5)]
    await coming
    await store_of(ledger).transact(lambda tx: tx.rewrite([row]))

    assert all([breach.invariant for breach in breaches] == ["I7"] for breaches in found)


@pytest.mark.usefixtures("embedded")
async def test_a_room_whose_task_broke_is_opened_anew(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    await small_plan(ledger)
    await ledger.allocate_many("net", owner="vm/full", count=10)
    store = store_of(ledger)
    with monkeypatch.context() as broken:
        broken.setattr(store, "last_change", lambda: (_ for _ in ()).throw(ZeroDivisionError))
        with pytest.raises(ZeroDivisionError):
            await ledger.allocate("net", owner="vm/first", wait_s=5)

    waiting = asyncio.create_task(ledger.allocate("net", owner="vm/second", wait_s=8))
    await until_waiting(ledger, "vm/second")
    await ledger.release("net", "192.0.2.12", owner="vm/full")

    assert (await waiting).address == "192.0.2.12"


async def test_a_waiting_claim_stays_in_line_when_its_network_is_renamed(ledger: Ledger) -> None:
    await small_plan(ledger)
    await ledger.allocate_many("net", owner="vm/full", count=10)
    waiting = asyncio.create_task(ledger.allocate("net", owner="vm/waits", wait_s=8))
    await until_waiting(ledger, "vm/waits")

    await ledger.modify_network("net", name="renamed")
    await asyncio.sleep(0.2)
    await ledger.release("renamed", "192.0.2.12", owner="vm/full")

    held = await waiting
    assert (held.network, held.address) == ("renamed", "192.0.2.12")


async def test_a_pool_holds_at_least_one_unit(ledger: Ledger) -> None:
    await ledger.add_network("net")
    await ledger.add_subnet("net", "fd00::/40", unit=48)

    with pytest.raises(tenure.Invalid, match=r"range: .* holds no whole /48"):
        await ledger.add_pool("net", "fd00::1-fd00::5")
    await ledger.add_pool("net", "fd00:0:1::-fd00:0:3::5")

    assert (await ledger.allocate("net", owner="vm/a")).address == "fd00:0:1::"
