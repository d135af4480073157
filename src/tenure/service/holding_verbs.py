"""The ledger's verbs on holdings: allocate, release, transfer, apply."""

from collections.abc import Mapping, Sequence
from typing import Unpack

from tenure.kernel.addresses import AddressLike, parse_address
from tenure.kernel.edits import KEEP, Keep
from tenure.kernel.errors import Invalid, PoolExhausted
from tenure.kernel.fields import read_yes_or_no
from tenure.kernel.names import (
    Owner,
    check_generation,
    check_lingering,
    check_name,
    check_owners,
    check_request,
    check_slot,
    shown,
)
from tenure.kernel.values import Holding
from tenure.service.allocating import allocate
from tenure.service.claims import Claim, check_patience
from tenure.service.inside import AsyncInside
from tenure.service.operations import (
    Allocate,
    AllocateKeywords,
    AllocateRun,
    Cancel,
    Confirm,
    GroupKeywords,
    ModifyHolding,
    Operation,
    Release,
    ReleaseOwner,
    Shown,
    Transfer,
    check_operations,
    read_claim,
)
from tenure.service.plan_verbs import PlanVerbs, with_uuids
from tenure.service.rehearsing import rehearse
from tenure.service.release_holding import ReleaseRequest, release_holding
from tenure.service.showing import holding_of
from tenure.service.verb_signature import only, spelled_out

MOST_AT_ONCE = 65_536
"""Addresses one owner can be given in one call."""


class HoldingVerbs(PlanVerbs):
    """Allocate, release, transfer; one at a time, many at once, all or none."""

    @spelled_out(Allocate)
    async def allocate(
        self,
        network: str,
        *,
        owner: str,
        key: str | None = None,
        wait_s: float | None = None,
        **wanted: Unpack[AllocateKeywords],
    ) -> Holding:
        """Give an address to an owner: this one, or the next free one that the policy picks.

        Asking again gives the same answer; under an idempotency ``key`` even after a release. ``reserved`` says how far
        a named address may reach: ``refuse`` reserved and kept-back ones, ``allow`` reserved ones, or ``force`` any.
        ``zone``: only from subnets in that zone, or in none. With ``wait_s`` a full pool is waited for so long, in
        order of arrival. Cost: O(log n), a share of one commit.
        """
        return await self._served(read_claim(network, owner, key=key, **only(AllocateKeywords, wanted)), wait_s)

    @spelled_out(Allocate)
    async def hold(
        self,
        network: str,
        *,
        owner: str,
        lasts_s: float | None = None,
        key: str | None = None,
        wait_s: float | None = None,
        **wanted: Unpack[AllocateKeywords],
    ) -> Holding:
        """Give an address to an owner for the time being: pending until ``confirm`` or ``cancel``.

        With ``lasts_s`` it may be removed so long from now, by the store's clock; until somebody does, it can be
        confirmed. Without, only its owner ends it. The rest is as in ``allocate``.
        """
        said = only(AllocateKeywords, wanted)
        return await self._served(read_claim(network, owner, key=key, pending=True, lasts_s=lasts_s, **said), wait_s)

    async def _served(self, claim: Claim, wait_s: float | None) -> Holding:
        """Serve a claim, and wait for an address if the caller does."""
        patience_s, asked = check_patience(claim, wait_s), claim.asked_by(self._asker)
        if self._server.doubts and (before := await self._server.settled_doubt(asked)) is not None:
            return holding_of(*before)
        try:
            return holding_of(*await allocate(asked, self._server))
        except PoolExhausted:
            if not patience_s:
                raise
        return holding_of(*await self._server.rooms.wait(asked, patience_s))

    @spelled_out(Allocate)
    async def allocate_many(
        self,
        network: str | Sequence[str],
        *,
        owners: Sequence[str] | None = None,
        owner: str | None = None,
        count: int | None = None,
        contiguous: bool = False,
        slot: str = "",
        key: str | None = None,
        **wanted: Unpack[GroupKeywords],
    ) -> list[Holding]:
        """Give each owner an address in the network (or in each of several), or one owner a ``count``; all or none.

        One owner's addresses are in its slots ``0``, ``1``, … (behind ``slot``, where one is given). ``contiguous``:
        the addresses of a network follow each other. The answers are in the order of owners and, for each owner, of
        networks. For wishes that differ, see ``apply``.
        """
        said = only(GroupKeywords, wanted)
        places = _places(owners, owner, count, slot)
        read_yes_or_no(contiguous, "contiguous")
        networks = network if isinstance(network, Sequence) and not isinstance(network, str) else [network]
        operations = [
            Allocate(network=name, owner=holder, slot=place, **said) for holder, place in places for name in networks
        ]
        for operation in operations:
            operation.claim()  # bad input is refused before anything is asked
        if not contiguous:
            answers = await self._apply(operations, key) if operations else []
            return [answer for answer in answers if isinstance(answer, Holding)]
        holders, slots = [holder for holder, _ in places], [place for _, place in places]
        runs = [AllocateRun(network=name, owners=holders, slots=slots, **said) for name in networks]
        found = await self._apply(runs, key) if operations else []
        return [each for group in zip(*(run for run in found if isinstance(run, list)), strict=True) for each in group]

    async def release(
        self,
        network: str,
        address: AddressLike,
        *,
        owner: str,
        generation: int | None = None,
        lingers_s: float | None = None,
        request: str | None = None,
        key: str | None = None,
    ) -> Holding | None:
        """End an owner's holding. Answers what was held, or None if nobody holds the address (any more).

        A holding of another owner, or of another generation than the one named, is left alone and told. In a pool with
        ``cooling_s`` the address is not handed out for so long, with ``lingers_s`` in no pool.
        """
        if key is not None:
            again = Release(
                network=network, address=address, owner=owner, generation=generation, request=request,
                lingers_s=lingers_s,
            )  # fmt: skip
            [answer] = await self._apply([again], key)
            assert answer is None or isinstance(answer, Holding)
            return answer
        holder, position = Owner(owner), parse_address(address)
        generation, request, lingers_us = (
            check_generation(generation),
            check_request(request),
            check_lingering(lingers_s),
        )
        name = check_name(network, field="network")
        wanted = ReleaseRequest(name, position, holder, generation, request, lingers_us, self._asker)
        ended = await release_holding(wanted, self._server)
        return None if ended is None else holding_of(*ended)

    async def release_owner(self, owner: str, *, request: str | None = None, key: str | None = None) -> list[Holding]:
        """End all holdings of an owner, in all networks, as one; answers what was held."""
        [held] = await self._apply([ReleaseOwner(owner=Owner(owner), request=request)], key)
        assert isinstance(held, list)
        return held

    async def confirm(
        self,
        network: str,
        address: AddressLike,
        *,
        owner: str,
        generation: int | None = None,
        request: str | None = None,
        key: str | None = None,
    ) -> Holding:
        """Make a pending holding a held one. It can be had exactly while the holding is there, whatever the time."""
        operation = Confirm(network=network, address=address, owner=owner, generation=generation, request=request)
        return await self._one(operation, key)

    async def cancel(
        self,
        network: str,
        address: AddressLike,
        *,
        owner: str,
        generation: int | None = None,
        request: str | None = None,
        key: str | None = None,
    ) -> Holding | None:
        """End a pending holding. Answers what it was, or None if nobody holds the address (any more)."""
        operation = Cancel(network=network, address=address, owner=owner, generation=generation, request=request)
        [answer] = await self._apply([operation], key)
        assert answer is None or isinstance(answer, Holding)
        return answer

    async def _one(self, operation: Operation, key: str | None) -> Holding:
        [answer] = await self._apply([operation], key)
        assert isinstance(answer, Holding)
        return answer

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
        key: str | None = None,
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
        return await self._one(operation, key)

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
        key: str | None = None,
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
        return await self._one(operation, key)

    async def apply(self, operations: Sequence[Operation], *, key: str | None = None) -> list[Shown]:
        """Make several edits, allocations, releases and transfers one transaction, judged by the final state.

        They run in the order written. Each has one answer: the holding (or several), the changed network, or None.
        Edits of one network all answer the network as it is at the end, or None if one of them removed it.
        Transfers that stand next to each other change hands together, so two owners may swap.
        """
        return await self._apply(operations, key) if check_operations(operations) else []

    async def rehearse(self, operations: Sequence[Operation]) -> list[Shown]:
        """Tell what ``apply`` would answer now, or raise what it would raise; nothing is changed or logged."""
        if not check_operations(operations):
            return []
        return await rehearse(self._server, with_uuids(operations), self._asker)

    def inside(self, connection: object) -> AsyncInside:
        """Work inside a transaction that the caller has open on the same database, and will end.

        Nothing is committed here. The lane of each space that is touched is held until the transaction ends.
        """
        server = self._server
        return AsyncInside(server.store.inside(connection), server.chance, server.exact_inside)


def _places(owners: Sequence[str] | None, owner: str | None, count: int | None, slot: str) -> list[tuple[str, str]]:
    """Read who is to have an address in which slot: several owners, or one owner several times."""
    if (owners is None) == (owner is None):
        raise Invalid("owners: name a list of owners, or one owner and a count", field="owners")
    if owner is not None:
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_AT_ONCE:
            raise Invalid(f"count: a number from 1 to {MOST_AT_ONCE} is needed, not {shown(count)}", field="count")
        check_slot(slot)
        return [(owner, f"{slot}{number}") for number in range(count)]
    named = check_owners(owners)
    if count is not None:
        raise Invalid("count: the list of owners says how many", field="count")
    return [(each, slot) for each in named]
