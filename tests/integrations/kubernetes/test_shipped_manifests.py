"""The printed manifests: a server takes them, whatever namespace, URL or image they are printed for."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from tools.build_kube import find_program

from tenure.integrations.kubernetes.shipped_manifests import PARTS, USUAL, documents_of, written
from tests.infrastructure.kube import KubeServer, fresh_namespace
from tests.integrations.kubernetes.cluster import create
from tests.integrations.kubernetes.metal3.serving import until
from tests.integrations.kubernetes.test_manifests import MANIFESTS, judged, may

MADE_BY_OTHERS = "tenure-operator-cert-manager"
NUMBERS = ("1e3", "0o17", "123", "0x1f", "on", "null")
"""Names of namespaces that readers of YAML take for something else when they stand without quotes."""


def named(documents: Sequence[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(each["kind"], each["metadata"]["name"]) for each in documents}


def accounts(documents: Sequence[dict[str, Any]]) -> set[str]:
    return {subject["namespace"] for each in documents for subject in each.get("subjects", ())}


def test_a_server_takes_all_parts_for_another_namespace(kube: KubeServer, namespace: str) -> None:
    documents = documents_of(PARTS, own_namespace=namespace, namespaces=[namespace], image="registry/tenure@sha256:0")

    assert "tenure-system" not in written(documents)
    for document in yaml.safe_load_all(written(documents)):
        judged(kube, document)


def test_a_server_takes_the_parts_for_an_operator_outside_the_cluster(kube: KubeServer) -> None:
    """KP2: by ``clientConfig.url``, where nothing routes Services."""
    documents = documents_of(["webhooks"], webhook_url="https://127.0.0.1:9443/")
    urls = [webhook["clientConfig"] for document in documents for webhook in document["webhooks"]]

    assert urls == [{"url": f"https://127.0.0.1:9443/{word}"} for word in ("mutate", "mutate", "validate", "validate")]
    for document in documents:
        judged(kube, document)


def test_what_is_printed_usually_is_all_but_what_is_optional() -> None:
    found = named(documents_of())
    in_cluster = named(documents_of(["in-cluster-crds", "in-cluster"]))

    assert named(documents_of(PARTS)) - found - in_cluster == {
        ("FlowSchema", "tenure-operator"),
        ("ClusterRole", "tenure-operator-render"),
        ("ClusterRoleBinding", "tenure-operator-render"),
    }
    assert next(iter(PARTS)) == "namespace"  # the others are created in it
    assert not in_cluster & found
    assert set(USUAL) == set(PARTS) - {"flow-schema", "render", "in-cluster-crds", "in-cluster"}


def test_an_operator_for_single_namespaces_has_rights_and_is_asked_there_alone(
    kube: KubeServer, namespace: str
) -> None:
    """KP7: the Role-only install, for an operator in a namespace of its own."""
    with fresh_namespace(kube) as own, fresh_namespace(kube) as other:
        documents = documents_of(["rbac", "webhooks"], own_namespace=own, namespaces=[namespace])
        roles = [each for each in documents if each["kind"] in ("Role", "RoleBinding", "ServiceAccount")]
        for document in roles:
            create(kube, document)
        account = f"system:serviceaccount:{own}:tenure-operator"

        assert accounts(documents) == {own}
        assert ("ClusterRoleBinding", "tenure-operator") not in named(documents)
        assert ("ClusterRoleBinding", "tenure-operator-webhooks") in named(documents)
        # The server learns of a role some time after it has stored it.
        until(lambda: may(kube, account, "create", "ipam.metal3.io", "ipaddresses", namespace))
        assert not may(kube, account, "create", "ipam.metal3.io", "ipaddresses", other)
        assert not may(kube, account, "get", "ipam.metal3.io", "ippools", own)
        for document in documents[-2:]:
            [asked] = document["webhooks"][0]["namespaceSelector"]["matchExpressions"]
            assert asked["values"] == [namespace]


@pytest.mark.parametrize("name", NUMBERS)
def test_a_namespace_that_looks_like_a_number_stays_a_name(name: str) -> None:
    text = written(documents_of(["namespace", "rbac"], own_namespace=name, namespaces=[name]))

    assert f'name: "{name}"' in text or f"name: '{name}'" in text
    assert accounts(list(yaml.safe_load_all(text))) == {name}


def test_names_that_a_user_gives_are_not_taken_for_the_operators_namespace() -> None:
    documents = documents_of(
        ["rbac", "webhooks", "deployment"],
        own_namespace="own",
        namespaces=["tenure-system"],
        webhook_url="https://tenure-system.example.org",
        image="tenure-system/tenure",
    )

    by_name = {(each["kind"], each["metadata"]["name"]): each for each in documents}
    pod = by_name["Deployment", "tenure-operator"]["spec"]["template"]["spec"]
    webhook = by_name["MutatingWebhookConfiguration", "tenure-operator"]["webhooks"][0]

    assert by_name["Role", "tenure-operator"]["metadata"]["namespace"] == "tenure-system"
    assert by_name["Role", "tenure-operator-own"]["metadata"]["namespace"] == "own"
    assert pod["containers"][0]["image"] == "tenure-system/tenure"
    assert pod["containers"][0]["args"][-2:] == ["--namespaces", "tenure-system"]
    assert webhook["clientConfig"]["url"] == "https://tenure-system.example.org/mutate"
    assert accounts(documents) == {"own"}


def test_kp1_with_cert_manager_the_operator_shows_what_it_mounts() -> None:
    """There is no cert-manager here: names are compared, and the operator's part is tried with files."""
    documents = documents_of(own_namespace="own", cert_manager=True)
    by_name = {(each["kind"], each["metadata"]["name"]): each for each in documents}
    certificate = by_name["Certificate", "tenure-operator"]
    pod = by_name["Deployment", "tenure-operator"]["spec"]["template"]["spec"]
    mounts = {each["name"]: each["mountPath"] for each in pod["containers"][0]["volumeMounts"]}
    [secret] = [each["name"] for each in pod["volumes"] if each.get("secret") == {"secretName": MADE_BY_OTHERS}]

    assert certificate["spec"]["secretName"] == MADE_BY_OTHERS
    assert certificate["spec"]["dnsNames"] == ["tenure-operator.own.svc", "tenure-operator.own.svc.cluster.local"]
    assert by_name["Issuer", certificate["spec"]["issuerRef"]["name"]]["metadata"]["namespace"] == "own"
    assert pod["containers"][0]["args"][-2:] == ["--webhook-certificates", mounts[secret]]
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        annotations = by_name[kind, "tenure-operator"]["metadata"]["annotations"]
        assert annotations == {"cert-manager.io/inject-ca-from": "own/tenure-operator"}
    assert "Certificate" not in {each["kind"] for each in documents_of()}


@pytest.mark.proof
@pytest.mark.parametrize("words", [(), ("--own-namespace", "1e3", "--json"), ("--webhook-url", "https://h:9443")])
def test_kubectl_applies_what_the_command_prints(kube: KubeServer, words: tuple[str, ...]) -> None:
    """With kubectl's own reader of YAML. The server judges, and does nothing."""
    for name in ("1e3", "tenure-system"):
        create(kube, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    printed = subprocess.run(
        [sys.executable, "-m", "tenure.doors.cli.main", "manifests", *words], capture_output=True, check=True
    ).stdout
    done = run_kubectl(kube, "apply", "--dry-run=server", "-f", "-", fed=printed)

    assert done.returncode == 0, done.stderr
    assert b"customresourcedefinition.apiextensions.k8s.io/ippools.ipam.metal3.io" in done.stdout


@pytest.mark.proof
def test_kustomize_builds_what_the_command_prints(kube: KubeServer) -> None:
    done = run_kubectl(kube, "kustomize", str(Path(str(MANIFESTS))))

    assert done.returncode == 0, done.stderr
    built = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(done.stdout)}
    assert built == {(each["kind"], each["metadata"]["name"]): each for each in documents_of()}


def run_kubectl(kube: KubeServer, *words: str, fed: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    command = [str(find_program("kubectl")), f"--kubeconfig={kube.kubeconfig()}", *words]
    return subprocess.run(command, input=fed, capture_output=True, check=False, timeout=120)
