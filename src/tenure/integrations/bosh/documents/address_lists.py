"""Addresses as ``reserved``, ``static`` and ``static_ips`` list them: one, a block, or ``first - last``."""

import ipaddress

from tenure.integrations.bosh.documents.yaml_tree import DocumentFaults, Reader, Tree
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, DocumentPlace
from tenure.kernel.addressing.addresses import is_v6, parse_address
from tenure.kernel.addressing.ranges import AddressRange, parse_cidr
from tenure.kernel.errors import Invalid

Spans = list[tuple[AddressRange, DocumentPlace]]


def read_spans(tree: Tree, faults: DocumentFaults) -> Spans:
    """Read one span or a list of them, in the order written; what is none is a fault with its place."""
    found: Spans = []
    for member in tree.value if isinstance(tree.value, list) else [tree]:
        if not isinstance(member.value, str):
            Reader(faults).refuse_value(member, "must be text: an address, a block, or first - last")
            continue
        try:
            found.append((parse_span(member.value), member.place))
        except Invalid as error:
            faults.add(BoshErrorKind.NETWORK_INVALID_IP_RANGE_FORMAT, error.message, member.place)
    return found


def parse_span(text: str) -> AddressRange:
    """Turn one address, a block, or ``first - last`` into a range; one that runs backwards is none."""
    ends = [part.strip() for part in text.split("-")]
    if len(ends) == 1:
        return parse_address_or_block(ends[0])
    if len(ends) > 2 or any("/" in end or not end for end in ends):
        raise Invalid(f"Invalid IP range format: {text}")
    first, last = (parse_address_or_block(end).first for end in ends)
    # Positions of both families lie on one line, so a mixed range can run forwards.
    if is_v6(first) != is_v6(last) or first > last:
        raise Invalid(f"Invalid IP range format: {text}")
    return AddressRange(first, last)


def parse_address_or_block(text: str, *, strict: bool = False) -> AddressRange:
    """Turn one address or a block into a range.

    Host bits are masked, as BOSH does: 10.0.0.1/30 is 10.0.0.0/30. ``strict``: they are refused.
    """
    try:
        if "/" not in text:
            position = parse_address(text)
            return AddressRange(position, position)
        return parse_cidr(text if strict else _masked(text)).range
    except Invalid:
        hint = f" (the block around it is {_masked(text)})" if _masked(text) != text else ""
        raise Invalid(f"Invalid IP or CIDR format: {text}{hint}") from None


def _masked(text: str) -> str:
    """Write the block around an address with a length; a text that is none stays what it is."""
    try:
        block = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return text
    # ipaddress reads zone ids (fe80::1%eth0), which no address of the ledger has, and masks them as well.
    return text if "%" in text or "/" not in text else str(block)


def stray_end(span: AddressRange, block: int) -> int | None:
    """Return the end of a span that cuts a block in two: it begins at a base, and ends at one or where a block does."""
    if span.first % block:
        return span.first
    return span.last if span.last % block and (span.last + 1) % block else None
