"""Kinds of objects, and the paths under which an API server keeps them."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

Object = dict[str, Any]
"""An object as the server sends it; no model stands between, so unknown fields stay as they are."""

Key = tuple[str, str]
"""Namespace and name of an object; the namespace is empty for kinds of the whole cluster."""


@dataclass(frozen=True, slots=True)
class ResourceType:
    """A kind of objects in one version of its group."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """Return what objects of this kind have in ``apiVersion``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full_name(self) -> str:
        """Return plural and group, as ``kubectl`` names a kind: two groups may have kinds of one plural."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def root(self) -> str:
        """Return the path below which all of the group's version lies."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of all objects, of those in a namespace, of one object, or of a part of it."""
        parts = [self.root]
        if namespace and self.namespaced:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        parts += [quote(part, safe="") for part in (name, subresource) if part]
        return "/".join(parts)

    def path_of(self, object: Object, subresource: str = "") -> str:
        """Return the path of an object."""
        namespace, name = key_of(object)
        return self.path(namespace, name, subresource)


def key_of(object: Object) -> Key:
    """Return namespace and name of an object."""
    metadata = object["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def uid_of(object: Object) -> str:
    """Return the identity of an object, which no other object ever has."""
    uid: str = object["metadata"]["uid"]
    return uid


def version_of(object: Object) -> int:
    """Return the resource version as a number: versions of one kind are in the order of their writes."""
    return int(object["metadata"].get("resourceVersion") or 0)


CUSTOM_RESOURCE_DEFINITION = ResourceType(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
EVENT = ResourceType("events.k8s.io", "v1", "events", "Event")
LEASE = ResourceType("coordination.k8s.io", "v1", "leases", "Lease")
SECRET = ResourceType("", "v1", "secrets", "Secret")
