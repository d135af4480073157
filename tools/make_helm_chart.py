"""Write the Helm chart of the operator, and the page about its values, from the manifests that are shipped.

A template is a manifest's own text, with a table of edits: where a value stands in the place of what is shipped, and on
which value a document depends. So a right, a rule or a port stands in the manifests alone. An edit whose text is not
there any more, and a manifest that no template is made of, are errors. Run it after changing a manifest, an option of
``tenure operator`` or a value (``helm_values.py``); ``--check`` fails if the chart is not what it would write.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import version
from importlib.resources import files as files_of
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tenure.integrations.kubernetes.shipped_manifests import MOUNTED_AT, OWN_NAMESPACE, PARTS, USUAL

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # where this file is run by its path
from tools.helm_values import BASE, CONTAINER, FOUND_BY, VALUES, Value  # noqa: E402

CHART = ROOT / "deploy" / "helm" / "tenure-operator"
PAGE = ROOT / "docs" / "reference" / "helm-chart.md"
WRITTEN = "Written by tools/make_helm_chart.py"
MANIFESTS = files_of("tenure.integrations.kubernetes").joinpath("manifests")
OLDEST_KUBERNETES = "1.30.0-0"  # the first whose webhooks have match conditions, without a gate

NAMESPACE = "$.Release.Namespace"
WHOLE = re.compile(rf"(?<=: ){OWN_NAMESPACE}(?=[,}}\n])")
"""The namespace as a text of its own, which must be in quotes: it may look like a number."""


class Edit(NamedTuple):
    """What stands in a manifest, what the template has in its place, and how often."""

    old: str
    new: str
    times: int = 1


def _given(value: str, text: str) -> str:
    """Return lines that are there if a value is set."""
    return f"{{{{- if {value} }}}}\n{text}{{{{- end }}}}\n"


def _listed(value: str, name: str, indent: int) -> str:
    """Return a field of a pod that is there if its value is not empty."""
    lines = (f"{{{{- with {value} }}}}", f"{name}: {{{{- toYaml . | nindent {indent + 2} }}}}", "{{- end }}")
    return "".join(f"{' ' * indent}{line}\n" for line in lines)


LEDGER_RULE = """\
  - apiGroups: [""]
    resources: [secrets]
    resourceNames: [tenure-ledger]
    verbs: [get, list, watch]
"""
# A rule whose list of names is empty would be a right to all Secrets.
READ_SECRETS = Edit(
    LEDGER_RULE,
    _given(
        "$.Values.ledger.secretNames",
        LEDGER_RULE.replace("[tenure-ledger]", "{{ toJson $.Values.ledger.secretNames }}"),
    ),
)
KEPT = Edit("metadata:\n  name:", "metadata:\n  annotations: {helm.sh/resource-policy: keep}\n  name:")
BY_CERT_MANAGER = _given(
    ".Values.webhooks.certManager",
    f"  annotations: {{cert-manager.io/inject-ca-from: {OWN_NAMESPACE}/tenure-operator}}\n",
)
IN_NAMESPACES = """\
    {{- with .Values.namespaces }}
    namespaceSelector:
      matchExpressions:
        - {key: kubernetes.io/metadata.name, operator: In, values: {{ toJson . }}}
    {{- end }}
"""
OF_ROLE = '{{ empty $namespace | ternary "ClusterRole" "Role" }}'
IN_THIS_NAMESPACE = """\
  name: tenure-operator-render
  {{- with $namespace }}
  namespace: {{ quote . }}
  {{- end }}
"""
LABELS = f"      labels: {{{next(iter(FOUND_BY))}: {next(iter(FOUND_BY.values()))}}}\n"
MOUNT = f"            - {{name: cert-manager, mountPath: {MOUNTED_AT}, readOnly: true}}\n"
VOLUME = "        - {name: cert-manager, secret: {secretName: tenure-operator-cert-manager}}\n"
PLACED = (
    "      serviceAccountName: tenure-operator\n"
    "      {{- with .Values.image.pullSecrets }}\n      imagePullSecrets:\n"
    "        {{- range . }}\n        - {name: {{ quote . }}}\n        {{- end }}\n      {{- end }}\n"
    "      {{- with .Values.priorityClassName }}\n      priorityClassName: {{ quote . }}\n      {{- end }}\n"
    + "".join(_listed(f".Values.{name}", name, 6) for name in ("nodeSelector", "tolerations", "affinity"))
)

EDITS: dict[str, tuple[Edit, ...]] = {
    "rbac.yaml": (READ_SECRETS,),
    "role_only.yaml": (READ_SECRETS, Edit("  namespace: default\n", "  namespace: {{ quote . }}\n", 2)),
    "render_rbac.yaml": (
        Edit("\nkind: ClusterRole\n", f"\nkind: {OF_ROLE}\n"),
        Edit("\nkind: ClusterRoleBinding\n", f"\nkind: {OF_ROLE}Binding\n"),
        Edit("kind: ClusterRole,", f"kind: {OF_ROLE},"),
        Edit("  name: tenure-operator-render\n", IN_THIS_NAMESPACE, 2),
    ),
    "webhooks.yaml": (
        Edit("metadata:\n  name: tenure-operator\n", "metadata:\n  name: tenure-operator\n" + BY_CERT_MANAGER, 2),
        Edit("    rules:\n", IN_NAMESPACES + "    rules:\n", 4),
    ),
    "in_cluster_webhooks.yaml": (
        Edit("  name: tenure-operator-in-cluster\n", "  name: tenure-operator-in-cluster\n" + BY_CERT_MANAGER, 2),
    ),
    "deployment.yaml": (
        Edit("  replicas: 2\n", "  replicas: {{ .Values.replicas }}\n"),
        Edit(
            f"    metadata:\n{LABELS}",
            "    metadata:\n" + _listed(".Values.podAnnotations", "annotations", 6) + "      labels:\n"
            f"        {LABELS.strip().removeprefix('labels: {').removesuffix('}')}\n"
            "        {{- with .Values.podLabels }}\n        {{- toYaml . | nindent 8 }}\n        {{- end }}\n",
        ),
        Edit("      serviceAccountName: tenure-operator\n", PLACED),
        Edit("Seconds: 30\n", "Seconds: {{ .Values.terminationGracePeriodSeconds }}\n"),
        Edit(
            f"          image: {CONTAINER['image']}\n",
            '          image: {{ include "tenure-operator.image" . | quote }}\n'
            + _given(".Values.image.pullPolicy", "          imagePullPolicy: {{ .Values.image.pullPolicy }}\n"),
        ),
        Edit(
            f'          args: [{", ".join(json.dumps(each) if each.isdecimal() else each for each in BASE)}]\n',
            '          args:\n            {{- include "tenure-operator.args" . | nindent 12 }}\n',
        ),
        Edit(
            "            - {name: webhooks, containerPort: 9443}\n",
            _given(".Values.webhooks.enabled", "            - {name: webhooks, containerPort: 9443}\n"),
        ),
        Edit(
            "          resources:\n            requests: {cpu: 100m, memory: 128Mi}\n"
            '            limits: {cpu: "2", memory: 1Gi}\n',
            _listed(".Values.resources", "resources", 10),
        ),
        Edit(
            "            - {name: certificate, mountPath: /tmp}\n",
            "            - {name: certificate, mountPath: /tmp}\n" + _given(".Values.webhooks.certManager", MOUNT),
        ),
        Edit(
            "          emptyDir: {medium: Memory, sizeLimit: 16Mi}\n",
            "          emptyDir: {medium: Memory, sizeLimit: 16Mi}\n" + _given(".Values.webhooks.certManager", VOLUME),
        ),
        Edit(
            "        - {protocol: TCP, port: webhooks}\n",
            _given(".Values.webhooks.enabled", "        - {protocol: TCP, port: webhooks}\n"),
        ),
    ),
}  # fmt: skip
"""Of manifests by their file; the definitions of kinds have one edit in common."""

IN_CLUSTER = '(has "in-cluster" .Values.controllers)'
WHOLE_FILES = {
    "crds/": ("if .Values.crds.install", "end"),
    "role_only.yaml": ("range .Values.namespaces", "end"),
    "render_rbac.yaml": (
        'if has "render" .Values.controllers }}\n{{- range $namespace := .Values.namespaces | default (list "")',
        "end }}\n{{- end",
    ),
    "in_cluster_crds/": (f"if and .Values.crds.install .Values.crds.inCluster {IN_CLUSTER}", "end"),
    "in_cluster_rbac.yaml": (f"if {IN_CLUSTER}", "end"),
    "in_cluster_webhooks.yaml": (f"if and .Values.webhooks.enabled {IN_CLUSTER}", "end"),
    "user_roles.yaml": ("if .Values.userRoles.create", "end"),
    "webhooks.yaml": ("if .Values.webhooks.enabled", "end"),
    "cert_manager.yaml": ("if .Values.webhooks.certManager", "end"),
    "flow_schema.yaml": ("if .Values.flowSchema.enabled", "end"),
}
"""What stands around a whole file, which depends on a value."""

SINGLE_DOCUMENTS = {
    ("rbac.yaml", "ClusterRole", "tenure-operator"): "not .Values.namespaces",
    ("rbac.yaml", "ClusterRoleBinding", "tenure-operator"): "not .Values.namespaces",
    ("deployment.yaml", "Service", "tenure-operator"): ".Values.webhooks.enabled",
    ("deployment.yaml", "PodDisruptionBudget", "tenure-operator"): ".Values.podDisruptionBudget.enabled",
    ("deployment.yaml", "NetworkPolicy", "tenure-operator"): ".Values.networkPolicy.enabled",
}
"""Documents that depend on a value, by file, kind and name; all others of their file are always there."""

BESIDE_PARTS = ("role_only.yaml", "cert_manager.yaml")
LEFT_OUT = ("namespace.yaml",)
"""Helm makes the namespace of a release itself (``--create-namespace``)."""

NOT_RENDERING = '(not (has "render" .Values.controllers))'
CHECKS = {
    "and .Values.webhooks.certManager (not .Values.webhooks.enabled)": "webhooks.certManager: there is no certificate "
    "without webhooks.enabled",
    f"and .Values.namespaces {IN_CLUSTER}": "controllers: in-cluster has no roles for single namespaces here; "
    "`tenure manifests --namespaces` prints them",
    f"and .Values.render.claimsByHost {NOT_RENDERING}": "render.claimsByHost: render is not among controllers",
    f"and .Values.render.likeCapm3 {NOT_RENDERING}": "render.likeCapm3: render is not among controllers",
}
"""Values that do not go together, and what is said then."""


class ManifestChanged(Exception):
    """A manifest is not as the table of edits expects it; the message names the file and the text."""


def manifest_files() -> list[str]:
    """Return the manifests that templates are made of."""
    for part, files in PARTS.items():
        if part not in USUAL and not all(file.startswith(tuple(WHOLE_FILES)) for file in files):
            raise ManifestChanged(f"the part {part} is not a usual one: WHOLE_FILES must say on which value it depends")
    listed = [file for files in PARTS.values() for file in files if file not in LEFT_OUT]
    return [*listed, *BESIDE_PARTS]


def template_of(file: str) -> str:
    """Return the template of a manifest."""
    text = MANIFESTS.joinpath(*file.split("/")).read_text("utf-8")
    if "{{" in text:
        raise ManifestChanged(f"{file} has braces that Helm would take for a template")
    for edit in (KEPT,) if "crds/" in file else EDITS.get(file, ()):
        if text.count(edit.old) != edit.times:
            raise ManifestChanged(f"{file} has {text.count(edit.old)} times, and not {edit.times}:\n{edit.old}")
        text = text.replace(edit.old, edit.new)
    text = "---\n".join(_on_condition(file, each) for each in text.split("---\n"))
    text = WHOLE.sub(f"{{{{ quote {NAMESPACE} }}}}", text).replace(OWN_NAMESPACE, f"{{{{ {NAMESPACE} }}}}")
    begin, end = next((around for name, around in WHOLE_FILES.items() if file.startswith(name)), ("", ""))
    if begin:
        first = "---\n" if begin.startswith("range") or "range" in begin else ""
        text = f"{{{{- {begin} }}}}\n{first}{text}{{{{- {end} }}}}\n"
    return f"# {WRITTEN} from {file}.\n{text}"


def _on_condition(file: str, document: str) -> str:
    """Return a document as it stands in its template, with the value that it depends on."""
    found = re.search(r"^kind: (\S+)\nmetadata:\n(?:  annotations:.*\n)?  name: (\S+)", document, re.MULTILINE)
    condition = found and SINGLE_DOCUMENTS.get((file, found[1], found[2]))
    return _given(condition, document) if condition else document


def image_and_arguments() -> str:
    """Return the parts of templates that have names: the image, the arguments, and what is checked."""
    image = (
        '{{- define "tenure-operator.image" -}}\n'
        "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
        "{{ with .Values.image.digest }}@{{ . }}{{ end }}\n{{- end }}\n"
    )
    checks = "".join(
        f"{{{{- if {when} }}}}\n{{{{- fail {json.dumps(what)} }}}}\n{{{{- end }}}}\n" for when, what in CHECKS.items()
    )
    words = "".join(f"- {json.dumps(word)}\n" for word in BASE[: BASE.index("--log") + 1])
    arguments = '{{- define "tenure-operator.args" -}}\n' + checks + words + "- {{ .Values.log }}\n"
    arguments += "".join(_argument(value) for value in VALUES if value.option and value.option not in BASE)
    return f"{{{{- /* {WRITTEN}. */ -}}}}\n{image}\n{arguments}{{{{- end }}}}\n"


def _argument(value: Value) -> str:
    """Return the lines of an option: it is given where a value differs from what the operator does without it."""
    if value.option == "--webhooks":
        return _given(f"not {value.expression}", "- --no-webhooks\n")
    if value.option == "--webhook-certificates":
        return _given(value.expression, f"- {value.option}\n- {MOUNTED_AT}\n")
    if value.default is False:
        return _given(value.expression, f"- {value.option}\n")
    if isinstance(value.default, list):
        joined = f'join "," {value.expression}'
        return _given(
            f"ne ({joined}) {json.dumps(','.join(value.default))}", f"- {value.option}\n- {{{{ {joined} | quote }}}}\n"
        )
    usual = json.dumps(str(value.default))
    return _given(
        f"ne (toString {value.expression}) {usual}",
        f"- {value.option}\n- {{{{ toString {value.expression} | quote }}}}\n",
    )


def chart_yaml() -> str:
    """Return what Helm knows of the chart."""
    document = {
        "apiVersion": "v2", "name": "tenure-operator", "type": "application", "version": version("tenure"),
        "appVersion": version("tenure"), "kubeVersion": f">={OLDEST_KUBERNETES}",
        "description": "Addresses for claims of Metal3 and of Cluster API, from pools in the cluster or in a ledger.",
    }  # fmt: skip
    return f"# {WRITTEN}.\n" + yaml.safe_dump(document, sort_keys=False, width=120)


def values_yaml() -> str:
    """Return the defaults of all values, each behind a comment that says what it means."""
    lines, above = [f"# {WRITTEN}; docs/reference/helm-chart.md has the same as a table."], ""
    for value in VALUES:
        group, _, name = value.path.rpartition(".")
        if group != above or not group:
            lines.append("")
        if group and group != above:
            lines.append(f"{group}:")
        above, space = group, "  " if group else ""
        default = (
            yaml.safe_dump(value.default, default_flow_style=True, sort_keys=False, width=1000)
            .removesuffix("...\n")
            .strip()
        )
        lines += [f"{space}# {value.meaning.replace('`', '')}", f"{space}{name}: {default}"]
    return "\n".join(lines) + "\n"


def values_schema() -> str:
    """Return what values may be: others are refused by their names, and so is a name that there is not."""
    whole = _group_schema()
    for value in VALUES:
        below, name = whole, value.path
        if "." in name:
            group, name = name.split(".")
            below = whole["properties"].setdefault(group, _group_schema())
            whole["required"] = [*dict.fromkeys([*whole["required"], group])]
        below["properties"][name] = {"description": value.meaning, **value.schema}
        below["required"].append(name)
    whole["properties"]["global"] = {"type": "object", "description": "What Helm gives to charts inside others."}
    return (
        json.dumps({"$schema": "http://json-schema.org/draft-07/schema#", **whole}, indent=2, ensure_ascii=False) + "\n"
    )


def _group_schema() -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": {}, "required": []}


NOTES = """\
The operator {{ .Chart.AppVersion }} is in namespace {{ .Release.Namespace }}.

  kubectl -n {{ .Release.Namespace }} rollout status deployment/tenure-operator
  kubectl get ippools,ipclaims,ipaddresses.ipam.metal3.io --all-namespaces
{{- if .Values.crds.install }}

`helm uninstall` leaves the definitions of IPPool, IPClaim and IPAddress where they are: deleting one deletes every
object of its kind, and with them the record of who has which address.
{{- end }}
"""

HEAD = """# Reference: the Helm chart

Written by `tools/make_helm_chart.py`, as is the chart itself: its templates are the manifests that `tenure manifests`
prints, with values in them. [How to](../howto/kubernetes.md#install-with-helm) install it, let it take over from the
manifests, and remove it.

The chart is the folder `deploy/helm/tenure-operator` of the repository. It needs Kubernetes 1.30, and Helm 3.17 for
`--take-ownership`. A value that is misspelt, or not one of those allowed, is refused with its name. Objects have the
names that they have in the manifests, so a cluster has one release of the chart.

| value | default | option of `tenure operator` | meaning |
|---|---|---|---|
"""


def page() -> str:
    """Return the page about the values."""
    return HEAD + "".join(map(_row, VALUES))


def _row(value: Value) -> str:
    option = f"`{value.option}`" if value.option else "–"
    return f"| `{value.path}` | `{json.dumps(value.default)}` | {option} | {value.meaning} |\n"


def written_files() -> Iterator[tuple[Path, str]]:
    """Yield every file with what is in it."""
    yield CHART / "Chart.yaml", chart_yaml()
    yield CHART / "values.yaml", values_yaml()
    yield CHART / "values.schema.json", values_schema()
    yield CHART / "templates" / "_named.tpl", image_and_arguments()
    yield CHART / "templates" / "NOTES.txt", NOTES
    for file in manifest_files():
        yield CHART.joinpath("templates", *file.split("/")), template_of(file)
    yield PAGE, page()


def run() -> int:
    """Write the chart, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the chart is out of date")
    files = dict(written_files())
    there = {path for path in CHART.rglob("*") if path.is_file()}
    if parser.parse_args().check:
        wrong = [path for path, text in files.items() if not path.exists() or path.read_text("utf-8") != text]
        wrong += sorted(there - set(files))
        print("the chart is current" if not wrong else f"out of date, run tools/make_helm_chart.py: {wrong[0].name}")
        return 1 if wrong else 0
    for path in there - set(files):
        path.unlink()
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(run())
