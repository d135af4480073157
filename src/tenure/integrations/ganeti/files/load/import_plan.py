"""The dry run of an import: what would be made, what is there already, what is odd, and what stands in its way."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tenure.integrations.ganeti.files.file_model import (
    GANETI,
    GROUPS,
    INSTANCES,
    NETWORKS,
    NODES,
    SECTIONS,
    ClusterConfiguration,
    FileRemark,
)
from tenure.integrations.ganeti.files.ledger_snapshot import read_ledger
from tenure.integrations.ganeti.files.load.address_owners import Grant, Tenants, grants_of
from tenure.integrations.ganeti.files.load.cluster_differences import ClusterDifference, differences
from tenure.integrations.ganeti.files.load.cluster_target import KINDS, ClusterTarget
from tenure.integrations.ganeti.files.load.network_changes import aligned, open_gateways
from tenure.integrations.ganeti.files.read.merge_marks import MergedConfiguration, settle
from tenure.integrations.ganeti.files.unknown_fields_papers import (
    FILE,
    HALF,
    Plain,
    kept_of,
    kept_of_file,
    plain_objects,
)
from tenure.integrations.ganeti.machine_model import (
    GROUP,
    INSTANCE,
    MAC,
    MASTER,
    NODE,
    Master,
    Node,
    owner_of,
    read_master,
    read_node,
)
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.holdings.holding_model import Paper, State
from tenure.kernel.plan.plan_model import Configuration, Network
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.service.read.own_addresses import ORPHAN

Names = dict[str, list[str]]

DIFFERS = (
    "another Ganeti file was brought in before, and the ledger differs from this one; --apply follows what the dry run "
    "shows, or follow it by the commands and run this again. Differences"
)


@dataclass(frozen=True, slots=True)
class FollowedAddresses:
    """What became of addresses when differences were followed: handed over to another owner or slot, or released."""

    handed_over: int = 0
    released: int = 0


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What an import would do, by name and section. While something is ``in_the_way`` it does nothing.

    ``done``: this very file was brought in before, wholly; nothing is left to do. ``opened``: new networks that an
    import that was broken off left half made. ``grants``: the addresses that are still to be granted, by network.
    ``nodes``: the revisions of the nodes that are there, by name. ``master``: the master's address in the
    ledger. ``again``: an earlier file was brought in; ``differences``: how the ledger differs from this one, with
    ``target``, the cluster to bring it to. ``followed``: they were (or, rehearsed, can be) followed in one step.
    ``tried``: that was rehearsed, and the conflicts say why they cannot be.
    """

    settled: MergedConfiguration
    conflicts: Sequence[str]
    new: Mapping[str, Sequence[str]]
    present: Mapping[str, Sequence[str]]
    papers: Mapping[str, Paper]
    done: bool = False
    opened: frozenset[str] = frozenset()
    grants: Mapping[str, Sequence[Grant]] = field(default_factory=dict)
    nodes: Mapping[str, int] = field(default_factory=dict)
    master: Master = field(default_factory=Master)
    differences: Sequence[ClusterDifference] = ()
    again: bool = False
    target: ClusterTarget | None = None
    followed: FollowedAddresses | None = None
    tried: bool = False

    @property
    def in_the_way(self) -> list[str]:
        """List what keeps an import from being made: conflicts, and differences that are still to be followed."""
        waits = self.differences and self.followed is None and not self.tried
        return [*([f"{DIFFERS}: {len(self.differences)}"] if waits else []), *self.conflicts]

    @property
    def findings(self) -> Sequence[FileRemark]:
        """List what is odd about the file; none of it keeps it from being brought in."""
        return self.settled.findings

    @property
    def counts(self) -> dict[str, int]:
        """Count what would be made: objects, addresses of NICs, and holdings of addresses that no NIC has."""
        coming = [grant for grants in self.grants.values() for grant in grants]
        orphans = sum(grant.owner == ORPHAN for grant in coming)
        objects = {section: len(self.new[section]) for section in SECTIONS}
        return {**objects, "addresses": len(coming) - orphans, "orphans": orphans}


class _Standing:
    """The names and uuids that the ledger has, and its plan."""

    def __init__(
        self, uuids: Mapping[str, Mapping[str, str]], spaces: Sequence[Configuration], nodes: Sequence[Node]
    ) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.spaces = spaces
        self._uuids = uuids
        self._names = {section: {uuid: name for name, uuid in known.items()} for section, known in uuids.items()}
        self._spaces = {space.name for space in spaces}
        self._space_of = {name: space for space in spaces for name in space.networks}

    @classmethod
    async def read(cls, ledger: AsyncLedger) -> "_Standing":
        """Read them."""
        spaces = await ledger.spaces()
        uuids = {NETWORKS: {network.name: network.uuid for space in spaces for network in space.networks.values()}}
        for section, kind in ((GROUPS, GROUP), (NODES, NODE), (INSTANCES, INSTANCE)):
            uuids[section] = {paper.name: paper.document["uuid"] for paper in await ledger.papers(kind)}
        return cls(uuids, spaces, [read_node(paper) for paper in await ledger.papers(NODE)])

    def has(self, plain: Plain) -> bool:
        """Return whether the ledger has this object, by name and uuid."""
        return self._uuids[plain.section].get(plain.name) == plain.uuid

    def space_of(self, network: str) -> Configuration:
        """Return the space that a network of the ledger lies in."""
        return self._space_of[network]

    def conflicts(self, plain: Plain) -> Iterator[str]:
        """Yield what of the ledger is in the way of an object."""
        kind = KINDS[plain.section]
        if plain.name in self._uuids[plain.section]:
            yield f"{kind} {plain.name!r} exists already"
        elif plain.uuid in self._names[plain.section]:
            other = self._names[plain.section][plain.uuid]
            yield f"{kind} {plain.name!r} has the uuid of {kind} {other!r}, {plain.uuid}"
        elif plain.section == NETWORKS and plain.name in self._spaces:
            yield _needs_space(plain.name)

    def name_conflicts(self, target: ClusterTarget) -> Iterator[str]:
        """Say which names of networks are taken: by a space, or by a network that gets another name itself.

        A new network may take the space of one that goes. A renamed one may not: the ledger gives a name to one network
        at a time.
        """
        known = target.snapshot.networks
        left = {
            space.name: [each for each in space.networks.values() if not target.goes(NETWORKS, each.uuid)]
            for space in self.spaces
        }
        names = {name for space in self.spaces for name in (space.name, *space.networks)}
        for network in target.file.networks:
            old = known.get(network.uuid)
            if old is None and left.get(network.name):
                yield _needs_space(network.name)
            elif old is not None and old.name != network.name and network.name in names:
                problem = f"network {old.name!r} is called {network.name!r} in the file, and that name is still in use"
                yield f"{problem}; `tenure network rename` frees it"


def _needs_space(network: str) -> str:
    return f"space {network!r} exists already, and network {network!r} needs one of its own"


async def plan_import(cluster: ClusterConfiguration, ledger: AsyncLedger) -> ImportPlan:
    """Try an import and write nothing.

    Cost: one reading of the ledger's papers and plan; of an import that was broken off, of its holdings too.
    """
    settled = settle(cluster)
    # What another import of the file makes meanwhile is known by the papers that it writes with it: they come last.
    macs = {paper.name: paper.document["instance"] for paper in await ledger.papers(MAC)}
    standing = await _Standing.read(ledger)
    papers = {paper.name: paper for paper in await ledger.papers(GANETI)}
    known = papers.get(FILE)
    same = known is None or known.document["digest"] == kept_of_file(cluster, done=True)["digest"]
    if known is not None and not same and not known.document["done"]:
        problem = "another Ganeti file was brought in before, though not wholly; go on with that one"
        return ImportPlan(settled, [problem], _nothing(), _nothing(), papers)
    if known is not None and same and known.document["done"]:
        present = _nothing()
        for plain in plain_objects(settled.cluster):
            present[plain.section].append(plain.name)
        return ImportPlan(settled, [], _nothing(), present, papers, done=True)
    plan = _plan_objects(settled, papers, standing) if same else await _plan_again(settled, papers, standing, ledger)
    master = read_master(await ledger.papers(MASTER))
    plan = replace(plan, nodes={name: node.revision for name, node in standing.nodes.items()}, master=master)
    if not plan.again:
        first = [
            *_master_conflicts(master, settled.cluster),
            *_group_conflicts(standing.nodes, settled.cluster, plan.present[NODES]),
            *_mac_conflicts(macs, settled.cluster, plan.new[INSTANCES]),
        ]
        plan = replace(plan, conflicts=[*plan.conflicts, *first])
    # Who holds the addresses of new instances can be told only when the networks are those of the file.
    return plan if plan.differences else await _with_grants(plan, standing, ledger)


async def _plan_again(
    settled: MergedConfiguration, papers: Mapping[str, Paper], standing: _Standing, ledger: AsyncLedger
) -> ImportPlan:
    """Compare a later file of the cluster with the ledger: what is new is made, other differences are in the way."""
    snapshot = await read_ledger(ledger)
    known = snapshot.networks
    networks = (aligned(each, known[each.uuid]) if each.uuid in known else each for each in settled.cluster.networks)
    settled = replace(settled, cluster=replace(settled.cluster, networks=tuple(networks)))
    settled = replace(settled, findings=[*settled.findings, *await _held_gateways(settled, known, standing, ledger)])
    target = ClusterTarget(settled.cluster, snapshot)
    half = frozenset(plain.name for plain in plain_objects(settled.cluster) if _is_half_made(plain, papers))
    there = {(each.section, each.uuid) for each in plain_objects(snapshot.cluster) if each.name not in half}
    new, present = _nothing(), _nothing()
    for plain in plain_objects(settled.cluster):
        (present if (plain.section, plain.uuid) in there else new)[plain.section].append(plain.name)
    conflicts = [*target.problems, *standing.name_conflicts(target)]
    found = differences(target, half)
    return ImportPlan(
        settled, conflicts, new, present, papers, opened=half, differences=found, again=True, target=target
    )


async def _held_gateways(
    settled: MergedConfiguration, known: Mapping[str, Network], standing: _Standing, ledger: AsyncLedger
) -> list[FileRemark]:
    """Name who holds a new gateway that the file does not mark. Costs the holdings of the networks that have one."""
    found: list[FileRemark] = []
    for wanted in settled.cluster.networks:
        network = known.get(wanted.uuid)
        gateways = [] if network is None else open_gateways(network, wanted)
        if network is None or not gateways:
            continue
        tenants = await Tenants.read(ledger, standing.space_of(network.name), network.name)
        place = f"{NETWORKS}[{settled.cluster.keys[NETWORKS, wanted.uuid]}]"
        for gateway in gateways:
            holding = tenants.holder_at(gateway)
            if holding is not None and holding.state is not State.COOLING:
                what = f"{format_address(gateway)} becomes the gateway of network {wanted.name}"
                text = f"{what}, is not marked as external, and is held by {holding.owner}"
                found.append(FileRemark(place, text))
    return found


def _nothing() -> Names:
    return {section: [] for section in SECTIONS}


def _plan_objects(settled: MergedConfiguration, papers: Mapping[str, Paper], standing: _Standing) -> ImportPlan:
    """Decide what is new and what is there of a file that was not yet brought in wholly."""
    new, present, opened = _nothing(), _nothing(), set[str]()
    conflicts: list[str] = []
    for plain in plain_objects(settled.cluster):
        there = standing.has(plain)
        if there and _is_ours(settled.cluster, plain, papers):
            present[plain.section].append(plain.name)
            continue
        new[plain.section].append(plain.name)
        # An object that is there without a paper of this file was made by other means, and is in the way.
        if there and _is_half_made(plain, papers):
            opened.add(plain.name)
        else:
            conflicts.extend(standing.conflicts(plain))
    return ImportPlan(settled, conflicts, new, present, papers, opened=frozenset(opened))


async def _with_grants(plan: ImportPlan, standing: _Standing, ledger: AsyncLedger) -> ImportPlan:
    """Add which addresses are still to be granted, and who has them."""
    wanted, conflicts = _wanted(plan.settled, plan.new), [*plan.conflicts]
    # A network that is still to be made has no tenants to look at.
    for name in sorted(set(wanted) - (set(plan.new[NETWORKS]) - plan.opened)):
        tenants = await Tenants.read(ledger, standing.space_of(name), name)
        conflicts.extend(tenants.conflicts(wanted[name]))
        wanted[name] = [grant for grant in wanted[name] if not tenants.has(grant)]
    return replace(plan, conflicts=conflicts, grants=wanted)


def _is_ours(cluster: ClusterConfiguration, plain: Plain, papers: Mapping[str, Paper]) -> bool:
    """Return whether an object was brought in from this file, by the paper that was written with it."""
    known = papers.get(plain.paper)
    return known is not None and known.document == kept_of(cluster, plain)


def _is_half_made(plain: Plain, papers: Mapping[str, Paper]) -> bool:
    known = papers.get(plain.paper)
    return known is not None and known.document == HALF


def _wanted(settled: MergedConfiguration, new: Mapping[str, Sequence[str]]) -> dict[str, list[Grant]]:
    """List the addresses that are to be granted, by network: all of a new one, of others those of new instances."""
    networks, owners = set(new[NETWORKS]), {owner_of(name) for name in new[INSTANCES]}
    found = grants_of(settled)
    wanted = {
        network.name: [grant for grant in found[network.uuid] if network.name in networks or grant.owner in owners]
        for network in settled.cluster.networks
    }
    return {name: grants for name, grants in wanted.items() if grants}


def _group_conflicts(known: Mapping[str, Node], cluster: ClusterConfiguration, present: Sequence[str]) -> list[str]:
    """List the nodes that came from this file and are in another group by now: their instances would be, too."""
    wanted = set(present)
    return [
        f"node {node.name!r} is in group {known[node.name].group!r}, not in {node.group!r}"
        for node in cluster.nodes
        if node.name in wanted and known[node.name].group != node.group
    ]


def _master_conflicts(known: Master, cluster: ClusterConfiguration) -> list[str]:
    """Say so if the ledger has another address of the master than the file."""
    if known.ip is None or cluster.master_ip in (None, known.ip):
        return []
    return [f"the master answers at {known.ip}, not at {cluster.master_ip}"]


def _mac_conflicts(taken: Mapping[str, str], cluster: ClusterConfiguration, new: Sequence[str]) -> list[str]:
    """List the MACs of new instances that instances of the ledger have."""
    wanted = set(new)
    return [
        f"MAC {nic.mac} of instance {instance.name!r} is that of instance {taken[nic.mac]!r}"
        for instance in cluster.instances
        if instance.name in wanted
        for nic in instance.nics
        if nic.mac in taken
    ]
