"""Metal3's own manager, the program that people run today, with the definitions that it brings."""

import contextlib
import copy
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from tools.build_kube import TARGETS, module_folder

from tenure.integrations.kubernetes.shipped_manifests import documents_of
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.cluster import await_kind, create
from tests.integrations.kubernetes.cluster_api import CLUSTERS, IPAM, definitions
from tests.integrations.kubernetes.go_manager import go_manager, webhook_place

PROGRAM = "metal3-ipam"
OURS_ALONE = {
    "tenure", "allocationStrategy", "owner", "ipAddress", "Address", "Name", "allocations", "addresses",
}  # fmt: skip
"""Fields of our definitions that Metal3's do not have (KD2, KD3)."""


def own_definitions() -> list[dict[str, Any]]:
    """Return Metal3's definitions, unchanged."""
    target = TARGETS[PROGRAM]
    folder = module_folder(target.module, target.version) / "config" / "crd" / "bases"
    return [yaml.safe_load(path.read_text("utf-8")) for path in sorted(folder.glob("*.yaml"))]


def cut_definitions() -> list[dict[str, Any]]:
    """Return our definitions without the fields that Metal3's do not have: what can be had without Metal3's sources."""
    return [_cut(document) for document in documents_of(["crds"])]


def cluster_api_definitions() -> list[dict[str, Any]]:
    """Return the definitions of Cluster API's kinds that the manager watches, and ends without."""
    return definitions(CLUSTERS, *IPAM)


def install_beside(server: KubeServer, definitions: Sequence[dict[str, Any]]) -> None:
    """Apply what the operator needs, with other definitions than ours."""
    for document in [*documents_of(["namespace", "rbac", "user-roles"]), *definitions]:
        create(server, document)
    for document in definitions:
        await_kind(server, document)


@contextlib.contextmanager
def metal3_manager(server: KubeServer, *words: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run Metal3's manager as the administrator for as long as the block."""
    with TemporaryDirectory(prefix="metal3-") as folder:
        place = webhook_place(Path(folder))
        with go_manager(PROGRAM, server, place, *words) as process:
            yield process


def _cut(document: dict[str, Any]) -> dict[str, Any]:
    cut = copy.deepcopy(document)
    for version in cut["spec"]["versions"]:
        version.pop("additionalPrinterColumns", None)
        for part in version["schema"]["openAPIV3Schema"]["properties"].values():
            _drop_fields(part)
    return cut


def _drop_fields(schema: Any) -> None:
    """Take the fields out of a schema and of everything under it, and the rules, which may name them."""
    if isinstance(schema, list):
        for value in schema:
            _drop_fields(value)
    if not isinstance(schema, dict):
        return
    schema.pop("x-kubernetes-validations", None)
    if isinstance(properties := schema.get("properties"), dict):
        for name in OURS_ALONE & properties.keys():
            del properties[name]
    for value in schema.values():
        _drop_fields(value)
