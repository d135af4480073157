"""An operator with rights in its namespaces alone, as its ServiceAccount (KP7)."""

import json
from pathlib import Path

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_CLAIM
from tenure.integrations.kubernetes.shipped_manifests import documents_of
from tests.infrastructure.kube import KubeServer, fresh_namespace
from tests.integrations.kubernetes.cluster import create
from tests.integrations.kubernetes.metal3.serving import Namespace, operator_in


def test_kp7_an_operator_with_roles_of_its_namespaces_alone_serves_them(
    kube: KubeServer, unserved: Namespace, tmp_path: Path
) -> None:
    with fresh_namespace(kube) as own:
        for document in documents_of(["rbac"], own_namespace=own, namespaces=[unserved.name]):
            create(kube, document)
        words = {"kubeconfig": str(account_file(kube, own, tmp_path)), "own_namespace": own}
        with operator_in(kube, unserved.name, webhooks=False, **words):
            unserved.pool("p", "10.0.0.1-10.0.0.9")
            unserved.claim("c1")
            assert unserved.ip("c1") == "10.0.0.1"
            unserved.delete(IP_CLAIM, "c1")
            unserved.gone(IP_CLAIM, "c1")


def account_file(kube: KubeServer, namespace: str, folder: Path) -> Path:
    """Write a kubeconfig of the operator's account in a namespace."""
    place = f"/api/v1/namespaces/{namespace}/serviceaccounts/tenure-operator/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = kube.ask("POST", place, asked)["status"]["token"]
    document = json.loads(kube.kubeconfig().read_text("utf-8"))
    document["users"][0]["user"] = {"token": token}
    path = folder / "account"
    path.write_text(json.dumps(document), "utf-8")
    return path
