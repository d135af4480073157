"""No grant passes a plan that has changed: several servers allocate while another one reserves and lifts a range."""

import asyncio

import tenure
from tenure.kernel.addressing.addresses import parse_address
from tenure.ports import LedgerStore
from tests.contract.providers import Provider

KEPT = "10.0.0.8/29"
ROUNDS = 25


async def test_nothing_is_granted_from_a_range_while_it_is_reserved(
    ledger_provider: Provider[LedgerStore], place: str
) -> None:
    servers = 1 if not ledger_provider.abilities.shared_by_processes else 3
    editor = await tenure.open_async(place)
    await editor.add_network("net")
    await editor.add_subnet("net", "10.0.0.0/27")
    await editor.add_pool("net", "10.0.0.2-10.0.0.30", policy="random")
    others = [editor] if servers == 1 else [await tenure.open_async(place) for _ in range(servers)]
    stop = asyncio.Event()

    granted: list[str] = []
    callers = [_come_and_go(ledger, f"{number}", stop, granted) for number, ledger in enumerate(others * 2)]
    await asyncio.gather(_reserve_and_lift(editor, stop, granted), *callers)

    changes = [change async for change in editor.changes()]
    assert _granted_while_reserved(changes) == []
    assert sum(change.verb == "grant" for change in changes) > ROUNDS
    assert await editor.verify() == []
    for ledger in {*others, editor}:
        await ledger.close()


async def _reserve_and_lift(ledger: tenure.AsyncLedger, stop: asyncio.Event, granted: list[str]) -> None:
    for _ in range(ROUNDS):
        await ledger.reserve("net", KEPT)
        await _some_more(granted)
        await ledger.unreserve("net", KEPT)
        await _some_more(granted)
    stop.set()


async def _some_more(granted: list[str]) -> None:
    """Wait until others were served, however busy the machine is: else nothing is tried."""
    before = len(granted)
    while len(granted) == before:  # noqa: ASYNC110 - callers of three servers, which share no event
        await asyncio.sleep(0.01)


async def _come_and_go(
    ledger: tenure.AsyncLedger, name: str, stop: asyncio.Event, granted: list[str] | None = None
) -> None:
    number = 0
    while not stop.is_set():
        number += 1
        owner = f"pod/{name}-{number}"
        given = await ledger.allocate("net", owner=owner)
        if granted is not None:
            granted.append(owner)
        await ledger.release("net", given.address, owner=owner)
        await asyncio.sleep(0)


def _granted_while_reserved(changes: list[tenure.Change]) -> list[tenure.Change]:
    first, last = parse_address("10.0.0.8"), parse_address("10.0.0.15")
    reserved = False
    wrong: list[tenure.Change] = []
    for change in changes:
        if change.verb in ("reserve", "unreserve"):
            reserved = change.verb == "reserve"
        elif change.verb == "grant" and reserved and change.first is not None and first <= change.first <= last:
            wrong.append(change)
    return wrong


async def test_verify_says_nothing_false_while_others_work(place: str) -> None:
    async with await tenure.open_async(place) as ledger:
        await ledger.add_network("net")
        await ledger.add_subnet("net", "10.0.0.0/24")
        await ledger.add_pool("net", "10.0.0.2-10.0.0.200", policy="random")
        stop = asyncio.Event()
        callers = [asyncio.create_task(_come_and_go(ledger, f"{number}", stop)) for number in range(8)]

        found = [await ledger.verify() for _ in range(5)]

        stop.set()
        await asyncio.gather(*callers)
        assert found == [[]] * 5
