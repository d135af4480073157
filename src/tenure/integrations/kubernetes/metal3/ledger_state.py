"""What a ledger says of a pool, as this process last read it: what its claims hold there, and whether it answers.

Decisions read it; only ``ledger.pool_ledgers`` writes it. The ledger itself decides: what is written here is never more
than a reason not to ask it.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from tenure.integrations.kubernetes.metal3.objects.claim_reading import is_picked_here, own_address
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import text
from tenure.integrations.kubernetes.metal3.objects.ledger_owner import (
    CLAIM_CREATED,
    CLAIM_UID,
    FORMER_CLAIM,
    MOVED_FROM,
    PICKED_LABEL,
    POOL_UID,
)
from tenure.integrations.kubernetes.runtime.resource_types import Object, uid_of
from tenure.kernel.holdings.holding_model import OWNED, Holding

NOT_READ = "it was not read yet"


class LedgerTrouble(Exception):
    """The ledger did not do what was asked of it; says why, for people."""


class LedgerAway(LedgerTrouble):
    """The ledger did not answer, or cannot be used as it is named; whether it did what was asked is not known."""


class LedgerRefused(LedgerTrouble):
    """The ledger answered that the address is not to be had."""


class LedgerRow(NamedTuple):
    """A holding in the network of a pool."""

    position: int
    owner: str
    slot: str
    generation: int
    claim_uid: str
    """The uid of the claim that has the address; empty for a holding that no operator made."""
    claim_created: str
    pool_uid: str
    until_us: int | None
    is_owned: bool
    """Whether it is the owner's: what drains is given up, and what cools is nobody's."""
    is_picked: bool = False
    """Whether an operator picked the address; else others hold it for the claim, or the claim had it already."""
    network: str = ""
    """The network that it is held in: the pool's own, or another one of the same space."""
    is_moved: bool = False
    """Whether its claim was deleted for a move, and no other pool has written itself on it yet."""
    former_claim: str = ""
    """The uid of the claim that it was written on before, if that was another one."""


def row_of(holding: Holding) -> LedgerRow:
    """Return a holding as a row."""
    labels, row = holding.labels, holding.row
    claim_uid, created, pool_uid = (labels.get(name, "") for name in (CLAIM_UID, CLAIM_CREATED, POOL_UID))
    is_owned = row.state in OWNED
    return LedgerRow(
        row.first, row.owner, row.slot, row.generation, claim_uid, created, pool_uid, row.until_us, is_owned,
        is_picked=PICKED_LABEL.items() <= labels.items(), network=holding.network,
        is_moved=bool(pool_uid) and labels.get(MOVED_FROM) == pool_uid, former_claim=labels.get(FORMER_CLAIM, ""),
    )  # fmt: skip


def is_of(row: LedgerRow, claim: Object) -> bool:
    """Return whether a holding under the name of a claim is this very claim's.

    The name alone does not say so: a claim may have been made again under its name, or another cluster may use the same
    realm. A claim that was moved brings the address along, and has another uid (KP18). What was picked for the claim
    here, and written on it before it is given, it does not bring: both clusters may have picked the same address.
    """
    is_brought = own_address(claim) == row.position and not is_picked_here(claim)
    return row.claim_uid in ("", uid_of(claim)) or is_brought


def is_written_on(row: LedgerRow, claim: Object, pool_uid: str) -> bool:
    """Return whether a holding says what it is to say of its claim: that it is this claim's, or a younger one's.

    While a move is under way, or was killed, both clusters have a claim of this name, and each would write itself on
    the holding, again and again. The younger one, which is where the move leads, does; the other leaves it. Of two that
    were created in the same second, the one that the holding names as its former claim leaves it.
    """
    if row.claim_uid == uid_of(claim):
        return row.pool_uid == pool_uid
    created = text(claim, "metadata", "creationTimestamp")
    is_former = created == row.claim_created and row.former_claim == uid_of(claim)
    return bool(row.claim_uid) and (created < row.claim_created or is_former)


@dataclass
class LedgerState:
    """What is known of the ledger of one pool."""

    away: str = NOT_READ
    """Why nothing can be given; empty while the ledger answers."""
    rows: dict[str, LedgerRow] = field(default_factory=dict)
    """What owners hold in the network, by owner; without further slots of an owner, which no claim has."""
    set_aside: dict[str, int] = field(default_factory=dict)
    """Addresses that the plan pre-allocates, by owner."""
    refused: dict[str, str] = field(default_factory=dict)
    """Why the ledger does not hold what a claim has, by owner."""
    strange: str = ""
    """What is held under this realm for pools that are not here, for people; empty if nothing is."""
    observed_at: str = ""
    """When the ledger last answered, within some minutes; empty if it never did."""

    @property
    def is_unread(self) -> bool:
        """Return whether nothing is known yet, as at the start of a leadership: soon it answers, or is away."""
        return self.away == NOT_READ
