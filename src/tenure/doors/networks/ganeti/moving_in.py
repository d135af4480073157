"""Moving in: a configuration made in a ledger, in steps that may be repeated.

Each step is one ``apply``. An object and its paper are written in the same one, so an import that was killed is run
again with the same file: what has its paper is skipped, the rest is written.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from tenure.doors.networks.atlas import apply_fresh, settled
from tenure.doors.networks.cluster import structure
from tenure.doors.networks.ganeti.examining import ImportPlan, plan_import
from tenure.doors.networks.ganeti.operations import (
    group_operations,
    instance_operations,
    network_operations,
    node_operations,
    orphan_operations,
)
from tenure.doors.networks.ganeti.papers import FILE, Plain, kept_of, kept_of_file, plain_objects
from tenure.doors.networks.ganeti.values import GANETI, GROUPS, INSTANCES, NETWORKS, NODES, Json
from tenure.doors.networks.model import NODE
from tenure.kernel.errors import Conflict
from tenure.service.ledger import AsyncLedger
from tenure.service.operations import ExpectPaper, Operation, WritePaper

__all__ = ["ImportPlan", "plan_import", "run_import"]

CHUNK = 100
"""Instances, nodes or orphans a step."""

T = TypeVar("T")
Progress = Callable[[int, int], object]
Step = tuple[int, list[Operation]]
"""How many things are made, and by which operations."""


async def run_import(ledger: AsyncLedger, plan: ImportPlan, progress: Progress | None = None) -> None:
    """Make what a plan calls new. Conflict, and nothing is changed, while something stands in the way."""
    if plan.conflicts:
        more = f" (and {len(plan.conflicts) - 1} more)" if len(plan.conflicts) > 1 else ""
        raise Conflict(f"nothing was written: {plan.conflicts[0]}{more}", field="file")
    if plan.done:
        return
    made, total = 0, sum(plan.counts.values()) - plan.counts["addresses"]
    if FILE not in plan.papers:
        await _make(ledger, [_file_paper(plan, 0, done=False)])
    for count, operations in _steps(plan):
        await _make(ledger, operations)
        made += count
        if progress is not None:
            progress(made, total)
    [known] = await ledger.papers(GANETI, prefix=FILE, limit=1)
    await _make(ledger, [_file_paper(plan, known.revision, done=True)])


async def _make(ledger: AsyncLedger, operations: Sequence[Operation]) -> None:
    """Apply a step; the cluster's one paper keeps it from missing somebody else's change of nodes or networks."""

    async def attempt() -> None:
        await apply_fresh(ledger, [await structure(ledger), *operations])

    await settled(attempt)


def _steps(plan: ImportPlan) -> Iterator[Step]:
    """Yield what is to be done, in an order in which everything finds what it needs."""
    cluster = plan.settled.cluster
    plain = {(each.section, each.name): each for each in plain_objects(cluster)}
    new = {section: set(names) for section, names in plan.new.items()}

    def papers(section: str, names: Sequence[str]) -> list[Operation]:
        return [_object_paper(plan, plain[section, name]) for name in names]

    groups = [group for group in cluster.groups if group.name in new[GROUPS]]
    if groups:
        made = [operation for group in groups for operation in group_operations(group)]
        yield len(groups), [*made, *papers(GROUPS, [group.name for group in groups])]
    for nodes in _cut(node for node in cluster.nodes if node.name in new[NODES]):
        made = [operation for node in nodes for operation in node_operations(node)]
        yield len(nodes), [*made, *papers(NODES, [node.name for node in nodes])]
    for network in cluster.networks:
        if network.name in new[NETWORKS]:
            yield 1, [*network_operations(network), *papers(NETWORKS, [network.name])]
        for addresses in _cut(plan.settled.orphan_addresses(network.uuid)):
            yield len(addresses), orphan_operations(network.name, addresses)
    names = {network.uuid: network.name for network in cluster.networks}
    for instances in _cut(instance for instance in cluster.instances if instance.name in new[INSTANCES]):
        standing = [ExpectPaper(kind=NODE, name=node, revision=1) for node in sorted({i.node for i in instances})]
        made = instance_operations(instances, names)
        yield len(instances), [*standing, *made, *papers(INSTANCES, [each.name for each in instances])]


def _cut(things: Iterator[T]) -> Iterator[list[T]]:
    while chunk := list(islice(things, CHUNK)):
        yield chunk


def _object_paper(plan: ImportPlan, plain: Plain) -> WritePaper:
    known = plan.papers.get(plain.paper)
    return _paper(plain.paper, kept_of(plan.settled.cluster, plain), 0 if known is None else known.revision)


def _file_paper(plan: ImportPlan, revision: int, *, done: bool) -> WritePaper:
    return _paper(FILE, kept_of_file(plan.settled.cluster, done=done), revision)


def _paper(name: str, document: Json, revision: int) -> WritePaper:
    return WritePaper(kind=GANETI, name=name, document=document, revision=revision)
