"""Confirmations of plain pending holdings are one look and one write; they leave what a transaction would leave."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

import tenure
from tenure.kernel.holdings.holding_model import Change, Row
from tenure.service.ledger.engine_ledger import server_of
from tests.contract.ledger.plan import small_plan
from tests.contract.ledger.timing import let_deadlines_pass, news, row_at

pytestmark = pytest.mark.every_store


@pytest.fixture(autouse=True)
async def plan(ledger: tenure.AsyncLedger, embedded: None) -> None:
    await small_plan(ledger)


class Watched:
    """Counts the calls of a store's verb, and how many groups each of them carried and wrote."""

    def __init__(self, ledger: tenure.AsyncLedger, *, decline: bool = False) -> None:
        self.written: list[tuple[int, int]] = []
        self._store: Any = server_of(ledger).store
        self._rewrite: Callable[..., Awaitable[Sequence[bool]]] = self._store.rewrite_unchanged
        self._decline = decline
        self._store.rewrite_unchanged = self._watched  # type: ignore[method-assign]

    async def _watched(self, space: int, version: int, groups: Sequence[Any]) -> Sequence[bool]:
        written = [False] * len(groups) if self._decline else await self._rewrite(space, version, groups)
        self.written.append((len(groups), sum(written)))
        return written

    def end(self) -> None:
        """Let the store be as it was."""
        self._store.rewrite_unchanged = self._rewrite


def _plain(changes: Sequence[Change], row: Row) -> list[Any]:
    """Return changes without what is another with each holding, and each time."""
    return [
        change._replace(seq=0, at_us=0, first=0, last=0, generation=change.generation == row.generation)
        for change in changes
    ]


HOLDS: dict[str, dict[str, Any]] = {
    "with a deadline": {"lasts_s": 60},
    "without a deadline": {},
    "overdue": {"lasts_s": 60},
    "with words on it": {
        "labels": {"rolle": "köche"},
        "description": "line\nline",
        "carrier": "node-1",
        "request": "hold",
    },
    "asked for by name": {"lasts_s": 60, "request": "r-0", "slot": "eth0"},
}


@pytest.mark.sampled
@pytest.mark.parametrize("kind", HOLDS)
@pytest.mark.parametrize("actor", [None, "token/ops"])
async def test_both_ways_leave_the_same_row_and_the_same_log(
    ledger: tenure.AsyncLedger, kind: str, actor: str | None
) -> None:
    asking = ledger if actor is None else ledger.asked_by(actor, request_id="r-1")
    found = []
    for decline in (False, True):
        pending = await asking.hold("net", owner="vm/a", **HOLDS[kind])
        if kind == "overdue":
            await let_deadlines_pass(ledger)
        cursor, watched = await ledger.last_change(), Watched(ledger, decline=decline)
        answer = await asking.confirm("net", pending.address, owner="vm/a", request="confirm")
        stored = await row_at(ledger, pending.address)
        changes = await news(ledger, cursor)
        assert watched.written == [(1, 0 if decline else 1)]
        assert (answer.row, answer.state, answer.until) == (stored, "held", None)
        found.append((stored._replace(generation=0, since_us=0), _plain(changes, stored)))
        await ledger.release("net", pending.address, owner="vm/a")
        watched.end()

    assert found[0] == found[1]
    assert [change.verb for change in found[0][1]] == ["confirm"]


async def test_many_confirmations_at_once_share_their_writes(ledger: tenure.AsyncLedger) -> None:
    held = [await ledger.hold("net", owner=f"vm/{number}") for number in range(10)]
    watched = Watched(ledger)

    answers = await asyncio.gather(*(ledger.confirm("net", each.address, owner=each.owner) for each in held))

    assert [answer.state for answer in answers] == ["held"] * 10
    assert sum(written for _, written in watched.written) == 10
    assert len(watched.written) <= 2


async def test_confirmations_of_one_apply_are_made_all_or_none(ledger: tenure.AsyncLedger) -> None:
    held = [await ledger.hold("net", owner=f"vm/{number}") for number in range(3)]
    confirms = [tenure.Confirm(network="net", address=each.address, owner=each.owner) for each in held]
    watched = Watched(ledger)
    with pytest.raises(tenure.NotFound):
        await ledger.apply([*confirms, tenure.Confirm(network="net", address="192.0.2.19", owner="vm/x")])
    assert [each.state for each in await ledger.holdings("net")] == ["pending"] * 3
    cursor = await ledger.last_change()

    answers = await ledger.apply(confirms)

    assert [each.address for each in answers if isinstance(each, tenure.Holding)] == [each.address for each in held]
    assert watched.written == [(1, 1)]
    assert [(change.verb, change.owner) for change in await news(ledger, cursor)] == [
        ("confirm", "vm/0"), ("confirm", "vm/1"), ("confirm", "vm/2"),
    ]  # fmt: skip


async def test_an_address_that_is_confirmed_twice_in_one_apply_is_logged_once(ledger: tenure.AsyncLedger) -> None:
    pending = await ledger.hold("net", owner="vm/a")
    confirm = tenure.Confirm(network="net", address=pending.address, owner="vm/a")
    cursor = await ledger.last_change()

    first, second = await ledger.apply([confirm, confirm])

    assert first == second == await ledger.holding("net", pending.address)
    assert [change.verb for change in await news(ledger, cursor)] == ["confirm"]


async def test_the_same_confirmation_many_times_at_once_is_logged_once(ledger: tenure.AsyncLedger) -> None:
    pending = await ledger.hold("net", owner="vm/a")
    cursor = await ledger.last_change()

    answers = await asyncio.gather(*(ledger.confirm("net", pending.address, owner="vm/a") for _ in range(8)))

    assert {(answer.state, answer.generation) for answer in answers} == {("held", pending.generation)}
    assert [change.verb for change in await news(ledger, cursor)] == ["confirm"]


async def test_a_plan_that_was_edited_elsewhere_is_no_reason_to_refuse(ledger: tenure.AsyncLedger) -> None:
    first = await ledger.hold("net", owner="vm/a")
    second = await ledger.hold("net", owner="vm/b")
    engine = server_of(ledger)
    stale = await engine.layout("net")
    await ledger.add_subnet("net", "198.51.100.0/24", name="second")
    engine._keep(stale.configuration.space, stale)

    answers = [await ledger.confirm("net", each.address, owner=each.owner) for each in (first, second)]

    assert [answer.state for answer in answers] == ["held", "held"]
    assert (await engine.layout("net")).configuration.version > stale.configuration.version
