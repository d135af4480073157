"""What files know of a machine: its objects, its number among those of its template, its host's network cards."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import CLUSTER_NAME, field, text
from tenure.integrations.kubernetes.metal3_data.offline.object_files import (
    TEMPLATE,
    FiledObjects,
    Object,
    name_of,
    refused_object,
)
from tenure.integrations.kubernetes.metal3_data.template.machine_facts import MachineFacts
from tenure.integrations.kubernetes.metal3_data.template.machine_reading import (
    host_key,
    machine_object,
    owner_named,
    read_facts,
)
from tenure.integrations.kubernetes.metal3_data.template.template_fields import HIGHEST
from tenure.integrations.kubernetes.metal3_data.template.template_model import ObjectSort
from tenure.kernel.errors import Invalid
from tenure.kernel.names import shown

KINDS = {
    ObjectSort.MACHINE: "Machine",
    ObjectSort.METAL3_MACHINE: "Metal3Machine",
    ObjectSort.HOST: "BareMetalHost",
}
OLD_NUMBER = re.compile(r"[0-9]{1,9}")
"""A number in front of its machine; longer ones nobody has."""
OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


@dataclass(frozen=True)
class MachineNames:
    """Which machine is meant; what is left out is found in the files, or is called as the Metal3Machine is."""

    metal3_machine: str
    machine: str | None = None
    host: str | None = None
    index: int | None = None

    def __post_init__(self) -> None:
        """Refuse names that no object can have, and a number beyond all."""
        options = {"machine": self.metal3_machine, "capi-machine": self.machine, "host": self.host}
        for option, name in options.items():
            if name is not None and not OBJECT_NAME.fullmatch(name):
                reason = "must be the name of an object: small letters, digits, '-' and '.'"
                raise Invalid(f"{option}: {reason}, not {shown(name)}", field=option)
        if self.index is not None and self.index > HIGHEST:
            raise Invalid(f"index: must be a number from 0 to {HIGHEST}, not {shown(self.index)}", field="index")


class FiledMachine(NamedTuple):
    """A machine, and what the files do not know of it."""

    facts: MachineFacts
    notes: tuple[str, ...]
    cluster: str = ""
    """Of which cluster the files say that it is; empty if they do not say so."""


def namespace_of(files: FiledObjects, template: str, machine: str) -> str:
    """Return the namespace of a machine: that of its template, else that of its Metal3Machine in the files."""
    if template:
        return template
    own = [each for each in files.of_kind(KINDS[ObjectSort.METAL3_MACHINE]) if name_of(each) == machine]
    names = sorted({text(each, "metadata", "namespace") for each in own} - {""})
    if len(names) > 1:
        raise Invalid(f"machine: {machine!r:.80} is in several namespaces: {', '.join(names)}", field="machine")
    return names[0] if names else "default"


def facts_of(files: FiledObjects, names: MachineNames, template: str, namespace: str) -> FiledMachine:
    """Return what the files know of a machine; they have the objects of its namespace."""
    own = files.named(KINDS[ObjectSort.METAL3_MACHINE], names.metal3_machine)
    machine = names.machine or (own and owner_named(own, "Machine")) or names.metal3_machine
    host = names.host or _host_of(files, own) or names.metal3_machine
    objects: dict[ObjectSort, Object] = {}
    notes = []
    for sort, name in zip(KINDS, (machine, names.metal3_machine, host), strict=True):
        found = files.named(KINDS[sort], name)
        objects[sort] = found or {"metadata": {"name": name}}
        if found is None and any(files.of_kind(KINDS[sort])):
            notes.append(f"the files have no {KINDS[sort]} {name!r}: nothing but its name is known")
    number = _number_of(files, names, template)
    facts = read_facts(
        namespace, number, {sort: machine_object(each) for sort, each in objects.items()}, objects[ObjectSort.HOST]
    )
    if files.named(KINDS[ObjectSort.HOST], host) is None:
        way_out = "add the file with it, or name the one that they have with --host"
        facts = replace(facts, host_unknown=f"the files have no BareMetalHost {host!r:.80}: {way_out}")
    return FiledMachine(
        facts, tuple(notes), _cluster_of(files, names, template, objects[ObjectSort.MACHINE], own or {})
    )


def _cluster_of(files: FiledObjects, names: MachineNames, template: str, machine: Object, own: Object) -> str:
    """Return the cluster that a machine's data names, as the operator asks of it; else that of the machine itself."""
    of_template = (each for each in files.of_kind("Metal3Data") if text(each, "spec", "template", "name") == template)
    datas = [each for each in of_template if _is_of(each, names.metal3_machine)]
    labels = [text(each, "metadata", "labels", CLUSTER_NAME) for each in (*datas[:1], own, machine)]
    return next((each for each in (*labels, text(machine, "spec", "clusterName")) if each), "")


def _host_of(files: FiledObjects, machine: Mapping[str, Any] | None) -> str:
    """Return the host that the machine names, or the only one in the files."""
    if machine is not None and (key := host_key(machine)) is not None:
        return key[1]
    hosts = [name_of(each) for each in files.of_kind(KINDS[ObjectSort.HOST])]
    return hosts[0] if len(hosts) == 1 else ""


def _number_of(files: FiledObjects, names: MachineNames, template: str) -> int:
    """Return the number of a machine: the one that is asked for, else the one that it has, else the lowest free.

    It is in its Metal3Data, else in the status of the template. A number that another machine has is refused: its
    claims, and so its addresses, would be that machine's.
    """
    of_template = [each for each in files.of_kind("Metal3Data") if text(each, "spec", "template", "name") == template]
    own = [each for each in of_template if _is_of(each, names.metal3_machine)]
    listed = {} if own else _listed_numbers(files.named(TEMPLATE, template) or {})
    others = {
        number: f"status.indexes: {name!r:.80}" for name, number in listed.items() if name != names.metal3_machine
    }
    others |= {_index_of(each): f"Metal3Data {name_of(each)!r}" for each in of_template if each not in own}
    number = names.index
    if number is None:
        number = _index_of(own[0]) if own else listed.get(names.metal3_machine)
    if number is None:
        return next(each for each in range(len(others) + 1) if each not in others)
    if number in others:
        raise Invalid(f"index: {number} is that of another machine, by {others[number]}", field="index")
    return number


def _listed_numbers(template: Object) -> dict[str, int]:
    """Return the numbers of machines by a template's status: a map in v1beta1, a list in v1beta2.

    The design of 2020 printed the map the other way round.
    """
    indexes = field(template, "status", "indexes")
    pairs: list[tuple[object, object]] = list(indexes.items()) if isinstance(indexes, dict) else []
    if isinstance(indexes, list):
        pairs = [(each.get("name"), each.get("index")) for each in indexes if isinstance(each, dict)]
    for place, (name, value) in enumerate(pairs):
        if isinstance(value, str) and OLD_NUMBER.fullmatch(str(name)):
            pairs[place] = value, int(str(name))
    return {str(name): number for name, number in pairs if isinstance(number, int) and 0 <= number <= HIGHEST}


def _is_of(data: Object, machine: str) -> bool:
    return machine in (owner_named(data, KINDS[ObjectSort.METAL3_MACHINE]), text(data, "spec", "claim", "name"))


def _index_of(data: Object) -> int:
    index = field(data, "spec", "index")
    if index is None:
        return 0
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index <= HIGHEST:
        raise refused_object(data, "spec.index", f"must be a whole number from 0, not {shown(index)}")
    return index
