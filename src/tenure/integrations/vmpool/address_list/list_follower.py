"""Keep what a process knows of a pool's addresses as new as the pool's own list (VS9).

Nothing depends on how soon it does so. Notes say which list was last decided by, and whoever knows an older one reads
the list before it decides; what has left the pool is held back. The watch is for speed: new VMs are used at once.
"""

import asyncio
import contextlib
from dataclasses import dataclass, field

from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable
from tenure.integrations.vmpool.address_list.sized_list_object import SizedListObject
from tenure.integrations.vmpool.pool_errors import PoolStateUnreadable
from tenure.integrations.vmpool.state.pool_notes import PoolNotes
from tenure.integrations.vmpool.state.state_repair import PoolLine
from tenure.kernel.errors import Conflict, TenureError

BEGINS_S, AGAIN_S = 1.0, 5.0
"""A process that lives for so long watches; and after so long a watch that has ended begins again."""


@dataclass
class ListFollower:
    """Follows the list of one pool, for one process."""

    lists: SizedListObject
    line: PoolLine
    _watching: asyncio.Task[None] | None = field(default=None, repr=False)

    async def follow(self, notes: PoolNotes) -> bool:
        """Read the list again if notes say that there is a newer one; return whether it has changed.

        Notes that cannot be read say nothing, so that the list is read each time.
        """
        if not notes.problem and notes.list_generation <= self.line.generation:
            return False
        return await self.look(notes.list_generation)

    async def look(self, expected: int = 0) -> bool:
        """Read the list; return whether it has changed. Raise ``Conflict`` if there should be one, and is none."""
        try:
            sized = (await self.lists.read()).sized
        except PoolStateUnreadable:
            if self.line.generation:
                return False  # what is known goes on; whoever begins now is told
            raise
        if sized is None and expected and not self.line.generation:
            raise Conflict(
                f"the list of the pool's addresses is gone: the ConfigMap {self.lists.name}, generation {expected}; "
                "`tenure vmpool resize --add ADDRESSES` makes it again"
            )
        if sized is None:
            return False
        self._watch()
        return self.line.follow(sized.ips, sized.generation)

    def _watch(self) -> None:
        if self._watching is None:
            self._watching = asyncio.create_task(self._keep_watching(), name="list of a VM pool")

    async def _keep_watching(self) -> None:
        await asyncio.sleep(BEGINS_S)
        while True:
            with contextlib.suppress(ApiUnreachable, ApiError, TenureError):
                async for sized in self.lists.watch():
                    self.line.follow(sized.ips, sized.generation)
            # Not allowed, or not possible now: the notes say when there is something to read.
            await asyncio.sleep(AGAIN_S)

    async def close(self) -> None:
        """Watch no longer."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None
