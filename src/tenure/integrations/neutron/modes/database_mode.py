"""What the driver asks of a mode: to keep addresses, and to follow subnets."""

from typing import Any, Protocol

from sqlalchemy import event

from tenure.integrations.neutron.address_requests import WantedAddress
from tenure.integrations.neutron.database import subnet_records
from tenure.integrations.neutron.database.allocation_rows import HeldAddress, SessionBook
from tenure.integrations.neutron.database.subnet_records import SubnetRecord
from tenure.integrations.neutron.modes.session_allocator import SessionAllocator
from tenure.integrations.neutron.modes.shared_views import KEPT, NETWORK, SharedViews
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.errors import AddressInUse, PoolExhausted
from tenure.kernel.names import Owner
from tenure.kernel.plan.plan_model import Policy
from tenure.kernel.run_inline import run_inline
from tenure.service.allocator.allocation import allocate
from tenure.service.allocator.claim import Claim

LET_GO = "tenure-let-go"


class Keeper(Protocol):
    """One mode. Every call comes in a transaction of the caller's, and is undone if that is rolled back."""

    def allocate(self, session: Any, subnet: SubnetRecord, wanted: WantedAddress) -> int:
        """Hold an address; raises AddressInUse or PoolExhausted."""
        ...

    def release(self, session: Any, subnet: SubnetRecord, held: HeldAddress) -> None:
        """Let go of an address that the transaction has found held, and locked."""
        ...

    def follow(self, session: Any, before: SubnetRecord | None, after: SubnetRecord | None) -> None:
        """Follow a subnet that came (from nothing), changed or goes (to nothing)."""
        ...


class DatabaseKeeper:
    """Keeps addresses in Neutron's own database, by the allocator's driver inside a caller's transaction."""

    def allocate(self, session: Any, subnet: SubnetRecord, wanted: WantedAddress) -> int:
        """Hold an address. O(log n) and one insert, whatever the fill."""
        book = SessionBook(session, subnet.id)
        views = KEPT.of(subnet)
        if wanted.place is not None:
            # Asked for directly: it may lie outside the pools, where the allocator would look for it in the plan.
            if not book.grant(wanted.place, wanted.owner):
                # MySQL's insert counts a subnet that is gone as an address that is taken: here that becomes NotFound.
                subnet_records.enter(session, subnet.id)
                raise AddressInUse(format_address(wanted.place), "another port")
            views.take(wanted.place, wanted.place)
            return wanted.place
        if not subnet.pools:
            raise PoolExhausted(NETWORK, None)
        # RANDOM keeps processes apart: with LOWEST all of them would insert, and wait for, the same address.
        policy = Policy.LOWEST if wanted.lowest else Policy.RANDOM
        claim = Claim(NETWORK, Owner.trusted(wanted.owner), policy=policy)
        return run_inline(allocate(claim, SessionAllocator(session, book, views))).row.first

    def release(self, session: Any, subnet: SubnetRecord, held: HeldAddress) -> None:
        """Let go of an address.

        This process picks it again only when that is committed: whoever did so before would wait for this transaction,
        and the two might wait for each other.
        """
        SessionBook(session, subnet.id).end(held.place)
        _let_go(session).append((KEPT.of(subnet), held.place))

    def follow(self, session: Any, before: SubnetRecord | None, after: SubnetRecord | None) -> None:
        """Do nothing more: the rows say it all."""


def _let_go(session: Any) -> list[tuple[SharedViews, int]]:
    """Return what the session's transaction has let go of; the views learn of it when that is committed."""
    if LET_GO not in session.info:
        session.info[LET_GO] = []
        event.listen(session, "after_commit", _give_back)
        event.listen(session, "after_transaction_end", _forget)
    found: list[tuple[SharedViews, int]] = session.info[LET_GO]
    return found


def _give_back(session: Any) -> None:
    # The event comes for savepoints, too, and their release commits nothing. A place whose savepoint was rolled back is
    # given back with the others: the view is wrong then, which costs one more try.
    if session.get_nested_transaction() is None:
        for views, place in session.info[LET_GO]:
            views.give_back(place, place)


def _forget(session: Any, transaction: Any) -> None:
    if not transaction.nested:
        session.info[LET_GO].clear()
