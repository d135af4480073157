"""Why an address is what it is, in words and as data."""

from dataclasses import dataclass

from tenure.kernel.errors import AddressOutsideSubnet
from tenure.kernel.layout import Layout
from tenure.kernel.values import Holding


@dataclass(frozen=True, slots=True)
class Finding:
    """What one network has to say about an address."""

    network: str
    status: str
    text: str
    holding: Holding | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Who holds an address, since when, by which request; or why it is not free; or that it is."""

    address: str
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        if not self.findings:
            return f"{self.address}: in no subnet of any network"
        return "\n".join(f"{self.address}: {finding.text}" for finding in self.findings)


def holding_finding(holding: Holding) -> Finding:
    """Tell of a holding."""
    since = holding.since.strftime("%Y-%m-%d %H:%M:%S UTC")
    request = f", by request {holding.request}" if holding.request else ""
    slot = f" ({holding.slot})" if holding.slot else ""
    text = f"{holding.state} by {holding.owner}{slot} in network {holding.network} since {since}{request}"
    return Finding(holding.network, str(holding.state), text, holding)


def plan_finding(layout: Layout, network: str, position: int) -> Finding | None:
    """Tell what a network's plan says of an address that nobody holds; None if it lies in no subnet of it."""
    try:
        subnet = layout.subnet_at(network, position)
    except AddressOutsideSubnet:
        return None
    unit = subnet.unit_at(position)
    if reason := layout.blocked_by(network, unit, None, "", "refuse"):
        return Finding(network, "reserved", f"not free in network {network}: {reason}")
    if subnet.retired or layout.configuration.network(network).retired:
        return Finding(network, "retired", f"not free in network {network}: {subnet.cidr} is retired")
    pool = layout.pool_at(network, unit.first)
    if pool is not None and pool.retired:
        return Finding(network, "retired", f"not free in network {network}: pool {pool.name or pool.range} is retired")
    if pool is None:
        return Finding(network, "outside pools", f"free in network {network}, in no pool: only by naming it")
    return Finding(network, "free", f"free in network {network}")
