"""A network as lines of dnsmasq's configuration."""

from bisect import bisect_right

from tenure.interchange.render.host_names import Named, Namer, Rendering, check_domain, is_single, read_network
from tenure.kernel.addressing.addresses import is_v6
from tenure.kernel.plan.plan_model import Network
from tenure.service.ledger.async_ledger import AsyncLedger


async def render_dnsmasq(ledger: AsyncLedger, network: str, *, domain: str | None = None) -> Rendering:
    """Write a ``host-record`` for each holding, and a ``dhcp-host`` for each that has a label ``mac``."""
    plan, holdings = await read_network(ledger, network)
    namer = Namer(plan, None if domain is None else check_domain(domain, "domain"))
    cards = _Cards(plan, namer)
    lines = [f"# Tenure: network {plan.name}"]
    for named in namer.named(holdings):
        if not is_single(named.holding):
            namer.leave_out(named.holding, "address", "a prefix is no host")
            continue
        if mac := cards.mac_of(named):
            lines.append(_dhcp_host(named, mac))
        names = f"{named.full_name},{named.host}" if named.domain else named.host
        lines.append(f"host-record={names},{named.holding.address}")
    return Rendering("\n".join(lines) + "\n", namer.left_out)


class _Cards:
    """MAC addresses by subnet: dnsmasq leases a card one IPv4 address in each."""

    def __init__(self, network: Network, namer: Namer) -> None:
        self._subnets = sorted(network.subnets, key=lambda subnet: subnet.cidr)
        self._firsts = [subnet.cidr.first for subnet in self._subnets]
        self._found: dict[tuple[str, str], str] = {}
        self._namer = namer

    def mac_of(self, named: Named) -> str | None:
        """Return the card of a holding, unless it has an address in the subnet already, which is told."""
        holding = named.holding
        mac = self._namer.mac(holding)
        if not mac or is_v6(holding.row.first):
            return mac
        subnet = self._subnets[bisect_right(self._firsts, holding.row.first) - 1]
        known = self._found.setdefault((subnet.uuid, mac), holding.address)
        if known == holding.address:
            return mac
        self._namer.note(holding, "mac", f"{mac} has {known} in {subnet.cidr} already; written without a dhcp-host")
        return None


def _dhcp_host(named: Named, mac: str) -> str:
    address = named.holding.address
    written = f"[{address}]" if is_v6(named.holding.row.first) else address
    return f"dhcp-host={mac},{written},{named.host}"
