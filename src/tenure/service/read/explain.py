"""Why an address is what it is, in words and as data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from tenure.kernel.addressing.addresses import format_address, unit_text
from tenure.kernel.errors import AddressOutsideSubnet
from tenure.kernel.holdings.holding_model import Holding, Row, State, moment
from tenure.kernel.holdings.tenures import time_text
from tenure.kernel.names import Owner
from tenure.kernel.plan.blocked_ranges import Barrier
from tenure.kernel.plan.layout import Layout
from tenure.kernel.plan.plan_model import Configuration, Notes
from tenure.ports import LedgerStore
from tenure.service.read.current_rows import current_rows
from tenure.service.read.presenter import known_holdings


@dataclass(frozen=True, slots=True)
class Finding:
    """What one network has to say about an address: who has it, or what keeps it away."""

    network: str
    status: str
    text: str
    holding: Holding | None = None
    owner: Owner | None = None
    since: datetime | None = None
    until: datetime | None = None
    request: str | None = None
    reason: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    description: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Who holds an address, since when, by which request; or why it is not free; or that it is."""

    address: str
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        if not self.findings:
            return f"{self.address}: in no subnet of any network"
        return "\n".join(f"{self.address}: {finding.text}" for finding in self.findings)


async def explain(
    store: LedgerStore, spaces: Sequence[Configuration], position: int, network: str | None = None
) -> Explanation:
    """Explain an address in every network it lies in, or in one. Who holds it, holds it in the whole space."""
    findings: list[Finding] = []
    for configuration in spaces:
        layout = Layout(configuration)
        plans = [plan_finding(layout, name, position) for name in configuration.networks if network in (None, name)]
        known = [plan for plan in plans if plan is not None]
        rows = await store.rows_within(configuration.space, position, position, limit=1) if known else []
        standing = await current_rows(store, rows)
        held = [holding_finding(holding) for holding in known_holdings(standing, layout)]
        over = [row for row in rows if row not in standing]
        findings.extend(held or [_after(finding, row) for finding in known for row in over] or known)
    return Explanation(format_address(position), tuple(findings))


def _after(finding: Finding, row: Row) -> Finding:
    """Add to what a plan says of an address what was there until its time was over."""
    ended = "" if row.until_us is None else f" at {time_text(moment(row.until_us))}"
    if row.state is State.COOLING:
        past = f"it has cooled off{ended}, {row.owner} had it"
    else:
        past = f"its hold for {row.owner} ran out{ended}; {row.owner} may confirm it until it is taken"
    return replace(finding, text=f"{finding.text}; {past}")


def holding_finding(holding: Holding) -> Finding:
    """Tell of a holding."""
    return Finding(
        holding.network,
        str(holding.state),
        _holding_text(holding),
        holding,
        holding.owner,
        holding.since,
        holding.until,
        holding.request,
        labels=holding.labels,
        description=holding.description,
    )


def _holding_text(holding: Holding) -> str:
    owner = f"{holding.owner}{holding.slot and f' ({holding.slot})'}"
    first, last = holding.row.first, holding.row.last
    within = "" if first == last else f", within {unit_text(first, last)}"
    where = f"in network {holding.network}{within}"
    since = f"since {time_text(holding.since)}"
    request = f", by request {holding.request}" if holding.request else ""
    until = "" if holding.until is None else f" until {time_text(holding.until)}"
    if holding.state is State.PENDING:
        return f"pending for {owner} {where} {since}{until or ', without a deadline'}{request}"
    if holding.state is State.COOLING:
        return f"cooling{until} {where}; {owner} had it {since}{request}"
    return f"{holding.state} by {owner} {where} {since}{request}"


def plan_finding(layout: Layout, network: str, position: int) -> Finding | None:
    """Tell what a network's plan says of an address that nobody holds; None if it lies in no subnet of it."""
    try:
        subnet = layout.subnet_at(network, position)
    except AddressOutsideSubnet:
        return None
    unit = subnet.unit_at(position)
    if barrier := layout.barrier_over(network, unit, None, "", "refuse"):
        return _barrier_finding(network, barrier)
    if subnet.retired or layout.configuration.network(network).retired:
        return Finding(network, "retired", f"not free in network {network}: {subnet.cidr} is retired")
    pool = layout.pool_at(network, unit.first)
    if pool is not None and pool.retired:
        return Finding(network, "retired", f"not free in network {network}: pool {pool.name or pool.range} is retired")
    if pool is None:
        return Finding(network, "outside pools", f"free in network {network}, in no pool: only by naming it")
    return Finding(network, "free", f"free in network {network}")


def _barrier_finding(network: str, barrier: Barrier) -> Finding:
    """Tell what keeps an address away: as what it is kept back, on whose word it is reserved, for whom it waits."""
    word = barrier.reserved or barrier.preallocation
    notes, request = (Notes(), None) if word is None else (word.notes, word.request)
    by_request = f", by request {request}" if request else ""
    kind = "reserved" if barrier.reserved else "pre-allocated" if barrier.preallocation else "kept back"
    return Finding(
        network,
        kind,
        f"not free in network {network}: {barrier.text}{by_request}",
        owner=barrier.preallocation.owner if barrier.preallocation else None,
        request=request,
        reason=barrier.reserved.reason if barrier.reserved else str(barrier.kept_back or ""),
        labels=notes.labels,
        description=notes.description,
    )
