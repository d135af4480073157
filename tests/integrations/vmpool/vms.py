"""VMs of tests: allocations of them, and ports that open and close as those of a VM that reboots."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from tenure.integrations.vmpool.state.pool_state import VMAllocation

LONG_AGO = datetime(2025, 9, 4, 12, tzinfo=UTC)


def allocation(ip: str, id: str, node: str = "node-1", at: datetime = LONG_AGO) -> VMAllocation:
    """Write an allocation."""
    return VMAllocation(
        allocation_id=id, ip=ip, node_name=node, pod_name="pod", pod_namespace="default", allocated_at=at
    )


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something is so, half a minute at most."""
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


class FakeVM:
    """A port on loopback that answers while the VM is up."""

    def __init__(self) -> None:
        self.port = 0
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        await self.up()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.down()

    async def up(self) -> None:
        """Listen, always on the same port."""
        self._server = await asyncio.start_server(self._greet, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def down(self) -> None:
        """Close the port."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None

    async def reboot(self, after_s: float, away_s: float) -> None:
        """Go away for a while."""
        await asyncio.sleep(after_s)
        await self.down()
        await asyncio.sleep(away_s)
        await self.up()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()
