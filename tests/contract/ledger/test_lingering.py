"""Lingering: a release that keeps the address away for a while, and taking that back."""

import pytest

import tenure
from tests.contract.ledger.plan import small_plan, without_asker
from tests.contract.ledger.timing import let_deadlines_pass, news, row_at, store_of, verbs

pytestmark = pytest.mark.every_store

HOUR_US = 3_600_000_000


@pytest.fixture(autouse=True)
async def plan(ledger: tenure.AsyncLedger) -> None:
    await small_plan(ledger)
    await ledger.add_pool("net", "192.0.2.30-192.0.2.39", name="cool", cooling_s=7200)


def release(holding: tenure.Holding, lingers_s: float | None = 3600, **more: object) -> tenure.Release:
    return tenure.Release(
        network="net", address=holding.address, owner=holding.owner, lingers_s=lingers_s, **more  # type: ignore[arg-type]
    )  # fmt: skip


def end(holding: tenure.Holding, owner: str | None = None, generation: int | None = None) -> tenure.EndCooling:
    return tenure.EndCooling(
        network="net", address=holding.address, owner=owner or holding.owner, generation=generation, request="r-2"
    )


async def left_us(ledger: tenure.AsyncLedger, address: str) -> int:
    """Tell for how long an address cools from now on."""
    now_us = await store_of(ledger).transact(lambda tx: tx.now_us())
    until_us = (await row_at(ledger, address)).until_us
    assert until_us is not None
    return until_us - now_us


@pytest.mark.sampled
@pytest.mark.parametrize("how", ["apply", "verb", "verb with a key"])
async def test_a_release_can_keep_the_address_away_for_a_while(ledger: tenure.AsyncLedger, how: str) -> None:
    given = await ledger.allocate("net", owner="vm/a", slot="nic0")
    cursor = await ledger.last_change()
    if how == "apply":
        [released] = await ledger.apply([release(given, request="r-1")])
    else:
        key = "k-1" if how == "verb with a key" else None
        released = await ledger.release(
            "net", given.address, owner="vm/a", lingers_s=3600, request="r-1", key=key
        )  # fmt: skip

    assert isinstance(released, tenure.Holding)
    assert (released.request, without_asker(released)) == ("r-1", without_asker(given))
    row = await row_at(ledger, given.address)
    assert row == given.row._replace(state=tenure.State.COOLING, until_us=row.until_us)
    assert HOUR_US - 60_000_000 < await left_us(ledger, given.address) <= HOUR_US
    [told] = await news(ledger, cursor)
    assert (told.verb, told.request, told.details["until_us"]) == ("cool", "r-1", row.until_us)
    assert (await ledger.allocate("net", owner="vm/a", slot="nic0")).address == "192.0.2.11"


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("lingers_s", "expected_us"), [(3600, 2 * HOUR_US), (10_800, 3 * HOUR_US), (None, 2 * HOUR_US)]
)
async def test_the_longer_of_lingering_and_cooling_counts(
    ledger: tenure.AsyncLedger, lingers_s: float | None, expected_us: int
) -> None:
    given = await ledger.allocate("net", owner="vm/a", pool="cool")
    await ledger.apply([release(given, lingers_s)])

    assert expected_us - 60_000_000 < await left_us(ledger, given.address) <= expected_us


async def test_what_is_only_pending_does_not_linger(ledger: tenure.AsyncLedger) -> None:
    given = await ledger.hold("net", owner="vm/p")
    await ledger.apply([release(given)])

    assert await ledger.holdings("net") == []


async def test_a_lingering_address_comes_free_in_its_time(ledger: tenure.AsyncLedger) -> None:
    given = await ledger.allocate("net", owner="vm/a")
    await ledger.apply([release(given)])
    with pytest.raises(tenure.AddressReserved, match="cooling until"):
        await ledger.allocate("net", owner="vm/b", address=given.address)
    await let_deadlines_pass(ledger)

    assert (await ledger.allocate("net", owner="vm/b", address=given.address)).owner == "vm/b"


async def test_nothing_lingers_where_the_subnet_goes_at_once(ledger: tenure.AsyncLedger) -> None:
    given = await ledger.allocate("net", owner="vm/a")
    with pytest.raises(tenure.StillInUse, match="cooling"):
        await ledger.apply([release(given), tenure.RemoveSubnet(network="net", subnet="block")])
    await ledger.apply([release(given), tenure.RemoveSubnet(network="net", subnet="block", cascade=True)])

    assert await ledger.holdings(owner="vm/a") == []


@pytest.mark.sampled
@pytest.mark.parametrize("wrong", [0, -1, "long", True, float("nan"), float("inf"), 10**12])
async def test_a_time_that_is_none_is_refused(ledger: tenure.AsyncLedger, wrong: float) -> None:
    given = await ledger.allocate("net", owner="vm/a")

    with pytest.raises(tenure.Invalid, match=r"^lingers_s: "):
        await ledger.apply([release(given, wrong)])
    with pytest.raises(tenure.Invalid, match=r"^lingers_s: "):
        await ledger.release("net", given.address, owner="vm/a", lingers_s=wrong)
    assert (await row_at(ledger, given.address)).state == "held"


async def test_the_end_of_cooling_makes_the_address_free_at_once(ledger: tenure.AsyncLedger) -> None:
    given = await ledger.allocate("net", owner="vm/a")
    await ledger.apply([release(given)])
    cursor = await ledger.last_change()
    [ended] = await ledger.apply([end(given, generation=given.generation)])

    assert isinstance(ended, tenure.Holding)
    assert (ended.address, ended.state, ended.generation) == (given.address, "cooling", given.generation)
    [told] = await news(ledger, cursor)
    assert (told.verb, told.owner, told.request, told.details["because"]) == ("release", "vm/a", "r-2", "cooled off")
    [tenure_of_it] = await ledger.history(given.address)
    assert (tenure_of_it.ending, tenure_of_it.deadline) == ("released", told.at)
    assert (await ledger.allocate("net", owner="vm/b")).address == given.address


async def test_an_address_can_be_taken_back_in_one_apply(ledger: tenure.AsyncLedger) -> None:
    given = await ledger.allocate("net", owner="vm/a")
    await ledger.apply([release(given)])
    back = tenure.Allocate(network="net", owner="vm/a", address=given.address)
    _, again = await ledger.apply([end(given), back])

    assert isinstance(again, tenure.Holding)
    assert (again.address, again.state) == (given.address, "held")
    assert again.generation > given.generation


async def test_the_end_of_cooling_changes_nothing_where_there_is_none(ledger: tenure.AsyncLedger) -> None:
    held, cooling, free = [await ledger.allocate("net", owner=f"vm/{name}") for name in "hcf"]
    pooled = await ledger.allocate("net", owner="vm/p", pool="cool")
    await ledger.apply([release(cooling), release(free, None), release(pooled, None)])
    rows, cursor = await ledger.holdings("net"), await ledger.last_change()

    none = [end(held), end(held, "vm/x"), end(free), end(cooling, "vm/x"), end(cooling, generation=7777), end(pooled)]
    assert await ledger.apply(none) == [None] * len(none)
    assert (await ledger.holdings("net"), await ledger.last_change()) == (rows, cursor)


async def test_where_the_pool_cools_only_what_is_beyond_that_is_ended(ledger: tenure.AsyncLedger) -> None:
    given = await ledger.allocate("net", owner="vm/p", pool="cool")
    await ledger.apply([release(given, 10_800)])
    cursor = await ledger.last_change()

    [ended] = await ledger.apply([end(given)])

    assert isinstance(ended, tenure.Holding)
    assert 2 * HOUR_US - 60_000_000 < await left_us(ledger, given.address) <= 2 * HOUR_US
    assert await verbs(ledger, cursor) == ["cool"]
    assert await ledger.apply([end(given)]) == [None]
    assert await ledger.verify() == []
    # Two entries tell of one cooling: the tenure ended with the first, and cools until the time of the second.
    [tenure_of_it] = await ledger.history(given.address)
    assert (tenure_of_it.owner, tenure_of_it.deadline) == ("vm/p", ended.until)


async def test_cooling_in_another_network_of_the_space_is_not_ended(ledger: tenure.AsyncLedger) -> None:
    await small_plan(ledger, network="other", space="net")
    given = await ledger.allocate("other", owner="vm/a")
    await ledger.release("other", given.address, owner="vm/a", lingers_s=60)

    assert await ledger.apply([end(given)]) == [None]
    assert (await row_at(ledger, given.address, "other")).state == "cooling"


async def test_the_end_of_cooling_asked_for_again_is_ended_once(ledger: tenure.AsyncLedger) -> None:
    given = await ledger.allocate("net", owner="vm/a")
    await ledger.apply([release(given)])
    cursor = await ledger.last_change()
    first = await ledger.apply([end(given)], key="k-1")

    assert await ledger.apply([end(given)], key="k-1") == first
    assert await ledger.apply([end(given)]) == [None]
    assert await verbs(ledger, cursor) == ["release"]
