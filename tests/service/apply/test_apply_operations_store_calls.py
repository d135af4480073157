"""How often a group asks its store: by kinds of operations that stand together, not by operations."""

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import pytest

import tenure
from tenure.service.apply.operations import Operation
from tenure.stores.memory.transaction import MemoryTransaction

COUNTED = ("rows_of", "rows_at", "remove", "log")


async def calls_of(ledger: tenure.AsyncLedger, operations: Sequence[Operation]) -> Counter[str]:
    """Apply operations, and count the calls of their transaction."""
    calls: Counter[str] = Counter()

    def counted(name: str) -> Any:
        original = getattr(MemoryTransaction, name)

        async def call(self: MemoryTransaction, *words: Any, **more: Any) -> Any:
            calls[name] += 1
            return await original(self, *words, **more)

        return patch.object(MemoryTransaction, name, call)

    with ExitStack() as patched:
        for name in COUNTED:
            patched.enter_context(counted(name))
        await ledger.apply(operations)
    return calls


@pytest.mark.parametrize("kind", ["owners", "releases"])
async def test_many_releases_are_found_ended_and_logged_together(kind: str) -> None:
    async with await tenure.open_async("memory:") as ledger:
        await ledger.add_network("net")
        await ledger.add_subnet("net", "10.0.0.0/16")
        await ledger.add_pool("net", "10.0.0.0/16")
        held = await ledger.allocate_many("net", owners=[f"pod/{number}" for number in range(900)])
        endings: dict[str, list[Operation]] = {
            "owners": [tenure.ReleaseOwner(owner=each.owner) for each in held],
            "releases": [tenure.Release(network="net", address=each.address, owner=each.owner) for each in held],
        }
        calls = await calls_of(ledger, endings[kind])

        assert await ledger.holdings("net") == []
        assert sum(calls[name] for name in COUNTED) <= 4
        assert calls["log"] == calls["remove"] == 1


async def test_what_is_named_twice_in_a_group_is_ended_once() -> None:
    async with await tenure.open_async("memory:") as ledger:
        await ledger.add_network("net")
        await ledger.add_subnet("net", "10.0.0.0/24")
        await ledger.add_pool("net", "10.0.0.0/24")
        a, b = await ledger.allocate_many("net", owners=["pod/a", "pod/b"])
        again = tenure.Release(network="net", address=b.address, owner="pod/b")
        owner = tenure.ReleaseOwner(owner="pod/a")

        assert await ledger.apply([owner, owner, again, again]) == [[a], [], b, None]
