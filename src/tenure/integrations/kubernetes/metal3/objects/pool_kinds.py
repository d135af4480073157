"""The kinds of pools that claims are served from, and which of them an object is of."""

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_POOL, POOL_FINALIZER, text
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId, PoolKind
from tenure.integrations.kubernetes.metal3.objects.pool_spec import read_pool_spec
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of

METAL3_POOLS = PoolKind(IP_POOL, POOL_FINALIZER, read_pool_spec)
POOL_KINDS = {each.type.kind: each for each in (METAL3_POOLS,)}
"""By the name of the kind, which no two groups share."""


def pool_kind_of(pool: Object) -> PoolKind:
    """Return the kind that a pool is of."""
    return POOL_KINDS[text(pool, "kind")]


def pool_id_of(pool: Object) -> PoolId:
    """Return which pool it is."""
    return PoolId(*key_of(pool), text(pool, "kind"))
