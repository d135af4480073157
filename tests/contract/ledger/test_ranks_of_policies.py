"""Every policy picks among the pools of the first rank that has room, whatever others do meanwhile."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

import tenure
from tests.contract.providers import Ledgers

Ledger = tenure.AsyncLedger

POLICIES = ["lowest", "random", "hashed", "sticky"]

FIRST = [f"192.0.2.{number}" for number in range(10, 26)]


@pytest.fixture(params=POLICIES)
async def policy(request: pytest.FixtureRequest, ledger: Ledger) -> str:
    """Lay out sixteen addresses of rank 0 behind sixteen of rank 1, all picked by one policy."""
    await ledger.add_network("net")
    await ledger.add_subnet("net", "2001:db8::/64")
    await ledger.add_subnet("net", "192.0.2.0/24")
    await ledger.add_pool("net", "2001:db8::10-2001:db8::1f", name="later", rank=1, policy=request.param)
    await ledger.add_pool("net", f"{FIRST[0]}-{FIRST[-1]}", name="first", policy=request.param)
    return str(request.param)


@pytest.fixture
async def other(ledgers: Ledgers, place: str, ledger: Ledger) -> AsyncIterator[Ledger]:
    """Give a second server of the same ledger where there can be one, else the first again."""
    if not ledgers.abilities.shared_by_processes:
        yield ledger
        return
    async with await tenure.open_async(place) as opened:
        yield opened


@pytest.mark.usefixtures("policy")
async def test_the_second_rank_is_picked_from_when_the_first_is_full(ledger: Ledger) -> None:
    given = [await ledger.allocate("net", owner=f"vm/{number}") for number in range(32)]

    assert {held.address for held in given[:16]} == set(FIRST)
    assert {str(held.family) for held in given[16:]} == {"ipv6"}
    with pytest.raises(tenure.PoolExhausted):
        await ledger.allocate("net", owner="vm/last")


@pytest.mark.usefixtures("policy")
async def test_what_another_server_released_in_the_first_rank_comes_before_the_second(
    ledger: Ledger, other: Ledger
) -> None:
    given = [await ledger.allocate("net", owner=f"vm/{number}") for number in range(18)]

    for number, held in enumerate(given[:5]):
        await other.release("net", held.address, owner=held.owner)
        again = await ledger.allocate("net", owner=f"vm/again-{number}")
        assert again.address == held.address


@pytest.mark.usefixtures("policy")
async def test_a_run_is_taken_from_the_first_rank_in_which_it_fits(ledger: Ledger) -> None:
    await ledger.allocate("net", owner="vm/middle", address=FIRST[9])

    fits = await ledger.allocate_many("net", owner="lb/a", count=8, contiguous=True)
    fits_not = await ledger.allocate_many("net", owner="lb/b", count=8, contiguous=True)
    small = await ledger.allocate_many("net", owner="lb/c", count=6, contiguous=True)

    assert [{str(held.family) for held in run} for run in (fits, fits_not, small)] == [{"ipv4"}, {"ipv6"}, {"ipv4"}]


async def test_a_former_address_comes_before_the_rank(ledger: Ledger) -> None:
    await ledger.add_network("net")
    await ledger.add_subnet("net", "192.0.2.0/24")
    await ledger.add_pool("net", "192.0.2.10-192.0.2.19", policy="sticky")
    await ledger.add_pool("net", "192.0.2.20-192.0.2.29", policy="sticky", rank=1)
    await ledger.allocate("net", owner="vm/a", address="192.0.2.25")
    await ledger.release("net", "192.0.2.25", owner="vm/a")

    assert (await ledger.allocate("net", owner="vm/a")).address == "192.0.2.25"


@pytest.mark.usefixtures("policy")
async def test_no_race_takes_from_the_second_rank_while_the_first_has_room(ledger: Ledger, other: Ledger) -> None:
    async def come_and_go(worker: int) -> None:
        chance, held = random.Random(worker), list[tenure.Holding]()
        mine = other if worker % 2 else ledger
        for turn in range(25):
            if held and chance.random() < 0.5:
                gone = held.pop(chance.randrange(len(held)))
                await mine.release("net", gone.address, owner=gone.owner)
            elif len(held) < 3:
                held.append(await mine.allocate("net", owner=f"vm/{worker}-{turn}"))

    await asyncio.gather(*(come_and_go(worker) for worker in range(10)))

    taken, later = set[str](), 0
    async for change in ledger.changes():
        if change.verb == "grant":
            assert change.address is not None
            later += change.address not in FIRST
            assert change.address in FIRST or taken.issuperset(FIRST), f"change {change.seq} left room in rank 0"
            taken.add(change.address)
        elif change.verb == "release" and change.address is not None:
            taken.remove(change.address)
    assert later, "the first rank was never full, so nothing was tried"


async def test_a_first_rank_that_is_small_is_filled_before_a_huge_second_one(ledger: Ledger) -> None:
    await ledger.add_network("net")
    await ledger.add_subnet("net", "192.0.2.0/24")
    await ledger.add_subnet("net", "2001:db8::/64")
    await ledger.add_pool("net", "192.0.2.10-192.0.2.12", policy="random")
    await ledger.add_pool("net", "2001:db8::/64", policy="random", rank=1)

    given = [await ledger.allocate("net", owner=f"vm/{number}") for number in range(5)]

    assert [str(held.family) for held in given] == ["ipv4"] * 3 + ["ipv6"] * 2
