"""The values of the Helm chart: each with its default, what it may be, what it means, and the option that it sets.

What the shipped manifests or the command line say already is read from there, so that it stands nowhere twice.
"""

import re
from typing import Any, NamedTuple

import click

from tenure.doors.cli.commands.operator.run_operator import LABEL_VALUE, NAMESPACE, operator
from tenure.integrations.kubernetes.operator import CONTROLLERS
from tenure.integrations.kubernetes.runtime.leader_lease import LeaseTimes
from tenure.integrations.kubernetes.shipped_manifests import read_manifest

DEPLOYMENT = read_manifest("deployment.yaml")[0]["spec"]
FOUND_BY = DEPLOYMENT["selector"]["matchLabels"]
POD = DEPLOYMENT["template"]["spec"]
CONTAINER = POD["containers"][0]
BASE = tuple(CONTAINER["args"])
"""The arguments that pods have as they are shipped."""


class Value(NamedTuple):
    """A value of the chart."""

    path: str
    default: Any
    meaning: str
    schema: dict[str, Any]
    """What it may be, as JSON Schema."""
    option: str = ""
    """The option of ``tenure operator`` that it sets."""

    @property
    def expression(self) -> str:
        """Return how templates name it."""
        return f".Values.{self.path}"


def _default(option: str) -> Any:
    """Return what an option of the operator is where it is not given."""
    return next(each.default for each in operator.params if option in each.opts)


def _choices(option: str) -> list[str]:
    """Return what an option of the operator may be."""
    kind = next(each.type for each in operator.params if option in each.opts)
    assert isinstance(kind, click.Choice)
    return [str(each) for each in kind.choices]


def _whole(pattern: re.Pattern[str]) -> str:
    """Return a pattern for a whole text, as JSON Schema has it."""
    return f"^({pattern.pattern})$"


ON_OFF = {"type": "boolean"}
NAME = {"type": "string", "minLength": 1, "maxLength": 253, "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"}
TEXTS_BY_NAME = {"type": "object", "additionalProperties": {"type": "string"}}
IMAGE_PART = "[a-z0-9]+([._-]+[a-z0-9]+)*"
IMAGE = rf"^([A-Za-z0-9.-]+(:[0-9]+)?/)?{IMAGE_PART}(/{IMAGE_PART})*$"
"""An image without its tag, which would be written behind it a second time."""
AMOUNT = r"^([0-9]+([.][0-9]*)?|[.][0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]+)?$"
AMOUNTS = {
    "type": "object",
    "additionalProperties": {"type": ["string", "number"], "pattern": AMOUNT, "minimum": 0},
}
"""Quantities as Kubernetes writes them; a server refuses others in the middle of an upgrade, and not by their names."""


def _switch(path: str, default: bool, meaning: str, option: str = "") -> Value:
    return Value(path, default, meaning, ON_OFF, option)


def _list_of(each: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": each, "uniqueItems": True, **more}


def _image_values() -> list[Value]:
    repository, _, _ = CONTAINER["image"].rpartition(":")
    return [
        Value(
            "image.repository", repository, "The image without its tag. No image is published: any that has "
            "`tenure[kubernetes]` and the command `tenure` will do.", {"type": "string", "pattern": IMAGE},
        ),
        Value(
            "image.tag", "", "Its tag; empty: the version of the chart's application.",
            {"type": "string", "pattern": "^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?$"},
        ),
        Value(
            "image.digest", "", "Its digest, such as `sha256:…`; then exactly this image runs.",
            {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"},
        ),
        Value(
            "image.pullPolicy", "", "When nodes fetch it; empty: as Kubernetes does by itself.",
            {"enum": ["", "Always", "IfNotPresent", "Never"]},
        ),
        Value("image.pullSecrets", [], "Names of Secrets with which nodes fetch it.", _list_of(NAME)),
    ]  # fmt: skip


def _operator_values() -> list[Value]:
    return [
        Value(
            "controllers", _default("--controllers").split(","), "What the operator serves. `render` also needs rights "
            "to machines and to secrets, and gets them; `in-cluster`, the pools of the in-cluster provider, gets "
            "rights, webhooks and definitions.", _list_of({"enum": sorted(CONTROLLERS)}, minItems=1),
            "--controllers",
        ),
        Value(
            "namespaces", [], "Work in these namespaces only, with Roles there instead of one for the cluster; empty: "
            "all.", _list_of({"type": "string", "pattern": _whole(NAMESPACE)}), "--namespaces",
        ),
        Value(
            "defaultStrategy", _default("--default-strategy"), "The strategy of pools that name none.",
            {"enum": _choices("--default-strategy")}, "--default-strategy",
        ),
        _switch(
            "allowOutsidePreAllocations", False, "Let pre-allocations lie outside the ranges, in pools that say "
            "nothing of it.", "--allow-outside-preallocations",
        ),
        Value(
            "watchFilter", "", "Look after objects with this value of the label `cluster.x-k8s.io/watch-filter` only.",
            {"type": "string", "pattern": _whole(LABEL_VALUE)}, "--watch-filter",
        ),
        Value(
            "orphanGraceSeconds", int(_default("--orphan-grace")), "After how long an address that this operator made "
            "is released if its claim is not there.", {"type": "number", "minimum": 0}, "--orphan-grace",
        ),
        Value("log", BASE[BASE.index("--log") + 1], "How log lines look.", {"enum": _choices("--log")}, "--log"),
        _switch(
            "metrics.auth", False, "Answer `/metrics` only to callers whose token may get that URL.", "--metrics-auth"
        ),
        _switch(
            "render.claimsByHost", False, "Name the claims of machines by their hosts, so that preAllocations reach "
            "them; with the controller `render`.", "--enable-bmh-name-based-preallocation",
        ),
        _switch(
            "render.likeCapm3", False, "Render nothing for `dnsServersFromIPPool`, as CAPM3 does; with the controller "
            "`render`.", "--render-like-capm3",
        ),
        Value(
            "ledger.secretNames", ["tenure-ledger"], "Secrets that the operator may read in pools' namespaces: where a "
            "pool's ledger is, and its token. Empty: none.", _list_of(NAME),
        ),
    ]  # fmt: skip


def _cluster_values() -> list[Value]:
    return [
        _switch(
            "crds.install", True, "Install the kinds IPPool, IPClaim and IPAddress, and keep them at `helm uninstall`. "
            "Off: those that are there are used, such as Metal3's own.",
        ),
        _switch(
            "crds.inCluster", True, "With `crds.install` and the controller `in-cluster`: install the four kinds of "
            "the in-cluster provider's pools as well, in place of the provider's own. Off: its own stay.",
        ),
        _switch(
            "userRoles.create", True, "Make roles for people: who may view or edit a namespace may do so with its "
            "pools; and one for readers of metrics.",
        ),
        _switch(
            "webhooks.enabled", True, "Judge objects before the API server stores them. Off: another controller's "
            "webhooks do, such as Metal3's.", "--webhooks",
        ),
        _switch(
            "webhooks.certManager", False, "Let cert-manager make the certificate of the webhooks, and not the "
            "operator.", "--webhook-certificates",
        ),
        _switch(
            "flowSchema.enabled", False, "Give requests of the operator a queue of their own, where others flood the "
            "API server.",
        ),
        _switch("podDisruptionBudget.enabled", True, "Empty nodes one after the other."),
        _switch("networkPolicy.enabled", True, "Let nothing reach the pods but webhooks and probes."),
    ]  # fmt: skip


def _pod_values() -> list[Value]:
    grace = LeaseTimes().lasts_s
    return [
        Value(
            "replicas", DEPLOYMENT["replicas"], "How many replicas run: all answer webhooks, one leads.",
            {"type": "integer", "minimum": 0},
        ),
        Value(
            "resources", CONTAINER["resources"], "What a replica asks for, and what it may use at most.",
            {"type": "object", "properties": {"requests": AMOUNTS, "limits": AMOUNTS}, "additionalProperties": False},
        ),
        Value(
            "terminationGracePeriodSeconds", POD["terminationGracePeriodSeconds"], "How long a replica that stops may "
            f"take; more than the {grace:.0f} seconds of its lease, which it gives up.",
            {"type": "integer", "minimum": int(grace) + 1},
        ),
        Value("priorityClassName", "", "The PriorityClass of the pods.", {"anyOf": [{"const": ""}, NAME]}),
        Value("nodeSelector", {}, "Labels of the nodes on which pods may run.", TEXTS_BY_NAME),
        Value(
            "tolerations", [], "Taints of nodes on which pods may run all the same.",
            {"type": "array", "items": {"type": "object"}},
        ),
        Value("affinity", {}, "Rules of the scheduler besides the spread over nodes and zones.", {"type": "object"}),
        Value(
            "podLabels", {}, "More labels of the pods; not the one by which they are found.",
            {**TEXTS_BY_NAME, "properties": dict.fromkeys(FOUND_BY, False)},
        ),
        Value(
            "podAnnotations", {}, "Annotations of the pods, such as those that collectors of metrics look for.",
            TEXTS_BY_NAME,
        ),
    ]  # fmt: skip


VALUES = (*_image_values(), *_operator_values(), *_cluster_values(), *_pod_values())

NOT_VALUES = {
    "--kubeconfig": "pods have their account",
    "--context": "pods have their account",
    "--own-namespace": "it is the namespace of the release",
    "--host": "a pod listens on every address that it has",
    "--port": "a pod has all ports for itself",
    "--webhook-host": "a pod listens on every address that it has",
    "--webhook-port": "a pod has all ports for itself",
    "--check": "it is for people who try settings",
}
"""Options of ``tenure operator`` that the chart has no value for, and why."""
