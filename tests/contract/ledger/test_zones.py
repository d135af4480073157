"""Zones: a wish that names one is served from subnets in it, or in none; never from those of another."""

import asyncio

import pytest

import tenure
from tests.contract.ledger.plan import addresses, last
from tests.contract.ledger.timing import nothing_waits, until_waiting

Ledger = tenure.AsyncLedger


@pytest.fixture(autouse=True)
async def plan(ledger: Ledger) -> None:
    """Lay out two addresses in z1, two in z2, and two in z2 and z3."""
    await ledger.add_network("net")
    for name, block, zones in (
        ("a", "192.0.2.0", ["z1"]),
        ("b", "192.0.2.16", ["z2"]),
        ("c", "192.0.2.32", ["z2", "z3"]),
    ):
        await ledger.add_subnet("net", f"{block}/28", name=name, zones=zones)
    for pool, numbers in (("low", "2-192.0.2.3"), ("low", "18-192.0.2.19"), ("high", "34-192.0.2.35")):
        await ledger.add_pool("net", f"192.0.2.{numbers}", name=pool)


async def given(ledger: Ledger, zone: str | None, owner: str = "vm/a", **more: str) -> int:
    """Ask for an address in a zone; return its last number."""
    return last((await ledger.allocate("net", owner=owner, zone=zone, **more)).address)  # type: ignore[arg-type]


async def test_a_wish_is_served_from_the_subnets_of_its_zone_as_they_are_written(ledger: Ledger) -> None:
    assert [await given(ledger, "z2", f"vm/{number}") for number in range(4)] == [18, 19, 34, 35]
    assert await given(ledger, "z1", "vm/other") == 2


async def test_a_wish_without_a_zone_is_served_from_all(ledger: Ledger) -> None:
    assert [await given(ledger, None, f"vm/{number}") for number in range(6)] == [2, 3, 18, 19, 34, 35]


async def test_a_full_zone_is_full_whatever_is_free_elsewhere(ledger: Ledger) -> None:
    for number in range(2):
        await given(ledger, "z3", f"vm/{number}")

    with pytest.raises(tenure.PoolExhausted):
        await given(ledger, "z3", "vm/late")

    assert await given(ledger, "z2", "vm/late") == 18


async def test_a_subnet_without_zones_serves_every_zone(ledger: Ledger) -> None:
    await ledger.add_subnet("net", "192.0.2.48/28", name="any")
    await ledger.add_pool("net", "192.0.2.50", name="any")
    await given(ledger, "z3", "vm/0")
    await given(ledger, "z3", "vm/1")

    assert await given(ledger, "z3", "vm/2") == 50
    with pytest.raises(tenure.PoolExhausted):
        await given(ledger, "nowhere", "vm/3")


async def test_a_zone_that_no_pool_serves_is_told(ledger: Ledger) -> None:
    with pytest.raises(tenure.NotFound) as refusal:
        await given(ledger, "nowhere")

    assert refusal.value.field == "zone"
    assert await addresses(ledger) == []


async def test_a_zone_goes_with_a_pool_and_with_a_subnet(ledger: Ledger) -> None:
    assert await given(ledger, "z2", "vm/0", pool="high") == 34
    assert await given(ledger, "z2", "vm/1", subnet="b") == 18
    with pytest.raises(tenure.NotFound):
        await given(ledger, "z1", "vm/2", pool="high")
    with pytest.raises(tenure.NotFound):
        await given(ledger, "z1", "vm/2", subnet="b")


async def test_a_named_address_has_no_zone_beside_it(ledger: Ledger) -> None:
    with pytest.raises(tenure.Invalid) as refusal:
        await given(ledger, "z1", address="192.0.2.2")

    assert refusal.value.field == "address"


@pytest.mark.parametrize("wrong", ["", " z1", "z\n1"])
async def test_a_zone_that_is_no_name_is_refused_by_name(ledger: Ledger, wrong: str) -> None:
    with pytest.raises(tenure.Invalid) as refusal:
        await given(ledger, wrong)

    assert refusal.value.field == "zone"


async def test_who_has_an_address_in_another_zone_gets_a_conflict_that_names_both(ledger: Ledger) -> None:
    assert await given(ledger, "z1") == 2
    with pytest.raises(tenure.AlreadyExists, match=r"192\.0\.2\.2.*'z2'"):
        await given(ledger, "z2")
    assert await given(ledger, None) == 2
    assert await addresses(ledger) == ["192.0.2.2"]


async def test_a_zone_is_what_the_plan_says_now(ledger: Ledger) -> None:
    await given(ledger, "z1", "vm/0")
    await ledger.modify_subnet("net", "b", zones=["z1"])
    await given(ledger, "z1", "vm/1")

    assert await given(ledger, "z1", "vm/2") == 18
    assert await given(ledger, "z2", "vm/3") == 34


async def test_many_wishes_share_a_zone(ledger: Ledger) -> None:
    held = await ledger.allocate_many("net", owner="vm/a", count=3, zone="z2")

    assert [last(each.address) for each in held] == [18, 19, 34]
    with pytest.raises(tenure.PoolExhausted):
        await ledger.allocate_many("net", owner="vm/b", count=2, zone="z2")


async def test_a_run_lies_in_its_zone(ledger: Ledger) -> None:
    held = await ledger.allocate_many("net", owner="vm/a", count=2, contiguous=True, zone="z3")

    assert [last(each.address) for each in held] == [34, 35]


async def test_a_hold_and_a_wish_of_apply_may_name_a_zone(ledger: Ledger) -> None:
    held = await ledger.hold("net", owner="vm/a", zone="z2")
    answers = await ledger.apply(
        [
            tenure.Allocate(network="net", owner="vm/b", zone="z3"),
            tenure.AllocateRun(network="net", owners=["vm/c"], slots=[""], zone="z1"),
        ]
    )

    assert (held.state, last(held.address)) == ("pending", 18)
    assert await addresses(ledger) == ["192.0.2.2", "192.0.2.18", "192.0.2.34"]
    assert isinstance(answers[0], tenure.Holding)
    assert answers[0].address == "192.0.2.34"


async def test_another_zone_is_another_request_under_a_key(ledger: Ledger) -> None:
    first = await ledger.allocate("net", owner="vm/a", zone="z1", key="k")

    assert await ledger.allocate("net", owner="vm/a", zone="z1", key="k") == first
    for other in ("z2", None):
        with pytest.raises(tenure.KeyReused):
            await ledger.allocate("net", owner="vm/a", zone=other, key="k")


async def test_who_waits_for_a_zone_is_served_from_it_and_holds_up_nobody_elsewhere(ledger: Ledger) -> None:
    for number in range(2):
        await given(ledger, "z1", f"vm/{number}")
    waiting = asyncio.create_task(ledger.allocate("net", owner="vm/waits", zone="z1", wait_s=20))
    await until_waiting(ledger, "vm/waits")
    [told] = await ledger.waiting()

    assert (told.zone, told.pool, told.subnet) == ("z1", None, None)
    assert await given(ledger, "z2", "vm/elsewhere") == 18
    assert not waiting.done()
    await ledger.release("net", "192.0.2.18", owner="vm/elsewhere")
    await ledger.release("net", "192.0.2.3", owner="vm/1")
    assert last((await asyncio.wait_for(waiting, 8)).address) == 3
    assert await nothing_waits(ledger)


async def test_a_claim_may_name_a_zone(ledger: Ledger) -> None:
    await ledger.allocate_many("net", owner="vm/full", count=2, zone="z1")

    assert await ledger.claim("net", owner="vm/a", zone="z1") == tenure.ClaimStatus("waiting", place=1)
    assert (await ledger.claim("net", owner="vm/b", zone="z3")).state == "granted"
    await ledger.release("net", "192.0.2.2", owner="vm/full")
    granted = await ledger.claim("net", owner="vm/a", zone="z1")

    assert granted.holding is not None
    assert granted.holding.address == "192.0.2.2"
