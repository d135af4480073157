"""A pool in any mode: where it is, and managers on it as nodes have them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.vm_pool_settings import MODES, PoolMode
from tests.infrastructure.street import street
from tests.integrations.vmpool.pool_stage import PoolStage

SHARDS = 3
ON_CELLS: tuple[PoolMode, ...] = ("per-ip", "shards")
ALL_MODES = MODES


@dataclass(frozen=True)
class ModeStage:
    """A namespace, and a ledger beside it, for a pool in one mode."""

    stage: PoolStage
    mode: PoolMode
    ledger: str

    @property
    def words(self) -> dict[str, Any]:
        """Return the settings of the mode; the ledger is named in all of them, so that a pool can be moved there."""
        return {"pool_mode": self.mode, "pool_shards": SHARDS, "pool_ledger": self.ledger}

    async def pool(self, *ips: str, client: ApiClient | None = None, **words: Any) -> AsyncVMPool:
        """Open a manager of its own, as another node would have."""
        return await self.stage.pool(*ips, client=client, **{**self.words, **words})

    def objects(self) -> list[str]:
        """Return the names of all ConfigMaps that are there."""
        return sorted(self.versions())

    def versions(self) -> dict[str, str]:
        """Return the versions of all ConfigMaps that are there, by their names."""
        found = self.stage.kube.ask("GET", f"/api/v1/namespaces/{self.stage.namespace}/configmaps")["items"]
        named = {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in found}
        return {name: version for name, version in named.items() if name != "kube-root-ca.crt"}


@asynccontextmanager
async def mode_stage(stage: PoolStage, mode: PoolMode, folder: Path) -> AsyncIterator[ModeStage]:
    """Give a stage of a mode; the ledger is one behind a server."""
    async with street().house(f"sqlite:///{folder / 'ledger.db'}") as url:
        yield ModeStage(stage, mode, url)
