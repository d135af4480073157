"""A ledger behind a server, with a small plan; and a wire to it that can break."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import tenure
from tests.client.proxy import Wire, wire_to
from tests.contract.ledger.plan import small_plan
from tests.infrastructure.street import street


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[str]:
    """Give the URL of a server on a fresh ledger."""
    async with street().house(f"sqlite:///{tmp_path / 'ledger.db'}") as url:
        yield url


@pytest.fixture
async def direct(served: str) -> AsyncIterator[tenure.AsyncLedger]:
    """Give the ledger without the wire, with a plan; find it without breaches at the end."""
    async with await tenure.open_async(served) as ledger:
        await small_plan(ledger)
        yield ledger
        assert await ledger.verify() == []


@pytest.fixture
async def wire(direct: tenure.AsyncLedger, served: str) -> AsyncIterator[Wire]:
    """Give a wire to the server."""
    async with wire_to(served) as laid:
        yield laid


@pytest.fixture
async def ledger(wire: Wire) -> AsyncIterator[tenure.AsyncLedger]:
    """Give the ledger by way of the wire."""
    async with await tenure.open_async(f"{wire.url}?within_s=5") as opened:
        yield opened
