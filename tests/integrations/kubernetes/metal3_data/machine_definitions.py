"""Definitions of Metal3's kinds of machines' data, in the fields that the controller reads and writes.

They have the shapes that CAPM3 publishes for v1beta1, types, bounds and status included, so the server refuses and
drops what it would there; ``dataNames`` they have besides, which the design had. Templates take any fields; what they
may say is judged by the controller. ``make proof`` has the definitions that CAPM3 publishes (``capm3_definitions``).
"""

from typing import Any

from tenure.integrations.kubernetes.metal3_data.data_kinds import DATA, DATA_CLAIM, HOST, METAL3_MACHINE, TEMPLATE
from tenure.integrations.kubernetes.runtime.resource_types import ResourceType
from tenure.integrations.kubernetes.shipped_manifests import documents_of
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.cluster import await_kind, create, plain_definition

Schema = dict[str, Any]

MACHINES = plain_definition("cluster.x-k8s.io", "v1beta1", "machines", "Machine")
HOSTS = plain_definition(HOST.group, HOST.version, HOST.plural, HOST.kind)
HOSTS["spec"]["versions"][0]["subresources"] = {"status": {}}

TEXT: Schema = {"type": "string"}
ANYTHING: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
REFERENCE: Schema = {"type": "object", "properties": dict.fromkeys(("name", "namespace", "kind", "uid"), TEXT)}
NUMBER: Schema = {"type": "integer", "format": "int32"}


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


VERSION = "v1beta1"


def definitions() -> list[dict[str, Any]]:
    """Return the definitions of templates, their data and machines."""
    name = {**REFERENCE, "properties": {"name": TEXT, "namespace": TEXT}}
    template = _object(clusterName={**TEXT, "minLength": 1}, metaData=ANYTHING, networkData=ANYTHING)
    data = _object(index=NUMBER, template=REFERENCE, claim=REFERENCE, metaData=name, networkData=name)
    lists = _object(
        indexes={"type": "object", "additionalProperties": {"type": "integer"}},
        dataNames={"type": "object", "additionalProperties": TEXT},
        lastUpdated={**TEXT, "format": "date-time"},
    )
    return [
        _definition(TEMPLATE, {**template, "required": ["clusterName"]}, lists),
        _definition(DATA_CLAIM, _object(template=REFERENCE), _object(renderedData=REFERENCE, errorMessage=TEXT)),
        _definition(DATA, data, _object(ready={"type": "boolean"}, errorMessage=TEXT)),
        _definition(METAL3_MACHINE, ANYTHING, ANYTHING),
    ]


def _definition(kind: ResourceType, spec: Schema, status: Schema) -> dict[str, Any]:
    found = plain_definition(kind.group, VERSION, kind.plural, kind.kind)
    schema = {"openAPIV3Schema": _object(spec=spec, status=status)}
    found["spec"]["versions"][0] |= {"schema": schema, "subresources": {"status": {}}}
    return found


def install_machines(server: KubeServer) -> None:
    """Apply the definitions of all that the controller looks at."""
    found = [*definitions(), MACHINES, HOSTS]
    for document in found:
        create(server, document)
    for document in found:
        await_kind(server, document)


def install_pools_of_others(server: KubeServer) -> None:
    """Apply the definition of the in-cluster provider's pools of one namespace."""
    (found,) = (
        each for each in documents_of(["in-cluster-crds"]) if each["spec"]["names"]["kind"] == "InClusterIPPool"
    )
    create(server, found)
    await_kind(server, found)


def let_render(server: KubeServer, *namespaces: str) -> None:
    """Give the operator the rights to render: in some namespaces, or in the whole cluster."""
    for document in documents_of(["render"], namespaces=namespaces):
        create(server, document)
