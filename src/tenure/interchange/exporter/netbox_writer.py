"""NetBox's tables of our plan and holdings, with the columns that NetBox's own import takes."""

from collections.abc import AsyncIterator

from tenure.interchange.exporter.export_run import check_there, holding_pages
from tenure.interchange.formats.netbox_reader import GLOBAL
from tenure.interchange.formats.netbox_records import ADDRESSES, PREFIXES, RANGES
from tenure.interchange.formats.source_items import Progress
from tenure.interchange.formats.text_tables import written_row
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.addressing.ranges import AddressRange
from tenure.kernel.errors import Invalid
from tenure.kernel.holdings.holding_model import Holding, State
from tenure.kernel.names import shown
from tenure.kernel.plan.plan_model import KeepBack, Network, Subnet
from tenure.service.ledger.async_ledger import AsyncLedger

TABLES = (PREFIXES, RANGES, ADDRESSES)
LONGEST_DESCRIPTION = 200
"""What NetBox takes in a description."""

_STATUS = {State.HELD: "active", State.PENDING: "reserved", State.DRAINING: "deprecated", State.COOLING: "deprecated"}


async def export_netbox(
    ledger: AsyncLedger,
    table: str,
    *,
    network: str | None = None,
    global_network: str = GLOBAL,
    progress: Progress | None = None,
) -> AsyncIterator[str]:
    """Write one of NetBox's three tables: ``prefixes``, ``ip-ranges`` or ``ip-addresses``."""
    if table not in TABLES:
        raise Invalid(f"table: {shown(table)} is none of {', '.join(TABLES)}", field="table")
    await check_there(ledger, network)
    if table == ADDRESSES:
        yield written_row(["address", "vrf", "status", "dns_name", "description"])
        async for page in holding_pages(ledger, network, progress):
            yield "".join(_address_row(holding, global_network) for holding in page)
        return
    yield written_row(_HEADERS[table])
    networks = await ledger.networks() if network is None else [await ledger.network(network)]
    for each in networks:
        vrf = "" if each.name == global_network else each.name
        rows = _prefix_rows(each, vrf) if table == PREFIXES else _range_rows(each, vrf)
        yield "".join(written_row(row) for row in rows)


_HEADERS = {
    PREFIXES: ["prefix", "vrf", "status", "is_pool", "description"],
    RANGES: ["start_address", "end_address", "vrf", "status", "description"],
}


def _prefix_rows(network: Network, vrf: str) -> list[list[str]]:
    return [
        [
            str(subnet.cidr),
            vrf,
            "deprecated" if subnet.retired or network.retired else "active",
            # NetBox calls a prefix a pool if its network and broadcast addresses are handed out, too.
            "true" if subnet.keep_back <= {KeepBack.GATEWAY} else "false",
            _short(subnet.notes.description or subnet.name or ""),
        ]
        for subnet in network.subnets
    ]


def _range_rows(network: Network, vrf: str) -> list[list[str]]:
    rows: list[list[str]] = []
    for subnet in network.subnets:
        for pool in subnet.pools:
            status = "deprecated" if pool.retired else "active"
            rows.append([*_ends(subnet, pool.range), vrf, status, _short(pool.notes.description or pool.name or "")])
        rows += [[*_ends(subnet, kept.range), vrf, "reserved", _short(kept.reason)] for kept in subnet.reserved]
    return rows


def _ends(subnet: Subnet, span: AddressRange) -> list[str]:
    return [f"{format_address(end)}/{subnet.cidr.prefix}" for end in (span.first, span.last)]


def _address_row(holding: Holding, global_network: str) -> str:
    labels, single = holding.labels, holding.row.first == holding.row.last
    name = ".".join(part for part in (labels.get("hostname", ""), labels.get("domain", "")) if part)
    slot = f" {holding.slot}" if holding.slot else ""
    return written_row(
        [
            # NetBox writes the length of its block behind an address; a prefix has a length of its own.
            f"{holding.address}/{holding.prefix if single else holding.unit}",
            "" if holding.network == global_network else holding.network,
            _STATUS[holding.state],
            name,
            _short(f"{holding.owner}{slot}{holding.description and ': ' + holding.description}"),
        ]
    )


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= LONGEST_DESCRIPTION else plain[: LONGEST_DESCRIPTION - 1] + "…"
