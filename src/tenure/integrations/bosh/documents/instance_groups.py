"""Instance groups: how many instances, in which AZs, on which networks, and what else bears on their addresses."""

from typing import NamedTuple

from tenure.integrations.bosh.documents.group_networks import read_group_networks
from tenure.integrations.bosh.documents.migrated_from import Move, read_moves
from tenure.integrations.bosh.documents.reading_context import GroupContext, ReadingContext
from tenure.integrations.bosh.documents.static_ips import MOST
from tenure.integrations.bosh.documents.yaml_tree import Reader, Tree, Variables
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, DocumentPlace
from tenure.integrations.bosh.model.document_model import (
    CREATE_SWAP_DELETE,
    DELETE_CREATE,
    ERRAND,
    SERVICE,
    InstanceGroup,
)
from tenure.kernel.names import shown

LIFECYCLES = (SERVICE, ERRAND)
STRATEGIES = (DELETE_CREATE, CREATE_SWAP_DELETE)

DISKS = ("persistent_disk_type", "persistent_disk_pool")
READ = (
    *("name", "instances", "azs", "networks", "migrated_from", "lifecycle", "update"),
    *("persistent_disk", "persistent_disks", *DISKS),
)
IGNORED = (
    *("jobs", "vm_type", "vm_extensions", "vm_resources", "stemcell", "env", "properties", "tags"),
    *("state", "instance_states", "template", "templates", "release", "resource_pool", "property_mappings"),
    *("consumes", "provides"),
)
"""Keys that BOSH has, and that have no effect on addresses."""


class ManifestGroup(NamedTuple):
    """A group of the manifest, where it stands, and whose instances it takes over."""

    group: InstanceGroup
    place: DocumentPlace
    moves: tuple[Move, ...]


def read_group(tree: Tree, known: ReadingContext, strategy: str, reader: Reader) -> ManifestGroup:
    """Read one group; ``strategy`` is that of the whole deployment. What is wrong is told, and stands for nothing."""
    reader.refuse_others(tree, (*READ, *IGNORED))
    name, instances = read_name(tree, reader), _read_instances(tree, reader)
    standing = GroupContext(name, instances, _read_azs(tree, name, known, reader))
    moves = read_moves(tree, standing, reader)
    group = InstanceGroup(
        name=name,
        instances=instances or 0,
        networks=read_group_networks(tree, standing, known, reader),
        azs=standing.azs,
        migrated_from=tuple(move.source for move in moves),
        lifecycle=_read_lifecycle(tree, name, reader),
        vm_strategy=read_strategy(tree, reader) or strategy,
        persistent_disk=_has_disk(tree, name, reader),
    )
    return ManifestGroup(group, tree.place, moves)


def read_name(tree: Tree, reader: Reader) -> str:
    """Read the name of a group or deployment; where there is none, its place in the document stands for it."""
    name = reader.get(tree, "name", str, needed=True)
    if name is None:
        return tree.place.path
    place = tree.value["name"].place
    if "/" in name:  # it parts deployment, group and uuid where an instance is named
        reader.faults.add(BoshErrorKind.GENERIC, f"Invalid name '{name}', must not have a slash in it", place)
        return tree.place.path
    return tree.place.path if reader.refuse_name(tree.value["name"]) else name


def read_strategy(tree: Tree, reader: Reader) -> str | None:
    """Read how VMs are replaced, if ``update`` says so; what else it says has no effect on addresses."""
    update = reader.get(tree, "update", dict)
    said: str | None = None if update is None else reader.get(update, "vm_strategy", str)
    if said is not None and said not in STRATEGIES:
        told = f"Invalid vm_strategy '{said}', valid strategies are: {', '.join(STRATEGIES)}"
        reader.faults.add(BoshErrorKind.GENERIC, told, update.value["vm_strategy"].place)
    return said


def _read_instances(tree: Tree, reader: Reader) -> int | None:
    said: int | None = reader.get(tree, "instances", int, needed=True)
    if said is None or 0 <= said <= MOST:
        return said
    place = tree.value["instances"].place
    reader.faults.add(
        BoshErrorKind.GENERIC, f"Property '{place.path}' must be from 0 to {MOST}, not {shown(said)}", place
    )
    return None


def _read_azs(tree: Tree, name: str, known: ReadingContext, reader: Reader) -> tuple[str, ...] | None:
    """Read the group's AZs in the order written; one that is written twice counts once."""
    said = reader.get(tree, "azs", list)
    if said is None:
        # Wrong azs are (), not None: after None every network with AZs is an error as well.
        return None if tree.value.get("azs") is None or tree.value["azs"].value is None else ()
    if not said.value:
        told = f"Instance group '{name}' has empty availability zones"
        reader.faults.add(BoshErrorKind.JOB_MISSING_AVAILABILITY_ZONES, told, said.place)
    return tuple(dict.fromkeys(az.value for az in said.value if _is_known(az, name, known, reader)))


def _is_known(az: Tree, name: str, known: ReadingContext, reader: Reader) -> bool:
    if isinstance(az.value, Variables):
        reader.refuse_value(az, "must be text")
        return False
    if not isinstance(az.value, str):
        told = f"Instance group '{name}' has invalid availability zone '{shown(az.plain())}', string expected"
        reader.faults.add(BoshErrorKind.JOB_INVALID_AVAILABILITY_ZONE, told, az.place)
        return False
    if known.lacks_az(az.value):
        told = f"Instance group '{name}' references unknown availability zone '{az.value}'"
        reader.faults.add(BoshErrorKind.JOB_UNKNOWN_AVAILABILITY_ZONE, told, az.place)
        return False
    return True


def _read_lifecycle(tree: Tree, name: str, reader: Reader) -> str:
    said: str | None = reader.get(tree, "lifecycle", str)
    if said is None:
        return SERVICE
    if said not in LIFECYCLES:
        told = f"Invalid lifecycle '{said}' for '{name}', valid lifecycle profiles are: {', '.join(LIFECYCLES)}"
        reader.faults.add(BoshErrorKind.GENERIC, told, tree.value["lifecycle"].place)
    return said


def _has_disk(tree: Tree, name: str, reader: Reader) -> bool:
    """Tell whether instances have disks that outlive their VMs: these keep them in their AZs."""
    size = reader.get(tree, "persistent_disk", int) or 0
    if size < 0:
        told = f"Instance group '{name}' references an invalid persistent disk size '{shown(size)}'"
        reader.faults.add(BoshErrorKind.GENERIC, told, tree.value["persistent_disk"].place)
    # Every key is read even if the size decides, so that its type is judged.
    named = [reader.get(tree, key, str) for key in DISKS]
    listed = reader.get(tree, "persistent_disks", list)
    return size > 0 or any(named) or bool(listed is not None and listed.value)
