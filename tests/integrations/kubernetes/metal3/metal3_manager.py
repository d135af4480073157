"""Metal3's own manager, the program that people run today, with the definitions that it brings."""

import contextlib
import copy
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from tools.build_kube import TARGETS, find_program, module_folder

from tenure.integrations.kubernetes.runtime import serving_certificates
from tenure.integrations.kubernetes.shipped_manifests import documents_of
from tests.infrastructure.free_port import free_port
from tests.infrastructure.kube import ADMIN, KubeServer
from tests.integrations.kubernetes.cluster import await_kind, create
from tests.integrations.kubernetes.cluster_api import CLUSTERS, IPAM, definitions

PROGRAM = "metal3-ipam"
OURS_ALONE = {
    "tenure", "allocationStrategy", "owner", "ipAddress", "Address", "Name", "allocations", "addresses",
}  # fmt: skip
"""Fields of our definitions that Metal3's do not have (KD2, KD3)."""
AS = "manager"
"""What the program is called in Metal3's image; the server names the manager of written fields so."""
READY_S = 60.0
UNTHROTTLED = ("--kube-api-qps=10000", "--kube-api-burst=10000")


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
def metal3_manager(server: KubeServer, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run Metal3's manager as the administrator for as long as the block; it is ended as a cluster ends it."""
    with TemporaryDirectory(prefix="metal3-") as name:
        folder, health = Path(name), f"127.0.0.1:{free_port()}"
        made = serving_certificates.make_certificate(["127.0.0.1"], timedelta(days=1))
        (folder / "tls.crt").write_bytes(made.certificate)
        (folder / "tls.key").write_bytes(made.key)
        command = [
            AS, f"--kubeconfig={server.kubeconfig(ADMIN)}",
            f"--webhook-cert-dir={folder}", f"--webhook-port={free_port()}", f"--health-addr={health}",
            "--diagnostics-address=127.0.0.1:0", "--insecure-diagnostics", *words,
        ]  # fmt: skip
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, executable=find_program(PROGRAM, build=False), stdout=log, stderr=log)
        try:
            _await_ready(process, health, folder / "log")
            yield process
        finally:
            process.terminate()
            # It waits for its leases and watches to end, which nothing here needs.
            killer = threading.Timer(5.0, process.kill)
            killer.start()
            process.wait()
            killer.cancel()


def _await_ready(process: subprocess.Popen[bytes], health: str, log: Path) -> None:
    deadline = time.monotonic() + READY_S
    while not _is_ready(health):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(log.read_text("utf-8")[-3000:])
        time.sleep(0.1)


def _is_ready(health: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{health}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


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
