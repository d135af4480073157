"""A network as lines of dnsmasq's configuration."""

from tenure.kernel.addresses import is_v6
from tenure.moving.rendering.naming import Named, Namer, Rendering, check_domain, is_single, read_network
from tenure.service.ledger import AsyncLedger


async def render_dnsmasq(ledger: AsyncLedger, network: str, *, domain: str | None = None) -> Rendering:
    """Write a ``host-record`` for each holding, and a ``dhcp-host`` for each that has a label ``mac``."""
    plan, holdings = await read_network(ledger, network)
    namer = Namer(plan, None if domain is None else check_domain(domain, "domain"))
    lines = [f"# Tenure: network {plan.name}"]
    for named in namer.named(holdings):
        if not is_single(named.holding):
            namer.leave_out(named.holding, "address", "a prefix is no host")
            continue
        if named.mac:
            lines.append(_dhcp_host(named))
        names = f"{named.full_name},{named.host}" if named.domain else named.host
        lines.append(f"host-record={names},{named.holding.address}")
    return Rendering("\n".join(lines) + "\n", namer.left_out)


def _dhcp_host(named: Named) -> str:
    address = named.holding.address
    written = f"[{address}]" if is_v6(named.holding.row.first) else address
    return f"dhcp-host={named.mac},{written},{named.host}"
