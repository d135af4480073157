"""Transfers: an address changes hands and nobody else can get it; those next to each other change hands together."""

import pytest

import tenure
from tests.contract.ledger.plan import small_plan
from tests.contract.ledger.timing import news

pytestmark = pytest.mark.every_store


@pytest.fixture(autouse=True)
async def plan(ledger: tenure.AsyncLedger) -> None:
    """Let a, b and c hold an address each."""
    await small_plan(ledger)
    await ledger.allocate_many("net", owners=["vm/a", "vm/b", "vm/c"])


A, B, C = "192.0.2.10", "192.0.2.11", "192.0.2.12"


def over(address: str, owner: str, to: str, **more: str) -> tenure.Transfer:
    """Write a transfer."""
    return tenure.Transfer(network="net", address=address, owner=owner, to=to, **more)  # type: ignore[arg-type]


async def held(ledger: tenure.AsyncLedger) -> dict[str, str]:
    """Tell who holds what."""
    return {each.address: f"{each.owner} {each.slot}".strip() for each in await ledger.holdings("net")}


async def test_two_owners_swap(ledger: tenure.AsyncLedger) -> None:
    before = await ledger.holdings("net")
    cursor = await ledger.last_change()
    answers = await ledger.apply([over(A, "vm/a", "vm/b", request="r-1"), over(B, "vm/b", "vm/a")])

    assert await held(ledger) == {A: "vm/b", B: "vm/a", C: "vm/c"}
    assert answers == (await ledger.holdings("net"))[:2]
    told = await news(ledger, cursor)
    assert [(each.verb, each.address, each.owner, each.request) for each in told] == [
        ("transfer", A, "vm/b", "r-1"),
        ("transfer", B, "vm/a", None),
    ]
    assert [each.details["from"] for each in told] == ["vm/a", "vm/b"]
    assert [each.details["since_us"] for each in told] == [each.row.since_us for each in before[:2]]
    assert all(new.generation > before[2].generation for new in answers if isinstance(new, tenure.Holding))


async def test_three_owners_pass_their_addresses_on(ledger: tenure.AsyncLedger) -> None:
    await ledger.apply([over(A, "vm/a", "vm/b"), over(B, "vm/b", "vm/c"), over(C, "vm/c", "vm/a")])

    assert await held(ledger) == {A: "vm/b", B: "vm/c", C: "vm/a"}


async def test_a_swap_asked_for_again_is_not_swapped_back(ledger: tenure.AsyncLedger) -> None:
    swap = [over(A, "vm/a", "vm/b"), over(B, "vm/b", "vm/a")]
    first = await ledger.apply(swap)
    cursor = await ledger.last_change()

    assert await ledger.apply(swap) == first
    assert await ledger.last_change() == cursor


async def test_a_swap_with_a_third_in_the_way_changes_nothing(ledger: tenure.AsyncLedger) -> None:
    cursor = await ledger.last_change()

    with pytest.raises(tenure.AlreadyExists, match=C) as told:
        await ledger.apply([over(A, "vm/a", "vm/b"), over(B, "vm/b", "vm/c")])
    assert told.value.field == "to"
    assert await held(ledger) == {A: "vm/a", B: "vm/b", C: "vm/c"}
    assert await ledger.last_change() == cursor


async def test_transfers_that_do_not_stand_together_do_not_swap(ledger: tenure.AsyncLedger) -> None:
    between = tenure.ModifyHolding(network="net", address=C, owner="vm/c", description="between")

    with pytest.raises(tenure.AlreadyExists):
        await ledger.apply([over(A, "vm/a", "vm/b"), between, over(B, "vm/b", "vm/a")])
    assert await held(ledger) == {A: "vm/a", B: "vm/b", C: "vm/c"}


async def test_a_swap_of_states_and_words_goes_with_the_address(ledger: tenure.AsyncLedger) -> None:
    pending = await ledger.hold("net", owner="vm/p", lasts_s=60, labels={"a": "b"})
    await ledger.modify_holding("net", A, owner="vm/a", state="draining", description="old")
    await ledger.apply([over(pending.address, "vm/p", "vm/a"), over(A, "vm/a", "vm/p")])
    new, old = await ledger.holding("net", pending.address), await ledger.holding("net", A)

    assert (new.owner, new.state, new.until, new.labels) == ("vm/a", "pending", pending.until, {"a": "b"})
    assert (old.owner, old.state, old.description) == ("vm/p", "draining", "old")


async def test_slots_of_one_owner_swap(ledger: tenure.AsyncLedger) -> None:
    await ledger.allocate("net", owner="vm/a", slot="nic1", address="192.0.2.15")
    await ledger.apply([over(A, "vm/a", "vm/a", to_slot="nic1"), over("192.0.2.15", "vm/a", "vm/a")])

    assert (await held(ledger))[A] == "vm/a nic1"
    assert (await held(ledger))["192.0.2.15"] == "vm/a"


async def test_a_swap_of_an_old_generation_changes_nothing(ledger: tenure.AsyncLedger) -> None:
    stale = tenure.Transfer(network="net", address=B, owner="vm/b", to="vm/a", generation=10**6)

    with pytest.raises(tenure.Conflict, match="generation"):
        await ledger.apply([over(A, "vm/a", "vm/b"), stale])
    assert await held(ledger) == {A: "vm/a", B: "vm/b", C: "vm/c"}


async def test_a_holding_named_twice_is_handed_on(ledger: tenure.AsyncLedger) -> None:
    first, second = await ledger.apply([over(A, "vm/a", "vm/x"), over(A, "vm/x", "vm/y")])

    assert isinstance(first, tenure.Holding)
    assert isinstance(second, tenure.Holding)
    assert (first.owner, second.owner) == ("vm/x", "vm/y")
    assert (await held(ledger))[A] == "vm/y"


async def test_the_same_transfer_twice_in_one_apply_is_one(ledger: tenure.AsyncLedger) -> None:
    first, second = await ledger.apply([over(A, "vm/a", "vm/x"), over(A, "vm/a", "vm/x")])

    assert first == second
    with pytest.raises(tenure.NotOwner):
        await ledger.apply([over(B, "vm/b", "vm/y"), over(B, "vm/b", "vm/z")])
    assert await held(ledger) == {A: "vm/x", B: "vm/b", C: "vm/c"}


async def test_a_swap_with_a_release_and_a_grant_around_it(ledger: tenure.AsyncLedger) -> None:
    await ledger.apply(
        [
            tenure.Release(network="net", address=C, owner="vm/c"),
            over(A, "vm/a", "vm/c"),
            over(B, "vm/b", "vm/a"),
            tenure.Allocate(network="net", owner="vm/b"),
        ]
    )

    assert await held(ledger) == {A: "vm/c", B: "vm/a", C: "vm/b"}


async def test_what_was_swapped_is_not_free_for_anybody(ledger: tenure.AsyncLedger) -> None:
    await ledger.apply([over(A, "vm/a", "vm/b"), over(B, "vm/b", "vm/a")])

    assert (await ledger.allocate("net", owner="vm/new")).address == "192.0.2.13"


async def test_owners_of_different_networks_of_a_space_do_not_swap_by_mistake(ledger: tenure.AsyncLedger) -> None:
    await small_plan(ledger, network="beside", space="net")
    beside = await ledger.allocate("beside", owner="vm/a", address="192.0.2.13")

    with pytest.raises(tenure.NotFound):
        await ledger.apply([over(A, "vm/a", "vm/b"), over(beside.address, "vm/a", "vm/b")])
    assert (await ledger.holding("beside", beside.address)) == beside
