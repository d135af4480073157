"""Readings held against each other. Nothing here asks or changes anything."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tenure.integrations.neutron.address_requests import UNNAMED, owner_of, port_of
from tenure.integrations.neutron.database.allocation_rows import HeldAddress
from tenure.integrations.neutron.database.subnet_records import SubnetRecord
from tenure.integrations.neutron.database.unreadable_rows import Unreadable
from tenure.integrations.neutron.maintenance.drift import Drift
from tenure.integrations.neutron.maintenance.held_spans import HeldSpans
from tenure.integrations.neutron.maintenance.neutron_tables import TrueSubnet
from tenure.integrations.neutron.transaction.ledger_plan import is_ours, ledger_owner
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.addressing.ranges import AddressRange, Cidr, parse_cidr
from tenure.kernel.holdings.holding_model import Holding, State

Ports = Mapping[int, str | None]
Rows = Mapping[int, HeldAddress]

OUTSIDE = "address-outside"
OUT_OF = "{} carries it, and it is outside of the subnet {}; give the port another address"


@dataclass(frozen=True, slots=True)
class Seen:
    """One subnet as Neutron has it, and as we have it, at one moment.

    ``coming``: ports that are not there yet, for which we have rows that are not older than ``grace_s``; ``planned``:
    the record is yet to be written. What cannot be read: ``blind`` says it of Neutron's own subnet, ``broken`` of our
    record, ``unreadable`` of rows on both sides; ``doubtful`` are the ports of such rows of Neutron's.
    """

    id: str
    truth: TrueSubnet | None
    record: SubnetRecord | None
    ports: Ports
    rows: Rows
    odd: Mapping[int, str] = field(default_factory=dict)
    coming: Mapping[int, str] = field(default_factory=dict)
    grace_s: int = 0
    planned: bool = False
    blind: Unreadable | None = None
    broken: Unreadable | None = None
    unreadable: Sequence[Drift] = ()
    doubtful: frozenset[str | None] = frozenset()

    def carriers(self) -> Ports:
        """Tell which port carries an address, or is about to; but for what can be had nowhere in the subnet."""
        # The later mapping wins: an address that a port is known to carry counts more than a row without a port.
        carried = {**self.kept(self.rows), **self.coming, **self.ports}
        away = set(self.outside())
        return {place: port for place, port in carried.items() if place not in away}

    def kept(self, rows: Rows) -> Ports:
        """Tell which rows are of ports whose addresses cannot be read: each may be the one that is meant."""
        ports = ((place, port_of(row.owner)) for place, row in rows.items()) if self.doubtful else ()
        return {place: port for place, port in ports if port in self.doubtful}

    def outside(self) -> list[int]:
        """List the addresses that ports carry outside of the subnet's block, and for which there is no row."""
        block = self.block()
        if block is None:
            return []
        return [place for place in self.ports if place not in block.range and place not in self.rows]

    def block(self) -> Cidr | None:
        """Return the block of the subnet, as Neutron has it or else as we have it."""
        told = self.truth or self.record
        return None if told is None else parse_cidr(told.cidr)

    def spellings(self, places: Iterable[int]) -> set[str]:
        """Write places as Neutron may: as everybody does, and the odd ones as it does."""
        return {text for place in places for text in (format_address(place), self.odd.get(place)) if text}


def compare_subnet(seen: Seen, space: str | None) -> list[Drift]:
    """Compare the record of a subnet with Neutron's; ``space`` is what the configuration maps it to."""
    truth, record = seen.truth, seen.record
    if truth is None or record is None:
        found = _compare_one_sided(seen)
        return [] if found is None else [found]
    drifts = []
    if differences := _differences(truth, record):
        drifts.append(Drift("subnet-differs", seen.id, "; ".join(differences)))
    if record.space != space:
        text = f"it is in {_space(record.space)}, and the configuration maps it to {_space(space)}"
        drifts.append(Drift("subnet-space", seen.id, text))
    return drifts


def _compare_one_sided(seen: Seen) -> Drift | None:
    """Say what it means that there is nothing, or nothing to be read, on one side."""
    if seen.blind is not None:
        return unreadable_row("subnet-unreadable", seen.blind, left=True)
    if seen.truth is None:
        text = f"Neutron has no such subnet; the driver's tables have one with {len(seen.rows)} addresses"
        return None if seen.record is None and seen.broken is None else Drift("subnet-extra", seen.id, text)
    if seen.broken is not None:
        return unreadable_row("subnet-unreadable", seen.broken)
    text = f"the driver's tables lack this subnet {seen.truth.cidr}, and a row for each of its addresses"
    return Drift("subnet-missing", seen.id, f"{text} ({len(seen.ports)})")


def unreadable_row(kind: str, error: Unreadable, *, left: bool = False) -> Drift:
    """Tell of a row that cannot be read; what is Neutron's own is left as it is."""
    whose = f"Neutron's own table {error.table}" if left else f"table {error.table}"
    hint = "; it has to be put right in Neutron" if left else ""
    return Drift(kind, error.subnet, f"in {whose} {error.reason}{hint}", repairable=not left)


def compare_outside(seen: Seen) -> list[Drift]:
    """List the addresses that ports carry outside of the subnet's block: nobody can hold them there."""
    owners = {place: owner_at(place, seen.ports, {}) for place in sorted(seen.outside())}
    return [
        Drift(OUTSIDE, seen.id, OUT_OF.format(owner, seen.block()), place, repairable=False)
        for place, owner in owners.items()
    ]


def _differences(truth: TrueSubnet, record: SubnetRecord) -> list[str]:
    pairs = {
        "cidr": (parse_cidr(truth.cidr), parse_cidr(record.cidr)),
        "gateway": (_gateway(truth.gateway_ip), _gateway(record.gateway_ip)),
        "pools": (_ranges(truth.pools), _ranges(record.pools)),
    }
    return [f"{name} is {ours}, in Neutron {true}" for name, (true, ours) in pairs.items() if true != ours]


def _gateway(text: str | None) -> str | None:
    return None if text is None else format_address(parse_address(text))


def _ranges(pools: Iterable[AddressRange]) -> str:
    texts = (f"{format_address(pool.first)}-{format_address(pool.last)}" for pool in sorted(pools))
    return ", ".join(texts) or "none"


def _space(space: str | None) -> str:
    return "a space of its own" if space is None else f"space {space!r}"


def owner_at(place: int, ports: Ports, rows: Rows) -> str:
    """Name who should hold an address that Neutron has; of one without a port, anybody may."""
    port = ports[place]
    if port is not None:
        return owner_of(port)
    return rows[place].owner if place in rows else f"{UNNAMED}/{format_address(place)}"


def compare_rows(subnet: str, ports: Ports, rows: Rows) -> list[Drift]:
    """Compare our rows of a subnet with the addresses that ports carry."""
    drifts = []
    for place in sorted(ports.keys() | rows.keys()):
        if place not in ports:
            drifts.append(Drift("row-extra", subnet, f"a row for {rows[place].owner}; no port carries it", place))
            continue
        owner = owner_at(place, ports, rows)
        if place not in rows:
            drifts.append(Drift("row-missing", subnet, f"{owner} carries it; there is no row", place))
        elif rows[place].owner != owner:
            text = f"the row is for {rows[place].owner}, and {owner} carries it"
            drifts.append(Drift("row-owner", subnet, text, place))
    return drifts


def compare_coming(seen: Seen) -> list[Drift]:
    """List the rows whose ports are not there yet."""
    text = "a row for {owner}, younger than {grace_s} s; no port carries it yet"
    return [
        Drift("row-early", seen.id, text.format(owner=seen.rows[place].owner, grace_s=seen.grace_s), place)
        for place in sorted(seen.coming)
    ]


def expected_rows(ports: Ports, rows: Rows) -> dict[int, HeldAddress]:
    """Return the rows as they should be."""
    wanted: dict[int, HeldAddress] = {}
    for place in ports:
        owner, row = owner_at(place, ports, rows), rows.get(place)
        wanted[place] = row if row is not None and row.owner == owner else HeldAddress(place, owner, 0)
    return wanted


@dataclass(frozen=True, slots=True)
class LedgerReading:
    """The holdings of a subnet's network, and who is in the way of it from elsewhere in its space."""

    realm: str
    holdings: Mapping[int, Holding]
    others: HeldSpans
    block: Cidr

    def ours(self, holding: Holding) -> bool:
        """Tell whether an owner of this deployment holds it."""
        return is_ours(self.realm, holding)


def compare_holdings(subnet: str, rows: Rows, reading: LedgerReading) -> list[Drift]:
    """Compare a ledger's holdings with the rows as they should be; what others hold where no row is, is theirs."""
    drifts = []
    for place in sorted(rows.keys() | reading.holdings.keys()):
        row, holding = rows.get(place), reading.holdings.get(place)
        if row is not None:
            found = _compare_held(subnet, row, holding, reading)
        else:
            found = None if holding is None else _compare_extra(subnet, holding, reading)
        drifts += [] if found is None else [found]
    return drifts


def _compare_extra(subnet: str, holding: Holding, reading: LedgerReading) -> Drift | None:
    # A cooling holding ends by itself, and a guest's holding is no business of Neutron's.
    if holding.state is State.COOLING or not reading.ours(holding):
        return None
    what = f"{holding.state}, generation {holding.generation}"
    text = f"{holding.owner} has it in the ledger ({what}); no port carries it"
    return Drift("holding-extra", subnet, text, holding.row.first)


def _compare_held(subnet: str, row: HeldAddress, holding: Holding | None, reading: LedgerReading) -> Drift | None:
    place, owner = row.place, ledger_owner(reading.realm, row.owner)
    # A cooling holding belongs to no owner any more: the port counts as one without a holding.
    if holding is None or holding.state is State.COOLING:
        other = reading.others.at(place)
        if other is not None:
            text = f"{owner} carries it, and {other} holds it in the shared space"
            return Drift("address-conflict", subnet, text, place, repairable=False)
        if place not in reading.block.range:
            return Drift(OUTSIDE, subnet, OUT_OF.format(owner, reading.block), place, repairable=False)
        return Drift("holding-missing", subnet, f"{owner} carries it; the ledger has no holding", place)
    if holding.row.owner != owner:
        text = f"{owner} carries it, and {holding.owner} holds it in the ledger"
        ours = reading.ours(holding)
        return Drift("holding-owner" if ours else "address-conflict", subnet, text, place, repairable=ours)
    if holding.state is not State.HELD:
        kind = f"holding-{holding.state}"
        return Drift(kind, subnet, f"{owner} carries it; in the ledger it is {holding.state}", place)
    if row.generation and holding.generation != row.generation:  # without a number it is any
        text = f"the row is of generation {row.generation}, the holding of {holding.generation}"
        return Drift("row-generation", subnet, text, place)
    return None
