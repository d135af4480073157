"""Clusters as the real ``clusterctl move`` wants them: Cluster API's kinds, and a provider that says it is there."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from tools.build_kube import TARGETS, find_program, module_folder

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import CLUSTER, now_text
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tests.infrastructure.kube import KubeServer, private_kube
from tests.integrations.kubernetes.cluster import PLACES, await_kind, create, install
from tests.integrations.kubernetes.metal3.serving import Namespace

VERSION = TARGETS["clusterctl"].version
PROVIDERS = "/apis/clusterctl.cluster.x-k8s.io/v1alpha3/namespaces/capi-system/providers"
LABELS = {"clusterctl.cluster.x-k8s.io": "", "cluster.x-k8s.io/v1beta2": "v1beta2"}
MOVES_S = 120


def core_definitions() -> list[Object]:
    """Return the definitions of Cluster API's core, labelled as ``clusterctl init`` labels them."""
    folder = module_folder(TARGETS["clusterctl"].module, VERSION)
    files = sorted((folder / "core" / "config" / "crd" / "bases").glob("*.yaml"))
    files += (folder / "cmd" / "clusterctl" / "config" / "crd" / "bases").glob("*_providers.yaml")
    found: list[Object] = [yaml.safe_load(path.read_text("utf-8")) for path in files]
    for document in found:
        document["metadata"]["labels"] = {**document["metadata"].get("labels", {}), **LABELS}
    return found


@contextmanager
def managed_cluster() -> Iterator[KubeServer]:
    """Give a server with our kinds, Cluster API's, and a provider of its core."""
    with private_kube() as server:
        install(server)
        definitions = core_definitions()
        for document in definitions:
            create(server, document)
        for document in definitions:
            await_kind(server, document)
        server.ask("POST", PLACES["Namespace"], {"metadata": {"name": "capi-system"}})
        server.ask("POST", PROVIDERS, provider())
        yield server


def provider() -> dict[str, Any]:
    """Write what says that Cluster API's core is installed."""
    labels = {"clusterctl.cluster.x-k8s.io": "", "cluster.x-k8s.io/provider": "cluster-api"}
    return {
        "apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3",
        "kind": "Provider",
        "metadata": {"name": "cluster-api", "labels": {**labels, "clusterctl.cluster.x-k8s.io/core": "inventory"}},
        "providerName": "cluster-api",
        "type": "CoreProvider",
        "version": VERSION,
    }


def make_cluster(place: Namespace, name: str) -> None:
    """Create a Cluster that is provisioned: no other can be moved."""
    spec = {"clusterNetwork": {"serviceDomain": "cluster.local"}}
    place.create(CLUSTER, name, spec)
    done = {"infrastructureProvisioned": True, "controlPlaneInitialized": True}
    ready = {"type": "ControlPlaneInitialized", "status": "True", "reason": "Initialized", "message": ""}
    conditions = [{**ready, "lastTransitionTime": now_text()}]
    place.patch(CLUSTER, name, {"status": {"initialization": done, "conditions": conditions}}, subresource="status")


def clusterctl(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run the real program, which asks nobody for a newer version of itself."""
    around = {
        **os.environ,
        "CLUSTERCTL_DISABLE_VERSIONCHECK": "true",
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
    }
    command = [str(find_program("clusterctl", build=False)), *words]
    return subprocess.run(
        command, env=around, cwd=folder, capture_output=True, encoding="utf-8", check=False, timeout=MOVES_S
    )


def move(folder: Path, source: Namespace, target: Namespace) -> None:
    """Move a namespace."""
    words = [
        "move",
        "--kubeconfig",
        str(source.server.kubeconfig()),
        "--to-kubeconfig",
        str(target.server.kubeconfig()),
    ]
    moved = clusterctl(folder, *words, "--namespace", source.name, "-v", "5")
    assert moved.returncode == 0, moved.stdout + moved.stderr
