"""What the objects of a machine say: names, labels, annotations, the host and its network cards."""

from collections.abc import Mapping
from typing import Any

from tenure.integrations.kubernetes.metal3_data.template.machine_facts import MachineFacts, MachineObject
from tenure.integrations.kubernetes.metal3_data.template.template_model import ObjectSort

HOST_ANNOTATION = "metal3.io/BareMetalHost"
"""The annotation in which a Metal3Machine names its host, with the namespace before it."""


def _map(object: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    value: Any = object
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def machine_object(object: Mapping[str, Any]) -> MachineObject:
    """Return what a template may look at in an object."""
    labels, annotations = (_map(object, "metadata", part) for part in ("labels", "annotations"))
    texts = [{str(key): str(value) for key, value in each.items()} for each in (labels, annotations)]
    return MachineObject(str(_map(object, "metadata").get("name") or ""), *texts)


def owner_named(object: Mapping[str, Any], kind: str) -> str:
    """Return the name of the owner of a kind; empty if there is none. Its uid and version change when it is moved."""
    owners: list[Mapping[str, Any]] = _map(object, "metadata").get("ownerReferences") or []
    return next((str(each.get("name") or "") for each in owners if each.get("kind") == kind), "")


def host_key(machine: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return namespace and name of the host that a Metal3Machine has; nothing before it has one."""
    namespace, slash, name = str(_map(machine, "metadata", "annotations").get(HOST_ANNOTATION) or "").partition("/")
    return (namespace, name) if slash and name else None


def read_facts(
    namespace: str, index: int, objects: Mapping[ObjectSort, MachineObject], host: Mapping[str, Any]
) -> MachineFacts:
    """Return the facts of a machine; its host says which network cards it has.

    A host lists a card once for each of its IP addresses. Of two cards of one name the first is meant, as in CAPM3.
    """
    cards = _map(host, "status", "hardware").get("nics")
    interfaces: dict[str, str] | None = None
    if isinstance(cards, list):
        interfaces = {}
        for card in cards:
            interfaces.setdefault(str(card.get("name")), str(card.get("mac") or ""))
    boot_mac = str(_map(host, "spec").get("bootMACAddress") or "")
    return MachineFacts(namespace, index, objects, interfaces, boot_mac)
