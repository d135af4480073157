"""A cluster as the operator finds it: its kinds and roles are installed, and tests have kinds of their own."""

import time
import urllib.error
from typing import Any

from tenure.integrations.kubernetes.shipped_manifests import documents_of
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
    "Service": "/api/v1/namespaces/{namespace}/services",
    "Deployment": "/apis/apps/v1/namespaces/{namespace}/deployments",
    "DaemonSet": "/apis/apps/v1/namespaces/{namespace}/daemonsets",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies",
    "IPPool": "/apis/ipam.metal3.io/v1alpha1/namespaces/{namespace}/ippools",
    "IPClaim": "/apis/ipam.metal3.io/v1alpha1/namespaces/{namespace}/ipclaims",
    "IPAddress": "/apis/ipam.metal3.io/v1alpha1/namespaces/{namespace}/ipaddresses",
}
OPERATOR_ACCOUNT = {"kind": "ServiceAccount", "name": "tenure-operator", "namespace": "tenure-system"}
ESTABLISHED_S = 60


def install(server: KubeServer) -> None:
    """Apply the kinds and roles that are shipped, and let the operator use the kinds of the tests.

    Webhooks are not installed: where no operator runs, the server would refuse every pool and claim of other tests.
    """
    shipped = documents_of(["namespace", "crds", "rbac", "user-roles"])
    toys = role("tenure-tests", [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}])
    for document in [*shipped, *toys]:
        create(server, document)
    for document in shipped:
        if document["kind"] == "CustomResourceDefinition":
            await_kind(server, document)


def await_kind(server: KubeServer, definition: dict[str, Any]) -> None:
    """Wait until the server serves the objects of a definition, which is some time after it has accepted it."""
    group, version = definition["spec"]["group"], definition["spec"]["versions"][0]["name"]
    objects = f"/apis/{group}/{version}/{definition['spec']['names']['plural']}?limit=1"
    own = f"{PLACES['CustomResourceDefinition']}/{definition['metadata']['name']}"
    deadline = time.monotonic() + ESTABLISHED_S
    while not (_is_established(server.ask("GET", own)) and _is_served(server, objects)):
        assert time.monotonic() < deadline, f"{own} is not established"
        time.sleep(0.05)


def _is_established(definition: dict[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _is_served(server: KubeServer, path: str) -> bool:
    try:
        return bool(server.ask("GET", path))
    except urllib.error.HTTPError as error:
        # 404: the kind is not known yet; 429: its storage is being made ready.
        if error.code not in (404, 429):
            raise
        return False


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


def plain_definition(group: str, version: str, plural: str, kind: str) -> dict[str, Any]:
    """Write the definition of a kind in namespaces that has any fields."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    versions = [{"name": version, "served": True, "storage": True, "schema": schema}]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": versions},
    }
