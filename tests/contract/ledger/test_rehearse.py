"""``rehearse``: what ``apply`` would answer or refuse, told without a trace."""

import asyncio
from typing import Any

import pytest

import tenure
from tenure import AddNetwork, AddPool, AddSubnet, Allocate, Release, RemoveNetwork, Reserve, Transfer
from tenure.kernel.errors import AlreadyExists, Conflict
from tenure.ports import KeyTaken
from tenure.service.apply.operations import (
    Expect,
    ExpectPaper,
    ModifyHolding,
    Operation,
    ReleaseOwner,
    RemovePaper,
    Shown,
    WritePaper,
)
from tenure.service.ledger.engine_ledger import server_of
from tests.contract.ledger.plan import addresses, small_plan
from tests.contract.ledger.timing import until_waiting

Ledger = tenure.AsyncLedger

PLAN: list[Operation] = [
    AddNetwork(network="net"),
    AddSubnet(network="net", cidr="192.0.2.0/24", gateway="192.0.2.1"),
    AddPool(network="net", range="192.0.2.10-192.0.2.19"),
    Allocate(network="net", owner="vm/a"),
    Allocate(network="net", owner="vm/b", address="192.0.2.77"),
    Release(network="net", address="192.0.2.10", owner="vm/a"),
    Allocate(network="net", owner="vm/c"),
]


def told(answers: list[Shown]) -> list[str | None]:
    """Return the addresses of answers."""
    return [answer.address if isinstance(answer, tenure.Holding) else None for answer in answers]


async def test_a_rehearsal_answers_what_apply_will_answer(ledger: Ledger) -> None:
    rehearsed = await ledger.rehearse(PLAN)

    assert told(rehearsed) == [None, None, None, "192.0.2.10", "192.0.2.77", "192.0.2.10", "192.0.2.10"]
    assert told(await ledger.apply(PLAN)) == told(rehearsed)


async def test_a_rehearsal_leaves_no_trace(ledger: Ledger) -> None:
    await small_plan(ledger)
    held = await ledger.allocate("net", owner="vm/a")
    await ledger.apply([WritePaper(kind="note", name="n", document={"a": 1})])
    before, plan = await ledger.last_change(), await ledger.network("net")

    await ledger.rehearse(
        [
            Allocate(network="net", owner="vm/b"),
            Transfer(network="net", address=held.address, owner="vm/a", to="vm/z"),
            Reserve(network="net", range="192.0.2.15-192.0.2.19"),
            AddNetwork(network="other"),
            WritePaper(kind="note", name="n", document={"a": 2}, revision=1),
            WritePaper(kind="note", name="m", document={}),
        ]
    )

    assert await ledger.last_change() == before
    assert await ledger.network("net") == plan
    assert [network.name for network in await ledger.networks()] == ["net"]
    assert await ledger.holdings("net") == [held]
    assert [(paper.name, paper.document) for paper in await ledger.papers("note")] == [("n", {"a": 1})]
    assert (await ledger.why("192.0.2.11")).findings[0].status == "free"


async def test_what_a_rehearsal_picked_is_free_for_the_next(ledger: Ledger) -> None:
    await small_plan(ledger)
    for _ in range(3):
        assert told(await ledger.rehearse([Allocate(network="net", owner="vm/a")])) == ["192.0.2.10"]

    assert (await ledger.allocate("net", owner="vm/b")).address == "192.0.2.10"
    assert told(await ledger.rehearse([Allocate(network="net", owner="vm/a")])) == ["192.0.2.11"]


async def test_what_a_rehearsal_released_is_not_believed_by_the_next_pick(ledger: Ledger) -> None:
    await small_plan(ledger)
    await ledger.allocate_many("net", owners=[f"vm/{number}" for number in range(10)])

    swap: list[Operation] = [ReleaseOwner(owner="vm/4"), Allocate(network="net", owner="vm/new")]
    [_, answer] = await ledger.rehearse(swap)

    assert told([answer]) == ["192.0.2.14"]
    with pytest.raises(tenure.PoolExhausted):
        await ledger.allocate("net", owner="vm/late")
    assert (await ledger.holding("net", "192.0.2.14")).owner == "vm/4"


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("operation", "error"),
    [
        (Allocate(network="net", owner="vm/b", address="192.0.2.10"), tenure.AddressInUse),
        (Allocate(network="net", owner="vm/b", address="192.0.2.1"), tenure.AddressReserved),
        (Allocate(network="net", owner="vm/b", address="198.51.100.1"), tenure.AddressOutsideSubnet),
        (Allocate(network="nowhere", owner="vm/b"), tenure.NotFound),
        (Release(network="net", address="192.0.2.10", owner="vm/b"), tenure.NotOwner),
        (AddNetwork(network="net"), AlreadyExists),
        (AddSubnet(network="net", cidr="192.0.2.0/25"), tenure.Overlap),
        (RemoveNetwork(network="net"), tenure.StillInUse),
        (Expect(network="net", serial=99), Conflict),
        (ExpectPaper(kind="note", name="n", revision=1), tenure.NotFound),
        (RemovePaper(kind="note", name="n", revision=1), tenure.NotFound),
        (Allocate(network="net", owner="nobody"), tenure.Invalid),
        (ModifyHolding(network="net", address="192.0.2.10", owner="vm/a", state="lost"), tenure.Invalid),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, type) else value.__name__,
)
async def test_a_rehearsal_refuses_what_apply_refuses(
    ledger: Ledger, operation: Operation, error: type[tenure.TenureError]
) -> None:
    await small_plan(ledger)
    await ledger.allocate("net", owner="vm/a")
    before = await ledger.last_change()
    refusals = []
    for verb in (ledger.rehearse, ledger.apply):
        with pytest.raises(error) as refusal:
            await verb([Allocate(network="net", owner="vm/first"), operation])
        refusals.append((refusal.value.code, refusal.value.field, refusal.value.message))

    assert refusals[0] == refusals[1]
    assert await ledger.last_change() == before
    assert await addresses(ledger) == ["192.0.2.10"]


async def test_a_rehearsal_tells_that_there_is_not_room_for_all(ledger: Ledger) -> None:
    await small_plan(ledger)
    wishes: list[Operation] = [Allocate(network="net", owner=f"vm/{number}") for number in range(11)]

    with pytest.raises(tenure.PoolExhausted):
        await ledger.rehearse(wishes)

    assert len(await ledger.rehearse(wishes[:10])) == 10
    assert await addresses(ledger) == []


async def test_a_rehearsal_uses_no_key_up_and_answers_what_a_key_has_been_given(ledger: Ledger) -> None:
    await small_plan(ledger)
    await ledger.rehearse([Allocate(network="net", owner="vm/a", key="k")])
    held = await ledger.allocate("net", owner="vm/b", key="k")

    assert await ledger.rehearse([Allocate(network="net", owner="vm/b", key="k")]) == [held]
    with pytest.raises(tenure.KeyReused):
        await ledger.rehearse([Allocate(network="net", owner="vm/a", key="k")])


async def test_nobody_in_line_is_served_by_a_rehearsal(ledger: Ledger) -> None:
    await small_plan(ledger)
    await ledger.allocate_many("net", owners=[f"vm/{number}" for number in range(10)])
    waiting = asyncio.create_task(ledger.allocate("net", owner="vm/waits", wait_s=20))
    await until_waiting(ledger, "vm/waits")
    await ledger.rehearse([ReleaseOwner(owner="vm/4")])
    await asyncio.sleep(0.1)

    assert not waiting.done()
    await ledger.release("net", "192.0.2.14", owner="vm/4")
    assert (await asyncio.wait_for(waiting, 8)).address == "192.0.2.14"


async def test_rehearsals_and_allocations_do_not_disturb_each_other(ledger: Ledger) -> None:
    await small_plan(ledger)
    work = [
        ledger.rehearse([Allocate(network="net", owner=f"vm/tried-{number}")])
        if number % 2
        else ledger.allocate("net", owner=f"vm/{number}")
        for number in range(16)
    ]
    await asyncio.gather(*work)

    assert await addresses(ledger) == [f"192.0.2.{number}" for number in range(10, 18)]


async def test_nothing_rehearsed_is_answered_by_nothing(ledger: Ledger) -> None:
    assert await ledger.rehearse([]) == []


@pytest.mark.parametrize("wrong", ["text", 5, [5], None])
async def test_what_is_no_list_of_operations_is_refused(ledger: Ledger, wrong: object) -> None:
    with pytest.raises(tenure.Invalid) as refusal:
        await ledger.rehearse(wrong)  # type: ignore[arg-type]

    assert refusal.value.field == "operations"


async def test_a_rehearsal_that_meets_a_key_taken_meanwhile_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with await tenure.open_async("memory:") as ledger:
        await small_plan(ledger)
        engine, taken = server_of(ledger), [KeyTaken()]
        real = engine.apply_once

        async def once(*words: Any, **more: Any) -> Any:
            if taken:
                raise taken.pop()
            return await real(*words, **more)

        monkeypatch.setattr(engine, "apply_once", once)

        assert told(await ledger.rehearse([Allocate(network="net", owner="vm/a", key="k")])) == ["192.0.2.10"]
