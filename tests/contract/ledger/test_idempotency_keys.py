"""Idempotency keys: the same request again gets the same answer, whatever happened since; another one is refused."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

import tenure
from tests.contract.ledger.plan import small_plan
from tests.contract.ledger.timing import another, store_of, until_waiting

Request = Callable[..., Awaitable[Any]]


@pytest.fixture(autouse=True)
async def plan(ledger: tenure.AsyncLedger) -> None:
    """Lay out a small plan in which vm/held holds, and vm/pending is to."""
    await small_plan(ledger)
    await ledger.allocate("net", owner="vm/held", address="192.0.2.18")
    await ledger.hold("net", owner="vm/pending", address="192.0.2.19")


@pytest.fixture
async def other(ledger: tenure.AsyncLedger, place: str) -> AsyncIterator[tenure.AsyncLedger]:
    """Give a second ledger on the same store."""
    async with await another(ledger, place) as opened:
        yield opened


HELD: dict[str, Any] = {"network": "net", "address": "192.0.2.18", "owner": "vm/held"}
PENDING = {"network": "net", "address": "192.0.2.19", "owner": "vm/pending"}
NEW: dict[str, Any] = {"network": "net", "owner": "vm/a"}

GROUP = [tenure.Release(**HELD), tenure.Allocate(**NEW), tenure.AddPool(network="net", range="192.0.2.99")]

REQUESTS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "lowest": ("allocate", {**NEW, "policy": "lowest"}, {"labels": {"a": "b"}}),
    "random": ("allocate", {**NEW, "policy": "random"}, {"policy": "hashed"}),
    "hashed": ("allocate", {**NEW, "policy": "hashed"}, {"slot": "nic1"}),
    "sticky": ("allocate", {**NEW, "policy": "sticky"}, {"description": "x"}),
    "named": ("allocate", {**NEW, "address": "192.0.2.12"}, {"address": "192.0.2.13"}),
    "detailed": ("allocate", {**NEW, "policy": "random", "labels": {"a": "b"}, "request": "r"}, {"labels": {}}),
    "pending": ("hold", {**NEW, "lasts_s": 60}, {"lasts_s": 61}),
    "endless": ("hold", {**NEW, "policy": "random"}, {"lasts_s": 60}),
    "claimed": ("claim", NEW, {"owner": "vm/b"}),
    "many": ("allocate_many", {"network": "net", "owners": ["vm/a", "vm/b"]}, {"owners": ["vm/b", "vm/a"]}),
    "run": ("allocate_many", {**NEW, "count": 3, "contiguous": True}, {"count": 2}),
    "release": ("release", HELD, {"generation": 1}),
    "release_owner": ("release_owner", {"owner": "vm/held"}, {"owner": "vm/pending"}),
    "confirm": ("confirm", PENDING, {"request": "r"}),
    "cancel": ("cancel", PENDING, {"request": "r"}),
    "transfer": ("transfer", {**HELD, "to": "vm/b"}, {"to": "vm/c"}),
    "modify_holding": ("modify_holding", {**HELD, "description": "x"}, {"description": "y"}),
    "apply": ("apply", {"operations": GROUP}, {"operations": GROUP[:1]}),
    "new network": (
        "apply",
        {"operations": [tenure.AddNetwork(network="new", space="site")]},
        {"operations": [tenure.AddNetwork(network="new", space="other")]},
    ),
}


@pytest.fixture(params=REQUESTS)
def request_made(request: pytest.FixtureRequest, ledger: tenure.AsyncLedger) -> tuple[Request, Request]:
    """Give a request, and another one with the same key."""
    verb, arguments, others = REQUESTS[request.param]

    def made(where: tenure.AsyncLedger = ledger, /, **more: Any) -> Any:
        return getattr(where, verb)(**{**arguments, "key": "k-1", **more})

    def another_one() -> Any:
        return made(**others)

    return made, another_one


@pytest.mark.sampled
async def test_the_same_request_is_answered_the_same_by_every_server(
    ledger: tenure.AsyncLedger, other: tenure.AsyncLedger, request_made: tuple[Request, Request]
) -> None:
    first = await request_made[0]()
    cursor = await ledger.last_change()

    assert await request_made[0]() == first
    assert await request_made[0](other) == first
    assert await ledger.last_change() == cursor


@pytest.mark.sampled
async def test_the_same_request_is_answered_the_same_when_nothing_is_held_any_more(
    ledger: tenure.AsyncLedger, other: tenure.AsyncLedger, request_made: tuple[Request, Request]
) -> None:
    first = await request_made[0]()
    for owner in ("vm/a", "vm/b", "vm/held", "vm/pending"):
        await ledger.release_owner(owner)
    await ledger.allocate_many("net", owner="vm/z", count=10)
    cursor = await ledger.last_change()

    assert await request_made[0]() == first
    assert await request_made[0](other) == first
    assert await ledger.last_change() == cursor


@pytest.mark.sampled
async def test_another_request_under_the_key_is_refused_and_changes_nothing(
    ledger: tenure.AsyncLedger, request_made: tuple[Request, Request]
) -> None:
    await request_made[0]()
    cursor = await ledger.last_change()

    with pytest.raises(tenure.KeyReused) as told:
        await request_made[1]()
    assert (told.value.key, told.value.field, told.value.code) == ("k-1", "key", "key_reused")
    assert await ledger.last_change() == cursor


@pytest.mark.sampled
async def test_one_of_many_who_come_at_once_has_the_effect(
    ledger: tenure.AsyncLedger, other: tenure.AsyncLedger, request_made: tuple[Request, Request]
) -> None:
    answers = await asyncio.gather(*(request_made[0](where) for _ in range(6) for where in (ledger, other)))
    cursor = await ledger.last_change()

    assert all(answer == answers[0] for answer in answers)
    assert await request_made[0]() == answers[0]
    assert await ledger.last_change() == cursor


@pytest.mark.sampled
async def test_of_two_requests_that_come_at_once_under_a_key_one_is_refused(
    ledger: tenure.AsyncLedger, request_made: tuple[Request, Request]
) -> None:
    answers = await asyncio.gather(request_made[0](), request_made[1](), return_exceptions=True)

    assert [type(answer) for answer in answers].count(tenure.KeyReused) == 1


@pytest.mark.parametrize("policy", ["lowest", "random"])
async def test_a_key_stands_also_for_what_the_owner_held_already(ledger: tenure.AsyncLedger, policy: str) -> None:
    held = await ledger.allocate("net", owner="vm/a", labels={"a": "b"})
    first = await ledger.allocate("net", owner="vm/a", policy=policy, key="k-1")
    await ledger.release_owner("vm/a")
    await ledger.allocate("net", owner="vm/b", address=held.address)

    assert (first, await ledger.allocate("net", owner="vm/a", policy=policy, key="k-1")) == (held, held)
    with pytest.raises(tenure.KeyReused):
        await ledger.allocate("net", owner="vm/c", policy=policy, key="k-1")
    assert await ledger.holdings(owner="vm/a") == []


@pytest.mark.parametrize("policy", ["lowest", "random", "named"])
async def test_a_request_that_failed_keeps_nothing(ledger: tenure.AsyncLedger, policy: str) -> None:
    wish: dict[str, Any] = {"address": "192.0.2.10"} if policy == "named" else {"policy": policy}
    await ledger.allocate_many("net", owner="vm/full", count=8)
    with pytest.raises(tenure.TenureError):
        await ledger.allocate("net", owner="vm/a", key="k-1", **wish)
    await ledger.release_owner("vm/full")

    assert (await ledger.allocate("net", owner="vm/a", key="k-1", **wish)).owner == "vm/a"
    assert len(await ledger.holdings(owner="vm/a")) == 1


async def test_a_named_claim_that_failed_for_what_its_owner_held_keeps_nothing(ledger: tenure.AsyncLedger) -> None:
    with pytest.raises(tenure.AlreadyExists):
        await ledger.allocate("net", owner="vm/held", address="192.0.2.11", key="k-1")
    await ledger.release_owner("vm/held")

    assert (await ledger.allocate("net", owner="vm/held", address="192.0.2.11", key="k-1")).address == "192.0.2.11"


@pytest.mark.parametrize("policy", ["lowest", "random"])
async def test_a_claim_that_failed_for_what_its_owner_has_pending_keeps_nothing(
    ledger: tenure.AsyncLedger, policy: str
) -> None:
    with pytest.raises(tenure.AlreadyExists):
        await ledger.allocate("net", owner="vm/pending", policy=policy, key="k-1")
    await ledger.cancel("net", "192.0.2.19", owner="vm/pending")

    assert (await ledger.allocate("net", owner="vm/pending", policy=policy, key="k-1")).state == "held"


async def test_an_apply_that_failed_keeps_nothing(ledger: tenure.AsyncLedger) -> None:
    group: list[tenure.Allocate | tenure.Release] = [
        tenure.Allocate(**NEW),
        tenure.Release(**{**HELD, "owner": "vm/b"}),
    ]
    with pytest.raises(tenure.NotOwner):
        await ledger.apply(group, key="k-1")
    await ledger.transfer("net", "192.0.2.18", owner="vm/held", to="vm/b")

    assert len(await ledger.apply(group, key="k-1")) == 2


async def test_one_key_is_not_for_two_verbs(ledger: tenure.AsyncLedger) -> None:
    given = await ledger.allocate("net", owner="vm/a", key="k-1")
    cursor = await ledger.last_change()

    with pytest.raises(tenure.KeyReused):
        await ledger.release("net", given.address, owner="vm/a", key="k-1")
    with pytest.raises(tenure.KeyReused):
        await ledger.hold("net", owner="vm/a", key="k-1")
    await ledger.release("net", "192.0.2.18", owner="vm/held", key="k-2")
    with pytest.raises(tenure.KeyReused):
        await ledger.allocate("net", owner="vm/a", key="k-2")
    assert await ledger.last_change() == cursor + 1


async def test_the_order_of_labels_is_not_another_request(ledger: tenure.AsyncLedger) -> None:
    picked = await ledger.allocate("net", owner="vm/a", labels={"a": "1", "b": "2"}, key="k-1")
    [grouped] = await ledger.allocate_many("net", owners=["vm/b"], labels={"a": "1", "b": "2"}, key="k-2")

    assert await ledger.allocate("net", owner="vm/a", labels={"b": "2", "a": "1"}, key="k-1") == picked
    assert await ledger.allocate_many("net", owners=["vm/b"], labels={"b": "2", "a": "1"}, key="k-2") == [grouped]


async def test_allocations_of_a_group_may_have_keys_of_their_own(ledger: tenure.AsyncLedger) -> None:
    wish = tenure.Allocate(network="net", owner="vm/a", key="k-1")
    [first] = await ledger.apply([wish])
    await ledger.release_owner("vm/a")

    assert await ledger.apply([wish]) == [first]
    assert await ledger.allocate("net", owner="vm/a", key="k-1") == first
    with pytest.raises(tenure.KeyReused):
        await ledger.apply([tenure.Allocate(network="net", owner="vm/b", key="k-1")])
    with pytest.raises(tenure.KeyReused):
        await ledger.apply([tenure.Allocate(network="net", owner=f"vm/{n}", key="k-9") for n in range(2)])
    assert await ledger.holdings(owner="vm/a") == []


async def test_a_group_and_an_allocation_in_it_do_not_share_a_key(ledger: tenure.AsyncLedger) -> None:
    cursor = await ledger.last_change()

    with pytest.raises(tenure.KeyReused):
        await ledger.apply([tenure.Allocate(**NEW, key="k-1")], key="k-1")
    assert await ledger.last_change() == cursor


async def test_the_answer_of_a_replay_survives_the_end_of_its_network(ledger: tenure.AsyncLedger) -> None:
    first = await ledger.allocate_many("net", owners=["vm/a"], key="k-1")
    plan = await ledger.apply([tenure.ModifyNetwork(network="net", description="x")], key="k-2")
    await ledger.remove_network("net", cascade=True)

    assert await ledger.allocate_many("net", owners=["vm/a"], key="k-1") == first
    assert await ledger.apply([tenure.ModifyNetwork(network="net", description="x")], key="k-2") == plan


@pytest.mark.usefixtures("embedded")
async def test_a_key_counts_as_new_when_its_time_is_over(place: str) -> None:
    async with await tenure.open_async(place, keys_live_s=0.05) as ledger:
        network = "net" if not await ledger.networks() else "fresh"
        await small_plan(ledger, network=network)
        old = await ledger.allocate(network, owner="vm/a", key="k-1")
        await ledger.release_owner("vm/a")
        await asyncio.sleep(0.06)
        await ledger.sweep()
        new = await ledger.allocate(network, owner="vm/a", key="k-1")

        assert new.generation != old.generation
        assert await ledger.holdings(owner="vm/a") == [new]


async def test_a_key_that_lives_is_not_swept(ledger: tenure.AsyncLedger) -> None:
    first = await ledger.allocate("net", owner="vm/a", key="k-1")
    await ledger.release_owner("vm/a")
    await ledger.sweep()

    assert await ledger.allocate("net", owner="vm/a", key="k-1") == first


@pytest.mark.usefixtures("embedded")
async def test_a_key_and_its_effect_are_one_transaction(ledger: tenure.AsyncLedger) -> None:
    await ledger.allocate("net", owner="vm/a", policy="random", key="k-1")
    await ledger.allocate("net", owner="vm/b", key="k-2")
    await ledger.release("net", "192.0.2.18", owner="vm/held", key="k-3")
    kept = await store_of(ledger).transact(lambda tx: tx.replies(["k-1", "k-2", "k-3", "k-4"]))

    assert [reply is not None for reply in kept] == [True, True, True, False]


async def test_waiting_with_a_key_is_answered_the_same_afterwards(ledger: tenure.AsyncLedger) -> None:
    await ledger.allocate_many("net", owner="vm/full", count=8)
    waiting = asyncio.create_task(ledger.allocate("net", owner="vm/a", key="k-1", wait_s=20))
    await until_waiting(ledger, "vm/a")
    await ledger.release_owner("vm/full")
    first = await asyncio.wait_for(waiting, 8)
    await ledger.release_owner("vm/a")

    assert await ledger.allocate("net", owner="vm/a", key="k-1", wait_s=20) == first
    assert await ledger.holdings(owner="vm/a") == []
