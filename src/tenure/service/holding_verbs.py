"""The ledger's verbs on holdings: allocate, release, transfer, apply."""

from collections.abc import Mapping, Sequence

from tenure.kernel.addresses import AddressLike, parse_address
from tenure.kernel.edits import KEEP, Keep
from tenure.kernel.errors import Invalid
from tenure.kernel.names import Owner, check_generation, check_name, check_request
from tenure.kernel.values import Holding, Ticket
from tenure.ports import Stale
from tenure.service.allocating import allocate
from tenure.service.applying import check_begins_unit, check_holder
from tenure.service.claims import Granted, read_claim
from tenure.service.inside import AsyncInside
from tenure.service.operations import (
    Allocate,
    ModifyHolding,
    Operation,
    ReleaseOwner,
    Shown,
    Transfer,
    check_operations,
)
from tenure.service.plan_verbs import PlanVerbs
from tenure.service.showing import holding_of, show


class HoldingVerbs(PlanVerbs):
    """Allocate, release, transfer; one at a time, many at once, all or none."""

    async def allocate(
        self,
        network: str,
        *,
        owner: str,
        slot: str = "",
        address: AddressLike | None = None,
        pool: str | None = None,
        subnet: str | None = None,
        policy: str | None = None,
        reserved: str = "refuse",
        labels: Mapping[str, str] | None = None,
        description: str = "",
        carrier: str | None = None,
        plan: str | None = None,
        request: str | None = None,
    ) -> Holding:
        """Give an address to an owner: this one, or the next free one that the policy picks.

        Asking again gives the same answer. ``reserved`` says how far a named address may reach: ``refuse`` reserved
        and kept-back ones, ``allow`` reserved ones, or ``force`` any. Cost: O(log n) and a share of one commit.
        """
        claim = read_claim(
            network,
            owner,
            slot=slot,
            address=address,
            pool=pool,
            subnet=subnet,
            policy=policy,
            reserved=reserved,
            labels=labels,
            description=description,
            carrier=carrier,
            plan=plan,
            request=request,
        )
        row, layout = await allocate(claim, self._server)
        return holding_of(row, layout)

    async def allocate_many(
        self,
        network: str | Sequence[str],
        *,
        owners: Sequence[str],
        slot: str = "",
        pool: str | None = None,
        subnet: str | None = None,
        policy: str | None = None,
        labels: Mapping[str, str] | None = None,
        request: str | None = None,
    ) -> list[Holding]:
        """Give each owner an address in the network (or in each of several), all or none.

        The answers are in the order of owners and, for each owner, of networks. For wishes that differ, see ``apply``.
        """
        if isinstance(owners, str) or not isinstance(owners, Sequence):
            raise Invalid("owners: a list of owners is needed", field="owners")
        networks = network if isinstance(network, Sequence) and not isinstance(network, str) else [network]
        operations = [
            Allocate(
                network=name, owner=owner, slot=slot, pool=pool, subnet=subnet, policy=policy, labels=labels,
                request=request,
            )
            for owner in owners
            for name in networks
        ]  # fmt: skip
        for operation in operations:
            operation.claim()  # bad input is refused before anything is asked
        answers = await self._apply(operations) if operations else []
        return [holding_of(answer.row, answer.layout) for answer in answers if isinstance(answer, Granted)]

    async def release(
        self,
        network: str,
        address: AddressLike,
        *,
        owner: str,
        generation: int | None = None,
        request: str | None = None,
    ) -> Holding | None:
        """End an owner's holding. Answers what was held, or None if nobody holds the address (any more).

        A holding of another owner, or of another generation than the one named, is left alone and told.
        """
        holder, position = Owner(owner), parse_address(address)
        generation, request = check_generation(generation), check_request(request)
        check_name(network, field="network")
        layout = await self._server.layout_around(network, position)
        while True:
            check_begins_unit(layout, network, position)
            number = layout.configuration.network(network).id
            ticket = Ticket(number, position, holder, generation, request, layout.remembers(network))
            try:
                row = await self._server.release(layout, ticket)
                break
            except Stale:
                layout = await self._server.reread(network)
        if row is None:
            return None
        check_holder(row, number, holder, generation, network)
        return holding_of(row, layout)

    async def release_owner(self, owner: str, *, request: str | None = None) -> list[Holding]:
        """End all holdings of an owner, in all networks, as one; answers what was held."""
        [rows] = await self._apply([ReleaseOwner(owner=Owner(owner), request=request)])
        assert isinstance(rows, list)
        return [holding_of(*each) for each in rows]

    async def transfer(
        self,
        network: str,
        address: AddressLike,
        *,
        owner: str,
        to: str,
        to_slot: str = "",
        generation: int | None = None,
        request: str | None = None,
    ) -> Holding:
        """Hand a holding over to another owner; nobody else can get the address in between."""
        operation = Transfer(
            network=network,
            address=address,
            owner=owner,
            to=to,
            to_slot=to_slot,
            generation=generation,
            request=request,
        )
        [answer] = await self._apply([operation])
        assert isinstance(answer, Granted)
        return holding_of(answer.row, answer.layout)

    async def modify_holding(
        self,
        network: str,
        address: AddressLike,
        *,
        owner: str,
        generation: int | None = None,
        labels: Mapping[str, str] | Keep = KEEP,
        description: str | Keep = KEEP,
        carrier: str | Keep | None = KEEP,
        plan: str | Keep | None = KEEP,
        state: str | Keep = KEEP,
        request: str | None = None,
    ) -> Holding:
        """Change what is written on a holding, or its state: ``draining`` frees the slot, ``held`` takes it back."""
        operation = ModifyHolding(
            network=network,
            address=address,
            owner=owner,
            generation=generation,
            labels=labels,
            description=description,
            carrier=carrier,
            plan=plan,
            state=state,
            request=request,
        )
        [answer] = await self._apply([operation])
        assert isinstance(answer, Granted)
        return holding_of(*answer)

    async def apply(self, operations: Sequence[Operation]) -> list[Shown]:
        """Make several edits, allocations, releases and transfers one transaction, judged by the final state.

        They run in the order written. Each has one answer: the holding (or several), the changed network, or None.
        """
        results = await self._apply(operations) if check_operations(operations) else []
        return [show(result) for result in results]

    def inside(self, connection: object) -> AsyncInside:
        """Work inside a transaction that the caller has open on the same database, and will end.

        Nothing is committed here. The lane of each space that is touched is held until the transaction ends.
        """
        server = self._server
        return AsyncInside(server.store.inside(connection), server.chance, server.exact_inside)
