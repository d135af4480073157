"""Cells as objects of their own: a list of many pages is whole."""

import pytest

from tenure.integrations.kubernetes.runtime.api_errors import error_of
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.integrations.vmpool.cells import object_cells
from tenure.integrations.vmpool.cells.cell_store import CellChange
from tenure.integrations.vmpool.cells.object_cells import ObjectCells
from tests.integrations.vmpool.pool_stage import PoolStage, Send


async def test_a_list_that_expires_between_two_pages_is_read_again_from_its_beginning(
    stage: PoolStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_cells, "PAGE", 2)
    client = await stage.client()
    cells = ObjectCells(client, stage.namespace, "pool")
    names = {f"cell-{number}" for number in range(5)}
    for name in names:
        await cells.swap([CellChange(name, None, "text")])
    client.sent.clear()

    async def second_page_has_expired(word: str, send: Send) -> Object:
        if client.sent == ["get", "get"]:
            raise error_of(410, {"kind": "Status", "reason": "Expired", "message": "too old"})
        return await send()

    client.trouble = second_page_has_expired
    found = await cells.all()

    assert found.cells.keys() == names
    assert len(client.sent) == 2 + 3
