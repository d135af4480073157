"""Objects of a cluster as files have them: a template, and what is known of a machine."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tenure.integrations.kubernetes.metal3_data.template.data_yaml import read_documents
from tenure.integrations.kubernetes.metal3_data.template.machine_facts import MachineFacts
from tenure.integrations.kubernetes.metal3_data.template.machine_reading import (
    host_key,
    machine_object,
    owner_named,
    read_facts,
)
from tenure.integrations.kubernetes.metal3_data.template.template_model import ObjectSort
from tenure.kernel.errors import Invalid, NotFound

Object = dict[str, Any]
KINDS = {
    ObjectSort.MACHINE: "Machine",
    ObjectSort.METAL3_MACHINE: "Metal3Machine",
    ObjectSort.HOST: "BareMetalHost",
}


@dataclass(frozen=True)
class FiledObjects:
    """The objects of some files, in the order in which they stand there."""

    objects: tuple[Object, ...]

    def of_kind(self, kind: str) -> Iterator[Object]:
        """Yield the objects of a kind."""
        return (each for each in self.objects if each.get("kind") == kind)

    def named(self, kind: str, name: str) -> Object | None:
        """Return an object, or nothing."""
        return next((each for each in self.of_kind(kind) if name_of(each) == name), None)

    def template(self, name: str | None) -> Object:
        """Return the template of a name, or the only one."""
        found = [each for each in self.of_kind("Metal3DataTemplate") if name in (None, name_of(each))]
        if not found:
            raise NotFound("Metal3DataTemplate", name or "", of="the files", field="template")
        if len(found) > 1:
            names = ", ".join(name_of(each) for each in found)
            raise Invalid(f"template: the files have several, choose one of them: {names}", field="template")
        return found[0]


def read_objects(paths: Iterable[Path]) -> FiledObjects:
    """Read all objects of some files; lists of objects count as their members."""
    found: list[Object] = []
    for path in paths:
        try:
            documents = read_documents(path.read_text("utf-8"))
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
            raise Invalid(f"{path.name}: this is no YAML: {_reason(error)}", field="files") from None
        for document in documents:
            if not isinstance(document, Mapping):
                raise Invalid(f"{path.name}: a document is no object of Kubernetes", field="files")
            items = document.get("items") if document.get("kind") == "List" else [document]
            found += [dict(each) for each in items or () if isinstance(each, Mapping)]
    return FiledObjects(tuple(found))


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    mark = getattr(error, "problem_mark", None)
    place = f"line {mark.line + 1}: " if mark is not None else ""
    return place + str(getattr(error, "problem", None) or error).partition("\n")[0]


def name_of(object: Mapping[str, Any]) -> str:
    """Return the name of an object; empty for one that has none."""
    metadata = object.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, Mapping) else ""


@dataclass(frozen=True)
class MachineNames:
    """Which machine is meant; what is left out is found in the files, or is called as the Metal3Machine is."""

    metal3_machine: str
    machine: str | None = None
    host: str | None = None
    index: int | None = None


def facts_of(files: FiledObjects, names: MachineNames, template: str, namespace: str) -> MachineFacts:
    """Return what the files know of a machine."""
    own = files.named(KINDS[ObjectSort.METAL3_MACHINE], names.metal3_machine)
    machine = names.machine or (own and owner_named(own, "Machine")) or names.metal3_machine
    host = names.host or _host_of(files, own) or names.metal3_machine
    objects = {}
    for sort, name in zip(KINDS, (machine, names.metal3_machine, host), strict=True):
        found = files.named(KINDS[sort], name)
        objects[sort] = found or {"metadata": {"name": name}}
    index = names.index if names.index is not None else _index_of(files, names.metal3_machine, template)
    return read_facts(
        namespace, index, {sort: machine_object(each) for sort, each in objects.items()}, objects[ObjectSort.HOST]
    )


def _host_of(files: FiledObjects, machine: Object | None) -> str:
    """Return the host that the machine names, or the only one in the files."""
    if machine is not None and (key := host_key(machine)) is not None:
        return key[1]
    hosts = [name_of(each) for each in files.of_kind(KINDS[ObjectSort.HOST])]
    return hosts[0] if len(hosts) == 1 else ""


def _index_of(files: FiledObjects, machine: str, template: str) -> int:
    """Return the number that a Metal3Data in the files gives the machine; the first, if there is none."""
    for data in files.of_kind("Metal3Data"):
        spec = data.get("spec") or {}
        is_machines = owner_named(data, "Metal3Machine") == machine or (spec.get("claim") or {}).get("name") == machine
        if is_machines and (spec.get("template") or {}).get("name") == template:
            return int(spec.get("index") or 0)
    return 0
