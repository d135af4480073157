"""The ledger's verbs for callers who block. Written by tools/make_blocking.py from the asynchronous ones."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Unpack

from tenure.kernel.addressing.addresses import AddressLike
from tenure.kernel.addressing.ranges import NetworkLike
from tenure.kernel.holdings.holding_model import Change, Holding, Paper
from tenure.kernel.holdings.tenures import History
from tenure.kernel.plan.edits import KEEP, Keep, Labels, RangeLike
from tenure.kernel.plan.plan_model import Configuration, Network, Subnet
from tenure.service.apply.operations import Allocate, AllocateKeywords, ClaimKeywords, GroupKeywords, Operation, Shown
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.service.ledger.blocking.loop_thread import LoopThread
from tenure.service.ledger.verb_signature import spelled_out
from tenure.service.read.explain import Explanation
from tenure.service.read.presenter import ClaimStatus, WaitingClaim
from tenure.service.read.search import Found
from tenure.service.read.verify import Breach


class BlockingVerbs:
    """Every verb of the asynchronous ledger, run to its end."""

    def __init__(self, ledger: AsyncLedger, portal: LoopThread) -> None:
        self._ledger = ledger
        self._portal = portal

    def add_network(
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
        return self._portal.run(
            self._ledger.add_network(
                name, space=space, kind=kind, mac_prefix=mac_prefix, tags=tags, labels=labels, description=description
            )
        )

    def modify_network(
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
        return self._portal.run(
            self._ledger.modify_network(
                network,
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

    def retire_network(self, network: str) -> Network:
        """Stop picking in a network; what is held stays and is released as usual."""
        return self._portal.run(self._ledger.retire_network(network))

    def remove_network(self, network: str, *, cascade: bool = False) -> None:
        """Remove a network that nobody uses; with ``cascade`` all its holdings end with it."""
        return self._portal.run(self._ledger.remove_network(network, cascade=cascade))

    def add_subnet(
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
        return self._portal.run(
            self._ledger.add_subnet(
                network,
                cidr,
                gateway=gateway,
                name=name,
                dns=dns,
                dhcp=dhcp,
                zones=zones,
                unit=unit,
                keep_back=keep_back,
                labels=labels,
                description=description,
            )
        )

    def modify_subnet(
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
        return self._portal.run(
            self._ledger.modify_subnet(
                network,
                subnet,
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

    def retire_subnet(self, network: str, subnet: str) -> Network:
        """Stop picking in a subnet; what is held stays and is released as usual."""
        return self._portal.run(self._ledger.retire_subnet(network, subnet))

    def remove_subnet(self, network: str, subnet: str, *, cascade: bool = False) -> None:
        """Remove a subnet with its pools and reserved ranges; with ``cascade`` its holdings end with it."""
        return self._portal.run(self._ledger.remove_subnet(network, subnet, cascade=cascade))

    def add_pool(
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
        return self._portal.run(
            self._ledger.add_pool(
                network,
                range,
                name=name,
                policy=policy,
                cooling_s=cooling_s,
                rank=rank,
                labels=labels,
                description=description,
            )
        )

    def modify_pool(
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
        return self._portal.run(
            self._ledger.modify_pool(
                network,
                pool,
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

    def retire_pool(self, network: str, pool: str) -> Network:
        """Stop picking from a pool; what is held stays and is released as usual."""
        return self._portal.run(self._ledger.retire_pool(network, pool))

    def remove_pool(self, network: str, pool: str) -> Network:
        """Remove a pool by name, or a range from all pools it touches; holdings stay, what is left keeps its name."""
        return self._portal.run(self._ledger.remove_pool(network, pool))

    def reserve(
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
        return self._portal.run(
            self._ledger.reserve(network, range, reason=reason, labels=labels, description=description, request=request)
        )

    def unreserve(self, network: str, range: RangeLike) -> Network:
        """Lift a reservation, wholly or in part."""
        return self._portal.run(self._ledger.unreserve(network, range))

    def preallocate(
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
        return self._portal.run(
            self._ledger.preallocate(
                network, owner, address, slot=slot, labels=labels, description=description, request=request
            )
        )

    def remove_preallocation(self, network: str, owner: str, *, slot: str = "") -> Network:
        """Forget that an address waits for an owner."""
        return self._portal.run(self._ledger.remove_preallocation(network, owner, slot=slot))

    @spelled_out(Allocate)
    def allocate(
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
        return self._portal.run(self._ledger.allocate(network, owner=owner, key=key, wait_s=wait_s, **wanted))

    @spelled_out(Allocate)
    def hold(
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
        return self._portal.run(
            self._ledger.hold(network, owner=owner, lasts_s=lasts_s, key=key, wait_s=wait_s, **wanted)
        )

    @spelled_out(Allocate)
    def allocate_many(
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
        return self._portal.run(
            self._ledger.allocate_many(
                network, owners=owners, owner=owner, count=count, contiguous=contiguous, slot=slot, key=key, **wanted
            )
        )

    def release(
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
        return self._portal.run(
            self._ledger.release(
                network, address, owner=owner, generation=generation, lingers_s=lingers_s, request=request, key=key
            )
        )

    def release_owner(self, owner: str, *, request: str | None = None, key: str | None = None) -> list[Holding]:
        """End all holdings of an owner, in all networks, as one; answers what was held."""
        return self._portal.run(self._ledger.release_owner(owner, request=request, key=key))

    def confirm(
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
        return self._portal.run(
            self._ledger.confirm(network, address, owner=owner, generation=generation, request=request, key=key)
        )

    def cancel(
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
        return self._portal.run(
            self._ledger.cancel(network, address, owner=owner, generation=generation, request=request, key=key)
        )

    def transfer(
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
        return self._portal.run(
            self._ledger.transfer(
                network, address, owner=owner, to=to, to_slot=to_slot, generation=generation, request=request, key=key
            )
        )

    def modify_holding(
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
        return self._portal.run(
            self._ledger.modify_holding(
                network,
                address,
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
                key=key,
            )
        )

    def apply(self, operations: Sequence[Operation], *, key: str | None = None) -> list[Shown]:
        """Make several edits, allocations, releases and transfers one transaction, judged by the final state.

        They run in the order written. Each has one answer: the holding (or several), the changed network, or None.
        Edits of one network all answer the network as it is at the end, or None if one of them removed it.
        Transfers that stand next to each other change hands together, so two owners may swap.
        """
        return self._portal.run(self._ledger.apply(operations, key=key))

    def rehearse(self, operations: Sequence[Operation]) -> list[Shown]:
        """Tell what ``apply`` would answer now, or raise what it would raise; nothing is changed or logged."""
        return self._portal.run(self._ledger.rehearse(operations))

    @spelled_out(Allocate)
    def claim(
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
        return self._portal.run(
            self._ledger.claim(network, owner=owner, patience_s=patience_s, key=key, wait_s=wait_s, **wanted)
        )

    def withdraw(self, network: str, *, owner: str, slot: str = "", request_id: str | None = None) -> bool:
        """Take a waiting claim out of the line; returns whether it was in it. What it was granted is not touched.

        With ``request_id``, the id of a waiting request whose answer its caller never saw, what that very request was
        granted is given back, unless another answer has reported the holding meanwhile.
        """
        return self._portal.run(self._ledger.withdraw(network, owner=owner, slot=slot, request_id=request_id))

    def waiting(self, network: str | None = None) -> list[WaitingClaim]:
        """Read who waits, space by space in order of arrival; in one network, if one is named."""
        return self._portal.run(self._ledger.waiting(network))

    def sweep(self) -> list[Holding]:
        """Remove pending and cooling holdings whose deadline has passed, dead claims in line, and old idempotency keys.

        The log names nobody for what time ended, whoever calls this. Nobody needs to: what is overdue is free to
        every reader, and whoever is granted an address removes it before.
        """
        return self._portal.run(self._ledger.sweep())

    def spaces(self) -> list[Configuration]:
        """Read all spaces, in order of name."""
        return self._portal.run(self._ledger.spaces())

    def networks(self) -> list[Network]:
        """Read all networks, in order of name."""
        return self._portal.run(self._ledger.networks())

    def network(self, name: str) -> Network:
        """Read one network."""
        return self._portal.run(self._ledger.network(name))

    def holding(self, network: str, address: AddressLike) -> Holding:
        """Read who holds an address (or the prefix it lies in) in a network."""
        return self._portal.run(self._ledger.holding(network, address))

    def holdings(
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
        return self._portal.run(self._ledger.holdings(network, owner=owner, after=after, limit=limit))

    def holdings_of(self, owners: Sequence[str]) -> list[Holding]:
        """Read all that owners hold: owner by owner as they are named, each in order of network, slot and address.

        Cost: O(log n) an owner, one question for a thousand of them.
        """
        return self._portal.run(self._ledger.holdings_of(owners))

    def paper(self, kind: str, name: str) -> Paper:
        """Read a document that a door keeps in the ledger."""
        return self._portal.run(self._ledger.paper(kind, name))

    def papers(self, kind: str, *, prefix: str = "", after: str = "", limit: int | None = None) -> list[Paper]:
        """Read papers of a kind whose name begins so, in order of name; ``after`` is a cursor: the last name read."""
        return self._portal.run(self._ledger.papers(kind, prefix=prefix, after=after, limit=limit))

    def changes(self, after: int = 0, *, limit: int | None = None) -> Iterator[Change]:
        """Read the log behind a number, in commit order, up to its end."""
        return self._portal.iterate(self._ledger.changes(after, limit=limit))

    def tail(self, after: int = 0) -> Iterator[Change]:
        """Follow the log from a number on, for ever; every change once, in commit order."""
        return self._portal.iterate(self._ledger.tail(after))

    def last_change(self) -> int:
        """Return the number of the newest change."""
        return self._portal.run(self._ledger.last_change())

    def why(self, address: AddressLike, *, network: str | None = None) -> Explanation:
        """Explain an address: who, since when, by which request; or why it is not free; in every network it lies in."""
        return self._portal.run(self._ledger.why(address, network=network))

    def history(self, address: AddressLike, *, network: str | None = None, at: datetime | None = None) -> History:
        """Tell who held an address (or the prefix it lies in), from when until when, and how it ended.

        ``at`` asks who held it at a time. Pending and draining are parts of a tenure, cooling comes after it.
        Cost: O(log n) and the tenures of the address.
        """
        return self._portal.run(self._ledger.history(address, network=network, at=at))

    def search(
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
        return self._portal.run(self._ledger.search(text, labels=labels, kind=kind, network=network, limit=limit))

    def verify(self) -> list[Breach]:
        """Check every invariant; an empty list is a clean ledger."""
        return self._portal.run(self._ledger.verify())

    def trim_changes(self, before: int) -> None:
        """Drop the log below a number, and what is archived of it; readers who need it will be told (CursorExpired).

        The log tells of it. To keep what ``history`` tells, archive it instead.
        """
        return self._portal.run(self._ledger.trim_changes(before))

    def archive_changes(self, keep_days: float) -> int:
        """Move changes older than so many days from the log into the archive; return how many were moved.

        ``history`` still tells of them, and ``verify`` checks them; whoever reads the log from before them is told
        (CursorExpired). If others do so at the same time, some of it may be theirs.
        """
        return self._portal.run(self._ledger.archive_changes(keep_days))
