"""The manifests that are shipped: what a cluster needs before the operator runs there, as documents to apply."""

from collections.abc import Iterable, Iterator
from importlib.metadata import version
from importlib.resources import files as files_of
from typing import Any

import yaml

from tenure.integrations.kubernetes.runtime.resource_types import Object

OWN_NAMESPACE = "tenure-system"
"""The namespace that the manifests name, and that is replaced where the operator lives in another one."""
CLUSTER_WIDE = "tenure-operator"
"""The role and the binding that a role in each namespace takes the place of."""

NARROWED = {"render_rbac.yaml": "tenure-operator-render", "in_cluster_rbac.yaml": "tenure-operator-in-cluster"}
"""Roles of further controllers, by file, that become roles of single namespaces where the operator works in these."""

MOUNTED_AT = "/certificates"
"""Where a container finds the certificate that cert-manager makes."""

PARTS: dict[str, tuple[str, ...]] = {
    "namespace": ("namespace.yaml",),
    "crds": ("crds/ippools.yaml", "crds/ipclaims.yaml", "crds/ipaddresses.yaml"),
    "rbac": ("rbac.yaml",),
    "render": ("render_rbac.yaml",),
    "in-cluster-crds": (
        "in_cluster_crds/inclusterippools.yaml",
        "in_cluster_crds/globalinclusterippools.yaml",
        "in_cluster_crds/inclusterprefixpools.yaml",
        "in_cluster_crds/globalinclusterprefixpools.yaml",
    ),
    "in-cluster": ("in_cluster_rbac.yaml", "in_cluster_webhooks.yaml"),
    "user-roles": ("user_roles.yaml",),
    "webhooks": ("webhooks.yaml",),
    "deployment": ("deployment.yaml",),
    "flow-schema": ("flow_schema.yaml",),
}
"""The files of each part, in the order in which a server must get them."""
USUAL = tuple(name for name in PARTS if name not in ("flow-schema", "render", "in-cluster-crds", "in-cluster"))
"""What is applied where nothing is chosen."""


def read_manifest(name: str, own_namespace: str = OWN_NAMESPACE) -> list[Object]:
    """Return the documents of a file, for an operator in its own namespace."""
    text = files_of("tenure.integrations.kubernetes").joinpath("manifests", *name.split("/")).read_text("utf-8")
    return [_renamed(document, OWN_NAMESPACE, own_namespace) for document in yaml.safe_load_all(text)]


def documents_of(
    parts: Iterable[str] = USUAL,
    *,
    own_namespace: str = OWN_NAMESPACE,
    namespaces: Iterable[str] = (),
    webhook_url: str | None = None,
    image: str | None = None,
    cert_manager: bool = False,
) -> list[Object]:
    """Return the documents of the parts, in the order in which a server must get them.

    ``namespaces``: the operator gets its rights in these namespaces only, and is asked only about objects there.
    ``webhook_url``: webhooks are asked there and not by the Service. ``cert_manager``: it makes their certificate.
    """
    chosen, served = set(parts), list(namespaces)
    files = (file for name, listed in PARTS.items() if name in chosen for file in listed)
    found = [document for file in files for document in _documents_in(file, own_namespace, served)]
    for document in found:
        for webhook in document.get("webhooks") or ():
            _direct(webhook, served, webhook_url)
        if document["kind"] == "Deployment":
            _run(document["spec"]["template"]["spec"]["containers"][0], served, image)
    if cert_manager and chosen & {"webhooks", "deployment"}:
        found += read_manifest("cert_manager.yaml", own_namespace)
        for document in found:
            _leave_certificate(document, own_namespace)
    return found


CONTRACT = "v1beta2"
"""The contract of Cluster API that the definitions fulfil, as their labels say."""


def provider_metadata() -> Object:
    """Return what clusterctl asks of a provider beside its components: which releases fulfil which contract (KP16)."""
    major, minor = (int(part) for part in version("tenure").split(".")[:2])
    series = [{"major": major, "minor": minor, "contract": CONTRACT}]
    return {"apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3", "kind": "Metadata", "releaseSeries": series}


class _Dumper(yaml.SafeDumper):
    """Writes text in quotes wherever another reader of YAML could take it for a number, such as the name ``1e3``."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _quoted(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if text[:1] in "+-.0123456789" else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _quoted)


HEAD = "# Printed by `tenure manifests`. Deleting a CustomResourceDefinition deletes every object of its kind.\n"


def written(documents: list[Object], head: str = HEAD) -> str:
    """Return documents as a stream of YAML, behind a comment."""
    return head + yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=120, explicit_start=True)


def _documents_in(file: str, own_namespace: str, namespaces: list[str]) -> Iterator[Object]:
    """Yield the documents of a file; roles of single namespaces take the place of the role of the whole cluster."""
    if file in NARROWED and namespaces:
        for each in read_manifest(file, own_namespace):
            is_narrowed = each["metadata"]["name"] == NARROWED[file]
            yield from (_in(place, each) for place in namespaces) if is_narrowed else (each,)
        return
    if file != "rbac.yaml" or not namespaces:
        yield from read_manifest(file, own_namespace)
        return
    yield from (each for each in read_manifest(file, own_namespace) if not _is_cluster_wide(each))
    for namespace in namespaces:
        for document in read_manifest("role_only.yaml", own_namespace):
            document["metadata"]["namespace"] = namespace
            yield document


def _in(namespace: str, document: Object) -> Object:
    """Return a role of the whole cluster, or its binding, as one of a namespace."""
    narrowed = {**document, "kind": document["kind"].removeprefix("Cluster")}
    narrowed["metadata"] = {**document["metadata"], "namespace": namespace}
    if "roleRef" in document:
        narrowed["roleRef"] = {**document["roleRef"], "kind": "Role"}
    return narrowed


def _is_cluster_wide(document: Object) -> bool:
    return document["kind"] in ("ClusterRole", "ClusterRoleBinding") and document["metadata"]["name"] == CLUSTER_WIDE


def _direct(webhook: Object, namespaces: list[str], url: str | None) -> None:
    """Change where a webhook is asked, and about objects of which namespaces."""
    if url is not None:
        path = webhook["clientConfig"].pop("service")["path"]
        webhook["clientConfig"]["url"] = url.rstrip("/") + path
    if namespaces:
        named = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": namespaces}
        webhook["namespaceSelector"] = {"matchExpressions": [named]}


def _run(container: Object, namespaces: list[str], image: str | None) -> None:
    """Change what a container runs: an operator without rights in the whole cluster must be started for its part."""
    if namespaces:
        container["args"] += ["--namespaces", ",".join(namespaces)]
    container["image"] = image or container["image"]


def _leave_certificate(document: Object, own_namespace: str) -> None:
    """Leave the certificate to cert-manager: its injector writes the CA, and the operator mounts what it makes."""
    if document.get("webhooks"):
        document["metadata"]["annotations"] = {"cert-manager.io/inject-ca-from": f"{own_namespace}/tenure-operator"}
    if document["kind"] == "Deployment":
        pod = document["spec"]["template"]["spec"]
        pod["volumes"].append({"name": "cert-manager", "secret": {"secretName": "tenure-operator-cert-manager"}})
        container = pod["containers"][0]
        container["volumeMounts"].append({"name": "cert-manager", "mountPath": MOUNTED_AT, "readOnly": True})
        container["args"] += ["--webhook-certificates", MOUNTED_AT]


def _renamed(value: Any, old: str, new: str) -> Any:
    """Return a document with another name of the operator's namespace, wherever it stands."""
    if isinstance(value, dict):
        return {key: _renamed(each, old, new) for key, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each, old, new) for each in value]
    return value.replace(old, new) if isinstance(value, str) else value
