"""What a watch of cells ends with is named: history that is forgotten, or a server that has no answer now."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.vmpool.cells.cell_store import CellChange, CellStore
from tenure.integrations.vmpool.cells.object_cells import ObjectCells
from tenure.integrations.vmpool.cells.shard_cells import ShardCells
from tenure.integrations.vmpool.pool_errors import PoolUnavailable
from tenure.kernel.errors import CursorExpired
from tests.integrations.vmpool.pool_stage import PoolStage, TroubledClient


def cells_of(kind: str, client: ApiClient, namespace: str) -> CellStore:
    """Give cells of a kind."""
    return ObjectCells(client, namespace, "pool") if kind == "objects" else ShardCells(client, namespace, "pool", 1)


def watches_end_with(client: TroubledClient, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every watch end with an error of the server within the stream."""
    status = {"kind": "Status", "code": code, "message": "no", "reason": "Expired" if code == 410 else ""}

    async def lines() -> AsyncIterator[bytes]:
        yield json.dumps({"type": "ERROR", "object": status}).encode()

    @asynccontextmanager
    async def stream(*words: Any) -> AsyncIterator[AsyncIterator[bytes]]:
        yield lines()

    monkeypatch.setattr(client, "stream", stream)


@pytest.mark.parametrize("kind", ["objects", "shards"])
@pytest.mark.parametrize(("code", "expected"), [(410, CursorExpired), (429, PoolUnavailable), (500, PoolUnavailable)])
async def test_only_410_in_a_watch_says_that_the_history_is_forgotten(
    stage: PoolStage, monkeypatch: pytest.MonkeyPatch, kind: str, code: int, expected: type[Exception]
) -> None:
    client = await stage.client()
    cells = cells_of(kind, client, stage.namespace)
    await cells.swap([CellChange("cell", None, "text")])
    watches_end_with(client, code, monkeypatch)

    with pytest.raises(expected):
        await cells.events(cells.newest, 10)
