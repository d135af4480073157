"""Operators that serve claims, each as a process: ours, Metal3's manager, and the in-cluster provider."""

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml
from tests.infrastructure.free_port import free_port
from tests.infrastructure.kube import ADMIN, OPERATOR, KubeServer
from tests.integrations.kubernetes.cluster import PLACES, await_kind, create
from tests.integrations.kubernetes.go_manager import UNTHROTTLED
from tests.integrations.kubernetes.metal3.metal3_manager import metal3_manager
from tools.build_kube import TARGETS, find_program, module_folder

from bench.crew import LONGEST_S, ROOT
from bench.kubernetes_cases import (
    CLAIMS_AT_ONCE,
    CLAIMS_BARE,
    CLAIMS_CLUSTER_API,
    CLAIMS_HELD,
    CLAIMS_IN_CLUSTER,
    CLAIMS_METAL3,
    CLAIMS_OURS,
    CLAIMS_UNTHROTTLED,
)
from tenure.integrations.kubernetes.runtime.webhooks import serving_certificates
from tenure.integrations.kubernetes.shipped_manifests import documents_of

Running = AbstractContextManager["subprocess.Popen[bytes]"]
IN_CLUSTER = "in-cluster-ipam"


def operator_of(work: str, server: KubeServer, namespace: str) -> Running:
    """Run the operator that a piece of work is about, for one namespace."""
    return OPERATORS[work](server, namespace)


@contextlib.contextmanager
def ours(server: KubeServer, namespace: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run ours as it is shipped: with its rights (KP7), and with webhooks for this namespace."""
    port = free_port()
    documents = documents_of(["webhooks"], namespaces=[namespace], webhook_url=f"https://127.0.0.1:{port}")
    for document in documents:
        create(server, document)
    try:
        with _process(server, namespace, "--webhook-port", str(port)) as process:
            _await_webhooks(server, documents)
            yield process
    finally:
        for document in documents:
            server.ask("DELETE", f"{PLACES[document['kind']]}/{document['metadata']['name']}")


def without_webhooks(server: KubeServer, namespace: str) -> Running:
    """Run ours without webhooks: every claim gets its finalizer by a write."""
    return _process(server, namespace, "--no-webhooks")


@contextlib.contextmanager
def _process(server: KubeServer, namespace: str, *more: str) -> Iterator["subprocess.Popen[bytes]"]:
    words = ["--namespaces", namespace, "--own-namespace", "tenure-system", "--port", "0", "--log", "text", *more]
    command = [sys.executable, "-m", "tenure.doors.cli.main", "operator", *words]
    command += ["--kubeconfig", str(server.kubeconfig(OPERATOR))]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with _ended(process):
        yield process


def _await_webhooks(server: KubeServer, documents: list[dict[str, object]]) -> None:
    """Wait until the operator has written the CA of its certificate into its webhooks, and answers them."""
    deadline = time.monotonic() + LONGEST_S
    while not all(_is_trusted(server, document) for document in documents):
        if time.monotonic() > deadline:
            raise TimeoutError("the operator has written no CA into its webhooks")
        time.sleep(0.1)


def _is_trusted(server: KubeServer, document: Mapping[str, object]) -> bool:
    metadata = document["metadata"]
    assert isinstance(metadata, dict)
    found = server.ask("GET", f"{PLACES[str(document['kind'])]}/{metadata['name']}")
    return all(webhook["clientConfig"].get("caBundle") for webhook in found["webhooks"])


@contextlib.contextmanager
def in_cluster(server: KubeServer, namespace: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run Cluster API's in-cluster provider as the administrator, on its own kinds of pools; webhooks are nobody's."""
    target = TARGETS[IN_CLUSTER]
    folder = module_folder(target.module, target.version) / "config" / "crd" / "bases"
    for path in sorted(folder.glob("*.yaml")):
        document = yaml.safe_load(path.read_text("utf-8"))
        create(server, document)
        await_kind(server, document)
    with TemporaryDirectory(prefix="in-cluster-") as name:
        made = serving_certificates.make_certificate(["127.0.0.1"], timedelta(days=1))
        Path(name, "tls.crt").write_bytes(made.certificate)
        Path(name, "tls.key").write_bytes(made.key)
        health = f"127.0.0.1:{free_port()}"
        command = [
            str(find_program(IN_CLUSTER, build=False)), f"--kubeconfig={server.kubeconfig(ADMIN)}",
            f"--namespace={namespace}", f"--webhook-cert-dir={name}", f"--webhook-port={free_port()}",
            f"--health-probe-bind-address={health}", "--diagnostics-address=127.0.0.1:0", "--insecure-diagnostics",
        ]  # fmt: skip
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with _ended(process):
            yield process


@contextlib.contextmanager
def _ended(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    try:
        yield
    finally:
        process.terminate()
        killer = threading.Timer(10.0, process.kill)
        killer.start()
        process.wait()
        killer.cancel()


def nobody(server: KubeServer, namespace: str) -> AbstractContextManager[None]:
    """Run no operator."""
    return contextlib.nullcontext()


OPERATORS: Mapping[str, Callable[[KubeServer, str], Running]] = {
    CLAIMS_OURS: ours,
    CLAIMS_AT_ONCE: ours,
    CLAIMS_HELD: ours,
    CLAIMS_CLUSTER_API: ours,
    CLAIMS_BARE: without_webhooks,
    CLAIMS_METAL3: lambda server, namespace: metal3_manager(server, f"--namespace={namespace}"),
    CLAIMS_UNTHROTTLED: lambda server, namespace: metal3_manager(server, f"--namespace={namespace}", *UNTHROTTLED),
    CLAIMS_IN_CLUSTER: in_cluster,
}
