"""Groups that take over another's instances: the other is gone from the manifest, and only one takes them over."""

from collections.abc import Iterable
from typing import NamedTuple

from tenure.integrations.bosh.documents.reading_context import GroupContext
from tenure.integrations.bosh.documents.yaml_tree import DocumentFaults, Reader, Tree
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, DocumentPlace
from tenure.integrations.bosh.model.document_model import MigratedFrom

KEYS = ("name", "az")


class Move(NamedTuple):
    """A group's instances become another's."""

    source: MigratedFrom
    target: str
    place: DocumentPlace


def read_moves(tree: Tree, group: GroupContext, reader: Reader) -> tuple[Move, ...]:
    """Read which groups become this one."""
    moves = []
    for entry in reader.each(tree, "migrated_from"):
        reader.refuse_others(entry, KEYS)
        name, az = reader.get(entry, "name", str, needed=True), reader.get(entry, "az", str)
        if name is None:
            continue
        # Where none of the group's AZs is right, nothing can be missing among them.
        if az is not None and group.azs != () and az not in (group.azs or ()):
            told = f"availability zone '{az}' is not in the list of availability zones of instance group '{group.name}'"
            _refuse(name, group.name, f", {told}", entry.value["az"].place, reader.faults)
        moves.append(Move(MigratedFrom(name, az), group.name, entry.place))
    return tuple(moves)


def judge_moves(moves: Iterable[Move], groups: Iterable[str], faults: DocumentFaults) -> None:
    """Refuse to take over a group that is still there, and to split one between two."""
    present, taken = frozenset(groups), dict[str, str]()
    for move, target, place in moves:
        source = move.name
        if source in present and source != target:
            told = "A deployment can not migrate an instance group and also specify it."
            _refuse(source, target, f". {told} Please remove instance group '{source}'.", place, faults)
        if taken.setdefault(source, target) != target:
            _refuse(source, target, ". An instance group may be migrated to only one instance group.", place, faults)


def _refuse(source: str, target: str, why: str, place: DocumentPlace, faults: DocumentFaults) -> None:
    told = f"Failed to migrate instance group '{source}' to '{target}'{why}"
    faults.add(BoshErrorKind.DEPLOYMENT_INVALID_MIGRATED_FROM_JOB, told, place)
