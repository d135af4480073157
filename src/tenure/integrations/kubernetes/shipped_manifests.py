"""The manifests that are shipped: what a cluster needs before the operator runs there, as documents to apply."""

from collections.abc import Iterable, Iterator
from importlib.resources import files
from typing import Any

import yaml

from tenure.integrations.kubernetes.runtime.resource_types import Object

OWN_NAMESPACE = "tenure-system"
"""The namespace that the manifests name, and that is replaced where the operator lives in another one."""
ROLE_NAMESPACE = "default"
"""The namespace that the role of one namespace is written for."""
CLUSTER_WIDE = "tenure-operator"
"""The role and the binding that a role in each namespace takes the place of."""

PARTS: dict[str, tuple[str, ...]] = {
    "namespace": ("namespace.yaml",),
    "crds": ("crds/ippools.yaml", "crds/ipclaims.yaml", "crds/ipaddresses.yaml"),
    "rbac": ("rbac.yaml",),
    "user-roles": ("user_roles.yaml",),
    "webhooks": ("webhooks.yaml",),
    "deployment": ("deployment.yaml",),
    "flow-schema": ("flow_schema.yaml",),
}
"""The files of each part, in the order in which a server must get them."""
USUAL = tuple(name for name in PARTS if name != "flow-schema")
"""What is applied where nothing is chosen."""


def read_manifest(name: str) -> list[Object]:
    """Return the documents of a file."""
    text = files("tenure.integrations.kubernetes").joinpath("manifests", *name.split("/")).read_text("utf-8")
    return list(yaml.safe_load_all(text))


def documents_of(
    parts: Iterable[str] = USUAL,
    *,
    own_namespace: str = OWN_NAMESPACE,
    namespaces: Iterable[str] = (),
    webhook_url: str | None = None,
    image: str | None = None,
) -> list[Object]:
    """Return the documents of the parts, in the order in which a server must get them.

    ``namespaces``: the operator gets its rights in these namespaces only. ``webhook_url``: webhooks are asked there and
    not by the Service.
    """
    chosen = set(parts)
    found = [each for name, file in _files(chosen) for each in _documents_in(name, file, tuple(namespaces))]
    for document in found:
        if webhook_url is not None:
            _ask_at(document, webhook_url)
        if image is not None:
            _run_image(document, image)
    return [_renamed(document, OWN_NAMESPACE, own_namespace) for document in found]


def _files(chosen: set[str]) -> Iterator[tuple[str, str]]:
    return ((name, file) for name, listed in PARTS.items() if name in chosen for file in listed)


def _documents_in(part: str, file: str, namespaces: tuple[str, ...]) -> Iterator[Object]:
    for document in read_manifest(file):
        # What is bound to the whole cluster would add to what the roles of single namespaces allow.
        if not (part == "rbac" and namespaces and document["metadata"]["name"] == CLUSTER_WIDE and _is_role(document)):
            yield document
    if part == "rbac":
        for namespace in namespaces:
            for document in read_manifest("role_only.yaml"):
                yield {**document, "metadata": {**document["metadata"], "namespace": namespace}}


def _is_role(document: Object) -> bool:
    return document["kind"] in ("ClusterRole", "ClusterRoleBinding")


def _ask_at(document: Object, url: str) -> None:
    for webhook in document.get("webhooks") or ():
        path = webhook["clientConfig"].pop("service")["path"]
        webhook["clientConfig"]["url"] = url.rstrip("/") + path


def _run_image(document: Object, image: str) -> None:
    if document["kind"] == "Deployment":
        for container in document["spec"]["template"]["spec"]["containers"]:
            container["image"] = image


def _renamed(value: Any, old: str, new: str) -> Any:
    """Return a document with another name of the operator's namespace, wherever it stands."""
    if isinstance(value, dict):
        return {key: _renamed(each, old, new) for key, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each, old, new) for each in value]
    return value.replace(old, new) if isinstance(value, str) else value
