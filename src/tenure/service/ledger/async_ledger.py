"""The ledger every door holds, for asyncio. ``ledger_sync`` has its twin for everybody else.

The verbs read a caller's words into values: claims, operations, positions. What is done with them is up to the end
behind the ledger (``ledger_api``), which is an engine on a store or a server over HTTP.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Self, Unpack

from tenure.kernel.addressing.addresses import AddressLike, parse_unit
from tenure.kernel.addressing.ranges import NetworkLike
from tenure.kernel.errors import Invalid
from tenure.kernel.holdings.holding_model import Change, Holding, Paper
from tenure.kernel.holdings.tenures import History
from tenure.kernel.names import (
    Owner,
    check_name,
    check_owners,
    check_seconds,
    check_slot,
    check_text,
    check_wait,
    read_owners,
    shown,
)
from tenure.kernel.plan import edits
from tenure.kernel.plan.edit_fields import read_yes_or_no
from tenure.kernel.plan.edits import KEEP, Keep, Labels, RangeLike
from tenure.kernel.plan.plan_model import Configuration, Network, Subnet, check_unit_length
from tenure.service.allocator.claim import Claim, check_patience
from tenure.service.apply.operations import (
    Allocate,
    AllocateKeywords,
    AllocateRun,
    Cancel,
    ClaimKeywords,
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
from tenure.service.ledger.caller_transaction import AsyncInside
from tenure.service.ledger.ledger_api import LedgerApi, check_before, check_limit
from tenure.service.ledger.verb_signature import only, spelled_out
from tenure.service.read.address_history import check_time
from tenure.service.read.explain import Explanation
from tenure.service.read.presenter import ClaimStatus, WaitingClaim
from tenure.service.read.search import Found
from tenure.service.read.verify import Breach

MOST_AT_ONCE = 65_536
"""Addresses one owner can be given in one call."""


class AsyncLedger:
    """One ledger of addresses: who holds which, since when, on whose word.

    A pending or cooling holding whose time is over by the store's clock is free to every reader, though its row stands
    until a logged transaction removes it; until then its owner may still confirm what was pending.
    """

    def __init__(self, end: LedgerApi) -> None:
        self._end = end

    def asked_by(self, actor: str, *, request_id: str | None = None) -> Self:
        """Return the same ledger, of which every change tells on whose word it was made, and by which request."""
        return type(self)(self._end.asked_by(actor, request_id))

    async def _edit(self, edit: edits.Edit) -> Network:
        [result] = await self._end.apply([edit], None)
        assert isinstance(result, Network)
        return result

    async def _one(self, operation: Operation, key: str | None) -> Holding:
        [answer] = await self._end.apply([operation], key)
        assert isinstance(answer, Holding)
        return answer

    async def add_network(
        self,
        name: str,
        *,
        space: str | None = None,
        kind: str = "manual",
        mac_prefix: str | None = None,
        tags: Sequence[str] = (),
        labels: Labels | None = None,
        description: str = "",
    ) -> Network:
        """Add a network, in a space of its own unless one is named."""
        return await self._edit(
            edits.AddNetwork(
                network=name,
                space=space,
                kind=kind,
                mac_prefix=mac_prefix,
                tags=tags,
                labels={} if labels is None else labels,
                description=description,
            )
        )

    async def modify_network(
        self,
        network: str,
        *,
        name: str | Keep = KEEP,
        kind: str | Keep = KEEP,
        mac_prefix: str | Keep | None = KEEP,
        tags: Sequence[str] | Keep = KEEP,
        retired: bool | Keep = KEEP,
        labels: Labels | Keep = KEEP,
        add_labels: Labels | Keep = KEEP,
        remove_labels: Sequence[str] | Keep = KEEP,
        description: str | Keep = KEEP,
    ) -> Network:
        """Change a network; ``name`` renames it, holdings and uuid stay.

        ``labels`` are all that there are to be; ``add_labels`` and ``remove_labels`` leave the others as they are.
        """
        return await self._edit(
            edits.ModifyNetwork(
                network=network,
                name=name,
                kind=kind,
                mac_prefix=mac_prefix,
                tags=tags,
                retired=retired,
                labels=labels,
                add_labels=add_labels,
                remove_labels=remove_labels,
                description=description,
            )
        )

    async def retire_network(self, network: str) -> Network:
        """Stop picking in a network; what is held stays and is released as usual."""
        return await self._edit(edits.ModifyNetwork(network=network, retired=True))

    async def remove_network(self, network: str, *, cascade: bool = False) -> None:
        """Remove a network that nobody uses; with ``cascade`` all its holdings end with it."""
        await self._end.apply([edits.RemoveNetwork(network=network, cascade=cascade)], None)

    async def add_subnet(
        self,
        network: str,
        cidr: NetworkLike,
        *,
        gateway: AddressLike | None = None,
        name: str | None = None,
        dns: Sequence[AddressLike] = (),
        dhcp: bool = False,
        zones: Sequence[str] = (),
        unit: int | None = None,
        keep_back: Sequence[str] | None = None,
        labels: Labels | None = None,
        description: str = "",
    ) -> Subnet:
        """Add a block to a network. ``unit`` is the prefix length it hands out; a single address by default."""
        changed = await self._edit(
            edits.AddSubnet(
                network=network,
                cidr=cidr,
                gateway=gateway,
                name=name,
                dns=dns,
                dhcp=dhcp,
                zones=zones,
                unit=unit,
                keep_back=keep_back,
                labels={} if labels is None else labels,
                description=description,
            )
        )
        # A new subnet stands behind all others.
        return changed.subnets[-1]

    async def modify_subnet(
        self,
        network: str,
        subnet: str,
        *,
        cidr: NetworkLike | Keep = KEEP,
        gateway: AddressLike | Keep | None = KEEP,
        name: str | Keep | None = KEEP,
        dns: Sequence[AddressLike] | Keep = KEEP,
        dhcp: bool | Keep = KEEP,
        zones: Sequence[str] | Keep = KEEP,
        keep_back: Sequence[str] | Keep = KEEP,
        retired: bool | Keep = KEEP,
        labels: Labels | Keep = KEEP,
        add_labels: Labels | Keep = KEEP,
        remove_labels: Sequence[str] | Keep = KEEP,
        description: str | Keep = KEEP,
    ) -> Network:
        """Change a subnet, found by name, block or uuid; ``cidr`` grows, shrinks or moves it.

        ``labels`` are all that there are to be; ``add_labels`` and ``remove_labels`` leave the others as they are.
        """
        return await self._edit(
            edits.ModifySubnet(
                network=network,
                subnet=subnet,
                cidr=cidr,
                gateway=gateway,
                name=name,
                dns=dns,
                dhcp=dhcp,
                zones=zones,
                keep_back=keep_back,
                retired=retired,
                labels=labels,
                add_labels=add_labels,
                remove_labels=remove_labels,
                description=description,
            )
        )

    async def retire_subnet(self, network: str, subnet: str) -> Network:
        """Stop picking in a subnet; what is held stays and is released as usual."""
        return await self._edit(edits.ModifySubnet(network=network, subnet=subnet, retired=True))

    async def remove_subnet(self, network: str, subnet: str, *, cascade: bool = False) -> None:
        """Remove a subnet with its pools and reserved ranges; with ``cascade`` its holdings end with it."""
        await self._end.apply([edits.RemoveSubnet(network=network, subnet=subnet, cascade=cascade)], None)

    async def add_pool(
        self,
        network: str,
        range: RangeLike,
        *,
        name: str | None = None,
        policy: str | None = None,
        cooling_s: int | None = None,
        rank: int | None = None,
        labels: Labels | None = None,
        description: str = "",
    ) -> Network:
        """Add a range to pick from; a name that exists gains a range, which is like its others where nothing is said.

        Where pools are picked from together, those of the lowest ``rank`` that has room are picked from.
        """
        return await self._edit(
            edits.AddPool(
                network=network,
                range=range,
                name=name,
                policy=policy,
                cooling_s=cooling_s,
                rank=rank,
                labels={} if labels is None else labels,
                description=description,
            )
        )

    async def modify_pool(
        self,
        network: str,
        pool: str,
        *,
        name: str | Keep | None = KEEP,
        policy: str | Keep = KEEP,
        cooling_s: int | Keep = KEEP,
        rank: int | Keep = KEEP,
        retired: bool | Keep = KEEP,
        labels: Labels | Keep = KEEP,
        add_labels: Labels | Keep = KEEP,
        remove_labels: Sequence[str] | Keep = KEEP,
        description: str | Keep = KEEP,
    ) -> Network:
        """Change a pool, found by its name or its exact range.

        ``labels`` are all that there are to be; ``add_labels`` and ``remove_labels`` leave the others as they are.
        """
        return await self._edit(
            edits.ModifyPool(
                network=network,
                pool=pool,
                name=name,
                policy=policy,
                cooling_s=cooling_s,
                rank=rank,
                retired=retired,
                labels=labels,
                add_labels=add_labels,
                remove_labels=remove_labels,
                description=description,
            )
        )

    async def retire_pool(self, network: str, pool: str) -> Network:
        """Stop picking from a pool; what is held stays and is released as usual."""
        return await self._edit(edits.ModifyPool(network=network, pool=pool, retired=True))

    async def remove_pool(self, network: str, pool: str) -> Network:
        """Remove a pool by name, or a range from all pools it touches; holdings stay, what is left keeps its name."""
        return await self._edit(edits.RemovePool(network=network, pool=pool))

    async def reserve(
        self,
        network: str,
        range: RangeLike,
        *,
        reason: str = "",
        labels: Labels | None = None,
        description: str = "",
        request: str | None = None,
    ) -> Network:
        """Keep a range away from picking. Held addresses in it stay held."""
        return await self._edit(
            edits.Reserve(
                network=network,
                range=range,
                reason=reason,
                labels={} if labels is None else labels,
                description=description,
                request=request,
            )
        )

    async def unreserve(self, network: str, range: RangeLike) -> Network:
        """Lift a reservation, wholly or in part."""
        return await self._edit(edits.Unreserve(network=network, range=range))

    async def preallocate(
        self,
        network: str,
        owner: str,
        address: AddressLike,
        *,
        slot: str = "",
        labels: Labels | None = None,
        description: str = "",
        request: str | None = None,
    ) -> Network:
        """Let an address wait for one owner: it gets this one, and nobody else does."""
        return await self._edit(
            edits.Preallocate(
                network=network,
                owner=owner,
                address=address,
                slot=slot,
                labels={} if labels is None else labels,
                description=description,
                request=request,
            )
        )

    async def remove_preallocation(self, network: str, owner: str, *, slot: str = "") -> Network:
        """Forget that an address waits for an owner."""
        return await self._edit(edits.RemovePreallocation(network=network, owner=owner, slot=slot))

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
        claim = read_claim(network, owner, key=key, **only(AllocateKeywords, wanted))
        return await self._end.serve(claim, check_patience(claim, wait_s))

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
        claim = read_claim(network, owner, key=key, pending=True, lasts_s=lasts_s, **said)
        return await self._end.serve(claim, check_patience(claim, wait_s))

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
            answers = await self._end.apply(operations, key) if operations else []
            return [answer for answer in answers if isinstance(answer, Holding)]
        holders, slots = [holder for holder, _ in places], [place for _, place in places]
        runs = [AllocateRun(network=name, owners=holders, slots=slots, **said) for name in networks]
        found = await self._end.apply(runs, key) if operations else []
        # Runs come network by network; callers get the addresses of each owner together.
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
        operation = Release(
            network=network,
            address=address,
            owner=owner,
            generation=generation,
            lingers_s=lingers_s,
            request=request,
        )
        return await self._end.release(operation, key)

    async def release_owner(self, owner: str, *, request: str | None = None, key: str | None = None) -> list[Holding]:
        """End all holdings of an owner, in all networks, as one; answers what was held."""
        [held] = await self._end.apply([ReleaseOwner(owner=Owner(owner), request=request)], key)
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
        [answer] = await self._end.apply([operation], key)
        assert answer is None or isinstance(answer, Holding)
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
        add_labels: Mapping[str, str] | Keep = KEEP,
        remove_labels: Sequence[str] | Keep = KEEP,
        description: str | Keep = KEEP,
        carrier: str | Keep | None = KEEP,
        plan: str | Keep | None = KEEP,
        state: str | Keep = KEEP,
        request: str | None = None,
        key: str | None = None,
    ) -> Holding:
        """Change what is written on a holding, or its state: ``draining`` frees the slot, ``held`` takes it back.

        ``labels`` are all that there are to be; ``add_labels`` and ``remove_labels`` leave the others as they are.
        """
        operation = ModifyHolding(
            network=network,
            address=address,
            owner=owner,
            generation=generation,
            labels=labels,
            add_labels=add_labels,
            remove_labels=remove_labels,
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
        return await self._end.apply(operations, key) if check_operations(operations) else []

    async def rehearse(self, operations: Sequence[Operation]) -> list[Shown]:
        """Tell what ``apply`` would answer now, or raise what it would raise; nothing is changed or logged."""
        return await self._end.rehearse(operations) if check_operations(operations) else []

    def inside(self, connection: object) -> AsyncInside:
        """Work inside a transaction that the caller has open on the same database, and will end.

        Nothing is committed here. The lane of each space that is touched is held until the transaction ends.
        """
        return self._end.inside(connection)

    @spelled_out(Allocate)
    async def claim(
        self,
        network: str,
        *,
        owner: str,
        patience_s: float = 60.0,
        key: str | None = None,
        wait_s: float | None = None,
        **wanted: Unpack[ClaimKeywords],
    ) -> ClaimStatus:
        """Ask for an address without an error where none is free: call again to learn whether it has come.

        A claim that meets a full pool is put in line and keeps its place while it is asked for again within
        ``patience_s``, and what it is to get is kept free for it so long; ``withdraw`` takes it out. With ``wait_s``
        the answer waits so long for a grant; whoever is cancelled meanwhile leaves the line. ``pending`` and
        ``lasts_s`` are as in ``hold``.
        """
        patience_us, time_s = check_seconds(patience_s, field="patience_s"), check_wait(wait_s)
        claim = read_claim(network, owner, key=key, **only(ClaimKeywords, wanted))
        return await self._end.claim(claim, patience_us, time_s)

    async def withdraw(self, network: str, *, owner: str, slot: str = "", request_id: str | None = None) -> bool:
        """Take a waiting claim out of the line; returns whether it was in it. What it was granted is not touched.

        With ``request_id``, the id of a waiting request whose answer its caller never saw, what that very request was
        granted is given back, unless another answer has reported the holding meanwhile.
        """
        holder, place = Owner(owner), check_slot(slot)
        asked_as = None if request_id is None else check_name(request_id, field="request_id")
        return await self._end.withdraw(check_name(network, field="network"), holder, place, asked_as)

    async def waiting(self, network: str | None = None) -> list[WaitingClaim]:
        """Read who waits, space by space in order of arrival; in one network, if one is named."""
        return await self._end.waiting(_optional_network(network))

    async def sweep(self) -> list[Holding]:
        """Remove pending and cooling holdings whose deadline has passed, dead claims in line, and old idempotency keys.

        The log names nobody for what time ended, whoever calls this. Nobody needs to: what is overdue is free to
        every reader, and whoever is granted an address removes it before.
        """
        return await self._end.sweep()

    async def spaces(self) -> list[Configuration]:
        """Read all spaces, in order of name."""
        return await self._end.spaces()

    async def networks(self) -> list[Network]:
        """Read all networks, in order of name."""
        return await self._end.networks()

    async def network(self, name: str) -> Network:
        """Read one network."""
        return await self._end.network(check_name(name, field="network"))

    async def holding(self, network: str, address: AddressLike) -> Holding:
        """Read who holds an address (or the prefix it lies in) in a network."""
        name = check_name(network, field="network")
        return await self._end.holding(name, await self._position(address, name))

    async def holdings(
        self,
        network: str | None = None,
        *,
        owner: str | None = None,
        after: AddressLike | None = None,
        limit: int | None = None,
    ) -> list[Holding]:
        """Read holdings of a network, in order of address, or of an owner.

        ``after`` is a cursor: the last address of the page before. Memory and time grow with ``limit``, not the ledger.
        """
        if owner is not None:
            if after is not None or limit is not None:
                raise Invalid("after: an owner's holdings come whole, without cursor and limit", field="after")
            return await self._end.holdings_of([Owner(owner)], _optional_network(network))
        if network is None:
            raise Invalid("network: name a network or an owner", field="network")
        name = check_name(network, field="network")
        start = None if after is None else await self._position(after, name, field="after")
        return await self._end.holdings(name, start, check_limit(limit))

    async def holdings_of(self, owners: Sequence[str]) -> list[Holding]:
        """Read all that owners hold: owner by owner as they are named, each in order of network, slot and address.

        Cost: O(log n) an owner, one question for a thousand of them.
        """
        return await self._end.holdings_of(read_owners(owners), None)

    async def paper(self, kind: str, name: str) -> Paper:
        """Read a document that a door keeps in the ledger."""
        wanted = check_name(name, field="name")
        return await self._end.paper(check_name(kind, field="kind"), wanted)

    async def papers(self, kind: str, *, prefix: str = "", after: str = "", limit: int | None = None) -> list[Paper]:
        """Read papers of a kind whose name begins so, in order of name; ``after`` is a cursor: the last name read."""
        named, begins = check_name(kind, field="kind"), check_text(prefix, field="prefix")
        return await self._end.papers(named, begins, check_text(after, field="after"), check_limit(limit))

    def changes(self, after: int = 0, *, limit: int | None = None) -> AsyncIterator[Change]:
        """Read the log behind a number, in commit order, up to its end."""
        return self._end.changes(after, limit)

    def tail(self, after: int = 0) -> AsyncIterator[Change]:
        """Follow the log from a number on, for ever; every change once, in commit order."""
        return self._end.tail(after)

    async def last_change(self) -> int:
        """Return the number of the newest change."""
        return await self._end.last_change()

    async def why(self, address: AddressLike, *, network: str | None = None) -> Explanation:
        """Explain an address: who, since when, by which request; or why it is not free; in every network it lies in."""
        named = _optional_network(network)
        return await self._end.why(await self._position(address, named), named)

    async def history(self, address: AddressLike, *, network: str | None = None, at: datetime | None = None) -> History:
        """Tell who held an address (or the prefix it lies in), from when until when, and how it ended.

        ``at`` asks who held it at a time. Pending and draining are parts of a tenure, cooling comes after it.
        Cost: O(log n) and the tenures of the address.
        """
        named, time = _optional_network(network), check_time(at)
        return await self._end.history(await self._position(address, named), named, time)

    async def _position(self, address: AddressLike, network: str | None, *, field: str = "address") -> int:
        """Read an address that something is looked up by; a length beside it costs a look at the plan.

        Where several networks have the address, the length need be right in one of them; where none has, there is no
        unit that it could be compared with.
        """
        position, length = parse_unit(address, field=field)
        if length is None:
            return position
        networks = await self._end.networks() if network is None else [await self._end.network(network)]
        around = [subnet for each in networks for subnet in each.subnets if position in subnet.cidr.range]
        alike = [subnet for subnet in around if subnet.unit == length]
        for subnet in (alike or around)[:1]:
            check_unit_length(subnet, position, length, field)
        return position

    async def search(
        self,
        text: str | None = None,
        *,
        labels: Mapping[str, str | None] | None = None,
        kind: str | None = None,
        network: str | None = None,
        limit: int | None = None,
    ) -> list[Found]:
        """Find networks, subnets, pools, reserved ranges, pre-allocations and holdings by text, labels or place.

        An address, a block or a range finds what lies there, in O(log n + answer). Other text is looked for in names,
        owners, addresses and descriptions, whatever its case; a label of None need only be there. Such a search reads
        all holdings, page by page; one of another ``kind`` reads none.
        """
        return await self._end.search(text, labels, kind, network, limit)

    async def verify(self) -> list[Breach]:
        """Check every invariant; an empty list is a clean ledger."""
        return await self._end.verify()

    async def trim_changes(self, before: int) -> None:
        """Drop the log below a number, and what is archived of it; readers who need it will be told (CursorExpired).

        The log tells of it. To keep what ``history`` tells, archive it instead.
        """
        # Never beyond the newest change: a trim must not drop changes that are yet to come.
        await self._end.trim_changes(min(check_before(before), await self._end.last_change() + 1))

    async def archive_changes(self, keep_days: float) -> int:
        """Move changes older than so many days from the log into the archive; return how many were moved.

        ``history`` still tells of them, and ``verify`` checks them; whoever reads the log from before them is told
        (CursorExpired). If others do so at the same time, some of it may be theirs.
        """
        return await self._end.archive_changes(keep_days)

    async def close(self) -> None:
        """Finish what was asked, then let go of the store. Closing twice is once."""
        await self._end.close()

    async def __aenter__(self) -> "AsyncLedger":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def serve_claim(ledger: AsyncLedger, claim: Claim, wait_s: float | None = None) -> Holding:
    """Serve a claim that a door has read itself, as ``allocate`` and ``hold`` serve theirs."""
    return await ledger._end.serve(claim, check_patience(claim, wait_s))


def _optional_network(name: str | None) -> str | None:
    return None if name is None else check_name(name, field="network")


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
