"""Manifests: one deployment as its author wants it. It refers to the networks of a cloud config, or brings its own."""

from collections.abc import Iterator, Sequence

from tenure.integrations.bosh.documents.cloud_networks import canonical
from tenure.integrations.bosh.documents.instance_groups import ManifestGroup, read_group, read_name, read_strategy
from tenure.integrations.bosh.documents.manifest_networks import KEYS as OWN_KEYS
from tenure.integrations.bosh.documents.manifest_networks import read_own
from tenure.integrations.bosh.documents.migrated_from import judge_moves
from tenure.integrations.bosh.documents.reading_context import ReadingContext
from tenure.integrations.bosh.documents.yaml_tree import DocumentFaults, Reader, Tree, read_tree
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind
from tenure.integrations.bosh.model.document_model import DELETE_CREATE, CloudConfig, Manifest

READ = ("name", "update", "instance_groups")
IGNORED = (
    *("releases", "release", "stemcells", "addons", "properties", "variables", "features", "tags", "director_uuid"),
    *("manifest_version", "vm_types", "vm_extensions", "disk_types", "disk_pools", "resource_pools", "meta"),
)
"""Keys that BOSH has or lets pass, and that have no effect on addresses."""


def read_manifest(document: str, text: str, config: CloudConfig | None) -> Manifest:
    """Read a manifest against the cloud config of the site; with None it brings its own networks.

    ``Rejected`` carries everything that is wrong.
    """
    tree, faults = read_tree(text, document), DocumentFaults()
    reader = Reader(faults)
    # Keys of the other mode count as known here: _refuse_own and _groups report them in BOSH's own words.
    reader.refuse_others(tree, (*READ, *OWN_KEYS, "jobs", *IGNORED))
    if config is None:
        known = read_own(tree, faults)
    else:
        known = ReadingContext(config)
        _refuse_own(tree, faults)
    name, strategy = read_name(tree, reader), read_strategy(tree, reader) or DELETE_CREATE
    entries = [read_group(each, known, strategy, reader) for each in _groups(tree, reader, own=config is None)]
    _refuse_same_names(entries, faults)
    judge_moves((move for entry in entries for move in entry.moves), (each.group.name for each in entries), faults)
    faults.settle()
    return Manifest(name, tuple(entry.group for entry in entries), known.config if config is None else None)


def _refuse_own(tree: Tree, faults: DocumentFaults) -> None:
    """Refuse what only the cloud config of a site may say."""
    if "networks" in tree:
        told = (
            "Deployment 'networks' are no longer supported. Network definitions must now be provided in a cloud-config."
        )
        faults.add(BoshErrorKind.V1_DEPRECATED_NETWORKS, told, tree.value["networks"].place)
    for key in ("azs", "compilation", "own_addresses"):
        if key in tree:
            told = f"Deployment manifest contains '{key}' section, but this can only be set in a cloud-config."
            faults.add(BoshErrorKind.GENERIC, told, tree.value[key].place)


def _groups(tree: Tree, reader: Reader, *, own: bool) -> Iterator[Tree]:
    """Give the groups. A manifest with networks of its own may call them by their old name."""
    old = tree.value.get("jobs")
    if old is None:
        return reader.each(tree, "instance_groups", needed=True)
    if own and "instance_groups" not in tree:
        return reader.each(tree, "jobs", needed=True)
    told = "Jobs are no longer supported, please use instance groups instead"
    if own:
        told = "Deployment specifies both jobs and instance_groups keys, only one is allowed"
    reader.faults.add(BoshErrorKind.GENERIC, told, old.place)
    # Without needed: the error above is enough, and missing instance_groups are no error besides.
    return reader.each(tree, "instance_groups")


def _refuse_same_names(entries: Sequence[ManifestGroup], faults: DocumentFaults) -> None:
    """Refuse two groups that would be one in DNS."""
    taken: set[str] = set()
    for group, place, _ in entries:
        if canonical(group.name) in taken:
            told = f"Invalid instance group name '{group.name}', canonical name already taken"
            faults.add(BoshErrorKind.GENERIC, told, place)
        taken.add(canonical(group.name))
