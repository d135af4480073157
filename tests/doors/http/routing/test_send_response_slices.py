"""Long lists are shown and written a slice at a time: between slices whoever else asks is served."""

import asyncio
import json
from collections.abc import Awaitable
from typing import Any

import msgspec
import pytest

from tenure.doors.http.routes import holding_routes
from tenure.doors.http.routing.send_response import SLICE, encode, encoded_in_turns, in_turns
from tenure.ports import LedgerStore
from tenure.wire import responses
from tests.contract.providers import Provider, ledger_providers
from tests.doors.http.stage import Client, running
from tests.scale import by_store

MANY = 1000
SERVED = [provider for provider in ledger_providers() if provider.abilities.shared_by_processes]


async def turns_during(work: Awaitable[Any]) -> tuple[Any, int]:
    """Return what some work returns, and how often another task had a turn meanwhile."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(count())
    found = await work
    other.cancel()
    return found, turns


async def test_between_slices_of_a_long_list_others_have_a_turn() -> None:
    shown, turns = await turns_during(in_turns(range(10 * SLICE), str))

    assert shown == [str(number) for number in range(10 * SLICE)]
    assert turns >= 9


async def test_a_long_list_is_written_in_slices_as_it_would_be_at_once() -> None:
    items = [responses.Answer(network_at=number) for number in range(3 * SLICE + 1)]
    written, turns = await turns_during(encoded_in_turns(items))

    assert written == encode(responses.Listing(items=items))
    assert json.loads(written)["items"][-1] == {"network_at": 3 * SLICE}
    assert turns >= 3


async def test_wishes_that_stand_each_on_its_own_are_asked_for_a_slice_at_a_time() -> None:
    under_way = most = 0

    async def wish() -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1

    call: Any = None
    answer = await holding_routes._each(call, (wish() for _ in range(3 * holding_routes.AT_ONCE)))

    assert most == holding_routes.AT_ONCE
    assert msgspec.to_builtins(answer)["items"] == [{}] * (3 * holding_routes.AT_ONCE)


@pytest.mark.every_store
@pytest.mark.parametrize("policy", ["lowest", "random"])
@pytest.mark.parametrize("provider", by_store(SERVED))
async def test_callers_of_another_network_are_served_between_the_wishes_of_a_long_list(
    provider: Provider[LedgerStore], policy: str
) -> None:
    wishes = [{"owner": f"vm/{number}"} for number in range(MANY)]
    async with provider.place() as store, running(store) as server, server.client() as client:
        for number, name in enumerate(("many", "other")):
            await client.post("/networks", {"name": name})
            await client.post(f"/networks/{name}/subnets", {"cidr": f"10.{number}.0.0/16"})
            pool = {"range": f"10.{number}.1.0-10.{number}.250.0", "name": "p", "policy": policy}
            await client.post(f"/networks/{name}/pools", pool)
        # Connections are opened before: a caller that is still opening its own asks too late.
        await asyncio.gather(*(client.get("/networks/other") for _ in range(4)))
        after = (await client.get("/changes/last"))["last"]
        long = asyncio.create_task(
            client.post("/networks/many:allocate_many", {"wishes": wishes, "all_or_none": False})
        )
        others = sum(await asyncio.gather(*(_ask_meanwhile(client, caller, long) for caller in range(3))))
        answers = (await long)["items"]
        log = await _networks_granted(client, after)

    assert [each["holding"]["owner"] for each in answers] == [wish["owner"] for wish in wishes]
    assert log.count("many") == MANY
    first, last = log.index("many"), MANY + others - 1 - log[::-1].index("many")
    assert "other" in log[first:last]


async def _ask_meanwhile(client: Client, caller: int, long: asyncio.Task[Any]) -> int:
    """Allocate in the other network until a long list is answered; return how often."""
    asked = 0
    while not long.done():
        await client.post("/networks/other:allocate", {"owner": f"pod/{caller}-{asked}"})
        asked += 1
    return asked


async def _networks_granted(client: Client, after: int) -> list[str]:
    """Return the network of every grant in the log behind a number, in order."""
    found: list[str] = []
    while items := (page := await client.get(f"/changes?after={after}&limit=1000"))["items"]:
        found += [each["network"] for each in items if each["verb"] == "grant"]
        after = page["next"]
    return found
