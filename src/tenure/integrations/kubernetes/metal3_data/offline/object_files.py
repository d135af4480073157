"""Objects of a cluster as files have them: read once, with the shape that an API server would have insisted on."""

import copy
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tenure.integrations.kubernetes.metal3.admission.seed_spellings import SEED_SPELLINGS, Treatment, respell
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import field, mapping, text
from tenure.integrations.kubernetes.metal3_data.template.data_yaml import read_documents
from tenure.kernel.errors import Invalid, NotFound
from tenure.kernel.names import shown

Object = dict[str, Any]

STANDARD_INPUT = "standard input"
TEMPLATE = "Metal3DataTemplate"
GROUPS: dict[str, tuple[str, ...]] = {
    "Machine": ("cluster.x-k8s.io",),
    "Metal3Machine": ("infrastructure.cluster.x-k8s.io",),
    "Metal3Data": ("infrastructure.cluster.x-k8s.io",),
    "BareMetalHost": ("metal3.io",),
    "IPPool": ("ipam.metal3.io",),
    "IPAddress": ("ipam.metal3.io", "ipam.cluster.x-k8s.io"),
}
"""The kinds that are read, and whose they are: others have kinds of these names, too. Templates say it themselves."""
MAPS = ("metadata", "metadata.labels", "metadata.annotations", "spec", "status")
MORE_MAPS = {
    "Metal3Data": ("spec.template", "spec.claim"),
    "BareMetalHost": ("status.hardware",),
    "IPAddress": ("spec.pool", "spec.claim", "spec.poolRef", "spec.claimRef"),
}
LISTS = ("metadata.ownerReferences",)
"""Fields that have a list of maps."""
MORE_LISTS = {"BareMetalHost": ("status.hardware.nics",)}


@dataclass(frozen=True)
class FiledObjects:
    """The objects of some files, in the order in which they stand there."""

    objects: tuple[Object, ...]
    notes: tuple[str, ...] = ()
    """Which old spellings were translated."""

    def of_kind(self, kind: str) -> Iterator[Object]:
        """Yield the objects of a kind."""
        return (each for each in self.objects if each.get("kind") == kind)

    def named(self, kind: str, name: str) -> Object | None:
        """Return an object, or nothing."""
        return next((each for each in self.of_kind(kind) if name_of(each) == name), None)

    def template(self, name: str | None) -> Object:
        """Return the template of a name, or the only one."""
        found = [each for each in self.of_kind(TEMPLATE) if name in (None, name_of(each))]
        if not found:
            raise NotFound(TEMPLATE, name or "", of="the files", field="template")
        if len(found) > 1:
            names = ", ".join(name_of(each) for each in found)
            raise Invalid(f"template: the files have several, choose one of them: {names}", field="template")
        return found[0]

    def within(self, namespace: str) -> "FiledObjects":
        """Return the objects of a namespace; one that names none is in all. An object must not be there twice."""
        found = [each for each in self.objects if text(each, "metadata", "namespace") in ("", namespace)]
        counts = Counter((_group_of(each), str(each.get("kind")), name_of(each)) for each in found)
        for (_, kind, name), count in counts.items():
            if kind != TEMPLATE and count > 1:
                raise Invalid(f"files: {kind} {name!r:.80} is there {count} times; leave one", field="files")
        return FiledObjects(tuple(found), self.notes)


def read_objects(paths: Iterable[Path]) -> FiledObjects:
    """Read all objects of some files, ``-`` for standard input; lists of objects count as their members."""
    found: list[Object] = []
    notes: list[str] = []
    for path in paths:
        name = STANDARD_INPUT if str(path) == "-" else path.name
        for object in _objects_in(path, name):
            if object.get("kind") == TEMPLATE:
                found.append(object)
            elif _is_read(object):
                _check_shape(name, object)
                found.append(_respelled(name, object, notes))
    return FiledObjects(tuple(found), tuple(notes))


def _objects_in(path: Path, file: str) -> Iterator[Object]:
    try:
        written = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        documents = read_documents(written.decode("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"{file}: this is no YAML: {_reason(error)}", field="files") from None
    for document in documents:
        for object in _members(document):
            if not isinstance(object, Mapping):
                raise Invalid(f"{file}: {shown(object)} is no object of Kubernetes", field="files")
            yield dict(object)


def _members(document: object) -> Iterator[object]:
    """Yield the objects of a list, as ``kubectl`` and API servers write it; else the document itself."""
    kind = str(document.get("kind")) if isinstance(document, Mapping) else ""
    if not (kind.endswith("List") and isinstance(document, Mapping) and isinstance(document.get("items"), list)):
        yield document
        return
    # The server leaves out of each member what the list says for all.
    head = {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")} if kind != "List" else {}
    for member in document["items"]:
        yield {**head, **member} if isinstance(member, Mapping) else member


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


def refused_object(object: Mapping[str, Any], path: str, reason: str, file: str = "") -> Invalid:
    """Return the error that names an object, a field of it and what is wrong there."""
    place = f"{file}: " if file else ""
    return Invalid(f"{place}{object.get('kind')} {name_of(object)!r:.80}: {path}: {reason}", field=path)


def _group_of(object: Object) -> str:
    group, slash, _ = str(object.get("apiVersion") or "").partition("/")
    return group if slash else ""


def _is_read(object: Object) -> bool:
    """Return whether an object is of a kind that is looked at; a file may leave its group out."""
    groups = GROUPS.get(str(object.get("kind")), ())
    return bool(groups) and _group_of(object) in ("", *groups)


def _check_shape(file: str, object: Object) -> None:
    kind = str(object["kind"])
    for path in (*MAPS, *MORE_MAPS.get(kind, ())):
        value = field(object, *path.split("."))
        if value is not None and not isinstance(value, dict):
            raise refused_object(object, path, f"must be a map, not {shown(value)}", file)
    for path in (*LISTS, *MORE_LISTS.get(kind, ())):
        value = field(object, *path.split("."))
        if value is not None and not (isinstance(value, list) and all(isinstance(each, dict) for each in value)):
            raise refused_object(object, path, f"must be a list of maps, not {shown(value)}", file)
    for path in ("metadata.name", "metadata.namespace"):
        value = field(object, *path.split("."))
        if not isinstance(value, str) and (value is not None or path == "metadata.name"):
            raise refused_object(object, path, f"must be text, not {shown(value)}", file)


def _respelled(file: str, object: Object, notes: list[str]) -> Object:
    """Return an object in today's names, where it has those of the design (KD2)."""
    kind = str(object["kind"])
    if faults := respell(kind, object).faults:
        raise refused_object(object, faults[0].field, faults[0].reason, file)
    for spelling in SEED_SPELLINGS:
        *parents, name = spelling.old.split(".")
        is_old = spelling.kind == kind and spelling.treatment is Treatment.TRANSLATED
        if not is_old or name not in mapping(object, *parents):
            continue
        object = copy.deepcopy(object)
        today = str(spelling.today).split(".")[-1]
        fields = mapping(object, *parents)
        value = fields.pop(name)
        fields[today] = fields.get(today) or value
        notes.append(f"{kind} {name_of(object)}: {spelling.old} is read as {spelling.today}")
    return object
