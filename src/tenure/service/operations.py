"""What ``apply`` takes beside edits: allocations, releases and transfers, as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tenure.kernel.addresses import AddressLike
from tenure.kernel.configuration import Network
from tenure.kernel.edits import KEEP, Edit, Keep
from tenure.kernel.errors import Invalid
from tenure.kernel.names import check_name, shown
from tenure.kernel.values import Holding, Paper
from tenure.service.claims import Claim, read_claim


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

    def claim(self) -> Claim:
        """Read it as a claim."""
        return read_claim(
            self.network,
            self.owner,
            slot=self.slot,
            address=self.address,
            pool=self.pool,
            subnet=self.subnet,
            policy=self.policy,
            reserved=self.reserved,
            labels=self.labels,
            description=self.description,
            carrier=self.carrier,
            plan=self.plan,
            request=self.request,
            pending=self.pending,
            lasts_s=self.lasts_s,
            key=self.key,
            zone=self.zone,
        )


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

    def claims(self) -> list[Claim]:
        """Read it as claims, in the order of their addresses."""
        for field, value in (("owners", self.owners), ("slots", self.slots)):
            if isinstance(value, str | bytes | bytearray) or not isinstance(value, Sequence) or not value:
                raise Invalid(f"{field}: a list with at least one of them is needed, not {shown(value)}", field=field)
        if len(self.owners) != len(self.slots):
            raise Invalid("slots: as many are needed as there are owners", field="slots")
        claims = [
            read_claim(
                self.network, owner, slot=slot, pool=self.pool, subnet=self.subnet, policy=self.policy,
                labels=self.labels, request=self.request, zone=self.zone,
            )
            for owner, slot in zip(self.owners, self.slots, strict=True)
        ]  # fmt: skip
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
    """Change what is written on a holding, or its state: held and draining follow each other."""

    labels: Mapping[str, str] | Keep = KEEP
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
