"""The definitions of machines' kinds as published: CAPM3's, the Bare Metal Operator's, Cluster API's."""

import functools
from pathlib import Path
from typing import Any

import yaml
from tools.build_kube import TARGETS, module_folder

from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.cluster import await_kind, create
from tests.integrations.kubernetes.cluster_api import CLUSTERS, MACHINES, definitions, only_version

PROGRAM = "capm3"
HOSTS = ("github.com/metal3-io/baremetal-operator", "v0.13.2", "config/base/crds/bases/metal3.io_baremetalhosts.yaml")
"""BareMetalHost, of the version that CAPM3's manager is built with."""
CONTRACTS = {"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"}
"""The labels that CAPM3 puts on its definitions when it builds its release."""

Document = dict[str, Any]


def capm3_definitions(only: str = "") -> list[Document]:
    """Return CAPM3's definitions; ``only``: with one version, where no manager translates between two."""
    found = [yaml.safe_load(path.read_text("utf-8")) for path in sorted((_sources() / "config/crd/bases").glob("*"))]
    for document in found:
        document["metadata"]["labels"] = CONTRACTS | (document["metadata"].get("labels") or {})
    return [only_version(document, only) for document in found] if only else found


def capm3_webhooks() -> list[Document]:
    """Return the configurations of CAPM3's webhooks, as they are published."""
    text = (_sources() / "config/webhook/manifests.yaml").read_text("utf-8")
    return [document for document in yaml.safe_load_all(text) if document]


def host_definition() -> Document:
    """Return the definition of hosts."""
    module, version, path = HOSTS
    document: Document = yaml.safe_load((module_folder(module, version) / path).read_text("utf-8"))
    return document


def published_definitions(version: str) -> list[Document]:
    """Return all definitions of machines' kinds, with one version of CAPM3's and Cluster API's."""
    return [*capm3_definitions(version), host_definition(), *definitions(CLUSTERS, MACHINES, only=version)]


def install_definitions(server: KubeServer, documents: list[Document]) -> None:
    """Apply definitions, and wait until their objects are served."""
    for document in documents:
        create(server, document)
    for document in documents:
        await_kind(server, document)


@functools.cache
def _sources() -> Path:
    target = TARGETS[PROGRAM]
    return module_folder(target.module, target.version)
