"""Both ends of a ledger keep one promise: the engine on a store, and the client of a server."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import tenure
from tenure.client.remote_ledger import RemoteLedger
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.service.ledger.engine_ledger import EngineLedger
from tenure.service.ledger.ledger_api import LedgerApi

ENDS: tuple[type[LedgerApi], ...] = (EngineLedger, RemoteLedger)


def methods(kind: type[Any]) -> dict[str, Callable[..., object]]:
    """Return what a class has for others to call."""
    return {name: member for name, member in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}


PROMISED = methods(LedgerApi)


@pytest.mark.parametrize("end", ENDS)
def test_an_end_has_what_is_promised_and_no_more(end: type[LedgerApi]) -> None:
    assert set(methods(end)) == set(PROMISED)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", sorted(PROMISED))
def test_an_end_takes_and_returns_what_is_promised(end: type[LedgerApi], name: str) -> None:
    promised, kept = inspect.signature(PROMISED[name]), inspect.signature(methods(end)[name])

    assert kept.parameters == promised.parameters
    if name not in ("asked_by", "inside"):  # an engine returns another engine, a client refuses
        assert kept.return_annotation == promised.return_annotation
    assert inspect.iscoroutinefunction(methods(end)[name]) == inspect.iscoroutinefunction(PROMISED[name])


@pytest.mark.parametrize("end", ENDS)
def test_an_end_stands_by_itself(end: type[LedgerApi]) -> None:
    assert end.__bases__ == (object,)
    assert AsyncLedger.__bases__ == (object,)


async def test_a_ledger_over_http_is_an_async_ledger_too() -> None:
    async with (
        await tenure.open_async("http://127.0.0.1:9") as remote,
        await tenure.open_async("memory:") as own,
    ):
        assert type(remote) is type(own) is tenure.AsyncLedger
