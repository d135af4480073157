"""A network as a piece of Kea's configuration: subnets, pools, reservations."""

import json
import re
import zlib
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from tenure.kernel.addresses import format_address, is_v6
from tenure.kernel.configuration import Network, Subnet
from tenure.kernel.errors import Invalid
from tenure.kernel.names import shown
from tenure.kernel.ranges import merge, subtract
from tenure.moving.own_csv import address_text
from tenure.moving.rendering.naming import Named, Namer, Rendering, check_domain, is_single, read_network
from tenure.service.ledger import AsyncLedger

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
    for named in namer.named([each for each in holdings if is_v6(each.row.first) == (family == 6)]):
        reservations.take(named)
    ids = _stable_ids(plan)
    written = [_subnet_document(each, ids[each.uuid], reservations.of(each), family) for each in subnets]
    text = json.dumps({f"Dhcp{family}": {f"subnet{family}": written}}, indent=2, ensure_ascii=False)
    return Rendering(text + "\n", namer.left_out)


def _subnets(network: Network, family: int) -> list[Subnet]:
    chosen = [subnet for subnet in network.subnets if is_v6(subnet.cidr.first) == (family == 6)]
    return sorted(chosen, key=lambda subnet: subnet.cidr)


def _stable_ids(network: Network) -> dict[str, int]:
    """Number subnets by their uuid: neither order nor neighbours change a number, unless two fall together."""
    ids: dict[str, int] = {}
    taken: set[int] = set()
    for uuid in sorted(subnet.uuid for subnet in network.subnets):
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

    def of(self, subnet: Subnet) -> list[Document]:
        """Return a subnet's reservations, in order of address."""
        return self._by_subnet[subnet.uuid]

    def take(self, named: Named) -> None:
        """Add a holding, or tell why it cannot be reserved."""
        duid = named.holding.labels.get("duid", "").lower() if self._family == 6 else ""
        if duid and not _DUID.fullmatch(duid):
            self._namer.leave_out(named.holding, "duid", f"{duid[:40]!r} is not a DUID")
            return
        kind, ident = ("duid", duid) if duid else ("hw-address", named.mac)
        if not ident:
            self._namer.leave_out(named.holding, "mac", "without a label mac Kea cannot tell the machine")
            return
        subnet = self._subnets[bisect_right(self._firsts, named.holding.row.first) - 1]
        known = self._found.get((subnet.uuid, ident))
        if self._family == 6:
            self._take_v6(named, subnet, kind, ident, known)
        elif known is not None:
            reason = f"{ident} has {known['ip-address']} in {subnet.cidr} already"
            self._namer.leave_out(named.holding, "mac", reason)
        elif not is_single(named.holding):
            self._namer.leave_out(named.holding, "address", "DHCPv4 reserves no prefixes")
        else:
            address = named.holding.address
            self._add(subnet, ident, {kind: ident, "ip-address": address, "hostname": named.full_name})

    def _take_v6(self, named: Named, subnet: Subnet, kind: str, ident: str, known: Document | None) -> None:
        if known is None:
            known = self._add(subnet, ident, {kind: ident, "hostname": named.full_name})
        key = "ip-addresses" if is_single(named.holding) else "prefixes"
        known.setdefault(key, []).append(address_text(named.holding))

    def _add(self, subnet: Subnet, ident: str, document: Document) -> Document:
        self._found[subnet.uuid, ident] = document
        self._by_subnet[subnet.uuid].append(document)
        return document


def _subnet_document(subnet: Subnet, number: int, reservations: list[Document], family: int) -> Document:
    options = [{"name": "routers", "data": format_address(subnet.gateway)}] if subnet.gateway and family == 4 else []
    servers = [each for each in subnet.dns if (":" in each) == (family == 6)]
    if servers:
        name = "domain-name-servers" if family == 4 else "dns-servers"
        options.append({"name": name, "data": ", ".join(servers)})
    return {
        "id": number,
        "subnet": str(subnet.cidr),
        "pools": _pools(subnet),
        "option-data": options,
        "reservations": reservations,
    }


def _pools(subnet: Subnet) -> list[Document]:
    """Write the pools of a subnet that serves DHCP, without what is reserved or kept back."""
    if not subnet.dhcp or subnet.retired or subnet.unit_size != 1:
        return []
    kept = [each.range for each in subnet.reserved]
    blocked = merge([*kept, *(subnet.unit_at(position) for position, _ in subnet.kept_back())])
    free = [piece for pool in subnet.pools if not pool.retired for piece in subtract(pool.range, blocked)]
    return [{"pool": f"{format_address(piece.first)} - {format_address(piece.last)}"} for piece in free]
