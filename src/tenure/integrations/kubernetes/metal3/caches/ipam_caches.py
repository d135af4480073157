"""Caches of pools, claims, addresses and clusters, and for each pool the record that their changes keep up to date.

Every replica follows the server this way. So webhooks can judge on each of them, and a new leader has all of it.
"""

from collections.abc import Collection, Sequence

from tenure.integrations.kubernetes.metal3.caches.changed_addresses import ChangedAddresses
from tenure.integrations.kubernetes.metal3.caches.changed_claims import ChangedClaims
from tenure.integrations.kubernetes.metal3.caches.changed_clusters import ChangedClusters
from tenure.integrations.kubernetes.metal3.caches.changed_pools import ChangedPools
from tenure.integrations.kubernetes.metal3.caches.departed_claims import DepartedClaims
from tenure.integrations.kubernetes.metal3.caches.followed_objects import FollowedObjects
from tenure.integrations.kubernetes.metal3.caches.pool_records import Forget, PoolRecords, Wake
from tenure.integrations.kubernetes.metal3.objects.pool_kind import Provider
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.object_cache import Delta
from tenure.integrations.kubernetes.runtime.resource_types import uid_of
from tenure.integrations.kubernetes.runtime.runtime_meter import RuntimeMeter
from tenure.integrations.kubernetes.runtime.terminating_namespaces import TerminatingNamespaces


class IpamCaches:
    """What is known of the server. Cost: O(log n) a change; O(n log n) when a pool's ``spec`` changes."""

    def __init__(
        self, client: ApiClient, namespaces: Sequence[str], meter: RuntimeMeter, wake: Wake,
        forget: Forget = lambda pool: None, terminating: TerminatingNamespaces | None = None,
        providers: Collection[Provider] = (Provider.METAL3,),
    ) -> None:  # fmt: skip
        """Follow objects of some namespaces, all without any; ``providers``: whose pools are followed."""
        self.terminating = terminating if terminating is not None else TerminatingNamespaces()
        self.objects = FollowedObjects(client, namespaces, meter, providers)
        self.records = PoolRecords(self.objects, wake, forget)
        self.departed = DepartedClaims()
        self._enter_changes()

    def _enter_changes(self) -> None:
        """Let every change of an object keep the records up to date."""
        claims = ChangedClaims(self.objects, self.records, self.departed)
        addresses = ChangedAddresses(self.objects, self.records, self.departed)
        self.objects.pools.on_change(self._note_new)
        self.objects.pools.on_change(ChangedPools(self.objects, self.records, self.departed).enter)
        for each in self.objects.kinds:
            each.claims.on_change(self._note_new)
            each.claims.on_change(claims.enter)
            each.addresses.on_change(addresses.enter)
        self.objects.clusters.on_change(ChangedClusters(self.objects, self.records).enter)

    def _note_new(self, delta: Delta) -> None:
        """Note that a namespace takes new objects: if it was being deleted, it is another one by now."""
        if delta.after is not None and (delta.before is None or uid_of(delta.before) != uid_of(delta.after)):
            self.terminating.took(delta.key[0])
