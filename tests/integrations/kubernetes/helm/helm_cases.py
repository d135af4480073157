"""Each value of the chart set to something else, with what must be so in the cluster then; and wrong values."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from tenure.integrations.kubernetes.runtime.resource_types import Object

DIGEST = f"sha256:{'0' * 64}"
AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "edge", "operator": "DoesNotExist"}]}]
        }
    }
}
PRIORITY = "system-cluster-critical"
PULLED_WITH = [{"name": "pull"}, {"name": "1e3"}]
REPOSITORY = "registry.example/ipam"
SPEED = {"requests": {"cpu": "250m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}}


class Installed:
    """Objects of a release, whether they were printed by Helm or read from a server."""

    def __init__(self, documents: Iterable[Object]) -> None:
        self.documents = list(documents)

    def has(self, kind: str, name: str = "tenure-operator", namespace: str | None = None) -> bool:
        """Say whether an object is there."""
        places = [each["metadata"].get("namespace") for each in self._named(kind, name)]
        return bool(places) if namespace is None else namespace in places

    def get(self, kind: str, name: str = "tenure-operator") -> Object:
        """Return an object."""
        return next(self._named(kind, name))

    def _named(self, kind: str, name: str) -> Any:
        return (each for each in self.documents if (each["kind"], each["metadata"]["name"]) == (kind, name))

    @property
    def template(self) -> Object:
        """Return what pods are made of."""
        template: Object = self.get("Deployment")["spec"]["template"]
        return template

    @property
    def pod(self) -> Object:
        """Return the specification of pods."""
        pod: Object = self.template["spec"]
        return pod

    @property
    def container(self) -> Object:
        """Return the operator's container."""
        container: Object = self.pod["containers"][0]
        return container

    def is_given(self, *words: str) -> bool:
        """Say whether the operator has arguments, one behind the other."""
        given = self.container["args"]
        return any(tuple(given[place : place + len(words)]) == words for place in range(len(given)))

    def readable_secrets(self) -> set[str]:
        """Return the Secrets that the operator may read outside of its own namespace."""
        roles = [each for each in self.documents if each["kind"] in ("ClusterRole", "Role")]
        rules = [rule for each in roles if each["metadata"]["name"] == "tenure-operator" for rule in each["rules"]]
        return {
            name for rule in rules if rule["resources"] == ["secrets"] for name in rule.get("resourceNames") or ("all",)
        }


class Case(NamedTuple):
    """What a value is set to, what is so then and not otherwise, and which other values that needs."""

    value: Any
    holds: Callable[[Installed], bool]
    needs: Mapping[str, Any] = {}


IN_CLUSTER: Mapping[str, Any] = {"controllers": ["metal3", "capi", "in-cluster"]}
RENDERING: Mapping[str, Any] = {"controllers": ["metal3", "render"]}
CASES: dict[str, Case] = {
    "image.repository": Case(REPOSITORY, lambda it: it.container["image"].startswith(f"{REPOSITORY}:")),
    "image.tag": Case("7.1", lambda it: ":7.1" in it.container["image"]),
    "image.digest": Case(DIGEST, lambda it: it.container["image"].endswith(f"@{DIGEST}")),
    "image.pullPolicy": Case("Always", lambda it: it.container.get("imagePullPolicy") == "Always"),
    "image.pullSecrets": Case(["pull", "1e3"], lambda it: it.pod.get("imagePullSecrets") == PULLED_WITH),
    "controllers": Case(
        ["metal3", "render"], lambda it: it.is_given("--controllers", "metal3,render")
        and (it.has("ClusterRole", "tenure-operator-render") or it.has("Role", "tenure-operator-render", "default")),
    ),
    "namespaces": Case(
        ["default", "kube-public"], lambda it: it.is_given("--namespaces", "default,kube-public")
        and it.has("Role", namespace="default") and it.has("RoleBinding", namespace="kube-public")
        and not it.has("ClusterRole") and not it.has("ClusterRoleBinding"),
    ),
    "defaultStrategy": Case("random", lambda it: it.is_given("--default-strategy", "random")),
    "allowOutsidePreAllocations": Case(True, lambda it: it.is_given("--allow-outside-preallocations")),
    "watchFilter": Case("1e3", lambda it: it.is_given("--watch-filter", "1e3")),
    "orphanGraceSeconds": Case(3600, lambda it: it.is_given("--orphan-grace", "3600")),
    "log": Case("text", lambda it: it.is_given("--log", "text")),
    "metrics.auth": Case(True, lambda it: it.is_given("--metrics-auth")),
    "render.claimsByHost": Case(True, lambda it: it.is_given("--enable-bmh-name-based-preallocation"), RENDERING),
    "render.likeCapm3": Case(True, lambda it: it.is_given("--render-like-capm3"), RENDERING),
    "ledger.secretNames": Case(["plan", "other-plan"], lambda it: it.readable_secrets() == {"plan", "other-plan"}),
    "crds.install": Case(False, lambda it: not it.has("CustomResourceDefinition", "ippools.ipam.metal3.io")),
    "crds.inCluster": Case(
        False, lambda it: it.has("ClusterRole", "tenure-operator-in-cluster")
        and not it.has("CustomResourceDefinition", "inclusterippools.ipam.cluster.x-k8s.io"), IN_CLUSTER,
    ),
    "userRoles.create": Case(False, lambda it: not it.has("ClusterRole", "tenure-ipam-view")),
    "webhooks.enabled": Case(
        False, lambda it: it.is_given("--no-webhooks") and not it.has("ValidatingWebhookConfiguration")
        and not it.has("Service") and [each["name"] for each in it.container["ports"]] == ["probes"],
    ),
    "webhooks.certManager": Case(
        True, lambda it: it.is_given("--webhook-certificates", "/certificates") and it.has("Certificate")
        and it.has("Issuer") and "cert-manager" in {each["name"] for each in it.pod["volumes"]},
    ),
    "flowSchema.enabled": Case(True, lambda it: it.has("FlowSchema")),
    "podDisruptionBudget.enabled": Case(False, lambda it: not it.has("PodDisruptionBudget")),
    "networkPolicy.enabled": Case(False, lambda it: not it.has("NetworkPolicy")),
    "replicas": Case(3, lambda it: it.get("Deployment")["spec"]["replicas"] == 3),
    "resources": Case(SPEED, lambda it: it.container["resources"]["requests"] == SPEED["requests"]),
    "terminationGracePeriodSeconds": Case(45, lambda it: it.pod["terminationGracePeriodSeconds"] == 45),
    "priorityClassName": Case(PRIORITY, lambda it: it.pod.get("priorityClassName") == PRIORITY),
    "nodeSelector": Case({"rack": "7"}, lambda it: it.pod.get("nodeSelector") == {"rack": "7"}),
    "tolerations": Case([{"operator": "Exists"}], lambda it: it.pod.get("tolerations") == [{"operator": "Exists"}]),
    "affinity": Case(AFFINITY, lambda it: it.pod.get("affinity") == AFFINITY),
    "podLabels": Case({"team": "net"}, lambda it: it.template["metadata"]["labels"].get("team") == "net"),
    "podAnnotations": Case(
        {"prometheus.io/port": "8081"},
        lambda it: (it.template["metadata"].get("annotations") or {}) == {"prometheus.io/port": "8081"},
    ),
}  # fmt: skip
"""One for each value."""

EXCLUDED_BY_OTHERS = ("webhooks.enabled", "crds.install", "crds.inCluster")
"""Values whose cases leave nothing of others to be seen; a release of their own has them."""

WRONG: dict[str, Any] = {
    "replicas": "two",
    "controllers": ["metal4"],
    "namespaces": ["Not_A_Name"],
    "defaultStrategy": "lifo",
    "watchFilter": "a b",
    "orphanGraceSeconds": -1,
    "image.repository": "registry.example/tenure:1",
    "image.tag": "a b",
    "image.pullPolicy": "Sometimes",
    "image.digest": "sha256:0",
    "ledger.secretNames": "tenure-ledger",
    "webhooks.certManager": "yes",
    "webhooks.enabeld": True,
    "terminationGracePeriodSeconds": 15,
    "podLabels": {"app.kubernetes.io/name": "other"},
    "priorityClassName": "Not_A_Name",
    "resources": {"request": {}},
    "resources.requests": {"cpu": "lots"},
    "replica": 2,
}
"""Values that are refused, each by its name."""

UNFIT: dict[str, tuple[dict[str, Any], str]] = {
    "certificate without webhooks": (
        {"webhooks.enabled": False, "webhooks.certManager": True}, "webhooks.certManager: there is no certificate",
    ),
    "in-cluster's pools in single namespaces": (
        {"namespaces": ["a"], "controllers": ["in-cluster"]}, "controllers: in-cluster has no roles for single",
    ),
    "claims by host without render": ({"render.claimsByHost": True}, "render.claimsByHost: render is not among"),
    "rendering like CAPM3 without render": ({"render.likeCapm3": True}, "render.likeCapm3: render is not among"),
}  # fmt: skip
"""Values that are refused because of others, and what is said."""


def nested(values: Mapping[str, Any]) -> Object:
    """Return values by their paths as Helm reads them from a file."""
    whole: Object = {}
    for path, value in values.items():
        *groups, name = path.split(".")
        place = whole
        for group in groups:
            place = place.setdefault(group, {})
        place[name] = value
    return whole
