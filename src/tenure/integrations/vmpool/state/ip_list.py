"""The addresses of a pool: one canonical spelling each, and lists as ``VM_POOL_IPS`` has them, with ranges.

The spelling is Go's: an IPv4 address that is mapped into IPv6 stays one of IPv6 and is written with dots, and a zone
stays. Two spellings of one address are one address wherever they are compared.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from tenure.integrations.vmpool.pool_errors import INVALID_IP, NO_POOL_IPS
from tenure.kernel.errors import Invalid
from tenure.kernel.names import shown

MAX_RANGE_IPS = 100
"""How many addresses of a range are taken, unless a setting says otherwise."""

MOST_IPS = 65_536
"""More addresses than any ConfigMap holds, and few enough to be counted out."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
IPLike = str | Address


@dataclass(frozen=True, slots=True)
class IPList:
    """The addresses of a list in its order, each once, and what was left out of it and why."""

    ips: tuple[str, ...]
    remarks: tuple[str, ...] = ()


def canonical_ip(text: object) -> str | None:
    """Return the canonical spelling of an address; nothing if it is none."""
    parsed = _parsed(text)
    return None if parsed is None else _spelled(parsed)


def check_ip(value: object, *, field: str = "ip") -> str:
    """Return the canonical spelling of an address that a caller names, or say what is wrong."""
    if isinstance(value, ipaddress.IPv4Address | ipaddress.IPv6Address):
        return _spelled(value)
    found = canonical_ip(value)
    if found is None:
        raise Invalid(f"{field}: {_not_an_ip(value)}", field=field)
    return found


def check_pool_ips(value: object, *, field: str = "pool_ips") -> tuple[str, ...]:
    """Return the canonical addresses of a pool; one that is there twice, in whatever spelling, is refused (VD7)."""
    # Text is a sequence, too: of single letters.
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise Invalid(f"{field}: a list of IP addresses is needed; read_ip_list reads text", field=field)
    if not value:
        raise Invalid(NO_POOL_IPS, field=field)
    seen: dict[str, object] = {}
    for each in value:
        ip = canonical_ip(str(each) if isinstance(each, ipaddress.IPv4Address | ipaddress.IPv6Address) else each)
        if ip is None:
            raise Invalid(f"{_not_an_ip(each)} in {field}", field=field)
        if ip in seen:
            raise Invalid(f"{field}: {shown(each)} is there twice, first as {shown(seen[ip])}", field=field)
        seen[ip] = each
    return tuple(seen)


def read_ip_list(text: object, *, max_range_ips: int = MAX_RANGE_IPS, field: str = "VM_POOL_IPS") -> IPList:
    """Read addresses and ranges ``first-last`` between commas; empty entries are skipped.

    An address that is there again is left out, and a range is cut after ``max_range_ips``; the remarks say so. All
    else that is wrong is refused: ranges that go down or have one address, of two families or with a zone, networks,
    leading zeros. Cost: O(addresses taken), however long the ranges are.
    """
    if not isinstance(text, str):
        raise Invalid(f"{field}: text is needed, not {type(text).__name__}", field=field)
    if not isinstance(max_range_ips, int) or isinstance(max_range_ips, bool) or not 1 <= max_range_ips <= MOST_IPS:
        needed = f"a number from 1 to {MOST_IPS} is needed"
        raise Invalid(f"max_range_ips: {needed}, not {shown(max_range_ips)}", field="max_range_ips")
    ips: dict[str, None] = {}
    remarks: list[str] = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        taken, remark = _expanded(entry, max_range_ips, field)
        again = [ip for ip in taken if ip in ips]
        remarks += filter(None, [remark])
        if again:
            more = f" and {len(again) - 1} more" if len(again) > 1 else ""
            remarks.append(f"{field}: {again[0]}{more} of {entry!r} is there already, and counts once")
        ips.update(dict.fromkeys(taken))
        if len(ips) > MOST_IPS:
            raise Invalid(f"{field}: more than {MOST_IPS} addresses, which no ConfigMap holds", field=field)
    return IPList(tuple(ips), tuple(remarks))


def _expanded(entry: str, most: int, field: str) -> tuple[list[str], str]:
    """Return the addresses of an entry, and what to say about those that were left out."""
    single = canonical_ip(entry)
    if single is not None or "-" not in entry:
        if single is None:
            raise Invalid(f"{_not_an_ip(entry)} in {field}", field=field)
        return [single], ""
    first, last = _ends(entry, field)
    count = int(last) - int(first) + 1
    taken = [_spelled(first + number) for number in range(min(count, most))]
    if count <= most:
        return taken, ""
    return taken, f"{field}: of the {count} addresses of {entry!r} only the first {most} are used (MAX_RANGE_IPS)"


def _ends(entry: str, field: str) -> tuple[Address, Address]:
    # Blanks inside a range are refused, as by the Go managers: what is meant by them is a guess.
    texts = entry.split("-")
    ends = [end for end in map(_parsed, texts) if end is not None]
    if len(texts) != 2 or len(ends) != 2:
        wrong = next((text for text in texts if _parsed(text) is None), entry)
        raise Invalid(f"{_not_an_ip(wrong)} in the range {shown(entry)} of {field}", field=field)
    first, last = ends
    if any("%" in text for text in texts):
        raise Invalid(f"{field}: the range {shown(entry)} has a zone; name its addresses one by one", field=field)
    if first.version != last.version or is_mapped(first) != is_mapped(last):
        raise Invalid(f"{field}: the range {shown(entry)} begins in one family and ends in another", field=field)
    if int(first) >= int(last):
        raise Invalid(f"{field}: the range {shown(entry)} must begin below its end", field=field)
    return first, last


def is_mapped(address: Address) -> bool:
    """Return whether an address of IPv6 is one of IPv4 in another form."""
    return address.version == 6 and address.ipv4_mapped is not None


def _parsed(text: object) -> Address | None:
    if not isinstance(text, str):
        return None
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _spelled(address: Address) -> str:
    if address.version == 6 and address.ipv4_mapped is not None:
        # Versions of Python differ here.
        zone = f"%{address.scope_id}" if address.scope_id else ""
        return f"::ffff:{address.ipv4_mapped}{zone}"
    return address.compressed


def _not_an_ip(value: object) -> str:
    spelled = f'"{value[:80]}"' if isinstance(value, str) else shown(value)
    return f"{INVALID_IP}: {spelled} is neither IPv4 nor IPv6"
