"""The mode in which a ledger decides: addresses are pending there until Neutron commits, and gone if it does not.

The row in Neutron's database comes second. It is what a transaction of Neutron's stands behind: whoever settles what
another process left (``tenure neutron reconcile``) waits for all who are at it in the subnet, and then looks for the
row; so it never takes an address from a transaction that is still open, however long that takes.
"""

import contextlib
import itertools
from dataclasses import replace
from typing import Any
from uuid import uuid4

from tenure.integrations.neutron.address_requests import WantedAddress
from tenure.integrations.neutron.database import subnet_records
from tenure.integrations.neutron.database.allocation_rows import HeldAddress, SessionBook
from tenure.integrations.neutron.database.subnet_records import SubnetRecord
from tenure.integrations.neutron.transaction import ledger_plan
from tenure.integrations.neutron.transaction.ledger_client import Reach
from tenure.integrations.neutron.transaction.recorded_steps import (
    LetGo,
    Planned,
    Removed,
    Retook,
    Settlement,
    SubnetAddress,
    Took,
    settlement_of,
)
from tenure.integrations.neutron.transaction.settle_steps import LedgerEnds, committed_plan
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.errors import (
    AddressInUse,
    AddressOutsideSubnet,
    AddressReserved,
    Conflict,
    NotFound,
    PoolExhausted,
    StoreUnavailable,
)
from tenure.kernel.holdings.holding_model import Holding, State
from tenure.kernel.plan.plan_model import Policy
from tenure.service.apply.operations import Allocate, Cancel, Operation, Release
from tenure.service.ledger.async_ledger import AsyncLedger

TRIES = 3
"""Times that an address which is named is asked for, where what an earlier request left of it goes away meanwhile."""

MOST_SPARES = 20
"""Addresses in a row that the ledger has free and Neutron's database has not, after which they are said to differ."""


class LedgerKeeper:
    """Keeps addresses in a ledger that others may share."""

    def __init__(self, reach: Reach, realm: str) -> None:
        self.reach = reach
        self._realm = realm
        self._ends = LedgerEnds(reach, realm)

    def allocate(self, session: Any, subnet: SubnetRecord, wanted: WantedAddress) -> int:
        """Hold an address: one call to the ledger now, one when Neutron commits. O(log n)."""
        # Between the ledger's answer and the row nothing else tells that somebody is behind the holding.
        subnet = subnet_records.enter(session, subnet.id)
        book = SessionBook(session, subnet.id)
        taking = Taking(self, book, settlement_of(session, self._ends), subnet, wanted.owner)
        if wanted.place is not None:
            return taking.named(wanted.place)
        if not subnet.pools:
            raise PoolExhausted(self.network(subnet), None)
        return taking.picked(Policy.LOWEST if wanted.lowest else Policy.RANDOM)

    def release(self, session: Any, subnet: SubnetRecord, held: HeldAddress) -> None:
        """Let go of an address; the ledger is told when Neutron has committed."""
        SessionBook(session, subnet.id).end(held.place)
        settlement_of(session, self._ends).note(LetGo(SubnetAddress(subnet, held.place), held))

    def follow(self, session: Any, before: SubnetRecord | None, after: SubnetRecord | None) -> None:
        """Let the ledger's plan follow a subnet: at once when it comes or changes, at the commit when it goes."""
        settlement = settlement_of(session, self._ends)
        if after is None:
            assert before is not None
            settlement.note(Removed(before))
            return
        settlement.note(Planned(before, after))  # first: also what failed half way is undone
        self.push(session, after)

    def push(self, session: Any, subnet: SubnetRecord) -> None:
        """Make the ledger's plan that of a subnet; one that arrives too late is not left to stand."""
        amends = committed_plan(session.get_bind().engine, self._realm, subnet.id)
        self.reach.ask(lambda ledger: ledger_plan.follow(ledger, self.network(subnet), subnet), amends=amends)

    def network(self, subnet: SubnetRecord) -> str:
        """Name the network of the ledger that stands for a subnet."""
        return ledger_plan.network_name(self._realm, subnet.id)

    def owner(self, owner: str) -> str:
        """Name an owner as the ledger knows it."""
        return ledger_plan.ledger_owner(self._realm, owner)


class Taking:
    """One address for one owner, from the first question to the row."""

    def __init__(
        self, keeper: LedgerKeeper, book: SessionBook, settlement: Settlement, subnet: SubnetRecord, owner: str
    ) -> None:
        self._keeper = keeper
        self._book = book
        self._settlement = settlement
        self._subnet = subnet
        self._owner = owner
        self._network = keeper.network(subnet)
        self._request = str(uuid4())

    def named(self, place: int) -> int:
        """Take an address that was named."""
        # The ledger still has what this transaction let go of, and would refuse it as held.
        for held in self._settlement.let_go(self._subnet):
            if held.place == place:
                return self._retake(held)
        address = format_address(place)
        for _ in range(TRIES):
            holding = self._held_at(address)
            taken = None
            if holding is not None:
                taken = self._write(holding) if self._is_new(holding) else self._adopt(holding)
            if taken is not None:
                return taken
        raise AddressInUse(address, "another port")

    def _held_at(self, address: str) -> Holding | None:
        """Hold a named address, or find what this owner has there from before; None if that went away meanwhile."""
        try:
            return self._hold(slot=address, address=address, reserved="refuse")
        except AddressReserved as error:
            if error.kept_as != "gateway" or not self._is_own_gateway(address):
                raise
            return self._hold(slot=address, address=address, reserved="force")
        except AddressInUse as error:
            if error.holder != self._keeper.owner(self._owner):
                raise
        # The owner has it from an earlier request, which may just be cancelling it.
        with contextlib.suppress(NotFound):
            return self._keeper.reach.ask(lambda ledger: ledger.holding(self._network, address))
        return None

    def _is_own_gateway(self, address: str) -> bool:
        """Tell whether an address is the gateway of this very subnet: a router's port may have it."""
        gateway = self._subnet.gateway_ip
        return gateway is not None and parse_address(gateway) == parse_address(address)

    def picked(self, policy: Policy) -> int:
        """Take an address that the ledger picks.

        The owner's slots are tried one after the other: those it holds already are passed over, and what an earlier
        request of its left pending is taken over.
        """
        # The slots that this transaction filled itself are known to be taken; asking for them would cost a call each.
        first = self._settlement.holds(self._subnet, self._owner)
        for slot in itertools.count(first):
            try:
                holding = self._hold(slot=str(slot), policy=policy)
            except PoolExhausted:
                return self._retake_any()
            # For a slot that is filled the ledger returns its holding: only the request's number tells old from new.
            if self._is_new(holding):
                taken = self._write(holding)
            else:
                taken = self._adopt(holding) if holding.state is State.PENDING else None
            if taken is not None:
                return taken
            if self._settlement.spares(self._subnet) > MOST_SPARES:
                break
        reason = "the ledger and Neutron's database disagree on what is held; run `tenure neutron reconcile`"
        raise StoreUnavailable(reason, outcome="none")

    def _hold(self, **wish: Any) -> Holding:
        """Ask the ledger to hold an address; a plan that it has not got yet is told first."""
        owner = self._keeper.owner(self._owner)

        async def hold(ledger: AsyncLedger) -> Holding:
            return await ledger.hold(self._network, owner=owner, request=self._request, **wish)

        try:
            return self._keeper.reach.ask(hold, amends=self._take_back)
        except (NotFound, AddressOutsideSubnet):
            self._keeper.push(self._settlement.session, self._subnet)
            return self._keeper.reach.ask(hold, amends=self._take_back)

    async def _take_back(self, ledger: AsyncLedger) -> None:
        """Cancel what the ledger granted to this request after it was given up."""
        owner = self._keeper.owner(self._owner)
        with contextlib.suppress(NotFound):  # it went with its network, or somebody was quicker
            for holding in await ledger.holdings(network=self._network, owner=owner):
                # Other holdings of the owner are from other requests, with transactions of their own behind them.
                if self._is_new(holding) and holding.state is State.PENDING:
                    await ledger.cancel(self._network, holding.address, owner=owner, generation=holding.generation)

    def _is_new(self, holding: Holding) -> bool:
        return holding.request == self._request

    def _write(self, holding: Holding) -> int | None:
        """Write the row of a holding; None if Neutron's database has another, and the holding is of no use."""
        place = holding.row.first
        # Noted before the row, as a spare: nothing else knows of the holding if the statement raises, as in a deadlock.
        # What stays a spare is cancelled when the transaction ends, and the ledger does not pick it again before.
        held = HeldAddress(place, self._owner, holding.generation)
        spare = Took(SubnetAddress(self._subnet, place), held, spare=True)
        self._settlement.note(spare)
        if not self._book.grant(place, self._owner, holding.generation):
            return None
        self._settlement.amend(spare, replace(spare, spare=False))
        return place

    def _adopt(self, holding: Holding) -> int | None:
        """Take over what an earlier request of the same owner left; None if a transaction stands behind it.

        It becomes another holding, so that nobody who still means the old one can end it.
        """
        place = holding.row.first
        # The row comes first: where a row is in the way, a transaction stands behind the holding, and it is left alone.
        if self._settlement.took(SubnetAddress(self._subnet, place)) or not self._book.grant(place, self._owner):
            return None
        owner, address = self._keeper.owner(self._owner), holding.address
        ending = Cancel if holding.state is State.PENDING else Release
        # Both in one apply: in between, another owner of a shared space could get the address.
        operations: list[Operation] = [
            ending(network=self._network, address=address, owner=owner, generation=holding.generation),
            Allocate(
                network=self._network, address=address, owner=owner, slot=holding.slot, pending=True,
                reserved="force", request=self._request,
            ),
        ]  # fmt: skip
        try:
            fresh = self._keeper.reach.ask(lambda ledger: ledger.apply(operations), amends=self._take_back)[-1]
        except (Conflict, NotFound):
            self._book.end(place)  # somebody was quicker: it is not to be had any more
            return None
        assert isinstance(fresh, Holding)
        held = HeldAddress(place, self._owner, fresh.generation)
        # Noted before the row is changed, and no spare: the row of the owner is there already.
        self._settlement.note(Took(SubnetAddress(self._subnet, place), held))
        self._book.regrant(place, self._owner, fresh.generation)
        return place

    def _retake_any(self) -> int:
        """Take, in a full subnet, what this transaction itself let go of."""
        for held in self._settlement.let_go(self._subnet):
            if any(held.place in pool for pool in self._subnet.pools):
                return self._retake(held)
        raise PoolExhausted(self._network, None)

    def _retake(self, held: HeldAddress) -> int:
        """Take what this transaction let go of. With another owner it will be another holding of the ledger's."""
        generation = held.generation if held.owner == self._owner else 0
        if not self._book.grant(held.place, self._owner, generation):
            raise AddressInUse(format_address(held.place), "another port")
        self._settlement.note(Retook(SubnetAddress(self._subnet, held.place), self._owner))
        return held.place
