"""What a change of a cluster means to the records of pools."""

from dataclasses import dataclass

from tenure.integrations.kubernetes.metal3.caches.followed_objects import FollowedObjects
from tenure.integrations.kubernetes.metal3.caches.pool_records import PoolRecords
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import id_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import is_paused_cluster
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_kinds import pool_id_of
from tenure.integrations.kubernetes.runtime.object_cache import Delta
from tenure.integrations.kubernetes.runtime.resource_types import Object, uid_of


@dataclass
class ChangedClusters:
    """Enter changes of clusters into the records of pools."""

    objects: FollowedObjects
    records: PoolRecords

    def enter(self, delta: Delta) -> None:
        """Look again at the pools and claims of a cluster that came, went, was paused or goes on."""
        # A Cluster changes often, in its conditions alone, on which nothing here depends.
        if _standing(delta.before) == _standing(delta.after):
            return
        pools = {pool_id_of(pool) for pool in self.objects.ip_pools.by_index("cluster", "/".join(delta.key))}
        for claim in self.objects.claims_of_cluster(delta.key):
            reference = self.objects.followed_reference(claim)
            if reference is not None:
                self.records.of(reference.pool).dirty.add(id_of(claim))
                pools.add(reference.pool)
        if delta.after is not None and is_paused_cluster(delta.after):
            pools |= self._waited_for(delta.key[0])
        for pool in pools:
            self.records.of(pool).look_again()
            self.records.status_due(pool)

    def _waited_for(self, namespace: str) -> set[PoolId]:
        """Return the pools with claims of a namespace that wait: a move may have begun, and wait for them."""
        return {pool for pool, record in self.records if any(id.namespace == namespace for id in record.unsettled)}


def _standing(cluster: Object | None) -> tuple[str, bool] | None:
    """Return what counts of a cluster: which it is, and whether it is paused."""
    if cluster is None:
        return None
    return uid_of(cluster), is_paused_cluster(cluster)
