"""What the API answers: one shape a kind of thing. The OpenAPI document is made from these.

Times are RFC 3339, in UTC. Numbers of spaces and networks are the ledger's own; names may change, they do not.
"""

from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

Address = Annotated[str, Meta(description="An IPv4 or IPv6 address.", examples=["192.0.2.10"])]
Cidr = Annotated[str, Meta(description="A block in CIDR form.", examples=["192.0.2.0/24"])]
Span = Annotated[
    str, Meta(description="One address, or first-last, both included.", examples=["192.0.2.10-192.0.2.99"])
]
Name = Annotated[str, Meta(min_length=1, max_length=255, examples=["net1"])]
OwnerText = Annotated[str, Meta(description="kind/id, or realm:kind/id.", examples=["instance/web-0"])]
FamilyName = Annotated[str, Meta(description="`ipv4` or `ipv6`.", examples=["ipv4"])]
"""Empty where an older server answered, which does not say it."""
Labels = dict[str, str]

Time = Annotated[datetime, Meta(tz=True, description="RFC 3339.", examples=["2026-02-03T04:05:06.789Z"])]

T = TypeVar("T")


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is answered."""


class Page(Shape, Generic[T], frozen=True, kw_only=True):
    """A page of a list. ``next`` is the ``after`` of the next page; null if this was the last."""

    items: list[T]
    next: str | None = None


class Listing(Shape, Generic[T], frozen=True, kw_only=True):
    """A list that comes whole."""

    items: list[T]


class Holding(Shape, frozen=True, kw_only=True):
    """An address (or prefix) held by an owner.

    ``warnings`` are there where a request was answered with a holding from before that is not written as it says.
    """

    address: Address
    last_address: Address
    unit: int
    family: FamilyName = ""
    network: str
    prefix: int
    gateway: str | None
    owner: OwnerText
    slot: str
    state: str
    generation: int
    since: Time
    until: Time | None
    request: str | None
    labels: Labels
    description: str
    carrier: str | None
    plan: str | None
    actor: str | None
    request_id: str | None
    space: int
    network_number: int
    warnings: list[str] | UnsetType = UNSET


class Pool(Shape, frozen=True, kw_only=True):
    """A range to pick from; ranges of one name are one pool."""

    range: Span
    name: str | None
    policy: str
    cooling_s: int
    retired: bool
    # An older server does not say it.
    rank: int = 0
    labels: Labels
    description: str


class Reserved(Shape, frozen=True, kw_only=True):
    """A range kept away from picking, and on whose word."""

    range: Span
    reason: str
    request: str | None
    labels: Labels
    description: str


class Preallocation(Shape, frozen=True, kw_only=True):
    """An address that waits for one owner."""

    owner: OwnerText
    slot: str
    address: Address
    request: str | None
    labels: Labels
    description: str


class Subnet(Shape, frozen=True, kw_only=True):
    """A block of a network, with its pools and reserved ranges."""

    cidr: Cidr
    uuid: str
    name: str | None
    gateway: str | None
    dns: list[str]
    dhcp: bool
    zones: list[str]
    unit: int
    keep_back: list[str]
    pools: list[Pool]
    reserved: list[Reserved]
    retired: bool
    labels: Labels
    description: str


class AddedSubnet(Subnet, frozen=True, kw_only=True):
    """A new block of a network; ``warnings`` say what else adding it did."""

    warnings: list[str] = []


class Connection(Shape, frozen=True, kw_only=True):
    """How a network reaches a group of nodes."""

    group: str
    mode: str
    link: str
    vlan: str


class Network(Shape, frozen=True, kw_only=True):
    """A named thing machines attach to. ``serial`` counts its changes and is its ETag with the uuid.

    ``warnings`` tell what the edit that is answered did beside what it says; readings have none.
    """

    name: str
    number: int
    uuid: str
    kind: str
    mac_prefix: str | None
    tags: list[str]
    subnets: list[Subnet]
    preallocations: list[Preallocation]
    connections: list[Connection]
    retired: bool
    labels: Labels
    description: str
    serial: int
    created: Time
    modified: Time
    warnings: list[str] = []


class Space(Shape, frozen=True, kw_only=True):
    """The scope in which an address has at most one holder, with its networks."""

    name: str
    number: int
    version: int
    queued: bool
    networks: list[Network]


class Change(Shape, frozen=True, kw_only=True):
    """One entry of the log."""

    seq: int
    at: Time
    verb: str
    space: int | None
    network: str | None
    network_number: int | None
    address: str | None
    last_address: str | None
    owner: str | None
    slot: str | None
    generation: int | None
    request: str | None
    actor: str | None
    request_id: str | None
    details: dict[str, Any]


class ChangePage(Shape, frozen=True, kw_only=True):
    """Entries of the log, the number to go on from, and the newest there is."""

    items: list[Change]
    next: int
    last: int


class Newest(Shape, frozen=True, kw_only=True):
    """The number of the newest entry of the log."""

    last: int


class Archived(Shape, frozen=True, kw_only=True):
    """How many changes were moved from the log into the archive."""

    moved: int


class Finding(Shape, frozen=True, kw_only=True):
    """What one network has to say about an address."""

    network: str
    status: str
    text: str
    owner: str | None
    since: Time | None
    until: Time | None
    request: str | None
    reason: str
    labels: Labels
    description: str
    holding: Holding | None


class Explanation(Shape, frozen=True, kw_only=True):
    """Who holds an address, since when, by which request; or why it is not free; or that it is."""

    address: Address
    findings: list[Finding]


class Tenure(Shape, frozen=True, kw_only=True):
    """One owner's time with an address."""

    address: Address
    last_address: Address
    space: int
    network: str | None
    network_number: int
    owner: OwnerText
    slot: str
    generation: int | None
    since: Time | None
    until: Time | None
    ending: str
    state: str | None
    request: str | None
    actor: str | None = None
    request_id: str | None = None
    ended_by: str | None
    ended_actor: str | None = None
    ended_request_id: str | None = None
    to: str | None
    to_slot: str
    confirmed: Time | None
    deadline: Time | None


class History(Shape, frozen=True, kw_only=True):
    """Who held an address, in the order it ended; who holds it now comes last."""

    address: Address
    tenures: list[Tenure]
    trimmed: bool
    complete_since: Time | None


class Found(Shape, frozen=True, kw_only=True):
    """An object that a search found."""

    kind: str
    network: str
    name: str
    address: str | None
    labels: Labels
    description: str
    holding: Holding | None


class Breach(Shape, frozen=True, kw_only=True):
    """An invariant that does not hold, and where."""

    invariant: str
    text: str


class WaitingClaim(Shape, frozen=True, kw_only=True):
    """A claim in line; place 1 is next."""

    network: str
    owner: OwnerText
    slot: str
    place: int
    since: Time
    until: Time | None
    pool: str | None
    subnet: str | None
    zone: str | None = None
    family: str | None = None


class Withdrawn(Shape, frozen=True, kw_only=True):
    """Whether the claim was in line."""

    withdrawn: bool


class ClaimStatus(Shape, frozen=True, kw_only=True):
    """What became of a claim so far: granted with its holding, or waiting at a place."""

    state: str
    holding: Holding | None
    place: int | None


class Paper(Shape, frozen=True, kw_only=True):
    """A document that a door keeps in the ledger."""

    kind: str
    name: str
    revision: int
    document: dict[str, Any]


class Instance(Shape, frozen=True, kw_only=True):
    """A machine: its document, if a door keeps one, and what it holds."""

    name: str
    revision: int
    document: dict[str, Any]
    holdings: list[Holding]


class Answer(Shape, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to one operation: exactly one of these, or none where nothing was there."""

    holding: Holding | None = None
    holdings: list[Holding] | None = None
    network: Network | None = None
    network_at: (
        Annotated[
            int,
            Meta(
                ge=0,
                description="Which answer of this list, counted from 0, has the network: that of its last edit.",
            ),
        ]
        | None
    ) = None
    paper: Paper | None = None


ScopeText = Annotated[str, Meta(description="read, allocate:NETWORK, allocate:* or admin.", examples=["allocate:net1"])]


class KnownToken(Shape, frozen=True, kw_only=True):
    """A token. Its secret was told once, to whoever made it."""

    id: str
    name: str
    scopes: list[ScopeText]
    created: datetime
    created_by: str
    expires: datetime | None
    revoked: datetime | None
    revoked_by: str | None


class NewToken(KnownToken, frozen=True, kw_only=True):
    """A token that was made. ``token`` is its text, told this once; null where the same request was answered before."""

    token: str | None


class Problem(Shape, frozen=True, kw_only=True, omit_defaults=True):
    """A problem document (RFC 9457). ``code`` is stable; ``field`` names what is wrong."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    field: str | None = None
    data: dict[str, Any] = {}
    request_id: str | None = None


class Each(Shape, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to one of several wishes that stand each on its own: what came of it, or the problem it met."""

    holding: Holding | None = None
    problem: Problem | None = None
