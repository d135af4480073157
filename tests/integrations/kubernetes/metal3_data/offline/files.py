"""Objects in files, as somebody would write them down."""

import json
from pathlib import Path
from typing import Any

from tenure.integrations.kubernetes.metal3_data.offline.object_files import FiledObjects, read_objects

Object = dict[str, Any]


def filed(folder: Path, *objects: Object) -> FiledObjects:
    """Write objects into a file, and read them."""
    path = folder / "objects.json"
    path.write_text(json.dumps({"kind": "List", "items": objects}), "utf-8")
    return read_objects([path])


def an_object(kind: str, name: str, spec: Object | None = None, **metadata: Any) -> Object:
    """Return an object."""
    return {"kind": kind, "metadata": {"name": name, **metadata}, "spec": spec or {}}


def an_address(name: str, address: object, claim: str, pool: str = "p", **spec: Any) -> Object:
    """Return an address that a claim holds."""
    return an_object("IPAddress", name, {"address": address, "claim": {"name": claim}, "pool": {"name": pool}, **spec})


def a_machine_s_data(machine: str, index: object, template: str = "t", **metadata: Any) -> Object:
    """Return the data of a machine."""
    spec = {"index": index, "template": {"name": template}, "claim": {"name": machine}}
    return an_object("Metal3Data", f"{template}-of-{machine}", spec, **metadata)
