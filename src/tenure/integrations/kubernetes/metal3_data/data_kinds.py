"""The kinds that machines are rendered from, and the names that controllers of them agree on."""

from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimKind
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import CLUSTER_API, METAL3
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import text
from tenure.integrations.kubernetes.metal3_data.template.needed_addresses import NeededAddress
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType

GROUP = "infrastructure.cluster.x-k8s.io"
VERSIONS = ("v1beta2", "v1beta1")
"""Versions of Metal3's kinds, the first that a server serves is read."""
TEMPLATE = ResourceType(GROUP, VERSIONS[0], "metal3datatemplates", "Metal3DataTemplate")
DATA_CLAIM = ResourceType(GROUP, VERSIONS[0], "metal3dataclaims", "Metal3DataClaim")
DATA = ResourceType(GROUP, VERSIONS[0], "metal3datas", "Metal3Data")
METAL3_MACHINE = ResourceType(GROUP, VERSIONS[0], "metal3machines", "Metal3Machine")
MACHINE = ResourceType("cluster.x-k8s.io", "v1beta2", "machines", "Machine")
HOST = ResourceType("metal3.io", "v1alpha1", "baremetalhosts", "BareMetalHost")

TEMPLATE_FINALIZER = "metal3datatemplate.infrastructure.cluster.x-k8s.io"
DATA_CLAIM_FINALIZER = "metal3dataclaim.infrastructure.cluster.x-k8s.io"
"""On a Metal3DataClaim, and on its Metal3Data: that stays for as long as its claim is wanted."""
DATA_FINALIZER = "metal3data.infrastructure.cluster.x-k8s.io"
"""On a Metal3Data, and on the claims that are made for it."""

SECRET_TYPE = f"{GROUP}/secret"
META_DATA, NETWORK_DATA = "metaData", "networkData"
SUFFIXES = {META_DATA: "-metadata", NETWORK_DATA: "-networkdata"}
"""What ends the names of a machine's secrets, by the key that each has."""


def claim_kind(needed: NeededAddress) -> ClaimKind:
    """Return the kind of claim by which a pool gives an address: Metal3's own pools by Metal3's own claims."""
    return METAL3 if needed.pool.is_ip_pool else CLUSTER_API


def claim_spec(needed: NeededAddress, namespace: str, cluster: str) -> Object:
    """Return the ``spec`` of a claim."""
    pool = needed.pool
    if claim_kind(needed) is METAL3:
        return {"pool": {"name": pool.name, "namespace": namespace}}
    named = {"clusterName": cluster} if cluster else {}
    return {"poolRef": {"apiGroup": pool.group, "kind": pool.kind, "name": pool.name}, **named}


def owner_references(object: Object) -> list[Object]:
    """Return the references of an object to its owners."""
    return list(object["metadata"].get("ownerReferences") or ())


def owner_uids(object: Object) -> list[str]:
    """Return the identities of an object's owners."""
    return [text(each, "uid") for each in owner_references(object)]
