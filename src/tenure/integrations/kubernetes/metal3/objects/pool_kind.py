"""A kind of pools: all in which Metal3's and the in-cluster provider's differ, as values of one table.

Pools of every kind are served by one allocator, from one book each. Whatever depends on the kind of a pool is asked of
its ``PoolKind``; which kinds there are, ``pool_kinds`` lists.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_POOL
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolReading
from tenure.integrations.kubernetes.runtime.resource_types import Key, ResourceType


class PoolId(NamedTuple):
    """Which pool: pools of several kinds may have one name. The namespace of a pool of the whole cluster is empty."""

    namespace: str
    name: str
    kind: str = IP_POOL.kind

    @property
    def key(self) -> Key:
        """Return where the pool is found among its kind."""
        return self.namespace, self.name

    @property
    def path(self) -> str:
        """Return namespace and name, as ``kubectl`` users write them."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def title(self) -> str:
        """Return kind and name, for readers who know the namespace."""
        return f"{self.kind} {self.name}"

    def __str__(self) -> str:
        return f"{self.kind} {self.path}"


@dataclass(frozen=True)
class PoolKind:
    """One kind of pools."""

    type: ResourceType
    finalizer: str
    read: Callable[[Any], PoolReading]
    """Read a ``spec``, for the webhooks and the controller alike."""

    def named(self, namespace: str, name: str) -> PoolId:
        """Return the pool of a name that an object of a namespace refers to."""
        return PoolId(namespace if self.type.namespaced else "", name, self.type.kind)
