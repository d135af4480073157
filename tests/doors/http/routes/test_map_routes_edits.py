"""Counts and timelines while the plan is edited: an edit between two steps of an answer is no error of the server."""

from collections.abc import AsyncIterator, Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

import tenure
from tenure.doors.http.access.authenticate import ANYBODY
from tenure.doors.http.routes import map_routes
from tenure.doors.http.routes.map_routes import TimelineQuery, get_timeline, get_utilisation
from tenure.doors.http.routing.endpoint import Call
from tenure.doors.http.routing.send_response import in_turns
from tests.doors.http.utilisation.conftest import Counted


@pytest.fixture
async def counted() -> AsyncIterator[Counted]:
    """Give a census that has counted a network of two subnets."""
    async with await tenure.open_async("memory:") as ledger:
        await ledger.add_network("net1")
        for cidr in ("192.0.2.0/28", "198.51.100.0/28"):
            await ledger.add_subnet("net1", cidr)
            await ledger.add_pool("net1", cidr)
        given = Counted(ledger)
        await given.open()
        await given.settle()
        yield given
        await given.close()


def asked(counted: Counted) -> Call:
    """Return a request for what the network has."""
    return Call(
        SimpleNamespace(census=counted.census), counted.ledger, ANYBODY, {"network": "net1"}, query=TimelineQuery()
    )


def removing(counted: Counted, step: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Return a step before which a subnet is removed, and the census knows it."""

    async def edited(*said: Any) -> Any:
        if len((await counted.ledger.network("net1")).subnets) == 2:
            await counted.ledger.remove_subnet("net1", "198.51.100.0/28")
            await counted.settle()
        return await step(*said)

    return edited


async def test_utilisation_is_answered_though_a_subnet_goes_meanwhile(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_routes, "in_turns", removing(counted, in_turns))

    told = await get_utilisation(asked(counted))

    assert [subnet.cidr for subnet in told.subnets] == ["192.0.2.0/28", "198.51.100.0/28"]
    assert told.counts.ipv4 is not None
    assert told.counts.ipv4.units == sum(subnet.counts.units for subnet in told.subnets)


async def test_a_timeline_is_answered_though_a_subnet_goes_meanwhile(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = counted.census.wait_until
    lasts = removing(counted, waits)
    monkeypatch.setattr(counted.census, "wait_until", _once(monkeypatch, waits, lasts))

    told = await get_timeline(asked(counted))

    assert told.ipv4 is not None
    assert told.ipv4.units == 16


def _once(monkeypatch: pytest.MonkeyPatch, before: Any, work: Callable[..., Awaitable[Any]]) -> Any:
    """Return work that is done the first time only."""

    async def done(*said: Any) -> Any:
        if said[0].__name__ != "<lambda>":
            return await before(*said)
        monkeypatch.undo()
        return await work(*said)

    return done
