"""A network as a hosts file."""

from tenure.interchange.render.host_names import Namer, Rendering, check_domain, is_single, read_network
from tenure.service.ledger.async_ledger import AsyncLedger


async def render_hosts(ledger: AsyncLedger, network: str, *, domain: str | None = None) -> Rendering:
    """Write a network's holdings as lines of a hosts file."""
    plan, holdings = await read_network(ledger, network)
    namer = Namer(plan, None if domain is None else check_domain(domain, "domain"))
    lines = [f"# Tenure: network {plan.name}"]
    for named in namer.named(holdings):
        if not is_single(named.holding):
            namer.leave_out(named.holding, "address", "a prefix is no host")
            continue
        names = f"{named.full_name} {named.host}" if named.domain else named.host
        lines.append(f"{named.holding.address}\t{names}")
    return Rendering("\n".join(lines) + "\n", namer.left_out)
