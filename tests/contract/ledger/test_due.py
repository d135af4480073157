"""What is due is free: as soon as the time of a holding is over by the store's clock, for whoever picks and reads."""

import asyncio
import random
from typing import Any

import pytest

import tenure
from tenure.kernel.holdings.holding_model import DUE, Outcome, State
from tenure.ports import LedgerStore
from tenure.service.allocator import lane, overdue_pages
from tenure.service.apply import plan_effects
from tenure.service.apply.operations import read_claim
from tenure.service.ledger.engine_ledger import server_of
from tenure.service.ledger.fast_path import AtOnce, WishInFlight
from tests.contract.ledger.timing import another, let_deadlines_pass, news
from tests.contract.sites import Site

pytestmark = pytest.mark.every_store

LOWEST = "192.0.2.10"
POLICIES = ["lowest", "random", "hashed", "sticky"]


@pytest.fixture
async def ledger(ledger: tenure.AsyncLedger) -> tenure.AsyncLedger:
    """Give a ledger with a pool of six addresses that cool for two seconds."""
    await ledger.add_network("net")
    await ledger.add_subnet("net", "192.0.2.0/24", name="block")
    await ledger.add_pool("net", "192.0.2.10-192.0.2.15", name="pool", cooling_s=2)
    return ledger


async def fill_and_cool(ledger: tenure.AsyncLedger, policy: str = "lowest") -> str:
    """Have an owner hold an address and release it; it cools."""
    given = await ledger.allocate("net", owner="vm/before", policy=policy)
    await ledger.release("net", given.address, owner="vm/before")
    return given.address


async def test_the_lowest_is_the_lowest_once_its_cooling_is_over(ledger: tenure.AsyncLedger) -> None:
    await fill_and_cool(ledger)
    above = await ledger.allocate("net", owner="vm/above")
    await let_deadlines_pass(ledger)

    assert (await ledger.allocate("net", owner="vm/after")).address == LOWEST
    assert above.address == "192.0.2.11"


async def test_the_quick_lane_finds_it_too(ledger: tenure.AsyncLedger) -> None:
    await fill_and_cool(ledger)
    for number in range(3):
        await ledger.allocate("net", owner=f"vm/{number}")
    await let_deadlines_pass(ledger)

    assert (await ledger.allocate("net", owner="vm/after")).address == LOWEST
    assert (await ledger.allocate("net", owner="vm/next")).address == "192.0.2.14"


async def test_a_pending_one_that_nobody_confirmed_in_time_is_the_lowest(ledger: tenure.AsyncLedger) -> None:
    await ledger.hold("net", owner="vm/late", lasts_s=2)
    await let_deadlines_pass(ledger)

    assert (await ledger.allocate("net", owner="vm/after")).address == LOWEST


@pytest.mark.parametrize("policy", ["hashed", "sticky"])
async def test_an_owner_gets_the_address_that_is_his_by_policy(ledger: tenure.AsyncLedger, policy: str) -> None:
    await ledger.modify_pool("net", "pool", policy=policy)
    his = await fill_and_cool(ledger, policy)
    other = await ledger.allocate("net", owner="vm/other", policy=policy)
    await let_deadlines_pass(ledger)

    again = await ledger.allocate("net", owner="vm/before", policy=policy)
    assert (again.address, other.address != his) == (his, True)


async def test_an_owner_gets_his_hashed_address_though_another_claim_removed_what_was_due(
    ledger: tenure.AsyncLedger,
) -> None:
    his = await fill_and_cool(ledger, "hashed")
    await ledger.allocate("net", owner="vm/known", policy="hashed")  # the view that hashed picks from has read it all
    await let_deadlines_pass(ledger)
    await ledger.allocate("net", owner="vm/beside", address="192.0.2.99")

    assert (await ledger.allocate("net", owner="vm/before", policy="hashed")).address == his


@pytest.mark.sampled
@pytest.mark.parametrize("policy", POLICIES)
async def test_every_policy_removes_what_is_due_before_it_picks(ledger: tenure.AsyncLedger, policy: str) -> None:
    cooled = await fill_and_cool(ledger, policy)
    await ledger.allocate("net", owner="vm/other", policy=policy)
    await let_deadlines_pass(ledger)
    start = await ledger.last_change()

    await ledger.allocate("net", owner="vm/after", policy=policy)

    told = [(each.verb, each.address, each.details.get("because")) for each in await news(ledger, start)]
    assert told[0] == ("release", cooled, "cooled off")
    assert [verb for verb, _, _ in told] == ["release", "grant"]


async def test_a_named_address_is_had_at_once(ledger: tenure.AsyncLedger) -> None:
    cooled = await fill_and_cool(ledger)
    await let_deadlines_pass(ledger)

    assert (await ledger.allocate("net", owner="vm/after", address=cooled)).owner == "vm/after"


async def test_groups_runs_and_applies_begin_at_the_lowest(ledger: tenure.AsyncLedger) -> None:
    await ledger.allocate_many("net", owner="vm/a", count=2)
    for owner, address in (("vm/a", LOWEST), ("vm/a", "192.0.2.11")):
        await ledger.release("net", address, owner=owner)
    await let_deadlines_pass(ledger)

    many = await ledger.allocate_many("net", owner="vm/b", count=1)
    assert many[0].address == LOWEST
    await ledger.release_owner("vm/b")
    await let_deadlines_pass(ledger)
    run = await ledger.allocate_many("net", owner="vm/c", count=2, contiguous=True)
    assert [each.address for each in run] == [LOWEST, "192.0.2.11"]
    await ledger.release_owner("vm/c")
    await let_deadlines_pass(ledger)
    [applied] = await ledger.apply([tenure.Allocate(network="net", owner="vm/d")])
    assert isinstance(applied, tenure.Holding)
    assert applied.address == LOWEST


async def test_another_server_gives_it_as_well(place: str, ledger: tenure.AsyncLedger) -> None:
    second = await another(ledger, place)
    await second.allocate("net", owner="vm/0")
    await ledger.allocate("net", owner="vm/1")
    await second.release("net", LOWEST, owner="vm/0")
    await let_deadlines_pass(ledger)

    assert (await ledger.allocate("net", owner="vm/2")).address == LOWEST
    if place != "memory:":
        await second.close()


async def test_who_holds_again_after_his_time_gets_a_hold_that_lasts(ledger: tenure.AsyncLedger) -> None:
    for policy in POLICIES:
        old = await ledger.hold("net", owner="vm/a", lasts_s=60, policy=policy)
        await let_deadlines_pass(ledger)
        new = await ledger.hold("net", owner="vm/a", lasts_s=60, policy=policy)

        assert new.generation != old.generation
        assert new.until is not None
        assert new.until > new.since
        await ledger.cancel("net", new.address, owner="vm/a")


async def test_readers_call_free_what_has_cooled_off(ledger: tenure.AsyncLedger) -> None:
    cooled = await fill_and_cool(ledger)
    assert "cooling until" in str(await ledger.why(cooled))
    assert [each.address for each in await ledger.holdings("net")] == [cooled]
    await let_deadlines_pass(ledger)
    start = await ledger.last_change()

    with pytest.raises(tenure.NotFound):
        await ledger.holding("net", cooled)
    assert await ledger.holdings("net") == []
    assert await ledger.holdings(owner="vm/before") == []
    assert await ledger.search(cooled, kind="holding") == []
    [finding] = (await ledger.why(cooled)).findings
    assert (finding.status, finding.holding) == ("free", None)
    assert finding.text == "free in network net; it has cooled off at 1970-01-01 00:00:00 UTC, vm/before had it"
    [tenure_] = await ledger.history(cooled)
    assert tenure_.ending == "released"
    assert await ledger.last_change() == start


async def test_readers_call_free_what_was_pending_and_say_that_it_may_be_confirmed(ledger: tenure.AsyncLedger) -> None:
    held = await ledger.hold("net", owner="vm/late", lasts_s=60)
    await let_deadlines_pass(ledger)

    assert await ledger.holdings(owner="vm/late") == []
    [finding] = (await ledger.why(held.address)).findings
    assert finding.status == "free"
    assert "vm/late may confirm it until it is taken" in finding.text
    [tenure_] = await ledger.history(held.address)
    assert tenure_.ending == "deadline passed"

    confirmed = await ledger.confirm("net", held.address, owner="vm/late")
    assert await ledger.holding("net", held.address) == confirmed


async def test_a_page_of_a_listing_is_as_long_as_asked_for(ledger: tenure.AsyncLedger) -> None:
    await ledger.allocate_many("net", owner="vm/a", count=4)
    for number in range(2):
        await ledger.release("net", f"192.0.2.1{number}", owner="vm/a")
    await let_deadlines_pass(ledger)

    assert [each.address for each in await ledger.holdings("net", limit=2)] == ["192.0.2.12", "192.0.2.13"]


@pytest.mark.sampled
@pytest.mark.usefixtures("embedded")
@pytest.mark.parametrize("policy", ["lowest", "random", "hashed"])
async def test_the_short_way_gives_no_address_before_what_is_due_is_gone(
    ledger: tenure.AsyncLedger, policy: str
) -> None:
    cooled = await fill_and_cool(ledger, policy)
    await ledger.allocate("net", owner="vm/other", policy=policy)
    await let_deadlines_pass(ledger)
    told: asyncio.Future[WishInFlight] = asyncio.get_running_loop().create_future()

    assert AtOnce(ledger).begin(read_claim("net", "vm/after", policy=policy), told.set_result)
    granted = (await told).granted()

    if policy == "lowest":
        assert granted is not None
        assert granted.row.owner == "vm/after"
        assert await ledger.holding("net", LOWEST)
    else:  # the usual way decides
        assert granted is None
        assert (await ledger.allocate("net", owner="vm/before", policy=policy)).address in (
            (cooled,) if policy == "hashed" else tuple(f"192.0.2.{number}" for number in range(10, 16))
        )


async def test_a_store_grants_nothing_while_something_in_the_space_is_due(site: Site[LedgerStore]) -> None:
    late = await site.held_by("192.0.2.1", "vm/late", state=State.PENDING, lasts_us=60_000_000)
    await site.store.transact(lambda tx: tx.rewrite([late._replace(until_us=1)]))

    assert await site.grant(site.wish("192.0.2.2", "vm/b")) == [DUE]
    assert await site.rows() == [late._replace(until_us=1)]
    [elsewhere] = await site.grant(site.wish("192.0.2.2", "vm/b", ground=site.there), ground=site.there)
    assert elsewhere.outcome is Outcome.GRANTED

    await site.store.transact(lambda tx: tx.remove([late]))
    [granted] = await site.grant(site.wish("192.0.2.2", "vm/b"))
    assert granted.outcome is Outcome.GRANTED


async def test_a_known_key_is_answered_while_something_is_due(site: Site[LedgerStore]) -> None:
    wish = site.wish("192.0.2.2", "vm/b")._replace(key="k-1", body=b"b")
    [first] = await site.grant(wish)
    late = await site.held_by("192.0.2.1", "vm/late", state=State.PENDING, lasts_us=60_000_000)
    await site.store.transact(lambda tx: tx.rewrite([late._replace(until_us=1)]))

    [again] = await site.grant(wish)
    assert (again.outcome, again.row and again.row.generation) == (
        Outcome.REPLAYED,
        first.row and first.row.generation,
    )


async def test_lowest_is_lowest_under_cooling_whatever_the_order(ledger: tenure.AsyncLedger) -> None:
    chance, held = random.Random(16), dict[str, str]()
    cooling: set[str] = set()
    free = [f"192.0.2.{number}" for number in range(10, 16)]
    for turn in range(40):
        if chance.random() < 0.3:
            await let_deadlines_pass(ledger)
            cooling.clear()
        if held and chance.random() < 0.5:
            address = chance.choice(sorted(held))
            await ledger.release("net", address, owner=held.pop(address))
            cooling.add(address)
        can = [address for address in free if address not in held and address not in cooling]
        if can:
            got = await ledger.allocate("net", owner=f"vm/{turn}")
            assert got.address == can[0]
            held[got.address] = f"vm/{turn}"


@pytest.mark.usefixtures("embedded")
@pytest.mark.parametrize("way", ["allocate", "apply", "edit"])
async def test_however_much_is_due_no_transaction_removes_more_than_a_page(
    ledger: tenure.AsyncLedger, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    for module in (lane, overdue_pages, plan_effects):
        monkeypatch.setattr(module, "PAGE", 2)
    await ledger.allocate_many("net", owner="vm/many", count=6)
    await ledger.release_owner("vm/many")
    await let_deadlines_pass(ledger)
    store, ends = server_of(ledger).store, list[int]()
    transact, newest = store.transact, await ledger.last_change()

    async def counted(work: Any) -> Any:
        before = await store.last_change()
        answer = await transact(work)
        ends.append(await store.last_change() - before)
        return answer

    monkeypatch.setattr(store, "transact", counted)
    if way == "allocate":
        assert (await ledger.allocate("net", owner="vm/a")).address == LOWEST
    elif way == "apply":
        await ledger.apply([tenure.Allocate(network="net", owner="vm/a")])
    else:
        await ledger.remove_subnet("net", "block")

    assert max(ends) <= 3  # a page, or less than one and what was asked for
    assert len([each for each in await news(ledger, newest) if each.details.get("because") == "cooled off"]) == 6


async def test_what_is_overdue_is_nobodys_to_hand_on(ledger: tenure.AsyncLedger) -> None:
    held = await ledger.hold("net", owner="vm/a", lasts_s=3600)
    await let_deadlines_pass(ledger)

    with pytest.raises(tenure.NotFound):
        await ledger.transfer("net", held.address, owner="vm/a", to="vm/b")
    assert await ledger.release("net", held.address, owner="vm/b") is None
    assert (await ledger.confirm("net", held.address, owner="vm/a")).owner == "vm/a"
