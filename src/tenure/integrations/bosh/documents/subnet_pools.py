"""Which addresses of a manual subnet are kept back, and which may only be asked for by address."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tenure.integrations.bosh.documents.address_lists import Spans, stray_end
from tenure.integrations.bosh.documents.subnet_properties import NetworkReading
from tenure.integrations.bosh.documents.yaml_tree import DocumentFaults
from tenure.integrations.bosh.model.address_text import written
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, BoshFault, DocumentPlace
from tenure.integrations.bosh.model.pool_ranges import restricted_ranges
from tenure.kernel.addressing.addresses import width
from tenure.kernel.addressing.ranges import AddressRange, Cidr, merge


@dataclass(frozen=True, slots=True)
class SubnetDraft:
    """What a manual subnet says about its addresses, each text well written; not yet held against each other."""

    network: str
    cidr: Cidr
    prefix: int
    usable_ends: bool
    gateway: int | None
    servers: Sequence[tuple[int, DocumentPlace]]
    reserved: Spans
    static: Spans


class Pools(NamedTuple):
    """The addresses of a subnet by what may be done with them; each merged. The rest may be picked."""

    reserved: tuple[AddressRange, ...]
    restricted: tuple[AddressRange, ...]
    static: tuple[AddressRange, ...]


def divide(draft: SubnetDraft, reading: NetworkReading) -> Pools:
    """Tell the kinds of addresses apart; what contradicts itself is a fault, and name servers are kept back."""
    reserved = [span for span, _ in _reserved(draft, reading.faults)]
    static = _static(draft, reading.faults)
    kept = [] if draft.usable_ends else [draft.cidr.first, draft.cidr.last]
    kept += [] if draft.gateway is None else [draft.gateway]
    restricted = restricted_ranges(draft.cidr.range, reserved, reading.own_addresses, kept)
    servers = _silent_servers(draft, restricted, merge(span for span, _ in static))
    reading.warnings.extend(_warning(draft, *server) for server in servers)
    restricted = merge([*restricted, *(AddressRange(server, server) for server, _ in servers)])
    _refuse_restricted(draft, static, restricted, reading.faults)
    return Pools(tuple(merge(reserved)), tuple(restricted), tuple(merge(span for span, _ in static)))


def _reserved(draft: SubnetDraft, faults: DocumentFaults) -> Spans:
    found = []
    for span, place in draft.reserved:
        if draft.cidr.range.covers(span):
            found.append((span, place))
        else:
            told = f"Reserved IP '{_outside(span, draft.cidr)}' is out of network '{draft.network}' range"
            faults.add(BoshErrorKind.NETWORK_RESERVED_IP_OUT_OF_RANGE, told, place)
    return found


def _static(draft: SubnetDraft, faults: DocumentFaults) -> Spans:
    """Return the static spans, widened to whole blocks: a base address stands for the block that is handed out."""
    found = []
    block = 1 << (width(draft.cidr.first) - draft.prefix)
    for span, place in draft.static:
        if not draft.cidr.range.covers(span):
            told = f"Static IP '{_outside(span, draft.cidr)}' is out of network '{draft.network}' range"
            faults.add(BoshErrorKind.NETWORK_STATIC_IP_OUT_OF_RANGE, told, place)
            continue
        misaligned = stray_end(span, block)
        if misaligned is not None:
            told = f"Static IP '{written(misaligned)}' of network '{draft.network}' is no base address"
            told += f" of prefix '{draft.prefix}'"
            faults.add(BoshErrorKind.NETWORK_PREFIX_STATIC_IP_NOT_BASE_ADDRESS, told, place)
            continue
        found.append((AddressRange(span.first, span.last | (block - 1)), place))
    return found


def _silent_servers(
    draft: SubnetDraft, restricted: Sequence[AddressRange], static: Sequence[AddressRange]
) -> list[tuple[int, DocumentPlace]]:
    """Find the name servers that would be handed out some day: in the range, and nothing else said about them.

    One in the static pool is left there: it goes only to who asks for it, such as the group that serves names.
    """
    inside = [(server, place) for server, place in draft.servers if server in draft.cidr.range]
    return [
        (server, place)
        for server, place in inside
        if not any(_touched(AddressRange(server, server), pool) for pool in (restricted, static))
    ]


def _refuse_restricted(
    draft: SubnetDraft, static: Spans, restricted: Sequence[AddressRange], faults: DocumentFaults
) -> None:
    for span, place in static:
        touched = _touched(span, restricted)
        if touched is not None:
            told = f"Static IP '{written(touched)}' is in network '{draft.network}' reserved range"
            faults.add(BoshErrorKind.NETWORK_STATIC_IP_OUT_OF_RANGE, told, place)


def _touched(span: AddressRange, merged: Sequence[AddressRange]) -> int | None:
    """Return the first address of a span that is in one of the ranges, which are sorted and disjoint."""
    number = bisect_left(merged, span.first, key=lambda each: each.last)
    if number == len(merged) or merged[number].first > span.last:
        return None
    return max(span.first, merged[number].first)


def _outside(span: AddressRange, cidr: Cidr) -> str:
    return written(cidr.last + 1 if span.first in cidr.range else span.first)


def _warning(draft: SubnetDraft, server: int, place: DocumentPlace) -> BoshFault:
    told = (
        f"DNS server '{written(server)}' is in network '{draft.network}' range: it is kept back as if it were reserved"
    )
    return BoshFault(BoshErrorKind.GENERIC, told, place)
