"""The in-memory mode: a manifest that brings its own networks, as manifests did before there were cloud configs."""

import re
from collections.abc import Iterable, Iterator, Sequence

from tenure.integrations.bosh.documents.cloud_config import read_site
from tenure.integrations.bosh.documents.reading_context import ReadingContext
from tenure.integrations.bosh.documents.yaml_tree import DocumentFaults, Tree
from tenure.integrations.bosh.model.bosh_errors import BoshFault

KEYS = ("azs", "networks", "compilation", "own_addresses")

_ENTRY = re.compile(r"(?:networks|azs)\[\d+\]")


def read_own(tree: Tree, faults: DocumentFaults) -> ReadingContext:
    """Read the manifest's own AZs, networks and compilation, and note which of them groups cannot be held against."""
    # A list of its own: its errors decide which networks the groups are not judged by.
    mine = DocumentFaults()
    config, _ = read_site([tree], mine)
    faults.found.extend(mine.found)
    wrong = frozenset(_wrong_entries(mine.found))
    networks, azs = list(_entries(tree, "networks")), list(_entries(tree, "azs"))
    names = [name for name, _ in (*networks, *azs)]
    return ReadingContext(
        config,
        spoilt=_named(networks, wrong),
        spoilt_azs=_named(azs, wrong),
        # A manifest without networks has that error already, so its groups refer to no unknown network besides.
        complete=bool(networks) and None not in names,
    )


def _named(entries: Iterable[tuple[str | None, str]], wrong: frozenset[str]) -> frozenset[str]:
    """Name the entries that something is wrong with."""
    return frozenset(name for name, path in entries if name is not None and path in wrong)


def _entries(tree: Tree, key: str) -> Iterator[tuple[str | None, str]]:
    """Give the name and the path of what a list describes; where it is no list, something without a name."""
    said = tree.value.get(key)
    if said is None or said.value is None:
        return
    for entry in said.value if isinstance(said.value, list) else [said]:
        name = entry.value["name"].value if "name" in entry else None
        yield name if isinstance(name, str) else None, entry.place.path


def _wrong_entries(faults: Sequence[BoshFault]) -> Iterator[str]:
    for fault in faults:
        found = None if fault.place is None else _ENTRY.match(fault.place.path)
        if found is not None:
            yield found[0]
