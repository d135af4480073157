"""The ledger's verbs for callers who block. Written by tools/make_blocking.py from the asynchronous ones."""

from collections.abc import Iterator, Mapping, Sequence

from tenure.kernel.addresses import AddressLike
from tenure.kernel.configuration import Configuration, Network, Subnet
from tenure.kernel.edits import KEEP, Keep, Labels, RangeLike
from tenure.kernel.ranges import NetworkLike
from tenure.kernel.values import Change, Holding
from tenure.service.explaining import Explanation
from tenure.service.ledger import AsyncLedger
from tenure.service.operations import Operation, Shown
from tenure.service.portal import Portal
from tenure.service.verifying import Breach


class BlockingVerbs:
    """Every verb of the asynchronous ledger, run to its end."""

    def __init__(self, ledger: AsyncLedger, portal: Portal) -> None:
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
        description: str | Keep = KEEP,
    ) -> Network:
        """Change a network; ``name`` renames it, holdings and uuid stay."""
        return self._portal.run(
            self._ledger.modify_network(
                network,
                name=name,
                kind=kind,
                mac_prefix=mac_prefix,
                tags=tags,
                retired=retired,
                labels=labels,
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
        description: str | Keep = KEEP,
    ) -> Network:
        """Change a subnet, found by name, block or uuid; ``cidr`` grows, shrinks or moves it."""
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
        cooling_s: int = 0,
        labels: Labels | None = None,
        description: str = "",
    ) -> Network:
        """Add a range to pick from; a name that exists gains a range."""
        return self._portal.run(
            self._ledger.add_pool(
                network, range, name=name, policy=policy, cooling_s=cooling_s, labels=labels, description=description
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
        retired: bool | Keep = KEEP,
        labels: Labels | Keep = KEEP,
        description: str | Keep = KEEP,
    ) -> Network:
        """Change a pool, found by its name or its exact range."""
        return self._portal.run(
            self._ledger.modify_pool(
                network,
                pool,
                name=name,
                policy=policy,
                cooling_s=cooling_s,
                retired=retired,
                labels=labels,
                description=description,
            )
        )

    def retire_pool(self, network: str, pool: str) -> Network:
        """Stop picking from a pool; what is held stays and is released as usual."""
        return self._portal.run(self._ledger.retire_pool(network, pool))

    def remove_pool(self, network: str, pool: str) -> Network:
        """Remove a pool by name, or a range from all pools it touches; holdings stay, what is left keeps its name."""
        return self._portal.run(self._ledger.remove_pool(network, pool))

    def reserve(self, network: str, range: RangeLike, *, reason: str = "") -> Network:
        """Keep a range away from picking. Held addresses in it stay held."""
        return self._portal.run(self._ledger.reserve(network, range, reason=reason))

    def unreserve(self, network: str, range: RangeLike) -> Network:
        """Lift a reservation, wholly or in part."""
        return self._portal.run(self._ledger.unreserve(network, range))

    def preallocate(self, network: str, owner: str, address: AddressLike, *, slot: str = "") -> Network:
        """Let an address wait for one owner: it gets this one, and nobody else does."""
        return self._portal.run(self._ledger.preallocate(network, owner, address, slot=slot))

    def remove_preallocation(self, network: str, owner: str, *, slot: str = "") -> Network:
        """Forget that an address waits for an owner."""
        return self._portal.run(self._ledger.remove_preallocation(network, owner, slot=slot))

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
