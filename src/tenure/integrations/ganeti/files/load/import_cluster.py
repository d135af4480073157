"""Moving in: a configuration made in a ledger, in steps that may be repeated.

Each step is one ``apply``. An object and its paper are written in the same one, so an import that was killed is run
again with the same file: what has its paper is skipped, the rest is written. The addresses of all instances come with
their networks, before the instances, so that nobody else is given one in between.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from tenure.integrations.ganeti.cluster import structure
from tenure.integrations.ganeti.files.file_model import GANETI, GROUPS, INSTANCES, NETWORKS, NODES, Json, NetworkFile
from tenure.integrations.ganeti.files.load.import_network import NetworkSteps, Step
from tenure.integrations.ganeti.files.load.import_operations import (
    group_operations,
    instance_operations,
    network_connections,
    node_operations,
)
from tenure.integrations.ganeti.files.load.import_plan import ImportPlan, plan_import
from tenure.integrations.ganeti.files.unknown_fields_papers import FILE, Plain, kept_of, kept_of_file, plain_objects
from tenure.integrations.ganeti.machine_model import IDENTITY, NODE, master_paper
from tenure.integrations.ganeti.network_lookup import Outrun, settled
from tenure.kernel.errors import AlreadyExists, Conflict, NotFound
from tenure.kernel.holdings.holding_model import Paper
from tenure.service.apply.operations import ExpectPaper, Operation, RemovePaper, WritePaper
from tenure.service.ledger.async_ledger import AsyncLedger

__all__ = ["ImportPlan", "plan_import", "run_import"]

CHUNK = 100
"""Instances or nodes a step."""

T = TypeVar("T")
Progress = Callable[[int, int], object]


async def run_import(ledger: AsyncLedger, plan: ImportPlan, progress: Progress | None = None) -> None:
    """Make what a plan calls new. Conflict, and nothing is changed, while something stands in the way."""
    if plan.in_the_way:
        raise first_conflict("nothing was written", plan.in_the_way)
    if plan.done:
        return
    try:
        await _run(ledger, plan, progress)
    except (Conflict, NotFound) as error:
        await _explain(_node_gone(error, plan), await plan_import(plan.settled.cluster, ledger))


async def _take_over(ledger: AsyncLedger, plan: ImportPlan) -> None:
    """Keep what a later file of the cluster says beside the ledger's own words, in place of what the earlier one said.

    The paper of the whole file comes last: until then the later file is compared with the ledger again.
    """
    new = {(section, name) for section, names in plan.new.items() for name in names}
    operations = object_papers(plan, [p for p in plain_objects(plan.settled.cluster) if (p.section, p.name) not in new])
    for chunk in _cut(iter(operations)):
        await _make(ledger, chunk)
    await _make(ledger, [file_paper(plan, plan.papers[FILE].revision, done=True)])


def object_papers(plan: ImportPlan, objects: Iterable[Plain]) -> list[Operation]:
    """Keep what a file says of objects beside the ledger's words, and nothing of those that it no longer has."""
    wanted = {plain.paper: _object_paper(plan, plain) for plain in objects}
    made = {plain.paper for plain in plain_objects(plan.settled.cluster)}
    stale = [
        RemovePaper(kind=GANETI, name=name, revision=paper.revision)
        for name, paper in plan.papers.items()
        if name not in made and name != FILE
    ]
    return [
        *stale,
        *(each for name, each in wanted.items() if name not in plan.papers or not _same(plan.papers[name], each)),
    ]


def _same(paper: Paper, wanted: WritePaper) -> bool:
    return paper.document == wanted.document


async def _run(ledger: AsyncLedger, plan: ImportPlan, progress: Progress | None) -> None:
    """Take the steps of a plan, one after the other."""
    if FILE not in plan.papers:
        # Before anything else is written: from here on an import of another file is refused.
        await _make(ledger, [file_paper(plan, 0, done=False)])
    made, total = 0, sum(plan.counts.values())
    for count, operations in _steps(plan):
        await _make(ledger, operations)
        made += count
        if progress is not None:
            progress(made, total)
    if plan.again:
        await _take_over(ledger, plan)
        return
    # Read anew: another import of the same file may have come to the end first.
    known = await ledger.paper(GANETI, FILE)
    if not known.document["done"]:
        await _make(ledger, [file_paper(plan, known.revision, done=True)])


def _node_gone(error: Conflict | NotFound, plan: ImportPlan) -> Conflict:
    """Return a conflict that names the node that an instance of the file was to come to, if that is not there."""
    if isinstance(error, Conflict):
        return error
    names = {node.uuid: node.name for node in plan.settled.cluster.nodes}
    if error.kind not in (IDENTITY, NODE):
        raise error
    node = names.get(error.name, error.name)
    return Conflict(f"node {node!r} was removed or renamed meanwhile; run this again to see what is left", field="file")


async def _explain(error: Conflict, now: ImportPlan) -> None:
    """Raise why a step was refused, by what the ledger has now; return if another import took the step."""
    if now.done:
        return
    if now.in_the_way:
        raise first_conflict("the import was broken off", now.in_the_way) from error
    if isinstance(error, AlreadyExists) or error.field == "revision":  # by this file's, or it would be in the way
        hint = "it was left to go on; run this again if it does not come to its end"
        raise Conflict(f"another import of this file is under way; {hint}", field="file") from error
    raise error


def first_conflict(outcome: str, conflicts: Sequence[str]) -> Conflict:
    """Return an error that says what became of the file, names the first conflict and counts the others."""
    more = f" (and {len(conflicts) - 1} more)" if len(conflicts) > 1 else ""
    return Conflict(f"{outcome}: {conflicts[0]}{more}", field="file")


async def _make(ledger: AsyncLedger, operations: Sequence[Operation]) -> None:
    """Apply a step; the cluster's one paper keeps it from missing somebody else's change of nodes or networks."""

    async def attempt() -> None:
        lock = await structure(ledger)
        try:
            await ledger.apply([lock, *operations])
        except Conflict as error:
            # Only a change of the cluster meanwhile is worth another try; any other conflict would come again.
            if await structure(ledger) != lock:
                raise Outrun(error) from None
            raise

    await settled(attempt)


def _steps(plan: ImportPlan) -> Iterator[Step]:
    """Yield what is to be done, in an order in which everything finds what it needs.

    The papers of objects come first in a step: another import of the file is known by them, whatever else it made.
    """
    cluster = plan.settled.cluster
    plain = {(each.section, each.name): each for each in plain_objects(cluster)}
    new = {section: set(names) for section, names in plan.new.items()}

    def papers(section: str, names: Sequence[str]) -> list[Operation]:
        return [_object_paper(plan, plain[section, name]) for name in names]

    if cluster.master_ip not in (None, plan.master.ip):
        yield 0, [master_paper(replace(plan.master, ip=cluster.master_ip))]
    groups = [group for group in cluster.groups if group.name in new[GROUPS]]
    if groups:
        made = [operation for group in groups for operation in group_operations(group)]
        old = [each for each in cluster.networks if each.name not in new[NETWORKS]]
        wired = [each for network in old for each in network_connections(network, {group.name for group in groups})]
        yield len(groups), [*papers(GROUPS, [group.name for group in groups]), *made, *wired]
    for nodes in _cut(node for node in cluster.nodes if node.name in new[NODES]):
        made = [operation for node in nodes for operation in node_operations(node)]
        yield len(nodes), [*papers(NODES, [node.name for node in nodes]), *made]
    for network in cluster.networks:
        if network.name in new[NETWORKS]:
            yield from _network_steps(plan, network, plain[NETWORKS, network.name])
    names = {network.uuid: network.name for network in cluster.networks}
    # Addresses of networks that are there already are granted with their instances, and count there.
    late = Counter(grant.owner for name in set(plan.grants) - new[NETWORKS] for grant in plan.grants[name])
    for instances in _cut(instance for instance in cluster.instances if instance.name in new[INSTANCES]):
        standing = _same_nodes(plan, {instance.node for instance in instances})
        made = instance_operations(instances, names)
        count = len(instances) + sum(late[each.owner] for each in instances)
        yield count, [*papers(INSTANCES, [each.name for each in instances]), *standing, *made]


def _same_nodes(plan: ImportPlan, names: set[str]) -> list[Operation]:
    """Make sure that nodes are those of the file, and as they were read or made: they may have changed since."""
    nodes = [node for node in plan.settled.cluster.nodes if node.name in names]
    return [
        # The name and the revision alone would let a node pass that was removed and added again in another group.
        *(ExpectPaper(kind=IDENTITY, name=node.uuid, revision=1) for node in nodes),
        *(ExpectPaper(kind=NODE, name=node.name, revision=plan.nodes.get(node.name, 1)) for node in nodes),
    ]


def _network_steps(plan: ImportPlan, network: NetworkFile, plain: Plain) -> Iterator[Step]:
    paper = _object_paper(plan, plain)
    grants = plan.grants.get(network.name, ())
    made = NetworkSteps(network, grants, paper.name, paper.revision, kept_of(plan.settled.cluster, plain))
    return made.steps(opened=network.name in plan.opened)


def _cut(things: Iterator[T]) -> Iterator[list[T]]:
    while chunk := list(islice(things, CHUNK)):
        yield chunk


def _object_paper(plan: ImportPlan, plain: Plain) -> WritePaper:
    known = plan.papers.get(plain.paper)
    return _paper(plain.paper, kept_of(plan.settled.cluster, plain), 0 if known is None else known.revision)


def file_paper(plan: ImportPlan, revision: int, *, done: bool) -> WritePaper:
    """Keep what a file says of the whole, and whether all of it was brought in."""
    return _paper(FILE, kept_of_file(plan.settled.cluster, done=done), revision)


def _paper(name: str, document: Json, revision: int) -> WritePaper:
    return WritePaper(kind=GANETI, name=name, document=document, revision=revision)
