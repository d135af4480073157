"""Moving a pool's addresses into a ledger, and out again: what would be written, what is in the way, and the writing.

Nothing is given to anybody here: what claims have by their objects is entered into the ledger, under the names by which
an operator will ask for it. Each step can be repeated, and an operator may run meanwhile.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from tenure.integrations.kubernetes.metal3.ledger.network_mirror import read_neighbours, read_plan
from tenure.integrations.kubernetes.metal3.ledger_state import row_of
from tenure.integrations.kubernetes.metal3.objects.address_objects import claim_id_of, position_of
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId
from tenure.integrations.kubernetes.metal3.objects.ledger_owner import (
    CLAIM_UID,
    claim_of_owner,
    labels_for,
    ledger_owner,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_spec import REALM
from tenure.integrations.kubernetes.metal3.read_pools import ReadPools
from tenure.integrations.kubernetes.runtime.resource_types import uid_of
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.errors import AddressOutsideSubnet, Conflict, Invalid
from tenure.kernel.holdings.holding_model import OWNED, Holding, State
from tenure.kernel.plan.plan_model import Network, Places
from tenure.service.apply.operations import Allocate, ModifyHolding, Operation, Release
from tenure.service.ledger.async_ledger import AsyncLedger

AT_ONCE = 200
"""So many addresses are written in one transaction."""

Progress = Callable[[int, int], None]


class Address(NamedTuple):
    """An address of the pool, as the ledger is to know it."""

    address: str
    owner: str
    labels: dict[str, str]


class Collision(NamedTuple):
    """An address that cannot be moved, and why."""

    address: str
    owner: str
    reason: str


@dataclass
class MovePlan:
    """What is to be done in a network of a ledger."""

    network: str
    realm: str
    operations: list[Operation] = field(default_factory=list)
    moved: list[Address] = field(default_factory=list)
    """What the operations are about, in their order."""
    done: list[Address] = field(default_factory=list)
    """What the ledger has already, or not any more."""
    collisions: list[Collision] = field(default_factory=list)
    unready: str = ""
    """Why nothing may be written yet, although nothing is in the way; empty if it may."""


async def plan_import(read: ReadPools, key: PoolId, ledger: AsyncLedger, network: str, realm: str) -> MovePlan:
    """Plan what the ledger has to hold for a pool of the cluster."""
    plan = MovePlan(network, _checked(realm))
    pool_uid = uid_of(read.pool(key))
    found = await read_plan(ledger, network)
    own = await ledger.holdings(network)
    has = {str(each.owner): each for each in own if not each.slot and each.row.state in OWNED}
    held = {each.row.first: each for each in (*await read_neighbours(ledger, found), *own)}
    seen: dict[int, str] = {}
    for address in read.addresses_of(key):
        position, claim = position_of(address), read.claim_of(address)
        assert position is not None, "only addresses that can be read are listed"
        owner = ledger_owner(realm, claim_id_of(address))
        labels = labels_for(claim, pool_uid) if claim is not None else {}
        entry = Address(format_address(position), owner, labels)
        reason = "" if claim is not None else "its claim is not there; release it, or make the claim again"
        reason = reason or _doubled(seen, position, owner) or _outside(found.network, position)
        _enter(plan, entry, held.get(position), has.get(owner), reason)
    return plan


def _doubled(seen: dict[int, str], position: int, owner: str) -> str:
    other = seen.setdefault(position, owner)
    return "" if other == owner else f"another object of the pool has it, for {other}"


def _outside(network: Network, position: int) -> str:
    if Places(network.subnets).around(position) is None:
        return str(AddressOutsideSubnet(format_address(position), network.name))
    return ""


def _enter(plan: MovePlan, entry: Address, held: Holding | None, had: Holding | None, reason: str) -> None:
    """Decide about one address: it is written, it is there, or something is in the way."""
    if not reason and held is not None and not _is_kept(held, entry, plan.network):
        elsewhere = f" in network {held.network}" if held.network != plan.network else ""
        reason = f"{held.owner} holds it in the ledger{elsewhere}, {held.state}"
    if not reason and had is not None and had.address != entry.address:
        reason = f"the ledger has {had.address} for this claim"
    uid = held.labels.get(CLAIM_UID, "") if held is not None else ""
    if not reason and uid not in ("", entry.labels[CLAIM_UID]):
        reason = "the ledger has it for another claim of this name: another cluster may have this realm"
    if reason:
        plan.collisions.append(Collision(entry.address, entry.owner, reason))
    elif held is None:
        plan.moved.append(entry)
        # By force: the claim has this address already, wherever it lies in the plan.
        plan.operations.append(
            Allocate(
                network=plan.network, owner=entry.owner, address=entry.address, labels=entry.labels, reserved="force",
                request="moved in",
            )
        )  # fmt: skip
    elif entry.labels.items() <= held.labels.items():
        plan.done.append(entry)
    else:
        plan.moved.append(entry)
        plan.operations.append(
            ModifyHolding(network=plan.network, address=entry.address, owner=entry.owner, add_labels=entry.labels)
        )


def _is_kept(held: Holding, entry: Address, network: str) -> bool:
    """Return whether a holding is the claim's own; one that cools off is nobody's, whoever had it."""
    return str(held.owner) == entry.owner and held.network == network and held.row.state in OWNED


async def plan_export(read: ReadPools, key: PoolId, ledger: AsyncLedger, network: str, realm: str) -> MovePlan:
    """Plan what the ledger is to hold no more for a pool, which serves from its objects alone again.

    Whatever others hold of what the pool gives, or has given to a claim, is in the way: without the ledger, the pool
    does not know of it. So is what claims keep, as long as the ledger would give it to others: afterwards only the
    cluster knows who has it.
    """
    plan = MovePlan(network, _checked(realm))
    pool, book = read.pool(key), read.book_of(key)
    if read.spec_of(key).spec.ledger is not None:
        reason = f"{key} is bound to a ledger still: remove spec.tenure.ledger first"
        plan.unready = f"{reason}, or the operator would ask for all of it again"
    objects = {position_of(each): claim_id_of(each) for each in read.addresses_of(key)}
    living = {uid_of(each) for each in read.claims.values()}
    found = await read_plan(ledger, network)
    for holding in (*await ledger.holdings(network), *await read_neighbours(ledger, found)):
        row, entry = row_of(holding), Address(holding.address, str(holding.owner), holding.labels)
        if row.pool_uid != uid_of(pool) or claim_of_owner(realm, row.owner) is None:
            reason = _of_others(holding, realm, objects.get(row.position), is_given=book.is_on_line(row.position))
            if reason:
                plan.collisions.append(Collision(entry.address, entry.owner, reason))
        elif row.position not in objects and row.claim_uid in living:
            reason = "no IPAddress of the pool has it; nobody would keep it for the claim"
            plan.collisions.append(Collision(entry.address, entry.owner, reason))
        elif row.position in objects and _is_given(found.network, row.position):
            reason = f"its claim keeps it, and the ledger would give it to others; `tenure reserve add {network}` first"
            plan.collisions.append(Collision(entry.address, entry.owner, reason))
        elif holding.state is not State.COOLING:
            plan.moved.append(entry)
            plan.operations.append(_release_of(holding))
    return plan


def _of_others(holding: Holding, realm: str, claim: ClaimId | None, *, is_given: bool) -> str:
    """Say why what others hold is in the way out; nothing if it is not.

    ``claim``: which has the address in the pool; ``is_given``: whether the pool would give it, but for that.
    """
    is_held = holding.row.state in OWNED
    if claim is not None and is_held and str(holding.owner) != ledger_owner(realm, claim):
        return f"{holding.state} in the ledger, while {claim} has it in the pool: one of the two has to let go"
    way_out = "and the pool would give it, too; add it to spec.tenure.drain"
    return f"{holding.state} in the ledger, {way_out}" if is_given else ""


def _is_given(network: Network, position: int) -> bool:
    """Return whether a network gives an address to whoever asks, once nobody holds it. O(log n) of the subnets."""
    subnet = None if network.retired else Places(network.subnets).around(position)
    return subnet is not None and not subnet.retired and not any(position in each.range for each in subnet.reserved)


def _release_of(holding: Holding) -> Release:
    return Release(
        network=holding.network, address=holding.address, owner=str(holding.owner), generation=holding.generation,
        request="moved out",
    )  # fmt: skip


async def run_plan(ledger: AsyncLedger, plan: MovePlan, progress: Progress = lambda done, total: None) -> None:
    """Write a plan that nothing is in the way of; what is broken off is simply run again.

    Raises ``Conflict`` if it is too early for the plan.
    """
    if plan.unready:
        raise Conflict(plan.unready, field="pool")
    for start in range(0, len(plan.operations), AT_ONCE):
        await ledger.apply(plan.operations[start : start + AT_ONCE])
        progress(min(start + AT_ONCE, len(plan.operations)), len(plan.operations))


def _checked(realm: str) -> str:
    if not REALM.fullmatch(realm):
        reason = "letters, digits, '-', '_' and '.' are possible, a letter or digit comes first, 63 at most"
        raise Invalid(f"realm: {realm!r} is no realm: {reason}", field="realm")
    return realm
