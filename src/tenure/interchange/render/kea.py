"""A network as a piece of Kea's configuration: subnets, pools, reservations."""

import json
import re
import zlib
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from tenure.interchange.formats.tenure_csv import address_text
from tenure.interchange.importer.dry_run import pages
from tenure.interchange.render.host_names import Namer, Rendering, check_domain, is_single, read_network
from tenure.kernel.addressing.addresses import format_address, is_v6
from tenure.kernel.addressing.ranges import AddressRange, merge, subtract
from tenure.kernel.errors import Invalid
from tenure.kernel.holdings.holding_model import Holding
from tenure.kernel.names import shown
from tenure.kernel.plan.blocked_ranges import Barriers
from tenure.kernel.plan.plan_model import Network, Subnet
from tenure.service.ledger.async_ledger import AsyncLedger

LARGEST_ID = 0xFFFFFFFE
"""Kea's subnet ids are 32 bits wide; nought and the last one are taken."""

_DUID = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){2,129}")

Document = dict[str, Any]


async def render_kea(ledger: AsyncLedger, network: str, *, family: int = 4, domain: str | None = None) -> Rendering:
    """Write ``Dhcp4`` or ``Dhcp6`` for a network; subnets without the dhcp flag get reservations but no pools."""
    if family not in (4, 6):
        raise Invalid(f"family: 4 or 6 is needed, not {shown(family)}", field="family")
    plan, holdings = await read_network(ledger, network)
    namer = Namer(plan, None if domain is None else check_domain(domain, "domain"))
    subnets = _subnets(plan, family)
    reservations = _Reservations(subnets, namer, family)
    for holding in namer.lasting([each for each in holdings if is_v6(each.row.first) == (family == 6)]):
        reservations.take(holding)
    # After the reservations: an address that is held, but could not be reserved, must leave the pools.
    away = await _taken(ledger, plan, reservations.reserved)
    ids = _stable_ids(plan)
    written = [_subnet_document(each, ids[each.uuid], reservations.of(each), away, family) for each in subnets]
    text = json.dumps({f"Dhcp{family}": {f"subnet{family}": written}}, indent=2, ensure_ascii=False)
    return Rendering(text + "\n", namer.left_out)


def _subnets(network: Network, family: int) -> list[Subnet]:
    chosen = [subnet for subnet in network.subnets if is_v6(subnet.cidr.first) == (family == 6)]
    return sorted(chosen, key=lambda subnet: subnet.cidr)


def _stable_ids(network: Network) -> dict[str, int]:
    """Number subnets by their uuid: neither order nor neighbours change a number, unless two fall together."""
    ids: dict[str, int] = {}
    taken: set[int] = set()
    # In order of uuid: where two subnets fall on one number, the same subnet always gets the next.
    for uuid in sorted(subnet.uuid for subnet in network.subnets):
        # crc32 is the same in every process; hash() of a text is not.
        number = zlib.crc32(uuid.encode("utf-8")) % LARGEST_ID + 1
        while number in taken:
            number = number % LARGEST_ID + 1
        taken.add(number)
        ids[uuid] = number
    return ids


class _Reservations:
    """Reservations by subnet; a machine has one in each."""

    def __init__(self, subnets: Sequence[Subnet], namer: Namer, family: int) -> None:
        self._firsts = [subnet.cidr.first for subnet in subnets]
        self._subnets = subnets
        self._namer = namer
        self._family = family
        self._found: dict[tuple[str, str], Document] = {}
        self._by_subnet: dict[str, list[Document]] = {subnet.uuid: [] for subnet in subnets}
        self.reserved: set[int] = set()

    def of(self, subnet: Subnet) -> list[Document]:
        """Return a subnet's reservations, in order of address."""
        return self._by_subnet[subnet.uuid]

    def take(self, holding: Holding) -> None:
        """Add a holding, or tell why it cannot be reserved."""
        found = self._ident(holding)
        if found is None:
            return
        kind, ident = found
        subnet = self._subnets[bisect_right(self._firsts, holding.row.first) - 1]
        known = self._found.get((subnet.uuid, ident))
        # A reservation of DHCPv6 lists addresses and prefixes; a reservation of DHCPv4 has one address.
        if self._family == 6:
            document = known or self._add(subnet, holding, kind, ident)
            document.setdefault("ip-addresses" if is_single(holding) else "prefixes", []).append(address_text(holding))
        elif known is not None:
            reason = f"{ident} has {known['ip-address']} in {subnet.cidr} already"
            self._namer.leave_out(holding, "mac", reason)
            return
        elif not is_single(holding):
            self._namer.leave_out(holding, "address", "DHCPv4 reserves no prefixes")
            return
        else:
            self._add(subnet, holding, kind, ident)["ip-address"] = holding.address
        self.reserved.add(holding.row.first)

    def _ident(self, holding: Holding) -> tuple[str, str] | None:
        """Find out by what Kea knows the machine, or tell that it cannot."""
        duid = holding.labels.get("duid", "").lower() if self._family == 6 else ""
        if duid and not _DUID.fullmatch(duid):
            self._namer.leave_out(holding, "duid", f"{duid[:40]!r} is not a DUID")
            return None
        mac = "" if duid else self._namer.mac(holding)
        if not duid and not mac:
            self._namer.leave_out(holding, "mac", "without a label mac Kea cannot tell the machine")
            return None
        return ("duid", duid) if duid else ("hw-address", mac or "")

    def _add(self, subnet: Subnet, holding: Holding, kind: str, ident: str) -> Document:
        document: Document = {kind: ident}
        try:
            document["hostname"] = self._namer.name(holding).full_name
        except Invalid as error:
            self._namer.note(holding, error.field or "", f"{error}; reserved without a hostname")
        self._found[subnet.uuid, ident] = document
        self._by_subnet[subnet.uuid].append(document)
        return document


async def _taken(ledger: AsyncLedger, plan: Network, reserved: set[int]) -> list[AddressRange]:
    """Find what Kea must not lease to anybody: what is kept away in the space, and what is held unreserved."""
    for space in await ledger.spaces():
        if plan.name in space.networks:
            break
    else:
        # The network was removed since it was read.
        return []
    away = [barrier.range for barrier in Barriers(space)]
    blocks = merge(subnet.cidr.range for subnet in plan.subnets)
    # An address has one holder in the whole space, so the holdings of networks that lie over this one count as well.
    for other in space.networks.values():
        if any(subnet.cidr.range.overlaps(block) for subnet in other.subnets for block in blocks):
            async for page in pages(ledger, other.name):
                rows = [each.row for each in page if other.name != plan.name or each.row.first not in reserved]
                away += [AddressRange(row.first, row.last) for row in rows]
    return merge(away)


def _subnet_document(
    subnet: Subnet, number: int, reservations: list[Document], away: list[AddressRange], family: int
) -> Document:
    # DHCPv6 has no option that names a router.
    options = [{"name": "routers", "data": format_address(subnet.gateway)}] if subnet.gateway and family == 4 else []
    servers = [each for each in subnet.dns if (":" in each) == (family == 6)]
    if servers:
        name = "domain-name-servers" if family == 4 else "dns-servers"
        options.append({"name": name, "data": ", ".join(servers)})
    return {
        "id": number,
        "subnet": str(subnet.cidr),
        "pools": _pools(subnet, away),
        "option-data": options,
        "reservations": reservations,
    }


def _pools(subnet: Subnet, away: list[AddressRange]) -> list[Document]:
    """Write the pools of a subnet that serves DHCP, without what is not to be leased to anybody."""
    if not subnet.dhcp or subnet.retired or subnet.unit_size != 1:
        return []
    blocked = merge([*away, *(subnet.unit_at(position) for position, _ in subnet.kept_back())])
    free = [piece for pool in subnet.pools if not pool.retired for piece in subtract(pool.range, blocked)]
    return [{"pool": f"{format_address(piece.first)} - {format_address(piece.last)}"} for piece in free]
