"""``python -m bench.vm_pool_child WORK KUBECONFIG NAMESPACE NODES COUNT POOL``: nodes at work, one line of figures.

Every node has a pool object and connections of its own, as on machines of their own; they share this process and so its
core. Imports and first connections are not counted.
"""

import asyncio
import dataclasses
import json
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from bench.kubernetes_cases import VM_POOL_PLAIN, VM_POOL_TIMEOUT_S
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.credentials import from_kubeconfig
from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.vm_pool_settings import VMPoolSettings

POOL_NAME = "byom-ip-pool-state"


@dataclass(frozen=True)
class Operation:
    """One allocation; ``error`` is empty if it was done."""

    id: str
    ip: str
    error: str
    seconds: float


@dataclass(frozen=True)
class Report:
    """What nodes did, and what it took."""

    operations: list[Operation]
    seconds: float
    cpu_s: float
    peak_mb: float

    def dump(self) -> str:
        """Write it in one line."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def load(cls, text: str) -> "Report":
        """Read what ``dump`` wrote."""
        fields = json.loads(text)
        operations = [Operation(**each) for each in fields.pop("operations")]
        return cls(operations, **fields)


Allocate = Callable[[str], Awaitable[str]]
"""Allocate for an id, and return the address."""
