"""The ledger's verbs for callers who block. Written by tools/make_blocking.py from the asynchronous ones."""

from collections.abc import Mapping, Sequence
from typing import Unpack

from tenure.kernel.addresses import AddressLike
from tenure.kernel.edits import KEEP, Keep
from tenure.kernel.values import Holding
from tenure.service.blocking_reading import BlockingReadingVerbs
from tenure.service.operations import Allocate, AllocateKeywords, ClaimKeywords, GroupKeywords, Operation, Shown
from tenure.service.showing import ClaimStatus, WaitingClaim
from tenure.service.verb_signature import spelled_out
from tenure.service.verifying import Breach


class BlockingVerbs(BlockingReadingVerbs):
    """Every verb of the asynchronous ledger, run to its end."""

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
        description: str | Keep = KEEP,
        carrier: str | Keep | None = KEEP,
        plan: str | Keep | None = KEEP,
        state: str | Keep = KEEP,
        request: str | None = None,
        key: str | None = None,
    ) -> Holding:
        """Change what is written on a holding, or its state: ``draining`` frees the slot, ``held`` takes it back."""
        return self._portal.run(
            self._ledger.modify_holding(
                network,
                address,
                owner=owner,
                generation=generation,
                labels=labels,
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
