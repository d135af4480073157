"""Availability zones: the list of a cloud config."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tenure.integrations.bosh.documents.yaml_tree import Reader, Tree
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind
from tenure.integrations.bosh.model.document_model import Az

KEYS = ("name", "cloud_properties", "cpi")


@dataclass(slots=True)
class Azs:
    """The AZs of a site. When not all of them could be read, ``complete`` is false: then none is unknown for sure."""

    by_name: dict[str, Az] = field(default_factory=dict)
    complete: bool = True

    def lacks(self, name: str) -> bool:
        """Tell whether no AZ has this name."""
        return self.complete and name not in self.by_name


def read_azs(trees: Sequence[Tree], reader: Reader) -> Azs:
    """Read the AZs of all documents, in the order written."""
    azs = Azs()
    for tree in trees:
        found = list(reader.each(tree, "azs"))
        # A member of a wrong type is skipped, and its name may be the one that a subnet refers to.
        azs.complete &= len(found) == _written(tree)
        for member in found:
            _read_az(member, reader, azs)
    return azs


def _read_az(tree: Tree, reader: Reader, azs: Azs) -> None:
    reader.refuse_others(tree, KEYS)
    name = reader.get(tree, "name", str, needed=True)
    properties = reader.properties(tree, "cloud_properties")
    cpi = reader.get(tree, "cpi", str)
    if name is None or reader.refuse_name(tree.value["name"]):
        azs.complete = False
    elif name in azs.by_name:
        place = tree.value["name"].place
        reader.faults.add(
            BoshErrorKind.DEPLOYMENT_DUPLICATE_AVAILABILITY_ZONE_NAME, f"Duplicate az name '{name}'", place
        )
    else:
        azs.by_name[name] = Az(name, properties, cpi)


def _written(tree: Tree) -> int:
    """Count what stands under ``azs``, readable or not."""
    if "azs" not in tree or tree.value["azs"].value is None:
        return 0
    members = tree.value["azs"].value
    return len(members) if isinstance(members, list) else 1
