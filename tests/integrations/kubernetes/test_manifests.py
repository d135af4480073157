"""What is shipped is what a server accepts, field by field, and the operator's rights are those that it needs."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import pytest
import yaml

from tenure.doors.cli.commands.operator.run_operator import operator
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM, IP_POOL
from tenure.integrations.kubernetes.metal3.other_writers import METAL3S_IPAM, OtherManager
from tenure.integrations.kubernetes.metal3_data.render_controller import CAPM3
from tenure.integrations.kubernetes.operator_settings import OperatorSettings
from tenure.integrations.kubernetes.runtime.leader_lease import LeaseTimes
from tenure.integrations.kubernetes.shipped_manifests import PARTS, documents_of, read_manifest
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.cluster import PLACES

MANIFESTS = files("tenure.integrations.kubernetes").joinpath("manifests")
LISTS = ("kustomization.yaml", "crds/kustomization.yaml", "in_cluster_crds/kustomization.yaml")
OPERATOR = "system:serviceaccount:tenure-system:tenure-operator"
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
READ = {"get", "list", "watch"}


def names_below(folder: Traversable, above: str = "") -> list[str]:
    found = []
    for each in folder.iterdir():
        found += names_below(each, f"{above}{each.name}/") if each.is_dir() else [above + each.name]
    return sorted(found)


NAMES = [name for name in names_below(MANIFESTS) if name not in LISTS]


def judged(kube: KubeServer, document: dict[str, Any]) -> dict[str, Any]:
    """Let the server judge a request to create a document, or to replace a definition, and do nothing."""
    place = PLACES[document["kind"]].format(namespace=document["metadata"].get("namespace", ""))
    how = "?dryRun=All&fieldValidation=Strict"
    if document["kind"] == "CustomResourceDefinition":
        name = document["metadata"]["name"]
        known = {
            each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in kube.ask("GET", place)["items"]
        }
        if name in known:
            document["metadata"]["resourceVersion"] = known[name]
        method, path = ("PUT", f"{place}/{name}") if name in known else ("POST", place)
        stored: dict[str, Any] = kube.ask(method, path + how, document)
        return stored
    metadata = {"generateName": "judged-", **document["metadata"]}
    del metadata["name"]
    created: dict[str, Any] = kube.ask("POST", place + how, {**document, "metadata": metadata})
    return created


def test_the_manifests_are_those_that_the_command_knows() -> None:
    assert set(NAMES) == {file for listed in PARTS.values() for file in listed} | {
        "role_only.yaml",
        "cert_manager.yaml",
    }


@pytest.mark.parametrize("name", [name for name in NAMES if name != "cert_manager.yaml"])
def test_a_server_accepts_every_field_of_a_manifest(kube: KubeServer, name: str) -> None:
    for document in read_manifest(name):
        assert judged(kube, document)["kind"] == document["kind"]


def test_a_field_that_is_misspelt_would_be_refused(kube: KubeServer) -> None:
    document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "judged", "label": {}}}

    with pytest.raises(OSError, match="400"):
        kube.ask("POST", "/api/v1/namespaces?dryRun=All&fieldValidation=Strict", document)


@pytest.mark.parametrize("name", LISTS)
def test_a_kustomization_lists_manifests_that_are_there(name: str) -> None:
    folder = name.removesuffix("kustomization.yaml")
    listed = yaml.safe_load(MANIFESTS.joinpath(*name.split("/")).read_text("utf-8"))["resources"]

    assert {folder + each for each in listed} <= {*NAMES, "crds"}
    asked_for = {"flow_schema.yaml", "role_only.yaml", "cert_manager.yaml", "render_rbac.yaml"}
    asked_for |= {"in_cluster_rbac.yaml", "in_cluster_webhooks.yaml"}
    left_out = asked_for if not folder else set()
    beside = {each for each in NAMES if each.startswith(folder) and "/" not in each.removeprefix(folder)}
    assert {folder + each for each in listed if each != "crds"} == beside - left_out


def may(kube: KubeServer, user: str, verb: str, group: str, resource: str, namespace: str = "default") -> bool:
    resource, _, part = resource.partition("/")
    attributes = {"verb": verb, "group": group, "resource": resource, "subresource": part, "namespace": namespace}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    answer = kube.ask(
        "POST",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        {**review, "spec": {"user": user, "resourceAttributes": attributes}},
    )
    return bool(answer["status"]["allowed"])


@pytest.mark.parametrize(
    ("group", "resource", "verbs"),
    [
        (IP_POOL.group, "ippools", READ | {"patch", "delete"}),
        (IP_POOL.group, "ipclaims", READ | {"patch"}),
        (IP_POOL.group, "ipaddresses", READ | {"create", "patch", "delete"}),
        (IP_POOL.group, "ippools/status", {"patch"}),
        (IP_POOL.group, "ipclaims/status", {"patch"}),
        (IP_POOL.group, "ipaddresses/status", set()),
        (IP_POOL.group, "ippools/finalizers", {"update"}),
        (IP_POOL.group, "ipclaims/finalizers", {"update"}),
        ("ipam.cluster.x-k8s.io", "ipaddresses", {*READ, "create", "patch", "delete"}),
        ("ipam.cluster.x-k8s.io", "ipaddressclaims", {*READ, "patch"}),
        ("ipam.cluster.x-k8s.io", "ipaddressclaims/status", {"patch"}),
        ("ipam.cluster.x-k8s.io", "ipaddressclaims/finalizers", {"update"}),
        ("cluster.x-k8s.io", "clusters", READ),
        ("coordination.k8s.io", "leases", set()),
        ("authentication.k8s.io", "tokenreviews", {"create"}),
        ("authorization.k8s.io", "subjectaccessreviews", {"create"}),
        ("", "secrets", set()),
        ("", "pods", set()),
        ("apiextensions.k8s.io", "customresourcedefinitions", set()),
    ],
)
def test_the_operator_has_the_rights_that_it_needs_and_no_others(
    kube: KubeServer, group: str, resource: str, verbs: set[str]
) -> None:
    """KP7: in a namespace that is not its own."""
    assert {verb for verb in VERBS if may(kube, OPERATOR, verb, group, resource)} == verbs


def test_a_role_in_one_namespace_has_the_rules_of_the_role_of_the_cluster() -> None:
    """KP7: an operator with ``--namespaces`` lacks nothing there."""
    [cluster] = [
        each for each in read_manifest("rbac.yaml")
        if each["kind"] == "ClusterRole" and each["metadata"]["name"] == "tenure-operator"
    ]  # fmt: skip
    role, binding = read_manifest("role_only.yaml")

    # Where Metal3's manager has its lease, an operator of other namespaces may read nothing.
    assert role["rules"] == [rule for rule in cluster["rules"] if rule["resources"] != ["leases"]]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]


@pytest.mark.parametrize("other", [METAL3S_IPAM, CAPM3])
def test_kd12_the_operator_may_read_the_lease_of_another_manager_and_no_other_lease(other: OtherManager) -> None:
    documents = documents_of(["rbac", "render"])
    rules = [rule for each in documents if each["kind"] == "ClusterRole" for rule in each["rules"]]
    leases = [rule for rule in rules if rule.get("resources") == ["leases"]]

    assert {tuple(rule["verbs"]) for rule in leases} == {("get",)}
    assert [other.lease] in [rule["resourceNames"] for rule in leases]


def test_rights_to_render_are_narrowed_to_namespaces_with_the_same_rules() -> None:
    (role, binding), narrowed = documents_of(["render"]), documents_of(["render"], namespaces=["a", "b"])

    assert [(each["kind"], each["metadata"]["namespace"]) for each in narrowed] == [
        (kind, namespace) for kind in ("Role", "RoleBinding") for namespace in ("a", "b")
    ]
    assert all(each["rules"] == role["rules"] for each in narrowed[:2])
    assert all(each["roleRef"] == {**binding["roleRef"], "kind": "Role"} for each in narrowed[2:])


def test_rights_to_in_cluster_pools_are_narrowed_to_namespaces_but_for_what_no_namespace_has() -> None:
    narrowed = documents_of(["in-cluster"], namespaces=["a"])
    roles = {(each["kind"], each["metadata"]["name"], each["metadata"].get("namespace")) for each in narrowed}

    assert ("Role", "tenure-operator-in-cluster", "a") in roles
    assert ("ClusterRole", "tenure-operator-in-cluster", None) not in roles
    assert ("ClusterRole", "tenure-operator-in-cluster-webhooks", None) in roles


def test_rights_to_render_are_printed_only_where_they_are_asked_for() -> None:
    """They reach all secrets; of what else the operator may do, one rule reaches one Secret by its name."""
    usual = [each for each in documents_of() if each["kind"] == "ClusterRole"]
    rules = [rule for each in usual for rule in each["rules"]]

    reached = [rule.get("resourceNames") for rule in rules if "secrets" in rule.get("resources", ())]
    assert reached == [["tenure-ledger"]]


def test_people_who_may_view_or_edit_a_namespace_may_do_so_with_pools_claims_and_addresses() -> None:
    """KP7: by aggregation. Nobody but the operator gets rights on status."""
    view, edit, _ = read_manifest("user_roles.yaml")

    assert view["metadata"]["labels"] == {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    assert edit["metadata"]["labels"] == {
        "rbac.authorization.k8s.io/aggregate-to-edit": "true",
        "rbac.authorization.k8s.io/aggregate-to-admin": "true",
    }
    for role in (view, edit):
        assert role["rules"][0]["resources"] == [IP_POOL.plural, IP_CLAIM.plural, IP_ADDRESS.plural]
    assert set(view["rules"][0]["verbs"]) == READ


def test_kp16_definitions_have_the_labels_that_clusterctl_asks_for() -> None:
    """Of today's contract it reads a version that the kind has."""
    for file in PARTS["crds"] + PARTS["in-cluster-crds"]:
        (definition,) = read_manifest(file)
        labels = definition["metadata"]["labels"]
        assert {"clusterctl.cluster.x-k8s.io", "cluster.x-k8s.io/v1beta1"} <= set(labels)
        assert labels["cluster.x-k8s.io/v1beta2"] in {each["name"] for each in definition["spec"]["versions"]}


def test_webhooks_are_asked_for_writes_of_others_and_never_for_a_deletion() -> None:
    """KP2: operator down, only creates and updates of our kinds are refused; our own writes are not asked for."""
    for document in read_manifest("webhooks.yaml"):
        assert document["metadata"]["name"] == OperatorSettings().lease == "tenure-operator"
        for webhook in document["webhooks"]:
            [rule] = webhook["rules"]
            assert set(rule["operations"]) <= {"CREATE", "UPDATE"}
            assert webhook["matchConditions"][0]["expression"] == f'request.userInfo.username != "{OPERATOR}"'
            assert (webhook["timeoutSeconds"], webhook["sideEffects"]) == (5, "None")
        ours, cluster_apis = document["webhooks"]
        assert ours["rules"][0]["resources"] == [IP_POOL.plural, IP_CLAIM.plural, IP_ADDRESS.plural]
        assert (ours["failurePolicy"], cluster_apis["failurePolicy"]) == ("Fail", "Ignore")
        assert cluster_apis["rules"][0]["apiGroups"] == ["ipam.cluster.x-k8s.io"]
        assert "IPPool" in cluster_apis["matchConditions"][1]["expression"]


def test_the_arguments_of_pods_are_options_of_the_command() -> None:
    deployment = read_manifest("deployment.yaml")[0]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    name, *words = container["args"]
    parsed = operator.make_context(name, list(words)).params

    assert name == operator.name
    assert (parsed["host"], parsed["port"]) == ("0.0.0.0", OperatorSettings().port)  # noqa: S104 - as a pod listens
    assert (parsed["webhook_host"], parsed["webhook_port"]) == (None, OperatorSettings().webhook_port)


def test_pods_are_confined_and_have_time_to_give_up_their_lease() -> None:
    """KP17."""
    deployment, service, budget, policy = read_manifest("deployment.yaml")
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}

    assert deployment["spec"]["replicas"] == 2
    assert pod["terminationGracePeriodSeconds"] > LeaseTimes().lasts_s
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert set(container["resources"]) == {"requests", "limits"}
    # The root cannot be written, so that what is written at all lies in memory.
    assert [each["emptyDir"]["medium"] for each in pod["volumes"]] == ["Memory"]
    spread = {each["topologyKey"]: each["labelSelector"] for each in pod["topologySpreadConstraints"]}
    assert set(spread) == {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}
    assert all(each == deployment["spec"]["selector"] for each in spread.values())
    assert ports == {"webhooks": OperatorSettings().webhook_port, "probes": OperatorSettings().port}
    assert container["livenessProbe"]["httpGet"] == {"path": "/livez", "port": "probes"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "probes"}
    assert service["spec"]["ports"][0]["targetPort"] == "webhooks"
    assert budget["spec"] == {"maxUnavailable": 1, "selector": deployment["spec"]["selector"]}
    assert policy["spec"]["podSelector"] == deployment["spec"]["selector"]
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    assert {each["port"] for each in policy["spec"]["ingress"][0]["ports"]} == set(ports)
