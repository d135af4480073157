"""What the driver asks of a mode: to keep addresses, and to follow subnets."""

from typing import Any, Protocol

from sqlalchemy import event

from tenure.doors.neutron.requests import Wanted
from tenure.doors.neutron.session_book import SessionBook
from tenure.doors.neutron.session_desk import SessionDesk
from tenure.doors.neutron.subnets import SubnetRecord
from tenure.doors.neutron.views import KEPT, NETWORK
from tenure.kernel.addresses import format_address
from tenure.kernel.configuration import Policy
from tenure.kernel.errors import AddressInUse, PoolExhausted
from tenure.kernel.inline import run_inline
from tenure.kernel.names import Owner
from tenure.service.allocating import allocate
from tenure.service.claims import Claim


class Keeper(Protocol):
    """One mode. Every call comes in a transaction of the caller's, and is undone if that is rolled back."""

    def allocate(self, session: Any, subnet: SubnetRecord, wanted: Wanted) -> int:
        """Hold an address; raises AddressInUse or PoolExhausted."""
        ...

    def release(self, session: Any, subnet: SubnetRecord, place: int) -> None:
        """Let go of an address; one that nobody holds is no error."""
        ...

    def follow(self, session: Any, before: SubnetRecord | None, after: SubnetRecord | None) -> None:
        """Follow a subnet that came (from nothing), changed or goes (to nothing)."""
        ...


class DatabaseKeeper:
    """Keeps addresses in Neutron's own database, by the allocator's driver inside a caller's transaction."""

    def allocate(self, session: Any, subnet: SubnetRecord, wanted: Wanted) -> int:
        """Hold an address. O(log n) and one insert, whatever the fill."""
        book = SessionBook(session, subnet.id)
        views = KEPT.of(subnet)
        if wanted.place is not None:
            # Asked for directly: it may lie outside the pools, where the allocator would look for it in the plan.
            if not book.grant(wanted.place, wanted.owner):
                raise AddressInUse(format_address(wanted.place), "another port")
            views.take(wanted.place, wanted.place)
            return wanted.place
        if not subnet.pools:
            raise PoolExhausted(NETWORK, None)
        policy = Policy.LOWEST if wanted.lowest else Policy.RANDOM
        claim = Claim(NETWORK, Owner.trusted(wanted.owner), policy=policy)
        return run_inline(allocate(claim, SessionDesk(book, views))).row.first

    def release(self, session: Any, subnet: SubnetRecord, place: int) -> None:
        """Let go of an address.

        This process picks it again only when that is committed: whoever did so before would wait for this transaction,
        and the two might wait for each other.
        """
        if SessionBook(session, subnet.id).release(place) is not None:
            views = KEPT.of(subnet)
            event.listen(session, "after_commit", lambda _: views.give_back(place, place))

    def follow(self, session: Any, before: SubnetRecord | None, after: SubnetRecord | None) -> None:
        """Do nothing more: the rows say it all."""
