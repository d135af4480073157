"""The cases run on SQLite and on PostgreSQL, each in a town of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import tenure
from tests.infrastructure.postgres import emptied_schema
from tests.integrations.bosh.conformance.town import Town
from tests.scale import second_store


@pytest.fixture(params=["sqlite", second_store("postgres")])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    """Give the URL of an empty ledger of every kind that deployments can share."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'tenure.db'}"
        return
    async with emptied_schema() as url:
        yield url


@pytest.fixture
async def town(place: str) -> AsyncIterator[Town]:
    """Give an empty town, and find its ledger without breaches at the end."""
    async with await tenure.open_async(place) as ledger:
        yield Town(ledger)
        assert await ledger.verify() == []
