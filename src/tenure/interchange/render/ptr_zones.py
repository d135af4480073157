"""A network as PTR zones."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from tenure.interchange.formats.source_items import Oddity
from tenure.interchange.render.host_names import Named, Namer, check_domain, is_single, read_network
from tenure.interchange.render.reverse_zones import is_classless, owner_label, zones_of
from tenure.kernel.addressing.ranges import Cidr
from tenure.kernel.errors import Invalid
from tenure.kernel.names import shown
from tenure.kernel.plan.plan_model import Subnet
from tenure.service.ledger.async_ledger import AsyncLedger

LARGEST_SERIAL = (1 << 32) - 1
REFRESH_S, RETRY_S, EXPIRE_S, NEGATIVE_S = 7200, 900, 1209600, 3600


@dataclass(slots=True)
class Zone:
    """One zone: its name, and the text of its file."""

    name: str
    text: str


@dataclass(slots=True)
class Zones:
    """What was written, and what could not be."""

    zones: list[Zone] = field(default_factory=list)
    left_out: list[Oddity] = field(default_factory=list)


async def render_ptr_zones(
    ledger: AsyncLedger,
    network: str,
    *,
    serial: int,
    nameservers: Sequence[str],
    contact: str = "",
    domain: str | None = None,
    ttl_s: int = 3600,
) -> Zones:
    """Write the reverse zones of a network's subnets, with a PTR for each holding that has a name in a domain.

    ``contact`` is the mailbox of the SOA as a name (``hostmaster.example.com``); by default of the first nameserver's
    domain.
    """
    _check_number(serial, "serial")
    _check_number(ttl_s, "ttl_s")
    servers = _check_servers(nameservers)
    mailbox = (
        check_domain(contact, "contact") if contact else f"hostmaster.{servers[0].partition('.')[2] or servers[0]}"
    )
    plan, holdings = await read_network(ledger, network)
    namer = Namer(plan, None if domain is None else check_domain(domain, "domain"))
    head = _head(serial, servers, mailbox, ttl_s)
    records = _Records(plan.subnets)
    for named in namer.named(holdings):
        records.take(named, namer)
    return Zones([Zone(name, records.text(name, head, servers)) for name in records.names()], namer.left_out)


def _check_number(value: int, field: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST_SERIAL:
        raise Invalid(f"{field}: a number up to {LARGEST_SERIAL} is needed, not {shown(value)}", field=field)


def _check_servers(nameservers: Sequence[str]) -> list[str]:
    if isinstance(nameservers, str) or not isinstance(nameservers, Sequence) or not nameservers:
        raise Invalid("nameservers: a list of at least one name is needed", field="nameservers")
    return [check_domain(each, "nameservers") for each in nameservers]


def _head(serial: int, servers: Sequence[str], mailbox: str, ttl_s: int) -> str:
    times = f"{serial} {REFRESH_S} {RETRY_S} {EXPIRE_S} {NEGATIVE_S}"
    lines = [f"$TTL {ttl_s}", f"@ IN SOA {servers[0]}. {mailbox}. {times}"]
    return "\n".join([*lines, *(f"@ IN NS {server}." for server in servers)]) + "\n"


class _Records:
    """PTR records by zone."""

    def __init__(self, subnets: Sequence[Subnet]) -> None:
        # By name, because IPv6 blocks below a nibble share a zone.
        self._cuts = {name: block for subnet in subnets for name, block in zones_of(subnet.cidr)}
        self._blocks = sorted((block.first, block.last, name) for name, block in self._cuts.items())
        self._lines: dict[str, list[str]] = {name: [] for name in self._cuts}

    def names(self) -> list[str]:
        """Name the zones, in order of address."""
        return [name for _, _, name in self._blocks]

    def take(self, named: Named, namer: Namer) -> None:
        """Add a record, or tell why there is none."""
        holding = named.holding
        if not is_single(holding):
            namer.leave_out(holding, "address", "a prefix has no PTR of its own")
        elif not named.domain:
            namer.leave_out(holding, "domain", f"{named.host!r} is in no domain; give a domain, or a label domain")
        else:
            zone = self._zone(holding.row.first)
            self._lines[zone].append(f"{owner_label(holding.row.first, zone)} IN PTR {named.full_name}.")

    def _zone(self, position: int) -> str:
        # 1 << 140 is above every position: the last block that begins at or below this one is found.
        return self._blocks[bisect_right(self._blocks, (position, 1 << 140, "")) - 1][2]

    def text(self, name: str, head: str, servers: Sequence[str]) -> str:
        """Write a zone's file."""
        note = _note(name, self._cuts[name], servers)
        return f"; Tenure: zone {name}\n{note}$ORIGIN {name}.\n{head}" + "".join(
            f"{line}\n" for line in self._lines[name]
        )


def _note(name: str, cidr: Cidr, servers: Sequence[str]) -> str:
    """Tell what the zone above must hold for a block below an octet (RFC 2317)."""
    if not is_classless(cidr):
        return ""
    label, _, parent = name.partition(".")
    first = int(label.partition("/")[0])
    last = first + cidr.range.size - 1
    lines = [f"{cidr} is smaller than a zone: by RFC 2317 the zone {parent} must hold"]
    lines += [f"  {label} IN NS {server}." for server in servers]
    lines += [f"  {number} IN CNAME {number}.{label}" for number in range(first, last + 1)]
    return "".join(f"; {line}\n" for line in lines)
