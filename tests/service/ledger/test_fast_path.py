"""The first step of an allocation, taken without waiting: the same as ``allocate`` where it is granted."""

import asyncio
from collections.abc import AsyncIterator
from typing import Literal

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

import tenure
from tenure.kernel.errors import StoreUnavailable, TenureError
from tenure.kernel.holdings.actor import Asker
from tenure.service.allocator.claim import Claim, plain_claim
from tenure.service.apply.operations import read_claim
from tenure.service.ledger.engine_ledger import server_of
from tenure.service.ledger.fast_path import AtOnce, WishInFlight
from tenure.service.read.presenter import holding_of

OPS = Asker("token/ops", "abc1")
NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FFF, exclude_categories=("C", "Z")), min_size=1)


async def begin(ledger: tenure.AsyncLedger, claim: Claim) -> WishInFlight:
    """Begin with a claim; return it when there is an answer."""
    told: asyncio.Future[WishInFlight] = asyncio.get_running_loop().create_future()
    assert AtOnce(ledger).begin(claim, told.set_result)
    return await told


def nobody(begun: WishInFlight) -> None:
    """Hear of a claim that nobody asks after."""


@pytest_asyncio.fixture
async def ledger() -> AsyncIterator[tenure.AsyncLedger]:
    """Give a ledger with room for two, of which one is held: then its line is known."""
    async with await tenure.open_async("memory:") as opened:
        await opened.add_network("net1")
        await opened.add_subnet("net1", "10.0.0.0/29")
        await opened.add_pool("net1", "10.0.0.4-10.0.0.5", name="p", policy="random")
        await opened.allocate("net1", owner="vm/first")
        yield opened


@given(network=NAMES, owner=NAMES.map("vm/{}".format), key=st.none() | NAMES)
def test_a_plain_claim_is_what_is_read_from_the_same_words(network: str, owner: str, key: str | None) -> None:
    assert plain_claim(network, owner, key, OPS) == read_claim(network, owner, key=key).asked_by(OPS)


@pytest.mark.parametrize("owner", ["nobody", "", " vm/a", "vm/" + "x" * 600])
def test_a_plain_claim_of_nobody_is_refused_alike(owner: str) -> None:
    with pytest.raises(TenureError) as plain:
        plain_claim("net1", owner, None, OPS)
    with pytest.raises(TenureError) as usual:
        read_claim("net1", owner)

    assert plain.value.message == usual.value.message


@pytest.mark.parametrize("policy", ["random", "hashed", "lowest"])
async def test_what_is_granted_is_held(ledger: tenure.AsyncLedger, policy: str) -> None:
    await ledger.modify_pool("net1", "p", policy=policy)
    await ledger.allocate("net1", owner="vm/first")  # the line is known again
    answer = (await begin(ledger, plain_claim("net1", "vm/a", "k", OPS))).granted()

    assert answer is not None
    granted = holding_of(*answer)
    assert await ledger.holdings("net1", owner="vm/a") == [granted]
    assert await ledger.asked_by("token/ops", request_id="abc1").allocate("net1", owner="vm/a", key="k") == granted
    assert granted.row.details["by"] == ["token/ops", "abc1"]


async def test_whoever_holds_already_is_told_so_by_the_usual_way_and_no_address_is_lost(
    ledger: tenure.AsyncLedger,
) -> None:
    for _ in range(20):  # each time what was picked must be given back, or nothing would be left to pick
        begun = await begin(ledger, plain_claim("net1", "vm/first", None, OPS))
        assert begun.granted() is None


async def test_of_two_picks_for_the_last_address_only_one_can_be_made(ledger: tenure.AsyncLedger) -> None:
    at_once = AtOnce(ledger)
    begun = [at_once.begin(plain_claim("net1", owner, None, OPS), nobody) for owner in ("vm/a", "vm/b")]

    assert begun == [True, False]


@pytest.mark.parametrize(("outcome", "doubt"), [("unknown", True), ("none", False)])
async def test_what_may_have_been_granted_is_in_doubt(
    ledger: tenure.AsyncLedger, outcome: Literal["unknown", "none"], doubt: bool
) -> None:
    layout = await server_of(ledger).layout("net1")
    told: list[WishInFlight] = []
    begun = WishInFlight(told.append, layout, 0)
    begun.set_exception(StoreUnavailable("away", outcome=outcome))

    assert told == [begun]
    assert (begun.granted(), begun.in_doubt()) == (None, doubt)


async def test_the_lane_tells_whoever_holds_already(ledger: tenure.AsyncLedger) -> None:
    await ledger.modify_pool("net1", "p", policy="lowest")
    held = await ledger.allocate("net1", owner="vm/first")
    begun = await begin(ledger, plain_claim("net1", "vm/first", None, OPS))

    answer = begun.granted()
    assert answer is not None
    assert holding_of(*answer) == held


@pytest.mark.parametrize("claim", [
    read_claim("net1", "vm/a", address="10.0.0.5"),
    read_claim("net1", "vm/a", policy="sticky"),
    read_claim("unknown", "vm/a"),
    read_claim("net1", "vm/waited-for"),
], ids=["address", "sticky", "network", "preallocated"])  # fmt: skip
async def test_what_takes_more_than_a_look_is_left_to_the_usual_way(ledger: tenure.AsyncLedger, claim: Claim) -> None:
    await ledger.preallocate("net1", "vm/waited-for", "10.0.0.6")
    second = await ledger.allocate("net1", owner="vm/second")  # the line is known again
    await ledger.release("net1", second.address, owner="vm/second")
    before = await ledger.last_change()

    assert not AtOnce(ledger).begin(claim, nobody)
    await asyncio.sleep(0.05)
    assert await ledger.last_change() == before
