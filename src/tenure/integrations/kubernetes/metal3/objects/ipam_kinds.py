"""The kinds that addresses are claimed by, and the names that controllers agree on: finalizers, labels, annotations."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType

GROUP, VERSION = "ipam.metal3.io", "v1alpha1"
IP_POOL = ResourceType(GROUP, VERSION, "ippools", "IPPool")
IP_CLAIM = ResourceType(GROUP, VERSION, "ipclaims", "IPClaim")
IP_ADDRESS = ResourceType(GROUP, VERSION, "ipaddresses", "IPAddress")

CLUSTER_API_GROUP = "ipam.cluster.x-k8s.io"
CLUSTER_API_CLAIM = ResourceType(CLUSTER_API_GROUP, "v1beta2", "ipaddressclaims", "IPAddressClaim")
CLUSTER_API_ADDRESS = ResourceType(CLUSTER_API_GROUP, "v1beta2", "ipaddresses", "IPAddress")
IN_CLUSTER_POOL = ResourceType(CLUSTER_API_GROUP, "v1alpha2", "inclusterippools", "InClusterIPPool")
GLOBAL_POOL = ResourceType(CLUSTER_API_GROUP, "v1alpha2", "globalinclusterippools", "GlobalInClusterIPPool", False)
PREFIX_POOL = ResourceType(CLUSTER_API_GROUP, "v1alpha2", "inclusterprefixpools", "InClusterPrefixPool")
GLOBAL_PREFIX_POOL = ResourceType(
    CLUSTER_API_GROUP, "v1alpha2", "globalinclusterprefixpools", "GlobalInClusterPrefixPool", False
)
"""The pools of the in-cluster provider; those that are called global belong to no namespace."""
CLUSTER = ResourceType("cluster.x-k8s.io", "v1beta2", "clusters", "Cluster")
CLUSTER_API_VERSIONS = ("v1beta2", "v1beta1", "v1alpha1")
"""Versions of Cluster API's kinds, the first that a server serves is read."""

POOL_FINALIZER = "ippool.ipam.metal3.io"
CLAIM_FINALIZER = "ipclaim.ipam.metal3.io"
ADDRESS_FINALIZER = "ipaddress.ipam.metal3.io"
CLUSTER_API_CLAIM_FINALIZER = "ipam.metal3.io/ipaddressclaim"
CLUSTER_API_ADDRESS_FINALIZER = "ipam.metal3.io/ipaddress"
IN_CLUSTER_POOL_FINALIZER = "ipam.cluster.x-k8s.io/ProtectPool"
IN_CLUSTER_CLAIM_FINALIZER = "ipam.cluster.x-k8s.io/ReleaseAddress"
IN_CLUSTER_ADDRESS_FINALIZER = "ipam.cluster.x-k8s.io/ProtectAddress"
PROPAGATION_FINALIZERS = frozenset({"foregroundDeletion", "orphan"})
"""Finalizers of the garbage collector. It waits for us, so we must not wait for it (KD5)."""

WISHED_ADDRESS = "ipAddress"
"""Metal3's annotation: the address that a user asks for."""
OWN_ADDRESS = "ipam.tenure.dev/address"
"""The address that a claim has; it moves along with the claim, and the claim gets no other (KD4, KD6)."""
PICKED_FOR = "ipam.tenure.dev/picked-for"
"""The uid of the claim that ``OWN_ADDRESS`` was picked for here. A claim that was moved has another uid."""
MADE_FOR = "ipam.tenure.dev/made-for"
"""Namespace and name of the claim that this operator made an address for; only such ones are leaks of ours (KD7)."""
RESERVING = "ipam.tenure.dev/reserving"
"""Reservations of a pool whose definition has no ``status.tenure`` (KD4)."""
COOLING_LIST = "ipam.tenure.dev/cooling"
"""Addresses that cool off, of such a pool."""
SKIPS_DELETE_CHECK = "ipam.cluster.x-k8s.io/skip-validate-delete-webhook"
"""The in-cluster provider's annotation: the pool may be deleted although it has addresses."""
NETWORK = "ipam.tenure.dev/network"
"""The network that the addresses of a pool are of, on a pool whose ``spec`` has no field for that."""
PAUSED = "cluster.x-k8s.io/paused"
DELETE_FOR_MOVE = "clusterctl.cluster.x-k8s.io/delete-for-move"
BLOCK_MOVE = "clusterctl.cluster.x-k8s.io/block-move"
MOVE = "clusterctl.cluster.x-k8s.io/move"
"""Label of clusterctl's, on an object or on the definition of its kind: whoever its owners are, it is moved (KD6)."""
CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"
WATCH_FILTER = "cluster.x-k8s.io/watch-filter"
PROVIDER_LABEL = ("cluster.x-k8s.io/provider", "ipam-metal3")

STORED_INDEXES, WHOLE_AGAIN = 5000, 4500
"""Above the first, ``status.indexes`` is empty; below the second it is whole again (KD4)."""


def now_text() -> str:
    """Return the time as Kubernetes writes it."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def annotations_of(object: Object) -> Mapping[str, str]:
    """Return the annotations of an object."""
    return object["metadata"].get("annotations") or {}


def labels_of(object: Object) -> Mapping[str, str]:
    """Return the labels of an object."""
    return object["metadata"].get("labels") or {}


def finalizers_of(object: Object) -> list[str]:
    """Return the finalizers of an object."""
    return list(object["metadata"].get("finalizers") or ())


def is_terminating(object: Object) -> bool:
    """Return whether the object is to be deleted as soon as its finalizers are gone."""
    return bool(object["metadata"].get("deletionTimestamp"))


def field(object: Object, *path: str) -> Any:
    """Return a field of an object, or nothing where a part of the path is missing or is no map."""
    value: Any = object
    for part in path:
        if not isinstance(value, dict):
            return None
        value = value.get(part)
    return value


def is_paused_cluster(cluster: Object) -> bool:
    """Return whether a Cluster is paused: by its field, or by the annotation."""
    return field(cluster, "spec", "paused") is True or PAUSED in annotations_of(cluster)


def text(object: Object, *path: str) -> str:
    """Return a field that holds text; empty where there is none."""
    # Not by ``field``: a claim that is served is asked for some hundred texts, and the second call costs as much again.
    value: Any = object
    for part in path:
        if not isinstance(value, dict):
            return ""
        value = value.get(part)
    return value if isinstance(value, str) else ""


def mapping(object: Object, *path: str) -> Object:
    """Return a field that holds a map; empty where there is none."""
    value = field(object, *path)
    return value if isinstance(value, dict) else {}
