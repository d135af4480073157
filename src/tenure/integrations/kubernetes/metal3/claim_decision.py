"""What is to be done about a claim, decided from what is known and without writing anything."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from tenure.integrations.kubernetes.metal3.address_rights import (
    KnownClaims,
    holders_before,
    is_withdrawn,
    owner_of,
)
from tenure.integrations.kubernetes.metal3.ledger_state import LedgerRow, LedgerState, is_of
from tenure.integrations.kubernetes.metal3.objects.address_objects import (
    is_made_here,
    owner_uids,
    pool_of,
    position_of,
)
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId, Unserved
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import id_of, kind_of
from tenure.integrations.kubernetes.metal3.objects.claim_reading import (
    AddressWish,
    RangeWish,
    WishKind,
    blocks_move,
    foreign_finalizers,
    is_fit_to_move,
    is_picked_here,
    own_address,
    was_served,
    wish_of,
)
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    PAUSED,
    annotations_of,
    finalizers_of,
    is_terminating,
)
from tenure.integrations.kubernetes.metal3.objects.kept_addresses import DRAINED, FREE, kept_status
from tenure.integrations.kubernetes.metal3.objects.ledger_owner import ledger_owner
from tenure.integrations.kubernetes.metal3.objects.move_marks import is_marked
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_kinds import POOL_KINDS
from tenure.integrations.kubernetes.metal3.objects.pool_spec import LedgerBinding
from tenure.integrations.kubernetes.metal3.pool_book import LOST, RESERVED, Holder, PoolBook, holder_of
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of, uid_of
from tenure.kernel.addressing.addresses import format_address

EXHAUSTED = "Exhausted IP Pools"
OUT_OF_BOUNDS = "Pre-allocated IP out of bounds"
NOT_AVAILABLE = "Requested IP not available"


@dataclass(frozen=True)
class Leave:
    """Nothing is done until something changes."""

    reason: str = ""
    says: bool = False
    """Whether the claim waits for an address, so that its event says why it has none."""
    touches: bool = True
    """Whether its status says so, too, where its kind has a place for that; not, if its cluster is missing (F6)."""


@dataclass(frozen=True)
class Refuse:
    """The claim gets a message that says why it has no address, and waits."""

    message: str
    position: int | None = None
    """The address that it waits for."""
    why: Unserved = Unserved.ALLOCATION_FAILED
    counts: bool = True
    """Whether the claim is among those that wait for the pool; not, if the pool does not serve its namespace."""
    holds: bool = True
    """Whether it keeps what it names or what is reserved for it; not, if it never had an address and may have none."""


@dataclass(frozen=True)
class Adopt:
    """The claim has this address object."""

    address: Object
    surplus: Sequence[Object] = ()
    """Others that were made for the claim and that it was never given: two leaders picked at once."""


@dataclass(frozen=True)
class NameAddress:
    """The claim is paused and has an address that it does not name yet; it names it, and nothing else is done.

    A move begins with a pause, and carries along what the claim says, but not its status (KD6).
    """


@dataclass(frozen=True)
class LetMove:
    """The claim has no address, and a move may be waiting for it: that goes on, and the claim waits as before."""


@dataclass(frozen=True)
class WithdrawAddresses:
    """These were made for the claim, nobody was told of them, and others have their addresses: they go again."""

    addresses: Sequence[Object]


@dataclass(frozen=True)
class EndRelease:
    """These go with a former claim of this name, and only our finalizer is left of them; the claim waits for that."""

    addresses: Sequence[Object]


@dataclass(frozen=True)
class GiveBack:
    """The ledger granted the claim an address that it cannot get any more, and nobody was told: it goes back.

    The pool does not give it any more, or an object of another holder has it. Then another address is picked.
    """


@dataclass(frozen=True)
class TakeAddress:
    """The claim gets this address, for which there is no object yet."""

    position: int


@dataclass(frozen=True)
class PickAny:
    """The claim gets any address, in the order of arrival."""


@dataclass(frozen=True)
class PickWithin:
    """The claim gets any address of some ranges; it keeps its place, and holds up nobody (KD10)."""

    wish: RangeWish


@dataclass(frozen=True)
class ReleaseAddresses:
    """The claim is going, and these addresses with it."""

    addresses: Sequence[Object]


Action = (
    Leave
    | Refuse
    | Adopt
    | NameAddress
    | LetMove
    | WithdrawAddresses
    | EndRelease
    | GiveBack
    | TakeAddress
    | PickAny
    | PickWithin
    | ReleaseAddresses
)


@dataclass(frozen=True)
class PoolView:
    """What decisions about the claims of a pool rest on."""

    key: PoolId
    pool: Object | None
    book: PoolBook
    addresses_for: Callable[[Object], Sequence[Object]]
    """Return the address objects that name a claim, or that it owns."""
    claims: KnownClaims
    """The claims of all pools."""
    is_cluster_paused: Callable[[str, str], bool]
    """Return whether the cluster of a namespace and a name is paused."""
    has_paused_cluster: Callable[[str], bool]
    """Return whether any cluster of a namespace is paused, as all of them are at the beginning of a move."""
    has_cluster: Callable[[str, str], bool]
    """Return whether there is a cluster of a namespace and a name."""
    name_holder: Callable[[PoolId, Holder], str]
    """Name a holder of the pool for people."""
    namesake: Callable[[Object], Object | None] = lambda claim: None
    """Return the address object that has the name of a claim."""
    is_moved: Callable[[ClaimId], bool] = lambda claim: False
    """Return whether the address of a claim was deleted because it lives on in another cluster."""
    is_cluster_missing: bool = False
    """Whether the pool names a cluster that is not there (E2)."""
    is_served: bool = True
    """Whether the pool is one that this operator looks after (E7)."""
    is_going: Callable[[str], bool] = lambda namespace: False
    """Return whether a namespace takes no new objects, since it is being deleted (KP8)."""
    unseen: str = ""
    """Why this operator does not see all that the pool serves, so that it must give nothing; empty if it does."""
    allows_outside: bool = False
    """What the operator's flag says of pre-allocations outside the entries."""
    ledger: LedgerState = field(default_factory=LedgerState)
    """What is known of the ledger of a pool that is bound to one."""

    def is_open_to(self, namespace: str) -> bool:
        """Return whether the pool serves claims of a namespace: its own, those it names, or all."""
        return self.key.namespace in ("", namespace) or self.book.spec.is_shared_with(namespace)

    @property
    def is_paused(self) -> bool:
        """Whether the pool itself is paused (E4)."""
        return self.pool is not None and PAUSED in annotations_of(self.pool)


def decide(claim: Object, view: PoolView) -> Action:
    """Decide about one claim."""
    # Before all else: the deletion of a claim that is moved is no release, and its address lives on elsewhere.
    if is_marked(claim):
        return Leave("it is being moved")
    # Before the pause, with which a move begins: clusterctl waits until the mark is off.
    if _holds_up_move(claim, view):
        return LetMove()
    # Before the deletion: what is paused is not released either (E4).
    if _is_paused(claim, view):
        return NameAddress() if _is_unnamed(claim, view) else Leave("it is paused")
    if is_terminating(claim):
        if others := foreign_finalizers(claim):
            return Leave(f"it is still used: {', '.join(others)}")
        return ReleaseAddresses(_released(claim, view))
    if not view.is_served:
        return Leave("its pool is looked after by another operator")
    return _decide_living(claim, view)


def _decide_living(claim: Object, view: PoolView) -> Action:
    """Decide about a claim that is to have an address."""
    kind, cluster = kind_of(claim), kind_of(claim).cluster_of(claim)
    if kind.needs_cluster and cluster and not view.has_cluster(key_of(claim)[0], cluster):
        return Leave(f"its Cluster {cluster} is not there", says=not was_served(claim), touches=False)
    candidates, leftovers = _candidates(claim, view), _leftovers(claim, view)
    if _is_being_moved(claim, candidates + leftovers, view):
        return Leave("its address is being moved")
    # Before the adoption: else an object of ours that has to go would be adopted where its deletion has failed.
    if doubled := [each for each in candidates if is_withdrawn(each, claim, view.book)]:
        return WithdrawAddresses(doubled)
    if (found := _best(claim, candidates)) is not None:
        return Adopt(found, _surplus(claim, found, candidates))
    if held := [each for each in leftovers if _is_held(each)]:
        return EndRelease(held)
    # Only finalizers of others keep these, and no pass can end that.
    if leftovers:
        return Leave("the address of the former claim of this name is going", says=True)
    return _decide_new(claim, view)


def _is_being_moved(claim: Object, candidates: Sequence[Object], view: PoolView) -> bool:
    """Return whether the address of a claim is being moved: it goes before its claim, which is not marked yet."""
    return view.is_moved(id_of(claim)) or any(is_marked(each) for each in candidates)


def _holds_up_move(claim: Object, view: PoolView) -> bool:
    """Return whether a move may be waiting for a claim that has no address to name."""
    if not blocks_move(claim) or was_served(claim) or is_terminating(claim) or not view.is_served:
        return False
    # Any Cluster of the namespace counts: clusterctl waits for claims that name no cluster, too.
    return _is_paused(claim, view) or view.has_paused_cluster(key_of(claim)[0])


def _is_unnamed(claim: Object, view: PoolView) -> bool:
    """Return whether a claim was given an address, and does not name it yet; if others made it, a move can do without.

    But a move that waits for the claim is not to wait for the end of the pause.
    """
    if not was_served(claim) or is_terminating(claim) or not view.is_served:
        return False
    candidates = _candidates(claim, view)
    found = _best(claim, candidates)
    if found is None or key_of(found)[1] != kind_of(claim).given(claim):
        return False
    if not is_made_here(found) and not blocks_move(claim):
        return False
    return not is_fit_to_move(claim, position_of(found)) and not _is_being_moved(claim, candidates, view)


def _decide_new(claim: Object, view: PoolView) -> Action:
    """Decide about a claim that has no address object."""
    namespace = key_of(claim)[0]
    if view.is_going(namespace):
        return Leave("its namespace is being deleted")
    if not view.is_open_to(namespace):
        place = f"{view.key.title} is in another namespace, {view.key.namespace}"
        return Refuse(f"{place}, and its spec.tenure.namespaces does not name this one", counts=False)
    if (unready := _unready(view)) is not None:
        return unready
    if view.book.spec.external:
        return Leave(f"{view.key.title} is external: an IPAddress for this claim is waited for", says=True)
    if (taken := _name_taken(claim, view)) is not None:
        return Refuse(f"IPAddress {key_of(taken)[1]} is there already, and is not of this claim and its pool")
    by_ledger = _by_ledger(claim, view.book.spec.ledger, view) if view.book.spec.ledger is not None else None
    # What the claim had, or what is reserved for it, comes before its wishes: a crash leads to no second address.
    return by_ledger or _former(claim, view) or _picked(claim, view)


def _unready(view: PoolView) -> Action | None:
    """Decide about the claims of a pool that gives nothing as it is; nothing, if it gives."""
    if view.unseen:
        return Refuse(f"{view.key.title}: {view.unseen}", why=Unserved.POOL_NOT_READY)
    if view.pool is None:
        missing = f"{view.key.title} does not exist; the claim is served as soon as it does"
        return Refuse(missing, why=Unserved.POOL_NOT_READY)
    if is_marked(view.pool):
        return Leave("its pool is being moved")
    if is_terminating(view.pool):
        return Refuse(f"{view.key.title} is being deleted", why=Unserved.POOL_NOT_READY)
    if view.is_cluster_missing:
        return Leave(f"Cluster {view.book.spec.cluster_name} of {view.key.title} is not there yet", says=True)
    if view.book.faults:
        faults = "; ".join(map(str, view.book.faults[:5]))
        return Refuse(f"{view.key.title} cannot be read: {faults}", why=Unserved.POOL_NOT_READY)
    return None


def _name_taken(claim: Object, view: PoolView) -> Object | None:
    """Return the object that has the name which the claim's address would get; it must go before the claim is served.

    Where names are made of addresses, another address has another name, and is picked instead.
    """
    return view.namesake(claim) if POOL_KINDS[view.key.kind].named_by_claim else None


def _by_ledger(claim: Object, binding: LedgerBinding, view: PoolView) -> Action | None:
    """Decide about a claim whose ledger does not answer, or has an address for it; nothing, if any address will do."""
    # Nothing is written on the claim: a new leader would write to every claim that waits, and again a moment later
    # (KP12).
    if view.ledger.is_unread:
        return Leave(f"the ledger of {view.key.title} is being read")
    if view.ledger.away:
        return Refuse(f"The ledger of {view.key.title}: {view.ledger.away}", why=Unserved.POOL_NOT_READY)
    owner, own = ledger_owner(binding.realm, id_of(claim)), own_address(claim)
    row = view.ledger.rows.get(owner)
    position = row.position if row is not None else view.ledger.set_aside.get(owner)
    if position is None:
        return None
    if row is not None and _is_mere_pick(row, claim) and not is_given(claim, position, view):
        return GiveBack()
    shown = f"Address {format_address(position)}"
    if row is not None and not is_of(row, claim):
        held = f"{shown} is held in the ledger by {owner}, for another claim of this name"
        return Refuse(f"{held}: one that was removed by force, or one of another cluster of this realm", position)
    # A claim that says an address was given to it, or brings one along, does not change it for what the ledger has.
    if own not in (None, position) and (was_served(claim) or not is_picked_here(claim)):
        return Refuse(f"{shown} is what the ledger has for {owner}, not {format_address(own)}", position)
    action = _unless_held(claim, position, view, shown)
    # An object of another holder came between the grant and ours.
    is_lost = isinstance(action, Refuse) and row is not None and _is_mere_pick(row, claim)
    return GiveBack() if is_lost else action


def _former(claim: Object, view: PoolView) -> Action | None:
    """Decide about a claim that has an address of its own already, without its object; nothing if it has none."""
    own, lost = own_address(claim), view.book.position_of((LOST, uid_of(claim)))
    if own is None:
        own = lost  # its object went before the claim could name it (KP9)
    if own is not None:
        action = _own(claim, own, view)
        if isinstance(action, TakeAddress) or not is_picked_here(claim) or was_served(claim) or own == lost:
            return action
        # Picked here, never given, and held by another meanwhile: another address solves that.
    return _reserved(claim, view)


def _reserved(claim: Object, view: PoolView) -> Action | None:
    """Decide about an address that a leader reserved and did not give; nothing, if it cannot be given any more.

    The former leader may yet create its object, so no other address is picked as long as this one is to be had. But a
    status can be forged: it only says which of the free addresses a claim gets that may have any of them (KP13).
    """
    position = view.book.position_of((RESERVED, uid_of(claim)))
    if position is None or not view.book.is_on_line(position):
        return None
    wish = _wish(claim, view)
    if wish is not None and not (isinstance(wish, RangeWish) and position in wish):
        return None
    action = _unless_held(claim, position, view, "the reserved address")
    return action if isinstance(action, TakeAddress) else None


def _picked(claim: Object, view: PoolView) -> Action:
    """Decide about a claim that never had an address, and for which none is reserved that it may have."""
    action = _by_wish(claim, _wish(claim, view), view)
    return replace(action, holds=False) if isinstance(action, Refuse) else action


def _by_wish(claim: Object, wish: AddressWish | RangeWish | str | None, view: PoolView) -> Action:
    match wish:
        case None:
            return _sticky(claim, view) or PickAny()
        case RangeWish():
            return _sticky(claim, view, wish) or _within(wish, view)
        case str(message):
            return Refuse(message)
        case AddressWish():
            return _wished(claim, wish, view)


def _wish(claim: Object, view: PoolView) -> AddressWish | RangeWish | str | None:
    """Return what a claim or its pool asks for."""
    return wish_of(claim, view.book.spec.pre_allocations.get(view.key.listed(key_of(claim))))


def _within(wish: RangeWish, view: PoolView) -> Action:
    """Decide about a claim whose address must lie in some ranges."""
    if view.book.gives(wish.ranges):
        return PickWithin(wish)
    return Refuse(f"{view.key.title} gives no address of {wish}, which spec.tenure.ranges asks for")


def _sticky(claim: Object, view: PoolView, wish: RangeWish | None = None) -> Action | None:
    """Return the former address of a claim of this name, if the pool is sticky and the address is free."""
    position = view.book.remembered.of(id_of(claim)) if view.book.spec.sticky else None
    if position is None or not view.book.is_on_line(position) or (wish is not None and position not in wish):
        return None
    return None if holders_before(claim, position, view.book, view.claims) else TakeAddress(position)


def _own(claim: Object, position: int, view: PoolView) -> Action:
    """Decide about the address that a claim had before, here or elsewhere: it gets that one, or waits (KD6)."""
    if (inside := _inside_prefix(position, view)) is not None:
        return inside
    if not is_given(claim, position, view):
        return Refuse(f"Address {format_address(position)} is not one that {view.key.title} gives", position)
    return _unless_held(claim, position, view, f"Address {format_address(position)}")


def _inside_prefix(position: int, view: PoolView) -> Refuse | None:
    """Refuse an address that lies inside of a prefix: the object would be another one, and the prefix the same."""
    prefix = view.book.spec.prefix_around(position)
    return Refuse(f"{format_address(position)} is inside of {prefix}, which is given as a whole") if prefix else None


def is_given(claim: Object, position: int, view: PoolView) -> bool:
    """Return whether an address is one that the pool, as it is now, gives to a claim; whoever holds it.

    ====================================================================  ===================
    the address is                                                        the claim may get it
    ====================================================================  ===================
    what the ledger of the pool has for the claim, by more than a pick    yes
    pre-allocated: to the claim                                           yes
    pre-allocated: to another                                             no
    inside of a prefix, where the pool gives prefixes                     no
    one that is picked                                                    yes
    in an entry, kept back or drained, and was picked for this claim      yes
    in any place, and the claim had it when its object went (KP9)         yes
    anything else: in no entry, or kept back                              no
    ====================================================================  ===================

    It is asked again when an address that was picked is about to become an object, and when it has become one: the pool
    may have been changed meanwhile. That a claim had an address counts if this process has seen the object; a status
    says so only as long as nobody forges it.
    """
    spec, name = view.book.spec, view.key.listed(key_of(claim))
    if _has_in_ledger(claim, position, view):
        return True
    if position in spec.fixed:
        return spec.pre_allocations.get(name) == position
    if spec.prefix_around(position):
        return False
    was_picked = is_picked_here(claim) and spec.entry_at(position) is not None
    was_its = view.book.position_of((LOST, uid_of(claim))) == position
    return view.book.is_on_line(position) or was_picked or was_its


def _has_in_ledger(claim: Object, position: int, view: PoolView) -> bool:
    """Return whether the ledger of a pool has an address for a claim, by more than a pick of this operator."""
    if (binding := view.book.spec.ledger) is None:
        return False
    owner = ledger_owner(binding.realm, id_of(claim))
    row = view.ledger.rows.get(owner)
    if view.ledger.set_aside.get(owner) == position:
        return True
    return row is not None and row.position == position and not _is_mere_pick(row, claim)


def _is_mere_pick(row: LedgerRow, claim: Object) -> bool:
    """Return whether a ledger holds an address because it was picked for this very claim, and nobody was told of it."""
    is_brought = own_address(claim) is not None and not is_picked_here(claim)
    is_its = row.is_picked and row.claim_uid == uid_of(claim)
    return is_its and not was_served(claim) and not is_brought


def _wished(claim: Object, wish: AddressWish, view: PoolView) -> Action:
    spec, position = view.book.spec, wish.position
    shown = format_address(position)
    if wish.kind is WishKind.PRE_ALLOCATED:
        allows = spec.allows_outside if spec.allows_outside is not None else view.allows_outside
        if spec.entry_at(position) is None and not allows:
            return Refuse(OUT_OF_BOUNDS, position)
        return _unless_held(claim, position, view, f"Pre-allocated IP {shown}")
    if (inside := _inside_prefix(position, view)) is not None:
        return inside
    if spec.entry_at(position) is None:
        return Refuse(f"Requested IP {shown} is out of range of {view.key.title}", position)
    if not view.book.is_on_line(position):
        why = _why_kept(position, view) if wish.kind is WishKind.SPECIFIED else ""
        return Refuse(f"Requested IP {shown} is {why}" if why else NOT_AVAILABLE, position)
    action = _unless_held(claim, position, view, f"Requested IP {shown}")
    is_in_their_words = wish.kind is WishKind.REQUESTED and isinstance(action, Refuse)
    return Refuse(NOT_AVAILABLE, position) if is_in_their_words else action


def _why_kept(position: int, view: PoolView) -> str:
    """Say why an address of the entries is not picked; nothing, if that is not known."""
    spec = view.book.spec
    if waits_for := next((claim for claim, at in spec.pre_allocations.items() if at == position), ""):
        return f"pre-allocated to claim {waits_for}"
    if any(position in each for each in view.book.drains):
        return f"{DRAINED}: spec.tenure.drain has it"
    status, why = kept_status(spec, position)
    if status == DRAINED:  # by what the ledger's plan adds to the pool's own
        return "kept back by the plan of the pool's ledger"
    return "" if status == FREE else f"{status}: {why}"


def _unless_held(claim: Object, position: int, view: PoolView, what: str) -> Action:
    others = holders_before(claim, position, view.book, view.claims)
    return (
        Refuse(f"{what} is held by {view.name_holder(view.key, others[0])}", position)
        if others
        else TakeAddress(position)
    )


def _is_paused(claim: Object, view: PoolView) -> bool:
    """Return whether a claim is paused: by itself, by its pool, or by its cluster, else its pool's (KD11)."""
    if PAUSED in annotations_of(claim) or view.is_paused:
        return True
    own, pools = kind_of(claim).cluster_of(claim), view.book.spec.cluster_name
    if own:
        return view.is_cluster_paused(key_of(claim)[0], own)
    return bool(pools) and view.is_cluster_paused(view.key.namespace, pools)


def _candidates(claim: Object, view: PoolView) -> list[Object]:
    return [address for address in view.addresses_for(claim) if is_of_claim(address, claim, view)]


def is_of_claim(address: Object, claim: Object, view: PoolView) -> bool:
    """Return whether an address object of the pool is a claim's, and can be read."""
    if pool_of(address) != view.key or position_of(address) is None:
        return False
    owner = owner_of(address, view.claims)
    return owner is not None and uid_of(owner) == uid_of(claim)


def _leftovers(claim: Object, view: PoolView) -> list[Object]:
    """Return the addresses of the pool that go with a former claim of this name, and name nobody else (KD8)."""
    named = [each for each in view.addresses_for(claim) if is_terminating(each) and pool_of(each) == view.key]
    return [each for each in named if owner_of(each, view.claims) is None]


def _is_held(leftover: Object) -> bool:
    """Return whether our finalizer keeps an address that is going."""
    return kind_of(leftover).address_finalizer in finalizers_of(leftover)


def _released(claim: Object, view: PoolView) -> list[Object]:
    """Return the addresses that go with a claim: its own, and those made here; others stay and are reported (KD7)."""
    candidates = _candidates(claim, view)
    own = _best(claim, candidates)
    mine = [each for each in candidates if each is own or is_made_here(each) or uid_of(claim) in owner_uids(each)]
    mine += [each for each in _leftovers(claim, view) if _is_held(each)]
    mine += [each for each in view.addresses_for(claim) if _is_of_former_pool(each, claim, view)]
    # A marked address may live on in another cluster; it stays until the mark is off.
    return [each for each in mine if not is_marked(each)]


def _is_of_former_pool(address: Object, claim: Object, view: PoolView) -> bool:
    """Return whether a claim got an address here when it was for another pool, which no webhook refused to change."""
    is_its = is_made_here(address) and uid_of(claim) in owner_uids(address)
    return is_its and pool_of(address) not in (None, view.key)


def _best(claim: Object, candidates: Sequence[Object]) -> Object | None:
    """Return the address that a claim has, or nothing."""
    own, given = own_address(claim), kind_of(claim).given(claim)

    def order(address: Object) -> tuple[bool, bool, bool, Holder]:
        """Return the place among several, which are a mistake: the address that the claim was given comes first."""
        is_own = own is not None and position_of(address) == own
        # The holder comes last: every leader takes the same object, in whatever order the objects arrived.
        return not is_own, key_of(address)[1] != given, is_terminating(address), holder_of(address)

    return min(candidates, key=order, default=None)


def _surplus(claim: Object, given: Object, candidates: Sequence[Object]) -> list[Object]:
    """Return the addresses that this operator made for a claim besides the one that the claim says it was given.

    A claim is never given another address, so what it says here holds even if this process is behind the server.
    """
    if kind_of(claim).given(claim) != key_of(given)[1] or own_address(claim) not in (None, position_of(given)):
        return []
    return [
        each
        for each in candidates
        if each is not given and is_made_here(each) and uid_of(claim) in owner_uids(each) and not is_marked(each)
    ]
