"""Search: every object of the ledger by text, by labels and by place."""

import enum
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tenure.kernel.addressing.addresses import format_address, width
from tenure.kernel.addressing.ranges import AddressRange, parse_range
from tenure.kernel.errors import Invalid
from tenure.kernel.holdings.holding_model import Holding, Row
from tenure.kernel.names import check_labels, check_text, shown
from tenure.kernel.plan.layout import Layout
from tenure.kernel.plan.plan_model import Configuration, Network, Places, Subnet
from tenure.ports import LedgerStore
from tenure.service.read.current_rows import current_rows
from tenure.service.read.presenter import known_holdings

PAGE = 1000


class ObjectKind(enum.StrEnum):
    """What can be found, in the order it is."""

    NETWORK = "network"
    SUBNET = "subnet"
    POOL = "pool"
    RESERVED = "reserved"
    PREALLOCATION = "preallocation"
    HOLDING = "holding"


@dataclass(frozen=True, slots=True)
class Found:
    """An object that a search found: what it is, where, and what is written on it.

    ``name`` is what it goes by: of a network, subnet or pool its name; of a reserved range the reason; of the others
    the owner. ``address`` is where it lies: a block, a range or an address; a network lies nowhere by itself.
    """

    kind: ObjectKind
    network: str
    name: str
    address: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    description: str = ""
    holding: Holding | None = None

    def __str__(self) -> str:
        where = "" if self.kind is ObjectKind.NETWORK else f" in {self.network}"
        return " ".join(word for word in (self.kind, self.address, self.name) if word) + where


@dataclass(frozen=True, slots=True)
class SearchTerms:
    """What is searched for, read and checked."""

    text: str | None = None
    place: AddressRange | None = None
    labels: Mapping[str, str | None] = field(default_factory=dict)
    kind: ObjectKind | None = None

    def takes(self, kind: ObjectKind) -> bool:
        """Tell whether objects of a kind are wanted at all."""
        return self.kind in (None, kind)

    def fits(self, labels: Mapping[str, str], where: AddressRange | None, words: Iterable[str | None]) -> bool:
        """Tell whether an object with these labels, in this place, with these words on it is wanted."""
        for name, value in self.labels.items():
            if name not in labels or value not in (None, labels[name]):
                return False
        if self.place is not None:
            return where is not None and where.overlaps(self.place)
        text = self.text
        return text is None or any(text in word.casefold() for word in words if word)


def read_wanted(text: object, labels: object, kind: object) -> SearchTerms:
    """Read what a search is for; at least one thing must be said."""
    words = None if text is None else check_text(text, field="text")
    if words is not None and not words.strip():
        raise Invalid("text: something to search for is needed", field="text")
    if words is None and not labels and kind is None:
        raise Invalid("text: a search needs a text, labels or a kind", field="text")
    place = None if words is None else _place(words)
    searched = None if words is None else words.strip().casefold()
    return SearchTerms(searched, place, _labels({} if labels is None else labels), _kind(kind))


def _place(text: str) -> AddressRange | None:
    try:
        return parse_range(text, field="text")
    except Invalid:
        return None


def _labels(value: object) -> dict[str, str | None]:
    if not isinstance(value, Mapping):
        raise Invalid(f"labels: a mapping of text to text is needed, not {type(value).__name__}", field="labels")
    said = check_labels({name: text for name, text in value.items() if text is not None})
    there = check_labels({name: "" for name, text in value.items() if text is None})
    return {**said, **dict.fromkeys(there)}


def _kind(value: object) -> ObjectKind | None:
    try:
        return None if value is None else ObjectKind(value)  # type: ignore[arg-type]  # another type is no kind either
    except ValueError:
        raise Invalid(f"kind: {shown(value)} is none of {', '.join(ObjectKind)}", field="kind") from None


async def find(
    store: LedgerStore, spaces: Sequence[Configuration], wanted: SearchTerms, network: str | None
) -> AsyncIterator[Found]:
    """Yield what is wanted: the plan first, then holdings in order of space and address."""
    for configuration in spaces:
        for name, one in configuration.networks.items():
            if network in (None, name):
                for candidate in _in_plan(one):
                    if wanted.takes(candidate.found.kind) and candidate.fits(wanted):
                        yield candidate.found
    if wanted.takes(ObjectKind.HOLDING):
        for configuration in spaces:
            if network is None or network in configuration.networks:
                async for found_holding in _holdings(store, configuration, wanted, network):
                    yield found_holding


async def first_of(found: AsyncIterator[Found], most: int) -> AsyncIterator[Found]:
    """Yield no more than so many, and look no further."""
    async for each in found:
        yield each
        most -= 1
        if most <= 0:
            return


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An object of the plan with all that it may be found by."""

    found: Found
    where: AddressRange | None = None
    words: tuple[str, ...] = ()

    def fits(self, wanted: SearchTerms) -> bool:
        found = self.found
        return wanted.fits(found.labels, self.where, (found.name, found.address, found.description, *self.words))


def _in_plan(network: Network) -> Iterator[_Candidate]:
    notes = network.notes
    itself = Found(ObjectKind.NETWORK, network.name, network.name, None, notes.labels, notes.description)
    yield _Candidate(itself, None, (network.uuid, *network.tags))
    for subnet in network.subnets:
        yield from _in_subnet(network.name, subnet)
    places = Places(network.subnets)
    for wish in network.preallocations:
        around = places.around(wish.position)
        notes, address = wish.notes, format_address(wish.position)
        found = Found(ObjectKind.PREALLOCATION, network.name, wish.owner, address, notes.labels, notes.description)
        yield _Candidate(found, None if around is None else around.unit_at(wish.position), (wish.slot,))


def _in_subnet(network: str, subnet: Subnet) -> Iterator[_Candidate]:
    notes, block = subnet.notes, str(subnet.cidr)
    itself = Found(ObjectKind.SUBNET, network, subnet.name or "", block, notes.labels, notes.description)
    yield _Candidate(itself, subnet.cidr.range, (subnet.uuid,))
    for pool in subnet.pools:
        notes, where = pool.notes, str(pool.range)
        found = Found(ObjectKind.POOL, network, pool.name or "", where, notes.labels, notes.description)
        yield _Candidate(found, pool.range)
    for kept in subnet.reserved:
        notes, where = kept.notes, str(kept.range)
        found = Found(ObjectKind.RESERVED, network, kept.reason, where, notes.labels, notes.description)
        yield _Candidate(found, kept.range)


async def _holdings(
    store: LedgerStore, configuration: Configuration, wanted: SearchTerms, network: str | None
) -> AsyncIterator[Found]:
    layout = Layout(configuration)
    number = None if network is None else configuration.network(network).id
    async for page in _pages(store, configuration, wanted.place):
        fitting = [row for row in page if number in (None, row.network) and _fits(row, wanted)]
        # Filtered first: the store's clock is read only if a row that fits has a deadline.
        for holding in known_holdings(await current_rows(store, fitting), layout):
            yield Found(
                ObjectKind.HOLDING,
                holding.network,
                holding.owner,
                _written(holding.row),
                holding.labels,
                holding.description,
                holding,
            )


async def _pages(
    store: LedgerStore, configuration: Configuration, place: AddressRange | None
) -> AsyncIterator[Sequence[Row]]:
    """Read a space's holdings: those in a place, or all of them."""
    if place is None:
        async for page in store.held(configuration.space):
            yield page
        return
    start = place.first
    while start <= place.last:
        page = await store.rows_within(configuration.space, start, place.last, limit=PAGE)
        yield page
        if len(page) < PAGE:
            return
        start = page[-1].last + 1


def _fits(row: Row, wanted: SearchTerms) -> bool:
    told = row.details
    words = (row.owner, row.slot, told.get("description"), told.get("carrier"), told.get("plan"))
    where = AddressRange(row.first, row.last)
    # Writing an address costs more than all the rest: it comes last, and only where text is searched for.
    return wanted.fits(told.get("labels", {}), where, words) or (
        wanted.place is None and wanted.text is not None and wanted.fits(told.get("labels", {}), where, [_written(row)])
    )


def _written(row: Row) -> str:
    prefix = "" if row.first == row.last else f"/{width(row.first) - (row.last - row.first).bit_length()}"
    return f"{format_address(row.first)}{prefix}"
