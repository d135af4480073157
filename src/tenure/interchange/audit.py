"""Several sources held against each other, read only: who says what about which address."""

import enum
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tenure.interchange.formats.source_items import Fault, Item, Progress, Source, SourceHolding, SourcePlace, counted
from tenure.interchange.formats.tenure_csv import address_text
from tenure.interchange.importer.dry_run import pages
from tenure.interchange.importer.dry_run_report import remark_document
from tenure.interchange.importer.plan_draft import fault_of
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.addressing.ranges import parse_cidr
from tenure.kernel.errors import Invalid
from tenure.kernel.holdings.holding_model import State
from tenure.kernel.names import Owner
from tenure.kernel.plan.edits import AddNetwork
from tenure.service.ledger.async_ledger import AsyncLedger


class AuditProblem(enum.StrEnum):
    """What is wrong about an address."""

    TWO_HOLDERS = "two_holders"
    DISAGREE = "disagree"
    ONLY_HERE = "only_here"


class Statement(NamedTuple):
    """One source's word about one address: which scope, who holds it, and where that stands."""

    scope: str
    first: int
    last: int
    address: str
    network: str
    owner: str
    source: int
    place: SourcePlace


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """An address that sources do not agree on, with every statement about it."""

    verdict: AuditProblem
    address: str
    network: str
    statements: tuple[tuple[SourcePlace, str], ...]

    def __str__(self) -> str:
        said = "; ".join(f"{owner} ({place})" for place, owner in self.statements)
        return f"{self.address} in {self.network}: {_WORDS[self.verdict]}: {said}"


_WORDS = {
    AuditProblem.TWO_HOLDERS: "two holders in one source",
    AuditProblem.DISAGREE: "sources name different holders",
    AuditProblem.ONLY_HERE: "no other source knows it",
}


@dataclass(slots=True)
class AuditReport:
    """The answer of an audit."""

    sources: list[str]
    discrepancies: list[Discrepancy] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    compared: int = 0

    @property
    def ok(self) -> bool:
        """Tell whether all sources could be read and agree."""
        return not self.discrepancies and not self.faults

    def of(self, verdict: AuditProblem | str) -> list[Discrepancy]:
        """Return the discrepancies of one kind."""
        return [each for each in self.discrepancies if each.verdict == verdict]

    def as_document(self) -> dict[str, Any]:
        """Write the report for programs."""
        return {
            "sources": self.sources,
            "ok": self.ok,
            "compared": self.compared,
            "faults": [remark_document(fault) for fault in self.faults],
            "discrepancies": [
                {
                    "verdict": each.verdict,
                    "address": each.address,
                    "network": each.network,
                    "statements": [{"place": str(place), "owner": owner} for place, owner in each.statements],
                }
                for each in self.discrepancies
            ],
        }


@dataclass(frozen=True, slots=True)
class LedgerSource:
    """A ledger as a source, under a name for the report."""

    name: str
    ledger: AsyncLedger


async def audit(
    sources: Sequence[Source | LedgerSource], *, one_space: bool = False, progress: Progress | None = None
) -> AuditReport:
    """Compare sources and write nothing: addresses with two holders, other holders, or known to one source only.

    Networks are compared by name; those that some source puts into one space are one scope. ``one_space`` compares by
    address alone, for sources that name their networks differently. Memory grows with what the sources say.
    """
    if len(sources) < 1:
        raise Invalid("sources: name at least one source", field="sources")
    report = AuditReport([source.name for source in sources])
    spaces = await _spaces(sources)
    statements: list[Statement] = []
    for number, source in enumerate(sources):
        async for statement in _statements(source, number, report):
            scope = "" if one_space else spaces.get(statement.network, statement.network)
            statements.append(statement._replace(scope=scope))
    statements.sort(key=lambda each: (each.scope, each.first, each.source, each.place.order))
    report.compared = len(statements)
    groups = counted(_groups(statements), progress, None)
    report.discrepancies = [found for group in groups for found in _judged(group, len(sources))]
    return report


async def _spaces(sources: Sequence[Source | LedgerSource]) -> dict[str, str]:
    """Learn which network is in which space, from whoever knows."""
    known: dict[str, str] = {}
    for source in sources:
        if isinstance(source, LedgerSource):
            for space in await source.ledger.spaces():
                known.update((network, space.name) for network in space.networks)
        else:
            edits = (item.what for item in source.items if isinstance(item.what, AddNetwork))
            known.update((str(edit.network), str(edit.space)) for edit in edits if edit.space is not None)
    return known


async def _statements(source: Source | LedgerSource, number: int, report: AuditReport) -> AsyncIterator[Statement]:
    if isinstance(source, Source):
        for item in source.items:
            if isinstance(item.what, Fault):
                report.faults.append(item.what)
            elif isinstance(item.what, SourceHolding) and (statement := _stated(item, item.what, number, report)):
                yield statement
        return
    for network in await source.ledger.networks():
        async for page in pages(source.ledger, network.name):
            for holding in page:
                if holding.state is not State.COOLING:  # nobody's any more
                    place = SourcePlace(source.name, path=f"{network.name} {holding.address}")
                    row, name = holding.row, network.name
                    yield Statement("", row.first, row.last, address_text(holding), name, row.owner, number, place)


def _stated(item: Item, held: SourceHolding, number: int, report: AuditReport) -> Statement | None:
    try:
        owner = Owner(held.owner)
        if isinstance(held.address, str) and "/" in held.address:
            span = parse_cidr(held.address, field="address").range
            first, last = span.first, span.last
        else:
            first = last = parse_address(held.address)
    except Invalid as error:
        report.faults.append(fault_of(item.place, error))
        return None
    if held.state == State.COOLING:
        return None
    return Statement("", first, last, str(held.address), str(held.network), owner, number, item.place)


def _groups(statements: Sequence[Statement]) -> Iterator[list[Statement]]:
    """Gather statements that lie over each other."""
    group: list[Statement] = []
    reach = -1
    for statement in statements:
        if group and (statement.scope != group[0].scope or statement.first > reach):
            yield group
            group, reach = [], -1
        group.append(statement)
        reach = max(reach, statement.last)
    if group:
        yield group


def _judged(group: Sequence[Statement], sources: int) -> Iterator[Discrepancy]:
    """Judge statements that hang together: each stretch by its owners, each statement by who else knows it."""
    # By identity: two lines of a source may say the same, and both are statements.
    seen: set[tuple[int, ...]] = set()
    known: set[int] = set()
    for first, covering in _stretches(group):
        owners = [{one.owner for one in covering if one.source == number} for number in {c.source for c in covering}]
        known.update(id(one) for one in covering if len(owners) > 1)
        same = tuple(sorted(id(one) for one in covering))
        # A prefix with many addresses in it is cut into many stretches; the same statements are reported once.
        if same in seen:
            continue
        seen.add(same)
        if any(len(names) > 1 for names in owners):
            yield _discrepancy(AuditProblem.TWO_HOLDERS, format_address(first), covering)
        if any(names != owners[0] for names in owners):
            yield _discrepancy(AuditProblem.DISAGREE, format_address(first), covering)
    for one in group:
        if sources > 1 and id(one) not in known:
            yield _discrepancy(AuditProblem.ONLY_HERE, one.address, [one])


def _stretches(group: Sequence[Statement]) -> Iterator[tuple[int, list[Statement]]]:
    """Yield each stretch of addresses about which the same statements are made."""
    # The set of statements changes only where a statement begins, or right behind its end.
    cuts = sorted({one.first for one in group} | {one.last + 1 for one in group})
    active: list[Statement] = []
    place = 0
    for cut in cuts:
        active = [one for one in active if one.last >= cut]
        # Statements of a group are in order of their first address, so the statements that begin at a cut come next.
        while place < len(group) and group[place].first == cut:
            active.append(group[place])
            place += 1
        if active:
            yield cut, list(active)


def _discrepancy(verdict: AuditProblem, address: str, statements: Sequence[Statement]) -> Discrepancy:
    said = tuple((statement.place, statement.owner) for statement in statements)
    return Discrepancy(verdict, address, statements[0].network, said)
