"""The ledger's verbs for callers who block. Written by tools/make_blocking.py from the asynchronous ones."""

from collections.abc import Iterator, Mapping, Sequence

from tenure.kernel.addresses import AddressLike
from tenure.kernel.configuration import Configuration, Network
from tenure.kernel.edits import KEEP, Keep
from tenure.kernel.values import Change, Holding
from tenure.service.blocking_plan import BlockingPlanVerbs
from tenure.service.explaining import Explanation
from tenure.service.operations import Operation, Shown
from tenure.service.verifying import Breach


class BlockingVerbs(BlockingPlanVerbs):
    """Every verb of the asynchronous ledger, run to its end."""

    def allocate(
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
        return self._portal.run(
            self._ledger.allocate(
                network,
                owner=owner,
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
        )

    def allocate_many(
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
        return self._portal.run(
            self._ledger.allocate_many(
                network,
                owners=owners,
                slot=slot,
                pool=pool,
                subnet=subnet,
                policy=policy,
                labels=labels,
                request=request,
            )
        )

    def release(
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
        return self._portal.run(
            self._ledger.release(network, address, owner=owner, generation=generation, request=request)
        )

    def release_owner(self, owner: str, *, request: str | None = None) -> list[Holding]:
        """End all holdings of an owner, in all networks, as one; answers what was held."""
        return self._portal.run(self._ledger.release_owner(owner, request=request))

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
    ) -> Holding:
        """Hand a holding over to another owner; nobody else can get the address in between."""
        return self._portal.run(
            self._ledger.transfer(
                network, address, owner=owner, to=to, to_slot=to_slot, generation=generation, request=request
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
            )
        )

    def apply(self, operations: Sequence[Operation]) -> list[Shown]:
        """Make several edits, allocations, releases and transfers one transaction, judged by the final state.

        They run in the order written. Each has one answer: the holding (or several), the changed network, or None.
        """
        return self._portal.run(self._ledger.apply(operations))

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

    def verify(self) -> list[Breach]:
        """Check every invariant; an empty list is a clean ledger."""
        return self._portal.run(self._ledger.verify())

    def trim_changes(self, before: int) -> None:
        """Drop the log below a number; readers who still need it will be told (CursorExpired)."""
        return self._portal.run(self._ledger.trim_changes(before))
