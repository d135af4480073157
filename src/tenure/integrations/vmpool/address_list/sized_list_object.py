"""The object with the list of a pool's addresses: a ConfigMap beside the pool's, which is swapped as a whole."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Literal

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.vmpool.config_map_swap import CONFIG_MAP, AnswerLost, ConfigMapSwap, StoredPool, SwapLost
from tenure.integrations.vmpool.pool_errors import PoolStateUnreadable, PoolUnavailable
from tenure.integrations.vmpool.retry_schedule import RetrySchedule
from tenure.integrations.vmpool.state.go_json import NotReadable
from tenure.integrations.vmpool.state.sized_list import SizedList, read_sized_list, write_sized_list
from tenure.integrations.vmpool.vm_pool_settings import VMPoolSettings, object_beside

LIST_KEY = "sized-list"
DELAYS = RetrySchedule(base_s=0.05)
# Longer than a watch lasts, so that the server ends a watch that is merely quiet.
SILENT_S = 330.0
WATCHED_S = "300"
"""How long a watch lasts, and for how long it may be silent."""


@dataclass(frozen=True)
class StoredList:
    """The list as it was read, if there is one, and what names this very text when it is written again."""

    sized: SizedList | None
    stored: StoredPool


@dataclass(frozen=True)
class SizedListObject:
    """The list of one pool."""

    client: ApiClient
    settings: VMPoolSettings

    @property
    def name(self) -> str:
        """Return the name of the ConfigMap."""
        return object_beside(self.settings.config_map_name, "size")

    async def read(self) -> StoredList:
        """Read the list; raise ``PoolUnavailable``, ``PoolForbidden`` or ``PoolStateUnreadable``. Cost: one read."""
        async with self._in_time("none"):
            for attempt in range(1, 1 << 30):
                with contextlib.suppress(AnswerLost):
                    return await self._read()
                await asyncio.sleep(DELAYS.delay_s(attempt) or 0.0)
        raise AssertionError("it is tried until the time is up")

    async def change(
        self,
        decide: Callable[[SizedList | None], SizedList],
        *,
        after: int = 0,
        check: Callable[[], None] = lambda: None,
    ) -> SizedList:
        """Decide on the list as it is, and write what has changed; decide again where another writer was faster.

        A list that is new has a generation above ``after``. ``check`` raises if this process must not write any more.
        Cost: a read and a write.
        """
        # The same mark in all tries: a list that has it was written by one of them.
        mark = secrets.token_hex(4)
        async with self._in_time("unknown"):
            for attempt in range(1, 1 << 30):
                with contextlib.suppress(SwapLost, AnswerLost):
                    found = await self._read()
                    if found.sized is not None and mark in found.sized.marks:
                        return found.sized  # it was written, and the answer lost
                    wanted = decide(found.sized)
                    if wanted == found.sized:
                        return wanted
                    generation = max(after, found.sized.generation if found.sized else 0) + 1
                    # Last of all: reading may have taken longer than the Lease lasts.
                    check()
                    return await self._write(found, wanted.written(generation, mark))
                await asyncio.sleep(DELAYS.delay_s(attempt) or 0.0)
        raise AssertionError("it is tried until the time is up")

    async def watch(self) -> AsyncIterator[SizedList]:
        """Give the list whenever it has changed, until the server ends the watch."""
        query = {"watch": "1", "fieldSelector": f"metadata.name={self.name}", "timeoutSeconds": WATCHED_S}
        path = CONFIG_MAP.path(self.settings.namespace)
        async with self.client.stream(path, query, SILENT_S) as lines:
            async for _ in lines:
                # An event is a reason to read: what is read last is newest, whatever came when.
                found = await self.read()
                if found.sized is not None:
                    yield found.sized

    async def _read(self) -> StoredList:
        swap = ConfigMapSwap(self.client, self.settings.namespace, self.name)
        stored = await swap.read()
        text = ((stored.object or {}).get("data") or {}).get(LIST_KEY)
        try:
            return StoredList(None if text is None else read_sized_list(text), stored)
        except NotReadable as error:
            remedy = f"mend the text of {LIST_KEY} in the ConfigMap {self.name}"
            raise PoolStateUnreadable(f"the list of addresses: {error}", remedy) from None

    async def _write(self, seen: StoredList, wanted: SizedList) -> SizedList:
        swap = ConfigMapSwap(self.client, self.settings.namespace, self.name)
        await swap.write(seen.stored, {LIST_KEY: write_sized_list(wanted)})
        return wanted

    @contextlib.asynccontextmanager
    async def _in_time(self, outcome: Literal["none", "unknown"]) -> AsyncIterator[None]:
        limit_s = self.settings.operation_timeout_s
        try:
            async with asyncio.timeout(limit_s):
                yield
        except TimeoutError:
            said = f"the list of the pool's addresses ({self.name}): no answer within {limit_s:g} s"
            raise PoolUnavailable(said, outcome=outcome) from None
