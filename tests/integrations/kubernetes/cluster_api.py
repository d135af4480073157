"""Cluster API's own definitions of its kinds, from its sources."""

import functools
from pathlib import Path
from typing import Any

import yaml
from tools.build_kube import module_folder

from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.cluster import await_kind, create

MODULE = ("sigs.k8s.io/cluster-api", "v1.13.3")
"""The version that Metal3's manager, which is tried beside ours, is built with."""
IPAM = ("ipam.cluster.x-k8s.io_ipaddressclaims", "ipam.cluster.x-k8s.io_ipaddresses")
CLUSTERS, MACHINES = "cluster.x-k8s.io_clusters", "cluster.x-k8s.io_machines"


def definitions(*names: str, only: str = "") -> list[dict[str, Any]]:
    """Return definitions by the names of their files; ``only``: with one version, as an older server has them."""
    found = [yaml.safe_load((_folder() / f"{name}.yaml").read_text("utf-8")) for name in names]
    return [only_version(document, only) for document in found] if only else found


def only_version(definition: dict[str, Any], version: str) -> dict[str, Any]:
    """Return a definition with one of its versions, which is then the one that is stored."""
    versions = [each for each in definition["spec"]["versions"] if each["name"] == version]
    stored = [{**each, "served": True, "storage": True} for each in versions]
    return {**definition, "spec": {**definition["spec"], "versions": stored}}


def install_cluster_api(server: KubeServer, *names: str, only: str = "") -> None:
    """Apply definitions, and wait until their objects are served."""
    found = definitions(*names, only=only)
    for document in found:
        create(server, document)
    for document in found:
        await_kind(server, document)


@functools.cache
def _folder() -> Path:
    return module_folder(*MODULE) / "config" / "crd" / "bases"
