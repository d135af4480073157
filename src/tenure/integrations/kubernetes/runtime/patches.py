"""Patches that name what was read: an object that has changed since, or is another one, refuses them (KP4)."""

from typing import Any

from tenure.integrations.kubernetes.runtime.resource_types import Object, uid_of

Step = dict[str, Any]


def pointer(*parts: str | int) -> str:
    """Write a JSON pointer; ``/`` and ``~`` in names are written as the standard wants them."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def guarded(object: Object, *steps: Step) -> list[Step]:
    """Return a JSON patch that holds only for this object in the version that was read."""
    return [
        {"op": "test", "path": "/metadata/uid", "value": uid_of(object)},
        {"op": "test", "path": "/metadata/resourceVersion", "value": object["metadata"]["resourceVersion"]},
        *steps,
    ]


def finalizer_steps(object: Object, finalizer: str) -> list[Step]:
    """Return what adds a finalizer to those that were read; nothing, if it is among them."""
    present = list(object["metadata"].get("finalizers") or ())
    if finalizer in present:
        return []
    # The whole list: a JSON patch cannot append to a list that is not there, and ``guarded`` names the version.
    return [{"op": "add", "path": "/metadata/finalizers", "value": [*present, finalizer]}]


def label_steps(object: Object, label: str) -> list[Step]:
    """Return what adds a label without a value to those that were read; nothing, if it is among them."""
    present = object["metadata"].get("labels") or {}
    if label in present:
        return []
    return [{"op": "add", "path": "/metadata/labels", "value": {**present, label: ""}}]


def remove_finalizer(object: Object, finalizer: str) -> list[Step]:
    """Return a patch that takes a finalizer away, if it still stands where it was read.

    It does not name the resource version: another controller may take its own finalizer away meanwhile, and the
    ``test`` on the place is enough.
    """
    at = list(object["metadata"].get("finalizers") or ()).index(finalizer)
    place = pointer("metadata", "finalizers", at)
    return [
        {"op": "test", "path": "/metadata/uid", "value": uid_of(object)},
        {"op": "test", "path": place, "value": finalizer},
        {"op": "remove", "path": place},
    ]


def status_patch(object: Object, status: Object) -> Object:
    """Return a merge patch of fields of the status, on the version that was read."""
    return {
        "metadata": {"uid": uid_of(object), "resourceVersion": object["metadata"]["resourceVersion"]},
        "status": status,
    }
