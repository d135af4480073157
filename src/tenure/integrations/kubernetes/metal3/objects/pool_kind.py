"""A kind of pools: all in which Metal3's and the in-cluster provider's differ, as values of one table.

Pools of every kind are served by one allocator, from one book each. Whatever depends on the kind of a pool is asked of
its ``PoolKind``; which kinds there are, ``pool_kinds`` lists.
"""

import enum
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

    def listed(self, key: Key) -> str:
        """Return how the pool calls a claim or an address: by its name, and from another namespace with that."""
        return key[1] if self.namespace == key[0] else "/".join(key)


class Provider(enum.StrEnum):
    """Whose kinds these are: another manager of one provider's kinds does not stop those of the other (KD12)."""

    METAL3 = "metal3"
    IN_CLUSTER = "in-cluster"


@dataclass(frozen=True)
class PoolKind:
    """One kind of pools."""

    type: ResourceType
    finalizer: str
    read: Callable[[Any], PoolReading]
    """Read a ``spec``, for the webhooks and the controller alike."""
    provider: Provider = Provider.METAL3
    named_by_claim: bool = False
    """Whether an address object has the name of its claim; else its name is made of the address, and is a lock."""
    counts_addresses: bool = False
    """Whether ``status.ipAddresses`` has the numbers, and ``status.conditions`` the conditions."""

    def named(self, namespace: str, name: str) -> PoolId:
        """Return the pool of a name that an object of a namespace refers to."""
        return PoolId(namespace if self.type.namespaced else "", name, self.type.kind)
