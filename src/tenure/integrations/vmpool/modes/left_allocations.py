"""The allocations that a ConfigMap had when its pool left, where they have no room beside the fillers (VD4).

They are written to a ConfigMap of their own, whose name nobody has used before, and the swap that puts the fillers in
their place names it. So what is named is what the swap replaced, and a writer that was killed between the two has left
nothing but an object that nobody names.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.vmpool.config_map_swap import AnswerLost, ConfigMapSwap, StoredPool, SwapLost
from tenure.integrations.vmpool.pool_errors import PoolStateUnreadable, PoolUnavailable
from tenure.integrations.vmpool.state.go_json import NotReadable, read_json, read_object, write_line
from tenure.integrations.vmpool.state.pool_notes import PoolNotes
from tenure.integrations.vmpool.vm_pool_settings import VMPoolSettings, object_beside

LEFT_KEY = "left"
TRIES = 5


@dataclass(frozen=True)
class LeftAllocations:
    """The objects beside one pool that have what it left."""

    client: ApiClient
    settings: VMPoolSettings

    async def keep(self, left: Mapping[str, Any]) -> str:
        """Write allocations to an object of their own; return its name. Cost: one write."""
        text = write_line(left)
        problem: Exception | None = None
        for _ in range(TRIES):
            # Another name in each try: after a lost answer the object of the last try may be there.
            name = object_beside(self.settings.config_map_name, f"left-{secrets.token_hex(4)}")
            try:
                await ConfigMapSwap(self.client, self.settings.namespace, name).write(StoredPool(), {LEFT_KEY: text})
            except (AnswerLost, SwapLost) as error:
                problem = error
                continue
            return name
        raise PoolUnavailable(str(problem), outcome="none") from problem

    async def read(self, notes: PoolNotes) -> Mapping[str, Any]:
        """Return what notes say was left, by id; raise ``PoolStateUnreadable``. Cost: a read, or none."""
        if not notes.left_in:
            return notes.left
        try:
            stored = await ConfigMapSwap(self.client, self.settings.namespace, notes.left_in).read()
        except AnswerLost as error:
            raise PoolUnavailable(str(error), outcome="none") from error
        try:
            return read_object(read_json(((stored.object or {}).get("data") or {}).get(LEFT_KEY) or ""), LEFT_KEY)
        except NotReadable as error:
            remedy = f"bring the ConfigMap {notes.left_in} back: it has the allocations that the move carries"
            raise PoolStateUnreadable(f"what the pool has left: {error}", remedy) from None
