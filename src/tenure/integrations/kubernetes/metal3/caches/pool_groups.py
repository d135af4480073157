"""The caches of all kinds of pools, read as one."""

from collections.abc import Iterator, Mapping

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import text
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.runtime.discovered_group import DiscoveredGroup
from tenure.integrations.kubernetes.runtime.informer import Handler
from tenure.integrations.kubernetes.runtime.informer_group import InformerGroup
from tenure.integrations.kubernetes.runtime.resource_types import Object

Group = InformerGroup | DiscoveredGroup
"""The objects of a kind; of some kinds the server says first in which version it has them."""


class PoolGroups:
    """The pools of all kinds that are followed, read as one; it costs what the cache of one kind costs."""

    def __init__(self, by_kind: Mapping[str, Group]) -> None:
        self.by_kind = by_kind
        """By the name of the kind."""

    def __iter__(self) -> Iterator[Object]:
        return (pool for group in self.by_kind.values() for pool in group)

    def __contains__(self, pool: PoolId) -> bool:
        return self.get(pool) is not None

    def get(self, pool: PoolId) -> Object | None:
        """Return a pool, or nothing; also where its kind is not served."""
        group = self.by_kind.get(pool.kind)
        return group.get(pool.key) if group is not None else None

    def by_index(self, name: str, value: str) -> list[Object]:
        """Return the pools that an indexer puts under a value."""
        return [pool for group in self.by_kind.values() for pool in group.by_index(name, value)]

    def on_change(self, handler: Handler) -> None:
        """Call a handler for every change of a pool from now on."""
        for group in self.by_kind.values():
            group.on_change(handler)

    def wrote(self, pool: Object) -> None:
        """Enter the answer to a write of this process."""
        self.by_kind[text(pool, "kind")].wrote(pool)

    def deleted(self, pool: Object, answer: Object) -> None:
        """Enter the deletion of a pool by this process, and the server's answer."""
        self.by_kind[text(pool, "kind")].deleted(pool, answer)
