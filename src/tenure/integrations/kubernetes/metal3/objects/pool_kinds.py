"""The kinds of pools that claims are served from, and which of them an object is of."""

from dataclasses import replace

from tenure.integrations.kubernetes.metal3.objects.in_cluster_spec import read_address_pool, read_prefix_pool
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    GLOBAL_POOL,
    GLOBAL_PREFIX_POOL,
    IN_CLUSTER_POOL,
    IN_CLUSTER_POOL_FINALIZER,
    IP_POOL,
    NETWORK,
    POOL_FINALIZER,
    PREFIX_POOL,
    text,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId, PoolKind, Provider
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolReading, read_pool_spec
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of

METAL3_POOLS = PoolKind(IP_POOL, POOL_FINALIZER, read_pool_spec)
IN_CLUSTER_POOLS = tuple(
    PoolKind(type, IN_CLUSTER_POOL_FINALIZER, read, Provider.IN_CLUSTER, named_by_claim=True, counts_addresses=True)
    for type, read in (
        (IN_CLUSTER_POOL, read_address_pool),
        (GLOBAL_POOL, read_address_pool),
        (PREFIX_POOL, read_prefix_pool),
        (GLOBAL_PREFIX_POOL, read_prefix_pool),
    )
)
POOL_KINDS = {each.type.kind: each for each in (METAL3_POOLS, *IN_CLUSTER_POOLS)}
"""By the name of the kind, which no two groups share."""


def pool_kind_of(pool: Object) -> PoolKind:
    """Return the kind that a pool is of."""
    return POOL_KINDS[text(pool, "kind")]


def read_pool(pool: Object) -> PoolReading:
    """Read what a pool says: its ``spec``, and where that has no field for the network, the annotation."""
    kind = pool_kind_of(pool)
    reading = kind.read(pool.get("spec"))
    if kind.provider is Provider.METAL3:
        return reading
    return PoolReading(replace(reading.spec, network=text(pool, "metadata", "annotations", NETWORK)), reading.faults)


def pool_id_of(pool: Object) -> PoolId:
    """Return which pool it is."""
    return PoolId(*key_of(pool), text(pool, "kind"))
