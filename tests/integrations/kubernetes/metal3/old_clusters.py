"""Clusters of Cluster API, as far as these tests need them; in an older version than the first that is looked for."""

from typing import Any

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import CLUSTER
from tests.infrastructure.kube import KubeServer
from tests.infrastructure.postgres import once_a_run
from tests.integrations.kubernetes.cluster import await_kind, create, plain_definition
from tests.integrations.kubernetes.metal3.serving import Namespace

DEFINITION = plain_definition("cluster.x-k8s.io", "v1beta1", "clusters", "Cluster")
V1BETA1 = type(CLUSTER)(CLUSTER.group, "v1beta1", CLUSTER.plural, CLUSTER.kind)


def install_clusters(kube: KubeServer) -> None:
    """Apply the definition, once a run."""
    with once_a_run("kube-clusters") as first:
        if first:
            create(kube, DEFINITION)
            await_kind(kube, DEFINITION)


def cluster(space: Namespace, name: str, **spec: Any) -> dict[str, Any]:
    """Create a cluster."""
    return space.create(V1BETA1, name, spec)
