"""The fields of requests as the document describes them: lengths, patterns, choices.

They are told, not checked: the ledger checks, in its own words. So a server and a library refuse alike.
"""

from collections.abc import Iterable
from typing import Annotated, Any

from msgspec import Meta

from tenure.kernel.addressing.addresses import Family
from tenure.kernel.holdings.holding_model import State
from tenure.kernel.names import CENTURY_S, MAX_LABELS, MAX_NAME, MAX_TEXT
from tenure.kernel.plan.edit_fields import MOST_RANK
from tenure.kernel.plan.plan_model import KeepBack, NetworkKind, Policy
from tenure.service.allocator.claim import REACHES

LARGEST = (1 << 63) - 1
A_YEAR_S = 366 * 86400

_DARK = r"\x00-\x1f\x7f"
"""Control characters; what else is not printable is refused as well, but has no short pattern."""

NAME_PATTERN = rf"^[^\s{_DARK}]([^{_DARK}]*[^\s{_DARK}])?$"
SLOT_PATTERN = rf"^([^\s{_DARK}]([^{_DARK}]*[^\s{_DARK}])?)?$"
OWNER_PATTERN = r"^([A-Za-z0-9][A-Za-z0-9_.-]*:)?[A-Za-z][A-Za-z0-9_.-]*/" rf"[^{_DARK}]*[^\s{_DARK}]$"
TEXT_PATTERN = r"^[^\x00-\x08\x0b-\x1f\x7f]*$"
UNIT_PATTERN = r"^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$"
CIDR_PATTERN = r"^[0-9A-Fa-f:.]+/[0-9]{1,3}$"
SPAN_PATTERN = r"^\s*[0-9A-Fa-f:.]+\s*([-+]\s*[0-9A-Fa-f:.]+|/[0-9]{1,3})?\s*$"
MAC_PATTERN = r"^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){2}$"


def told(about: str = "", *examples: Any, **schema: Any) -> Meta:
    """Return what the document tells of a field."""
    return Meta(description=about or None, examples=list(examples) or None, extra_json_schema=schema or None)


def told_name(about: str = "", *examples: str) -> Meta:
    """Return what the document tells of a name."""
    return told(about, *examples, minLength=1, maxLength=MAX_NAME, pattern=NAME_PATTERN)


def one_of(about: str, words: Iterable[str]) -> Meta:
    """Return what the document tells of a word out of a few."""
    choice = [str(word) for word in words]
    return told(about, choice[0], enum=choice)


def count(about: str, *examples: int, most: int = LARGEST) -> Meta:
    """Return what the document tells of a number from 0 on."""
    return told(about, *examples, minimum=0, maximum=most)


def seconds(about: str, *examples: float) -> Meta:
    """Return what the document tells of a time span."""
    return told(about, *examples, exclusiveMinimum=0, maximum=CENTURY_S)


Name = Annotated[str, told_name("", "net1")]
Text = Annotated[str, told("Free text for people.", "web tier", maxLength=MAX_TEXT, pattern=TEXT_PATTERN)]
Slot = Annotated[
    str,
    told("Which of an owner's addresses, when it holds several.", "nic0/ip1", maxLength=MAX_NAME, pattern=SLOT_PATTERN),
]
RequestId = Annotated[
    str,
    told("The X-Request-ID of a request.", "8f14e45fceea167a", maxLength=64, pattern="^[A-Za-z0-9._:/-]+$"),
]
Owner = Annotated[
    str,
    told("kind/id, or realm:kind/id.", "instance/web-0", minLength=3, maxLength=2 * MAX_NAME, pattern=OWNER_PATTERN),
]
Address = Annotated[
    str, told("An IPv4 or IPv6 address.", "192.0.2.10", maxLength=45, anyOf=[{"format": "ipv4"}, {"format": "ipv6"}])
]
UnitAddress = Annotated[
    str,
    told(
        "An IPv4 or IPv6 address; with a length, such as 2001:db8::/64, only that of what is handed out there.",
        "192.0.2.10",
        maxLength=49,
        pattern=UNIT_PATTERN,
    ),
]
Cidr = Annotated[
    str, told("A block in CIDR form, without host bits.", "192.0.2.0/24", maxLength=49, pattern=CIDR_PATTERN)
]
Span = Annotated[
    str,
    told(
        "One address, first-last (both included), a block, or start+size.",
        "192.0.2.10-192.0.2.99",
        maxLength=MAX_NAME,
        pattern=SPAN_PATTERN,
    ),
]
StateText = Annotated[str, one_of("The state of a holding.", State)]
Labels = Annotated[
    dict[str, Text],
    told(
        "Names and texts that people or programs put on a thing.",
        {"team": "shop"},
        maxProperties=MAX_LABELS,
        propertyNames={"minLength": 1, "maxLength": MAX_NAME, "pattern": NAME_PATTERN},
    ),
]

AddedLabels = Annotated[
    dict[str, Text],
    told(
        "Labels to add, or to write over; the others stay as they are. `labels` replaces them all.",
        {"team": "shop"},
        maxProperties=MAX_LABELS,
        propertyNames={"minLength": 1, "maxLength": MAX_NAME, "pattern": NAME_PATTERN},
    ),
]

KNOWN: dict[str, Any] = {
    "add_labels": AddedLabels,
    "address": UnitAddress,
    "carrier": Annotated[str, told_name("The machine that has the address now.", "vm-17")],
    "cidr": Cidr,
    "cooling_s": Annotated[
        int, count("For so many seconds a released address is not handed out again.", 300, most=A_YEAR_S)
    ],
    "description": Text,
    "dns": list[Address],
    "document": dict[str, Any],
    "gateway": Address,
    "family": Annotated[str, one_of("Only addresses of this family.", Family)],
    "generation": Annotated[int, count("The holding's generation: a late request never meets a later grant.", 17)],
    "group": Annotated[str, told_name("A group of nodes.", "rack1")],
    "ident": Annotated[str, told_name("An instance of the group, by its index or its uuid.", "0")],
    "instance_group": Annotated[str, told_name("A group of instances.", "web")],
    "keep_back": list[Annotated[str, one_of("What a subnet keeps back by itself.", KeepBack)]],
    "key": Annotated[str, told_name("An idempotency key of this wish alone.")],
    "kind": Annotated[str, told_name("The kind of a paper.", "instance")],
    "labels": Labels,
    "lasts_s": Annotated[float, seconds("A pending holding may be removed after so many seconds.", 60)],
    "lingers_s": Annotated[float, seconds("Let the address cool so many seconds at least.", 60)],
    "link": Text,
    "mac_prefix": Annotated[str, told("The beginning of MAC addresses.", "aa:00:10", pattern=MAC_PATTERN)],
    "mark": Annotated[str, told("The mark of what was read.", minLength=1, maxLength=64)],
    "mode": Annotated[str, told_name("How the network reaches the group.", "bridged")],
    "name": Name,
    "network": Name,
    "owner": Owner,
    "owners": list[Owner],
    "plan": Annotated[str, told_name("The operation that the holding belongs to.", "deployment-7")],
    "policy": Annotated[str, one_of("How a free address is picked.", Policy)],
    "pool": Annotated[str, told_name("A pool, by its name or its exact range.", "pool1")],
    "prefix": Annotated[str, told_name("How names begin.")],
    "range": Span,
    "rank": Annotated[int, count("Pools of a lower rank are picked from first.", 1, most=MOST_RANK)],
    "reason": Text,
    "remove_labels": Annotated[list[Name], told("Labels to remove, by name; the others stay as they are.", ["team"])],
    "request": Annotated[str, told_name("By which request of the caller's own this is done.", "ticket-4711")],
    "reserved": Annotated[
        str, one_of("How far a named address may reach into what is reserved or kept back.", REACHES)
    ],
    "revision": Annotated[int, count("The revision that was read; 0 for a new one.", 0)],
    "serial": Annotated[int, count("The network's serial number when it was read.", 3)],
    "slot": Slot,
    "slots": list[Slot],
    "space": Annotated[str, told_name("The space to lie in; without one the network gets its own.", "site")],
    "state": StateText,
    "subnet": Annotated[str, told_name("A subnet, by its name, block or uuid.", "subnet1")],
    "tags": list[Name],
    "to": Owner,
    "to_slot": Slot,
    "unit": Annotated[
        int, count("The prefix length that the subnet hands out; a single address by default.", 32, most=128)
    ],
    "uuid": Annotated[str, told_name("A uuid that others know it by.")],
    "vlan": Text,
    "zone": Annotated[str, told_name("Only from subnets in this zone, or in none.", "z1")],
    "zones": list[Name],
}
"""Fields that mean the same wherever they stand."""

SPECIAL: dict[tuple[str, str], Any] = {
    ("AddNetwork", "kind"): Annotated[str, one_of("What a network is to its machines.", NetworkKind)],
    ("ModifyNetwork", "kind"): Annotated[str, one_of("What a network is to its machines.", NetworkKind)],
}
"""Fields that mean something else on one operation."""
