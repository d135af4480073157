"""The role that is shipped for a pool, on a server with RBAC: enough for its managers, and nothing else (case 77)."""

import json
import urllib.error
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tenure.integrations.kubernetes.shipped_manifests import written
from tenure.integrations.vmpool.pool_manifests import (
    ACCOUNT,
    NAME,
    NAMESPACE,
    PARTS,
    AgentWords,
    documents_of_pools,
    pool_documents,
)
from tests.doors.cli.site import Site
from tests.infrastructure.kube import KubeServer, fresh_namespace
from tests.integrations.kubernetes.cluster import create, role_in
from tests.integrations.kubernetes.test_manifests import judged

CUSTOM = "gpu-vms"
UPSTREAM = [
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
    {
        "apiGroups": [""], "resources": ["configmaps"], "resourceNames": [NAME],
        "verbs": ["delete", "patch", "update", "get", "watch"],
    },
]  # fmt: skip
"""What the adaptor's own role allows."""


class Account:
    """A service account, and the codes that a server answers it with."""

    def __init__(self, kube: KubeServer, namespace: str, name: str = ACCOUNT) -> None:
        self.kube = kube
        self.namespace = namespace
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        place = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        self.token: str = kube.ask("POST", place, asked)["status"]["token"]

    def code(self, method: str, name: str = "", body: Mapping[str, Any] | None = None, kind: str = "json") -> int:
        """Return with which code a request on ConfigMaps is answered."""
        path = f"/api/v1/namespaces/{self.namespace}/configmaps/{name}".rstrip("/")
        try:
            self.kube.ask(method, path, body, self.token, f"application/{kind}")
        except urllib.error.HTTPError as error:
            return error.code
        return 201 if method == "POST" else 200

    def codes(self, name: str) -> dict[str, int]:
        """Do all that a manager does with a pool."""
        made = config_map(self.namespace, name)
        return {
            "missing": self.code("GET", name),
            "create": self.code("POST", body=made),
            "get": self.code("GET", name),
            "update": self.code("PUT", name, made),
            "patch": self.code("PATCH", name, {"data": {"x": "y"}}, "merge-patch+json"),
        }

    def kubeconfig(self, folder: Path) -> Path:
        """Write a kubeconfig of the account."""
        document = json.loads(self.kube.kubeconfig().read_text("utf-8"))
        document["users"][0]["user"] = {"token": self.token}
        path = folder / "account"
        path.write_text(json.dumps(document), "utf-8")
        return path


def config_map(namespace: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": name}, "data": {}}


def account_with(kube: KubeServer, namespace: str, name: str) -> Account:
    """Install the role for a pool, and return its account."""
    for document in pool_documents(namespace=namespace, name=name):
        create(kube, document)
    return Account(kube, namespace)


ENOUGH = {"missing": 404, "create": 201, "get": 200, "update": 200, "patch": 200}


@pytest.mark.parametrize("name", [NAME, CUSTOM, "a.b-c"])
def test_case_77_the_role_allows_what_managers_do_with_a_pool_of_any_name(
    kube: KubeServer, namespace: str, name: str
) -> None:
    assert account_with(kube, namespace, name).codes(name) == ENOUGH


def test_case_77_the_role_allows_nothing_else(kube: KubeServer, namespace: str) -> None:
    account = account_with(kube, namespace, NAME)
    account.codes(NAME)
    with fresh_namespace(kube) as other:
        elsewhere = Account(kube, namespace)
        elsewhere.namespace = other

        assert elsewhere.code("POST", body=config_map(other, NAME)) == 403
        assert elsewhere.code("GET", NAME) == 403
    assert {account.code("GET", CUSTOM), account.code("GET"), account.code("DELETE", NAME)} == {403}
    assert account.code("PUT", CUSTOM, config_map(namespace, CUSTOM)) == 403


def test_case_77_the_adaptors_own_role_opens_the_default_name_alone(kube: KubeServer, namespace: str) -> None:
    for document in pool_documents(namespace=namespace)[:1]:
        create(kube, document)
    role, binding = role_in(namespace, "cm-editor", UPSTREAM)
    binding["subjects"] = [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}]
    create(kube, role)
    create(kube, binding)
    account = Account(kube, namespace)

    assert account.codes(NAME) == ENOUGH
    assert account.code("POST", body=config_map(namespace, CUSTOM)) == 201
    assert account.code("GET", CUSTOM) == 403
    assert account.code("GET") == 403


def test_two_pools_of_one_namespace_have_a_role_each(kube: KubeServer, namespace: str) -> None:
    account_with(kube, namespace, NAME)
    account = account_with(kube, namespace, CUSTOM)

    assert account.codes(NAME) == account.codes(CUSTOM) == ENOUGH


def test_an_account_that_is_there_gets_the_rights_and_is_not_made() -> None:
    documents = pool_documents(account="cloud-api-adaptor", namespace="n")

    assert [each["kind"] for each in documents] == ["Role", "RoleBinding"]
    assert documents[1]["subjects"] == [{"kind": "ServiceAccount", "name": "cloud-api-adaptor", "namespace": "n"}]


@pytest.mark.parametrize("name", [NAME, "1e3", CUSTOM])
def test_a_server_takes_all_parts_as_they_are_printed(kube: KubeServer, namespace: str, name: str) -> None:
    documents = pool_documents(
        PARTS, namespace=namespace, name=name, image="registry/tenure@sha256:0", settings={"VM_POOL_IPS": "192.0.2.1"}
    )

    text = written(documents, "")

    assert NAMESPACE not in text
    for document in yaml.safe_load_all(text):
        judged(kube, document)


def test_the_agent_is_told_its_pool_and_its_node() -> None:
    *_, daemons = pool_documents(["agent"], namespace="n", name=CUSTOM, settings={"VM_POOL_IPS": "192.0.2.1,192.0.2.2"})
    [container] = daemons["spec"]["template"]["spec"]["containers"]
    told = {each["name"]: each.get("value") or each["valueFrom"] for each in container["env"]}

    assert daemons["metadata"]["name"] == f"{CUSTOM}-agent"
    assert told == {
        "NODE_NAME": {"fieldRef": {"fieldPath": "spec.nodeName"}},
        "POOL_NAMESPACE": "n",
        "POOL_CONFIGMAP_NAME": CUSTOM,
        "VM_POOL_IPS": "192.0.2.1,192.0.2.2",
    }


def test_the_agent_gets_its_cleanup_and_the_key_for_its_vms() -> None:
    words = AgentWords(["--cleanup-sftp", "--await-return", "120"], "vm-key")
    *_, daemons = pool_documents(["agent"], agent=words)
    pod = daemons["spec"]["template"]["spec"]
    [container] = pod["containers"]

    assert container["args"][-3:] == ["--cleanup-sftp", "--await-return", "120"]
    assert {"name": "SSH_PRIV_KEY_PATH", "value": "/etc/tenure/ssh/id_rsa"} in container["env"]
    assert [each["mountPath"] for each in container["volumeMounts"]] == ["/etc/tenure/ssh"]
    assert pod["volumes"][0]["secret"]["secretName"] == "vm-key"
    assert pod["securityContext"]["fsGroup"] == 65532, "the agent is not root, and has to read the key"


def test_a_server_takes_an_agent_with_a_cleanup(kube: KubeServer, namespace: str) -> None:
    for document in pool_documents(["agent"], namespace=namespace, agent=AgentWords(["--cleanup-sftp"], "vm-key")):
        judged(kube, document)


def test_vd7_several_pools_have_a_role_each_and_one_agent(kube: KubeServer, namespace: str) -> None:
    documents = documents_of_pools(
        ["gpu", "spare"], ["rbac", "agent"], namespace=namespace, settings={"VM_POOLS": "gpu=10.1.0.1;spare=10.2.0.1"}
    )
    names = [(each["kind"], each["metadata"]["name"]) for each in documents]

    assert [name for kind, name in names if kind == "Role"] == ["gpu", "spare"]
    assert [name for kind, name in names if kind == "DaemonSet"] == ["gpu-agent"]
    assert [kind for kind, _ in names].count("ServiceAccount") == 1
    for document in documents:
        if document["kind"] in ("ServiceAccount", "Role", "RoleBinding"):
            create(kube, document)
    account = Account(kube, namespace)
    assert account.codes("gpu") == account.codes("spare") == ENOUGH


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--agent-options", "--no-such-option"], "--agent-options: No such option"),
        (["--agent-options", "--every nan"], "--agent-options: Invalid value for '--every'"),
        (["--agent-options", "--cleanup-sftp --cleanup-url http://h"], "a VM has one cleanup"),
        (["--agent-options", "'"], "--agent-options: "),
        (["--ssh-secret", "A_b"], "--ssh-secret: "),
        (["--pool", "gpu"], "--pool: the agent needs the addresses of gpu"),
        (["--pool", "gpu=10.0.0.1", "--pool-configmap-name", "x"], "--pool: it stands in place of"),
    ],
)
def test_what_an_agent_would_not_take_is_refused_before_it_is_printed(
    tmp_path: Path, words: list[str], said: str
) -> None:
    ips = [] if "--pool" in words else ["--pool-ips", "192.0.2.1"]
    code, error = Site(tmp_path).error("vmpool", "manifests", "--only", "agent", *ips, *words)

    assert code == 2
    assert said in error["message"]
