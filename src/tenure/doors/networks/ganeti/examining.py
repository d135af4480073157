"""The dry run of an import: what would be made, what is there already, what is odd, and what stands in its way."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tenure.doors.networks.ganeti.papers import FILE, Plain, kept_of, kept_of_file, plain_objects
from tenure.doors.networks.ganeti.settling import Settled, settle
from tenure.doors.networks.ganeti.values import (
    GANETI,
    GROUPS,
    INSTANCES,
    NETWORKS,
    NODES,
    SECTIONS,
    Cluster,
    Remark,
)
from tenure.doors.networks.model import GROUP, INSTANCE, MAC, NODE
from tenure.kernel.values import Paper
from tenure.service.ledger import AsyncLedger

KINDS = {GROUPS: GROUP, NODES: NODE, NETWORKS: "network", INSTANCES: INSTANCE}
"""What one object of a section is called."""


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What an import would do, by name and section. While there are conflicts it does nothing.

    ``done``: this very file was brought in before, wholly; nothing is left to do.
    """

    settled: Settled
    conflicts: Sequence[str]
    new: Mapping[str, Sequence[str]]
    present: Mapping[str, Sequence[str]]
    papers: Mapping[str, Paper]
    done: bool = False

    @property
    def findings(self) -> Sequence[Remark]:
        """List what is odd about the file; none of it keeps it from being brought in."""
        return self.settled.findings

    @property
    def counts(self) -> dict[str, int]:
        """Count what would be made: objects, addresses of NICs, and holdings of addresses that no NIC has."""
        wanted = set(self.new[INSTANCES])
        coming = [instance for instance in self.settled.cluster.instances if instance.name in wanted]
        nics = [nic for instance in coming for nic in instance.nics if nic.network is not None]
        pieces = [] if self.done else [piece for pieces in self.settled.orphans.values() for piece in pieces]
        objects = {section: len(self.new[section]) for section in SECTIONS}
        addresses = sum(len(nic.addresses) for nic in nics)
        return {**objects, "addresses": addresses, "orphans": sum(piece.size for piece in pieces)}


async def plan_import(cluster: Cluster, ledger: AsyncLedger) -> ImportPlan:
    """Try an import and write nothing. Cost: one reading of the ledger's papers and plan."""
    settled = settle(cluster)
    papers = {paper.name: paper for paper in await ledger.papers(GANETI)}
    known = papers.get(FILE)
    new: dict[str, list[str]] = {section: [] for section in SECTIONS}
    present: dict[str, list[str]] = {section: [] for section in SECTIONS}
    if known is not None and known.document["digest"] != kept_of_file(cluster, done=True)["digest"]:
        half = "" if known.document["done"] else ", though not wholly; go on with that one"
        return ImportPlan(settled, [f"another Ganeti file was brought in before{half}"], new, present, papers)
    done = known is not None and bool(known.document["done"])
    conflicts: list[str] = []
    standing = await Standing.read(ledger)
    for plain in plain_objects(settled.cluster):
        if done or (standing.has(plain) and _is_ours(settled.cluster, plain, papers)):
            present[plain.section].append(plain.name)
        else:
            new[plain.section].append(plain.name)
            conflicts.extend(standing.conflicts(plain))
    conflicts.extend(await _mac_conflicts(ledger, settled.cluster, new[INSTANCES]))
    return ImportPlan(settled, conflicts, new, present, papers, done)


def _is_ours(cluster: Cluster, plain: Plain, papers: Mapping[str, Paper]) -> bool:
    """Tell whether an object was brought in from this file, by the paper that was written with it."""
    known = papers.get(plain.paper)
    return known is not None and known.document == kept_of(cluster, plain)


class Standing:
    """The names and uuids that the ledger has."""

    def __init__(self, uuids: Mapping[str, Mapping[str, str]], spaces: Iterable[str]) -> None:
        self._uuids = uuids
        self._names = {section: {uuid: name for name, uuid in known.items()} for section, known in uuids.items()}
        self._spaces = frozenset(spaces)

    @classmethod
    async def read(cls, ledger: AsyncLedger) -> "Standing":
        """Read them."""
        spaces = await ledger.spaces()
        uuids = {NETWORKS: {network.name: network.uuid for space in spaces for network in space.networks.values()}}
        for section, kind in ((GROUPS, GROUP), (NODES, NODE), (INSTANCES, INSTANCE)):
            uuids[section] = {paper.name: paper.document["uuid"] for paper in await ledger.papers(kind)}
        return cls(uuids, (space.name for space in spaces))

    def has(self, plain: Plain) -> bool:
        """Tell whether the ledger has this object, by name and uuid."""
        return self._uuids[plain.section].get(plain.name) == plain.uuid

    def conflicts(self, plain: Plain) -> Iterator[str]:
        """Tell what of the ledger is in the way of an object."""
        kind = KINDS[plain.section]
        if plain.name in self._uuids[plain.section]:
            yield f"{kind} {plain.name!r} exists already"
        elif plain.uuid in self._names[plain.section]:
            other = self._names[plain.section][plain.uuid]
            yield f"{kind} {plain.name!r} has the uuid of {kind} {other!r}, {plain.uuid}"
        elif plain.section == NETWORKS and plain.name in self._spaces:
            yield f"space {plain.name!r} exists already, and network {plain.name!r} needs one of its own"


async def _mac_conflicts(ledger: AsyncLedger, cluster: Cluster, new: Sequence[str]) -> list[str]:
    """Tell which MACs of new instances the ledger's own have."""
    wanted, taken = set(new), {paper.name: paper.document for paper in await ledger.papers(MAC)}
    return [
        f"MAC {nic.mac} of instance {instance.name!r} is that of instance {taken[nic.mac]['instance']!r}"
        for instance in cluster.instances
        if instance.name in wanted
        for nic in instance.nics
        if nic.mac in taken
    ]
