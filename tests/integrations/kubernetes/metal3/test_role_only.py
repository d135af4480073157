"""An operator with rights in its namespaces alone, as its ServiceAccount (KP7)."""

import json
from pathlib import Path

import pytest

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import CLAIM_FINALIZER, IP_ADDRESS, IP_CLAIM
from tenure.integrations.kubernetes.shipped_manifests import documents_of
from tests.infrastructure.kube import KubeServer, fresh_namespace
from tests.integrations.kubernetes.cluster import create
from tests.integrations.kubernetes.metal3.serving import Namespace, RefusedByServer, operator_in


def test_kp7_an_operator_with_roles_of_its_namespaces_alone_serves_and_judges_them(
    kube: KubeServer, tmp_path: Path
) -> None:
    """``--namespaces a,b``, with webhooks; objects of a third namespace are neither judged nor served."""
    with (
        fresh_namespace(kube) as own,
        fresh_namespace(kube) as a,
        fresh_namespace(kube) as b,
        fresh_namespace(kube) as c,
    ):
        for document in documents_of(["rbac"], own_namespace=own, namespaces=[a, b]):
            create(kube, document)
        account = str(account_file(kube, own, tmp_path))
        ours, other = [Namespace(kube, name) for name in (a, b)], Namespace(kube, c)
        with operator_in(kube, a, b, kubeconfig=account, own_namespace=own):
            claims = []
            for space in (*ours, other):
                space.pool("p", "10.0.0.1-10.0.0.9")
                claims.append(space.claim("c1"))
            for space in ours:
                assert space.ip("c1") == "10.0.0.1"
                with pytest.raises(RefusedByServer, match="either start or subnet is required"):
                    space.pool("q", pools=[{"end": "10.0.0.9"}])
                space.delete(IP_CLAIM, "c1")
                space.gone(IP_CLAIM, "c1")
            other.pool("q", pools=[{"end": "10.0.0.9"}])

            assert [each["metadata"].get("finalizers") for each in claims] == [
                [CLAIM_FINALIZER],
                [CLAIM_FINALIZER],
                None,
            ]
            assert other.get(IP_CLAIM, "c1") == claims[-1]
            assert other.all(IP_ADDRESS) == []


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
