"""Whose address an object is, and which claim comes first to an address: two rules, and every decision rests on them.

*Whose address an object is* (``owner_of``, KD8):

==================  =========================  ===============  ==================
a claim owns it     the claim that it names    it Terminates    it is the address
==================  =========================  ===============  ==================
and lives           any                        any              of the owner
not, or not living  lives, for the same pool   no               of the named claim
not, or not living  lives, for the same pool   yes              of nobody: it goes with the former claim of that name
not, or not living  for another pool, or gone  any              of nobody
==================  =========================  ===============  ==================

An address of nobody is an orphan. It holds its place until it is gone.

*Which claim comes first to an address* (``holders_before``): objects, taken names and addresses that cool off come
before every claim; only the claim of the name under which a cooling address was released may have that back. Of two
claims the one with the stronger ``Title`` comes first, of two with the same title the one that arrived first (KD10). So
of any two claims exactly one yields, and they never wait for each other.
"""

import enum
from collections.abc import Iterable
from typing import Protocol

from tenure.integrations.kubernetes.metal3.objects.address_objects import (
    claim_id_of,
    is_made_here,
    owner_uids,
    pool_of,
    position_of,
)
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import id_of, kind_of
from tenure.integrations.kubernetes.metal3.objects.claim_reading import (
    arrival_of,
    is_picked_here,
    own_address,
    reference_of,
    was_served,
)
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import is_terminating
from tenure.integrations.kubernetes.metal3.objects.ledger_owner import ledger_owner
from tenure.integrations.kubernetes.metal3.pool_book import (
    LEDGER,
    LOST,
    OBJECT,
    OF_CLAIMS,
    RESERVED,
    Holder,
    PoolBook,
    cooling_holder,
    holder_of,
)
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of, uid_of


class KnownClaims(Protocol):
    """The claims that an object may belong to: those of the caches, or some that were read from the server."""

    def claim(self, id: ClaimId) -> Object | None:
        """Return a claim, or nothing."""

    def claim_of_uid(self, uid: str) -> Object | None:
        """Return the claim of a uid, or nothing."""


class ReadClaims:
    """Some claims that were read from the server itself."""

    def __init__(self, claims: Iterable[Object]) -> None:
        self._by_id = {id_of(claim): claim for claim in claims}
        self._by_uid = {uid_of(claim): claim for claim in self._by_id.values()}

    def claim(self, id: ClaimId) -> Object | None:
        """Return a claim, or nothing."""
        return self._by_id.get(id)

    def claim_of_uid(self, uid: str) -> Object | None:
        """Return the claim of a uid, or nothing."""
        return self._by_uid.get(uid)


def owner_of(address: Object, claims: KnownClaims) -> Object | None:
    """Return the claim whose address an object is; nothing, if it is nobody's.

    Of several owners that live, which are a mistake, it is the one that the object names, else the first.
    """
    named = claims.claim(claim_id_of(address))
    found = (claims.claim_of_uid(uid) for uid in owner_uids(address))
    # Two providers share Cluster API's kind of claims: a claim for a pool of the other one cannot own this address.
    owners = [claim for claim in found if claim is not None and kind_of(claim) is kind_of(address)]
    if owners:
        return next((claim for claim in owners if named is not None and uid_of(claim) == uid_of(named)), owners[0])
    reference = reference_of(named) if named is not None else None
    is_its = reference is not None and reference.pool == pool_of(address) and not is_terminating(address)
    return named if is_its else None


def was_told(claim: Object, address: Object) -> bool:
    """Return whether a claim may have told its user of an address: then the claim gets no other.

    An address that was picked for the claim is written on it before it is given, where the claim had no finalizer.
    """
    if kind_of(claim).given(claim) == key_of(address)[1]:
        return True
    return own_address(claim) == position_of(address) and (not is_picked_here(claim) or was_served(claim))


def is_withdrawn(address: Object, claim: Object, book: PoolBook) -> bool:
    """Return whether an object that was made here for a claim goes again: another object has its address.

    That one may have been made by hand at the same moment. What nobody was told of can be exchanged.
    """
    position = position_of(address)
    is_ours = is_made_here(address) and uid_of(claim) in owner_uids(address) and not was_told(claim, address)
    return is_ours and position is not None and bool(other_objects(address, position, book))


def other_objects(address: Object, position: int, book: PoolBook) -> list[Holder]:
    """Return the other objects that hold the place of one."""
    return [each for each in book.holders_at(position) if each[0] == OBJECT and each != holder_of(address)]


class Title(enum.IntEnum):
    """By what a claim comes to an address, the strongest first."""

    RESERVED = 1
    """The pool reserves it for the claim: a leader, maybe a former one, may be about to create the object."""
    GIVEN = 2
    """The claim had it, and its object went by force (KP9)."""
    BROUGHT = 3
    """The claim names it, and was moved from another cluster (KD6)."""
    PICKED = 4
    """It was picked or asked for here, and not given yet."""


def title_of(claim: Object, position: int, book: PoolBook) -> Title:
    """Return by what a claim comes to an address."""
    uid = uid_of(claim)
    if book.position_of((RESERVED, uid)) == position:
        return Title.RESERVED
    is_named = own_address(claim) == position
    if book.position_of((LOST, uid)) == position or (is_named and was_served(claim)):
        return Title.GIVEN
    return Title.BROUGHT if is_named and not is_picked_here(claim) else Title.PICKED


def holders_before(claim: Object, position: int, book: PoolBook, claims: KnownClaims) -> list[Holder]:
    """Return the holders of an address that come before a claim; a claim that is not known comes first. O(holders)."""
    mine = _place(claim, position, book)

    def is_before(holder: Holder) -> bool:
        sort, uid = holder
        rival = claims.claim_of_uid(uid) if sort in OF_CLAIMS else None
        # The watch may not have brought the claim of this holder yet, so the holder comes first.
        return rival is None or _place(rival, position, book) < mine

    return [
        holder for holder in book.others_at(position, uid_of(claim), _own(claim, position, book)) if is_before(holder)
    ]


def _own(claim: Object, position: int, book: PoolBook) -> list[Holder]:
    """Return what is not in the way of a claim: itself as a ledger names it, and a release under its own name."""
    cools = cooling_holder(position, id_of(claim))
    binding = book.spec.ledger
    return [cools] if binding is None else [cools, (LEDGER, ledger_owner(binding.realm, id_of(claim)))]


def _place(claim: Object, position: int, book: PoolBook) -> tuple[Title, tuple[str, str], str]:
    # The uid decides at last: of two kinds, two claims may have one name and one second, and exactly one has to yield.
    return title_of(claim, position, book), arrival_of(claim), uid_of(claim)
