"""A cluster as the operator finds it: its roles are installed, and tests have kinds of their own."""

import urllib.error
from importlib.resources import files
from typing import Any

import yaml

from tests.infrastructure.kube import KubeServer

PLACES = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "FlowSchema": "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "ValidatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "MutatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
}
OPERATOR_ACCOUNT = {"kind": "ServiceAccount", "name": "tenure-operator", "namespace": "tenure-system"}
OWN_NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tenure-system"}}


def install(server: KubeServer) -> None:
    """Apply the manifests that are shipped, and let the operator use the kinds of the tests."""
    text = files("tenure.integrations.kubernetes").joinpath("manifests/rbac.yaml").read_text("utf-8")
    toys = role("tenure-tests", [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}])
    for document in [OWN_NAMESPACE, *yaml.safe_load_all(text), *toys]:
        create(server, document)


def role(name: str, rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Write a role of the whole cluster for the operator."""
    version = "rbac.authorization.k8s.io/v1"
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    return [
        {"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
        {
            "apiVersion": version, "kind": "ClusterRoleBinding", "metadata": {"name": name}, "roleRef": reference,
            "subjects": [OPERATOR_ACCOUNT],
        },
    ]  # fmt: skip


def role_in(namespace: str, name: str, rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Write a role of one namespace for the operator."""
    version = "rbac.authorization.k8s.io/v1"
    metadata = {"name": name, "namespace": namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    return [
        {"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": rules},
        {
            "apiVersion": version, "kind": "RoleBinding", "metadata": metadata, "roleRef": reference,
            "subjects": [OPERATOR_ACCOUNT],
        },
    ]  # fmt: skip


def create(server: KubeServer, document: dict[str, Any]) -> None:
    """Create an object as the administrator; one that is there already stays."""
    path = PLACES[document["kind"]].format(namespace=document["metadata"].get("namespace", ""))
    try:
        server.ask("POST", path, document)
    except urllib.error.HTTPError as error:
        if error.code != 409:
            raise AssertionError(error.read().decode()) from error
