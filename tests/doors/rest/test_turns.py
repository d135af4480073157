"""Long lists are shown and written a slice at a time: between slices whoever else asks is served."""

import asyncio
import json
from collections.abc import Awaitable
from typing import Any

import msgspec

from tenure.doors.rest.answers import SLICE, encode, encoded_in_turns, in_turns
from tenure.doors.rest.routes import holdings
from tenure.remote import shapes


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
    items = [shapes.Answer(network_at=number) for number in range(3 * SLICE + 1)]
    written, turns = await turns_during(encoded_in_turns(items))

    assert written == encode(shapes.Listing(items=items))
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
    answer = await holdings._each(call, (wish() for _ in range(3 * holdings.AT_ONCE)))

    assert most == holdings.AT_ONCE
    assert msgspec.to_builtins(answer)["items"] == [{}] * (3 * holdings.AT_ONCE)
