"""A census over a real ledger, without a server around it."""

from collections.abc import AsyncIterator

import pytest

import tenure
from tenure.doors.http.events.log_follower import News
from tenure.doors.http.utilisation.census import Census
from tenure.doors.http.utilisation.page_loader import PAGE


class Counted:
    """A ledger, and the census that follows it."""

    def __init__(self, ledger: tenure.AsyncLedger, page: int = PAGE) -> None:
        self.ledger = ledger
        self.news = News(ledger)
        self.census = Census(ledger, self.news, page=page)

    async def open(self) -> None:
        """Begin to count."""
        await self.news.open()
        await self.census.open()

    async def close(self) -> None:
        """Stop counting."""
        await self.census.close()
        await self.news.close()

    async def settle(self) -> None:
        """Wait until the census has everything that was done until now."""
        await self.census.current()
        assert await self.census.wait_until(self.census.is_settled)

    async def counts(self, network: str) -> dict[str, int]:
        """Return what a network has of everything, without what it has none of."""
        space, found = await self.census.counted(network)
        parts = [space.tallies[found.id, subnet.uuid].counts() for subnet in found.subnets]
        return {str(name): total for name in parts[0] if (total := sum(part[name] for part in parts))}


@pytest.fixture
async def counted(ledger: tenure.AsyncLedger) -> AsyncIterator[Counted]:
    """Give a census that counts from the start."""
    given = Counted(ledger)
    await given.open()
    yield given
    await given.close()
