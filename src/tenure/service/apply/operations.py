"""What ``apply`` takes beside edits: allocations, releases and transfers, as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from tenure.kernel.addressing.addresses import AddressLike, Family, named_unit_text, parse_unit
from tenure.kernel.errors import Invalid
from tenure.kernel.holdings.holding_model import NO_DETAILS, Holding, Paper, State
from tenure.kernel.names import (
    Owner,
    check_key,
    check_labels,
    check_name,
    check_seconds,
    check_slot,
    check_text,
    shown,
)
from tenure.kernel.plan.edit_fields import read_member
from tenure.kernel.plan.edits import KEEP, Edit, Keep
from tenure.kernel.plan.plan_model import Network, Policy
from tenure.service.allocator.claim import REACHES, Claim, plain_claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocate:
    """Give an address to an owner's slot."""

    network: str
    owner: str
    slot: str = ""
    address: AddressLike | None = None
    pool: str | None = None
    subnet: str | None = None
    policy: str | None = None
    reserved: str = "refuse"
    labels: Mapping[str, str] | None = None
    description: str = ""
    carrier: str | None = None
    plan: str | None = None
    request: str | None = None
    pending: bool = False
    lasts_s: float | None = None
    key: str | None = None
    zone: str | None = None
    family: str | None = None

    def claim(self) -> Claim:
        """Read it as a claim; Invalid names the field that is wrong."""
        self._check()
        place, length = (None, None) if self.address is None else parse_unit(self.address)
        claim = Claim(
            network=check_name(self.network, field="network"),
            owner=Owner(self.owner),
            slot=check_slot(self.slot),
            address=place,
            pool=None if self.pool is None else check_name(self.pool, field="pool"),
            subnet=None if self.subnet is None else check_name(self.subnet, field="subnet"),
            policy=None if self.policy is None else read_member(Policy, self.policy, "policy"),
            reserved=self.reserved,
            state=State.PENDING if self.pending else State.HELD,
            lasts_us=None if self.lasts_s is None else check_seconds(self.lasts_s, field="lasts_s"),
            request=None if self.request is None else check_name(self.request, field="request"),
            details=self._details(),
            zone=None if self.zone is None else check_name(self.zone, field="zone"),
            family=None if self.family is None else read_member(Family, self.family, "family"),
            length=length,
        )
        return claim if self.key is None else claim.under(check_key(self.key))

    def _check(self) -> None:
        """Refuse what cannot be said together, and words that are none of those known."""
        picked = (self.pool, self.subnet, self.policy, self.zone, self.family)
        if self.address is not None and any(value is not None for value in picked):
            text = "address: name an address, or a pool, a subnet, a zone, a family and a policy, not both"
            raise Invalid(text, field="address")
        if self.reserved not in REACHES:
            raise Invalid(f"reserved: {shown(self.reserved)} is none of {', '.join(REACHES)}", field="reserved")
        if not isinstance(self.pending, bool):
            raise Invalid(f"pending: true or false is needed, not {shown(self.pending)}", field="pending")
        if self.lasts_s is not None and not self.pending:
            raise Invalid("lasts_s: only a pending holding has a deadline", field="lasts_s")

    def _details(self) -> Mapping[str, Any]:
        if self.labels is None and self.description == "" and self.carrier is None and self.plan is None:
            return NO_DETAILS
        details: dict[str, Any] = {}
        if self.labels is not None and (checked := check_labels(self.labels)):
            details["labels"] = checked
        if self.description != "":
            details["description"] = check_text(self.description, field="description")
        if self.carrier is not None:
            details["carrier"] = check_name(self.carrier, field="carrier")
        if self.plan is not None:
            details["plan"] = check_name(self.plan, field="plan")
        return details


class GroupKeywords(TypedDict, total=False):
    """What every way of asking for addresses takes, also for many at once.

    These and the keywords below are fields of ``Allocate``, which has their defaults; type checkers need them spelled
    out. A field that is added to ``Allocate`` is added to one of these: then every verb, the client and HTTP take it.
    The command line needs an option for it; a test fails until there is one.
    """

    pool: str | None
    subnet: str | None
    policy: str | None
    labels: Mapping[str, str] | None
    request: str | None
    zone: str | None
    family: str | None


class SingleKeywords(GroupKeywords, total=False):
    """What is said of one address, whether it is picked or named."""

    slot: str
    description: str
    carrier: str | None
    plan: str | None


class AllocateKeywords(SingleKeywords, total=False):
    """What ``allocate`` and ``hold`` take beside network, owner and key."""

    address: AddressLike | None
    reserved: str


class ClaimKeywords(SingleKeywords, total=False):
    """What ``claim`` takes beside network, owner and key: only what is picked can be waited for."""

    pending: bool
    lasts_s: float | None


def read_claim(network: str, owner: str, *, key: str | None = None, **wanted: Any) -> Claim:
    """Read a claim from the keywords of ``Allocate``; in half the time where they say no more than key and owner."""
    if not wanted:
        return plain_claim(check_name(network, field="network"), owner, key)
    return Allocate(network=network, owner=owner, key=key, **wanted).claim()


def keywords_of(claim: Claim) -> dict[str, Any]:
    """Write a claim as the fields of ``Allocate`` that say the same, but for network and key; no field at its default.

    A claim that ``Allocate.claim`` has read is read from these again as it was.
    """
    said = {
        "owner": str(claim.owner),
        "slot": claim.slot,
        "address": None if claim.address is None else named_unit_text(claim.address, claim.length),
        "pool": claim.pool,
        "subnet": claim.subnet,
        "zone": claim.zone,
        "family": None if claim.family is None else str(claim.family),
        "policy": None if claim.policy is None else str(claim.policy),
        "reserved": claim.reserved if claim.address is not None else None,  # it is about named addresses only
        "request": claim.request,
        "pending": claim.state is State.PENDING or None,
        "lasts_s": None if claim.lasts_us is None else claim.lasts_us / 1_000_000,
        **claim.details,
    }
    return {name: value for name, value in said.items() if value not in (None, "")}


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocateRun:
    """Give owners (or one owner's slots) addresses that follow each other, all or none."""

    network: str
    owners: Sequence[str]
    slots: Sequence[str]
    pool: str | None = None
    subnet: str | None = None
    policy: str | None = None
    labels: Mapping[str, str] | None = None
    request: str | None = None
    zone: str | None = None
    family: str | None = None

    def claims(self) -> list[Claim]:
        """Read it as claims, in the order of their addresses."""
        for field, value in (("owners", self.owners), ("slots", self.slots)):
            if isinstance(value, str | bytes | bytearray) or not isinstance(value, Sequence) or not value:
                raise Invalid(f"{field}: a list with at least one of them is needed, not {shown(value)}", field=field)
        if len(self.owners) != len(self.slots):
            raise Invalid("slots: as many are needed as there are owners", field="slots")
        said = {name: getattr(self, name) for name in GroupKeywords.__optional_keys__}
        claims = [
            Allocate(network=self.network, owner=owner, slot=slot, **said).claim()
            for owner, slot in zip(self.owners, self.slots, strict=True)
        ]
        if len({(claim.owner, claim.slot) for claim in claims}) < len(claims):
            raise Invalid("owners: the same owner and slot twice", field="owners")
        return claims


@dataclass(frozen=True, slots=True, kw_only=True)
class OfHolding:
    """What names a holding: the address in its network, its owner and, where known, its generation."""

    network: str
    address: AddressLike
    owner: str
    generation: int | None = None
    request: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(OfHolding):
    """End an owner's holding of an address; it cools for ``lingers_s``, or for longer where its pool says so."""

    lingers_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndCooling(OfHolding):
    """Let an address that this owner released cool no longer; where its pool cools, only for that time from now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer(OfHolding):
    """Hand a holding over to another owner; the address stays."""

    to: str
    to_slot: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModifyHolding(OfHolding):
    """Change what is written on a holding, or its state: held and draining follow each other.

    ``labels`` are all that there are to be; ``add_labels`` and ``remove_labels`` leave the others as they are.
    """

    labels: Mapping[str, str] | Keep = KEEP
    add_labels: Mapping[str, str] | Keep = KEEP
    remove_labels: Sequence[str] | Keep = KEEP
    description: str | Keep = KEEP
    carrier: str | Keep | None = KEEP
    plan: str | Keep | None = KEEP
    state: str | Keep = KEEP


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirm(OfHolding):
    """Make a pending holding a held one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel(OfHolding):
    """End a pending holding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """Go on only if a network is as it was read: its serial number is still this one.

    ``uuid`` makes sure that it is the very network: another that got its name begins to count anew.
    """

    network: str
    serial: int
    uuid: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectHolding:
    """Go on only if a holding is as it was read: this owner's, and where they are named of this generation and mark."""

    network: str
    address: AddressLike
    owner: str
    generation: int | None = None
    mark: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectNoHoldings:
    """Go on only if no holding of a network lies in a range; of a ``state``, where one is named."""

    network: str
    range: str
    state: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoreConflicts:
    """Let the edits of a network in this ``apply`` be, whatever nodes and NICs without network have in their way."""

    network: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePaper:
    """Write a document that a door keeps in the ledger; over this revision of it, or new (``revision=0``)."""

    kind: str
    name: str
    document: Mapping[str, Any]
    revision: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovePaper:
    """Remove a paper, of this revision."""

    kind: str
    name: str
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectPaper:
    """Go on only if a paper is there as it was read: in this revision, which it keeps until everything is done."""

    kind: str
    name: str
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectNoPapers:
    """Go on only if there is no paper of a kind whose name begins so.

    Nobody writes one meanwhile if whoever does so touches, in the same ``apply``, a network that this one touches, or
    expects a paper that this one writes or removes.
    """

    kind: str
    prefix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseOwner:
    """End all holdings of an owner, whatever they are when it runs."""

    owner: str
    request: str | None = None


Operation = (
    Edit
    | Allocate
    | AllocateRun
    | Cancel
    | Confirm
    | EndCooling
    | Expect
    | ExpectHolding
    | ExpectNoHoldings
    | ExpectNoPapers
    | ExpectPaper
    | IgnoreConflicts
    | ModifyHolding
    | Release
    | ReleaseOwner
    | RemovePaper
    | Transfer
    | WritePaper
)

EXPECTING = (Expect, ExpectHolding, ExpectNoHoldings, ExpectNoPapers, ExpectPaper)
"""Operations that only make sure of something: whoever may read may send them, and nothing is stored for them."""

Shown = Holding | list[Holding] | Network | Paper | None
"""What users see of an operation's result."""


def networks_of(operations: Sequence[Operation]) -> set[str]:
    """Name the networks that operations are about."""
    nowhere = (ReleaseOwner, WritePaper, RemovePaper, ExpectPaper, ExpectNoPapers)
    return {
        check_name(operation.network, field="network") for operation in operations if not isinstance(operation, nowhere)
    }


def check_operations(operations: object) -> Sequence[Operation]:
    """Return a list of operations as it is, or say what in it is none."""
    if isinstance(operations, str) or not isinstance(operations, Sequence):
        raise Invalid("operations: a list of operations is needed", field="operations")
    for operation in operations:
        if not isinstance(operation, Operation):
            raise Invalid(f"operations: {shown(operation)} is not an operation", field="operations")
    return operations
